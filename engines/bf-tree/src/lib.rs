//! Bf-Tree as an engine: a B-tree whose cache holds hot records instead of pages (X. Hao and B. Chandramouli, *Bf-Tree:
//! A Modern Read-Write-Optimized Concurrent Larger-Than-Memory Range Index*, VLDB 2024). Built in.
//!
//! The library has no transactions. A session writes one key at a time and excludes other writers with a lock of
//! rumba's (`locks`). The library writes a log but does not read it back; `replay` does.
#![deny(missing_docs)]

mod files;
mod instance;
mod locks;
mod log_room;
mod options;
mod replay;
mod session;

use std::path::Path;

use bf_tree::StorageBackend;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Schema,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::MemoryNeed;
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;

use crate::instance::BfTreeInstance;
use crate::options::{Options, SETTINGS};

/// The library's version, which its API does not report.
const VERSION: &str = "0.5.7";

/// The engine `bf-tree`.
#[derive(Clone, Copy, Debug, Default)]
pub struct BfTree;

static INFO: EngineInfo = EngineInfo {
    name: "bf-tree",
    about: "Bf-Tree: a B-tree with a cache of records and not of pages; no transactions",
    family: Family::KeyValue,
    form: Form::BuiltIn,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: false,
    compressions: &["none"],
    settings: SETTINGS,
};

/// Error for a configuration that [`Engine::check`] should have refused.
fn refused(error: &SettingError) -> EngineError {
    EngineError::failed("open", format!("{error}; {remedy}", remedy = error.remedy))
}

impl Engine for BfTree {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    /// There is no isolation; the comparability check warns about that automatically.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let options = Options::of(config);
        let has_log = options.as_ref().ok().map(|options| options.log.is_some());
        let reads = options.ok().map(|options| match options.backend {
            StorageBackend::Std => Reads::Buffered,
            _ => Reads::Direct,
        });
        EngineTraits { isolation: None, has_log, reads }
    }

    fn availability(&self, _requested: BuildSelector<'_>) -> Availability {
        Availability::built_in(VERSION)
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Options::of(config).map(drop)
    }

    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let options = Options::of(config).map_err(|error| refused(&error))?;
        Ok(Box::new(BfTreeInstance::create(dir, options, schema.key_spaces()?)?))
    }

    /// A tree recovered from a snapshot always uses the standard I/O backend, so other backends cannot reopen.
    fn reopens(&self, config: &EngineConfig) -> bool {
        Options::of(config).is_ok_and(|options| options.has_snapshots && options.backend == StorageBackend::Std)
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let options = Options::of(config).map_err(|error| refused(&error))?;
        Ok(Box::new(BfTreeInstance::open_again(dir, options, schema.key_spaces()?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_library_that_is_built_in() {
        let locked = include_str!("../../../Cargo.lock");
        assert!(locked.contains(&format!("name = \"bf-tree\"\nversion = \"{VERSION}\"\n")), "{VERSION} is not locked");
    }
}
