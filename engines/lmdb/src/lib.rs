//! LMDB as an engine: a memory-mapped, copy-on-write B+tree with one writer
//! and any number of readers that never wait for it. Built in.
//!
//! The library is called through its own interface and not through a wrapper:
//! a read must renew and reset one transaction per session
//! (`mdb_txn_renew`, `mdb_txn_reset`) to allocate nothing and take no lock.
#![deny(missing_docs)]

mod instance;
mod options;
mod raw;
mod room;
mod session;

use std::path::Path;

use rumba_core::engine::{Asked, Availability, Engine, EngineConfig, EngineError, Family, Instance, require_database};
use rumba_core::kv::KeySpace;
use rumba_core::memory::MemoryNeed;
use rumba_core::parity::{Nature, Reads};
use rumba_core::setting::{SettingError, SettingInfo};

use crate::instance::LmdbInstance;
use crate::options::{Options, SETTINGS};

/// The engine `lmdb`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lmdb;

impl Engine for Lmdb {
    fn name(&self) -> &'static str {
        "lmdb"
    }

    fn about(&self) -> &'static str {
        "LMDB: a memory-mapped copy-on-write B+tree; one writer, readers that never wait"
    }

    fn family(&self) -> Family {
        Family::KeyValue
    }

    fn settings(&self) -> &'static [SettingInfo] {
        SETTINGS
    }

    fn compressions(&self) -> &'static [&'static str] {
        &["none"]
    }

    /// It reads from its map, which the operating system's page cache holds.
    fn has_cache(&self) -> bool {
        false
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), self.name())
    }

    /// One writer at a time, readers of a snapshot; it keeps no log.
    fn nature(&self, _config: &EngineConfig) -> Nature {
        Nature::new("SERIALIZABLE", false, Reads::Mapped)
    }

    fn availability(&self, _asked: Asked<'_>) -> Availability {
        Availability { version: Some(raw::version()), source: "built in".to_owned(), missing: None }
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Options::of(config).map(drop)
    }

    fn open(&self, dir: &Path, config: &EngineConfig, spaces: &[KeySpace]) -> Result<Box<dyn Instance>, EngineError> {
        let options = Options::of(config)
            .map_err(|error| EngineError::failed("Lmdb::open", format!("{error}; {remedy}", remedy = error.remedy)))?;
        Ok(Box::new(LmdbInstance::open(dir, &options, spaces)?))
    }

    fn reopens(&self, _config: &EngineConfig) -> bool {
        true
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, spaces: &[KeySpace]) -> Result<Box<dyn Instance>, EngineError> {
        require_database(dir, "data.mdb")?;
        self.open(dir, config, spaces)
    }
}
