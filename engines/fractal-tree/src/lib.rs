//! The `fractal-tree` engine: PerconaFT's B-tree whose inner nodes hold buffers of messages. It has one tree per key
//! space, behind the key-value session.
//!
//! rumba loads the library at run time, from `library` or from the path in the variable of [`LIBRARY`]. It links and
//! copies nothing of it. See `docs/engines/fractal-tree.md`.
#![deny(unsafe_code)]
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod instance;
mod options;
#[allow(unsafe_code)]
mod raw;
mod session;
mod status;

use std::path::Path;

use rumba_engine_api::engine::{
    Availability, BuildSelector, Durability, Engine, EngineConfig, EngineInfo, ExternalLibrary, Family, Form, Instance,
    Schema, require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;

use crate::instance::FractalTreeInstance;
use crate::options::{COMPRESSIONS, Options, SETTINGS};
use crate::raw::{Library, install};

/// The engine `fractal-tree`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FractalTree;

/// PerconaFT's library, which no distribution packages.
pub const LIBRARY: ExternalLibrary =
    ExternalLibrary { variable: "RUMBA_FRACTAL_TREE", page: "docs/engines/fractal-tree.md" };

static INFO: EngineInfo = EngineInfo {
    name: "fractal-tree",
    about: "PerconaFT: B-tree with buffers of messages in its inner nodes, TokuDB's engine (a library that you build)",
    family: Family::KeyValue,
    form: Form::Library,
    brought: Some(LIBRARY),
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: COMPRESSIONS,
    settings: SETTINGS,
};

impl Engine for FractalTree {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    /// Transactions have snapshot reads, except that reads which lock a row return its latest value.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let is_direct = config.settings.bool("direct_io") == Some(true);
        let reads = if is_direct { Reads::Direct } else { Reads::Buffered };
        EngineTraits::new("REPEATABLE READ", config.durability != Durability::None, reads)
    }

    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let is_buffered = self.nature(config).reads == Some(Reads::Buffered);
        is_buffered.then_some(AdvisedCache { bytes: memory_bytes / 2, rule: "half of it, TokuDB's default" })
    }

    fn compression(&self, config: &EngineConfig) -> Option<String> {
        Some(config.compression.clone().unwrap_or_else(|| options::DEFAULT.to_owned()))
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        match Library::load(requested.library) {
            Ok(library) => Availability::here(Some(library.version().to_owned()), library.path().display().to_string()),
            Err(error) => {
                let source = Library::named(requested.library).display().to_string();
                Availability::lacking(source, error, install())
            }
        }
    }

    /// A missing library is reported by [`Engine::availability`], not here.
    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Options::of(config).map(drop)
    }

    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        opened(dir, config, schema, true)
    }

    /// The library finds its next transaction number in the log. Without a log the numbers restart, and rows that
    /// higher-numbered transactions wrote become invisible.
    fn reopens(&self, config: &EngineConfig) -> bool {
        config.durability != Durability::None
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        if !self.reopens(config) {
            return Err(EngineError::failed(
                "reopen",
                "without a log it cannot be opened again; set durability = \"no-sync\"",
            ));
        }
        require_database(dir, "tokudb.environment")?;
        opened(dir, config, schema, false)
    }
}

fn opened(dir: &Path, config: &EngineConfig, schema: Schema<'_>, is_new: bool) -> Result<Box<dyn Instance>> {
    let options = Options::of(config)
        .map_err(|error| EngineError::failed("open", format!("{error}; {remedy}", remedy = error.remedy)))?;
    let library = Library::load(config.library.as_deref())
        .map_err(|error| EngineError::failed("dlopen", format!("{error}; {remedy}", remedy = install())))?;
    Ok(Box::new(FractalTreeInstance::open(&library, dir, options, schema.key_spaces()?, is_new)?))
}
