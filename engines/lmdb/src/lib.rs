//! LMDB as an engine: a memory-mapped, copy-on-write B+tree with one writer and any number of readers that never wait
//! for it. Built in.
//!
//! rumba calls the library's own interface instead of a wrapper. A read must renew and reset one transaction per
//! session (`mdb_txn_renew`, `mdb_txn_reset`), so that it allocates no memory and takes no lock.
#![deny(missing_docs)]

mod instance;
mod options;
mod raw;
mod room;
mod session;

use std::path::Path;

use rumba_engine_api::common::OverriddenSettings;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Schema, require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::MemoryNeed;
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;

use crate::instance::LmdbInstance;
use crate::options::{Options, SETTINGS};

/// The engine `lmdb`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lmdb;

static INFO: EngineInfo = EngineInfo {
    name: "lmdb",
    about: "LMDB: a memory-mapped copy-on-write B+tree; one writer, readers that never wait",
    family: Family::KeyValue,
    form: Form::BuiltIn,
    brought: None,
    keeps_data: true,
    // LMDB reads from its memory map, which the kernel's page cache holds.
    has_cache: false,
    has_transactions: true,
    compressions: &["none"],
    settings: SETTINGS,
};

impl Engine for Lmdb {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    /// One writer at a time, snapshot reads, and no log.
    fn nature(&self, _config: &EngineConfig) -> EngineTraits {
        EngineTraits::new("SERIALIZABLE", false, Reads::Mapped)
    }

    fn fit_to_data(&self, config: &mut EngineConfig, data_bytes: u64, memory_bytes: u64) -> Option<String> {
        options::fit_to_data(config, data_bytes, memory_bytes)
    }

    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        options::overruled(config)
    }

    fn availability(&self, _requested: BuildSelector<'_>) -> Availability {
        Availability::built_in(raw::version())
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Options::of(config).map(drop)
    }

    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let options = Options::of(config)
            .map_err(|error| EngineError::failed("Lmdb::open", format!("{error}; {remedy}", remedy = error.remedy)))?;
        Ok(Box::new(LmdbInstance::open(dir, &options, schema.key_spaces()?)?))
    }

    fn reopens(&self, _config: &EngineConfig) -> bool {
        true
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        require_database(dir, "data.mdb")?;
        self.open(dir, config, schema)
    }
}
