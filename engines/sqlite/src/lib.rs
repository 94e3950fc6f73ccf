//! SQLite as an engine: B-trees in one file, a write-ahead log, SQL, one writer at a time. Built in.
//!
//! Connections are opened through rusqlite; statements use SQLite's own interface, so that an execution allocates no
//! memory.
#![deny(missing_docs)]

mod busy;
mod cache;
mod instance;
mod pragmas;
mod raw;
mod session;
mod status;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::common::OverriddenSettings;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Schema, require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;
use rumba_engine_api::sql::{Dialect, SqlSession};

use crate::instance::SqliteInstance;
use crate::pragmas::{Pragmas, SETTINGS};
use crate::raw::Handle;
use crate::session::SqliteSession;

/// The engine `sqlite`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sqlite;

static INFO: EngineInfo = EngineInfo {
    name: "sqlite",
    about: "SQLite: B-trees in one file with a write-ahead log; one writer with concurrent readers",
    family: Family::Sql(Dialect::Sqlite),
    form: Form::BuiltIn,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: &["none"],
    settings: SETTINGS,
};

impl Engine for Sqlite {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    /// One writer at a time, snapshot reads.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let settings = config.settings.with_defaults(SETTINGS);
        let journal = settings.text("journal_mode").unwrap_or_default();
        let has_log = !journal.eq_ignore_ascii_case("off") && !journal.eq_ignore_ascii_case("memory");
        EngineTraits::new("SERIALIZABLE", has_log, Reads::Buffered)
    }

    /// SQLite leaves most caching to the operating system: its default is 2 MB for a connection.
    fn advised_cache(&self, _config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        Some(AdvisedCache { bytes: memory_bytes / 4, rule: "a quarter of it, shared by all connections" })
    }

    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        pragmas::overruled(config)
    }

    fn availability(&self, _requested: BuildSelector<'_>) -> Availability {
        Availability::built_in(rusqlite::version())
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Pragmas::of(config).map(drop)
    }

    fn open(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let pragmas = Pragmas::of(config)
            .map_err(|error| EngineError::failed("Sqlite::open", format!("{error}; {}", error.remedy)))?;
        Ok(Box::new(SqliteInstance::open(dir, pragmas, config.cache)?))
    }

    fn reopens(&self, _config: &EngineConfig) -> bool {
        true
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        require_database(dir, instance::FILE)?;
        self.open(dir, config, schema)
    }
}

/// A session on a database file, independent of any instance. `pragmas` are its setup statements. It waits for other
/// writers for up to `busy_timeout_ms`.
///
/// # Errors
/// SQLite's error.
pub fn session(file: &Path, pragmas: &str, busy_timeout_ms: u32) -> Result<Box<dyn SqlSession>> {
    let handle = Handle::open(file)?;
    handle.pause_shortly(busy_timeout_ms)?;
    // A change of the journal mode does not wait, even with a busy handler.
    let last = Instant::now() + Duration::from_millis(u64::from(busy_timeout_ms));
    while let Err(error) = handle.run(pragmas) {
        if !error.is_conflict() || Instant::now() > last {
            return Err(error);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Box::new(SqliteSession::new(handle, None, Arc::default())))
}
