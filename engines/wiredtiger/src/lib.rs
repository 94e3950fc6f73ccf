//! The `wiredtiger` engine: WiredTiger 3.2's row-store B-trees, one per key space, behind the key-value session.
//!
//! rumba loads the library at run time from the system or from `library`. It links and copies nothing of it. See
//! `docs/engines/wiredtiger.md`.
#![deny(unsafe_code)]
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod config;
mod instance;
#[allow(unsafe_code)]
mod raw;
mod session;
mod settings;
mod statistics;

use std::path::Path;
use std::sync::Arc;

use rumba_engine_api::engine::{
    Availability, BuildSelector, Durability, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Schema,
    require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;

use crate::config::Configs;
use crate::instance::WiredTigerInstance;
use crate::raw::{INSTALL, Library};

/// WiredTiger.
pub struct WiredTiger;

static INFO: EngineInfo = EngineInfo {
    name: "wiredtiger",
    about: "WiredTiger 3.2: B-tree with in-memory updates and checkpoints, MongoDB's engine (library loaded at run time)",
    family: Family::KeyValue,
    form: Form::Library,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: config::COMPRESSIONS,
    settings: settings::SETTINGS,
};

impl Engine for WiredTiger {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let has_log = config.settings.bool("log.enabled").unwrap_or(config.durability != Durability::None);
        let is_direct = config.settings.text("direct_io").is_some_and(|files| files.contains("data"));
        EngineTraits::new("SNAPSHOT", has_log, if is_direct { Reads::Direct } else { Reads::Buffered })
    }

    /// MongoDB's rule for its WiredTiger, with a lower bound that suits small limits.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let rule = "half of what is beyond 1 GiB, MongoDB's rule, and a quarter of it at least";
        let bytes = (memory_bytes.saturating_sub(1 << 30) / 2).max(memory_bytes / 4);
        let is_buffered = self.nature(config).reads == Some(Reads::Buffered);
        is_buffered.then_some(AdvisedCache { bytes, rule })
    }

    fn compression(&self, config: &EngineConfig) -> Option<String> {
        Some(config.compression.clone().unwrap_or_else(|| "none".to_owned()))
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        match Library::load(requested.library) {
            Ok(library) => {
                let (version, source) = (library.version().to_owned(), library.path().display().to_string());
                let adjacent = config::COMPRESSIONS.iter().filter_map(|name| library.compressor(name).ok()).collect();
                Availability { adjacent, ..Availability::here(Some(version), source) }
            }
            Err(error) => {
                let source =
                    requested.library.map_or_else(|| "libwiredtiger".to_owned(), |path| path.display().to_string());
                Availability::lacking(source, error, INSTALL)
            }
        }
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        config::map(config)?;
        match Library::load(config.library.as_deref()) {
            Ok(library) => config::rehearse(&library, config),
            // A missing library is reported by `availability`.
            Err(_) => Ok(()),
        }
    }

    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let (library, configs) = prepared(config)?;
        Ok(Box::new(WiredTigerInstance::open(&library, dir, configs, schema.key_spaces()?, true)?))
    }

    fn reopens(&self, _config: &EngineConfig) -> bool {
        true
    }

    /// Existing tables are not created again.
    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        require_database(dir, "WiredTiger.turtle")?;
        let (library, configs) = prepared(config)?;
        Ok(Box::new(WiredTigerInstance::open(&library, dir, configs, schema.key_spaces()?, false)?))
    }
}

fn prepared(config: &EngineConfig) -> Result<(Arc<Library>, Configs)> {
    let library = Library::load(config.library.as_deref())
        .map_err(|error| EngineError::failed("dlopen", format!("{error}; install it: {INSTALL}")))?;
    let configs = config::map_for(&library, config)
        .map_err(|error| EngineError::failed("wiredtiger_open", format!("{error}; {}", error.remedy)))?;
    Ok((library, configs))
}
