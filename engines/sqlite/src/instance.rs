//! A provisioned SQLite: a database file and a control connection.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::engine::{Gauge, Instance, Session};
use rumba_engine_api::error::{EngineError, Result};

use crate::cache::Cache;
use crate::pragmas::Pragmas;
use crate::raw::{Handle, allocations_uncounted};
use crate::session::SqliteSession;
use crate::status::StatusBoard;

/// The database file in the data directory.
pub(crate) const FILE: &str = "rumba.sqlite";

/// Bytes of header before each page in the log (sqlite.org/fileformat2.html, 4.1).
const WAL_FRAME_HEADER: u64 = 24;

/// Rows that ANALYZE reads per index: the upper end of SQLite's recommendation (sqlite.org/lang_analyze.html). Without
/// a limit it reads every index completely.
const ANALYSIS_LIMIT: u32 = 1000;

/// An open database.
pub(crate) struct SqliteInstance {
    file: PathBuf,
    pragmas: Pragmas,
    cache: Arc<Cache>,
    cache_bytes: u64,
    status: StatusBoard,
    /// Stays open between phases, so that the last session to close does not silently write a checkpoint. With
    /// `locking_mode = exclusive` it is open only while needed, because it would lock the session out.
    control: Mutex<Option<Handle>>,
}

impl SqliteInstance {
    /// Creates a database in an empty directory, and fails if the effective pragmas differ from the requested ones.
    pub fn open(dir: &Path, pragmas: Pragmas, cache_bytes: u64) -> Result<Self> {
        let instance = Self {
            file: dir.join(FILE),
            pragmas,
            cache: Cache::new(cache_bytes),
            cache_bytes,
            status: StatusBoard::default(),
            control: Mutex::new(None),
        };
        // The first write fixes the page size; "RUMB" makes the database recognizable for file(1).
        instance.with_control(|control| control.run("PRAGMA application_id = 0x52554d42"))?;
        Ok(instance)
    }

    /// A connection with the instance's pragmas and a cache for only the pages in use.
    fn connect(&self) -> Result<Handle> {
        let handle = Handle::open(&self.file)?;
        self.pragmas.apply(&handle)?;
        handle.resize_cache(0)?;
        Ok(handle)
    }

    fn with_control<T>(&self, work: impl FnOnce(&Handle) -> Result<T>) -> Result<T> {
        // A panic elsewhere leaves the connection usable.
        let mut held = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let control = match held.take() {
            Some(control) => control,
            None => self.connect().map_err(|error| self.explain_exclusive(error))?,
        };
        let result = work(&control);
        if !self.pragmas.is_exclusive {
            *held = Some(control);
        }
        result
    }

    fn explain_exclusive(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Conflict { why, .. } if self.pragmas.is_exclusive => EngineError::Failed {
                call: "sqlite3_open_v2",
                message: format!("{why}; locking_mode = \"exclusive\" allows one session: use normal, or one client"),
            },
            other => other,
        }
    }

    /// Writes the log back to the database, truncates it, and syncs the database.
    fn checkpoint(&self, control: &Handle) -> Result<()> {
        let answer = control.first_row("PRAGMA wal_checkpoint(TRUNCATE)")?;
        if answer.first().is_some_and(|busy| busy != "0") {
            let message = "a session is inside a transaction, so the log cannot be emptied; end it first";
            return Err(EngineError::failed("PRAGMA wal_checkpoint(TRUNCATE)", message));
        }
        // An earlier checkpoint may have written pages without a sync.
        control.sync_file()
    }

    /// Bytes in the log that are not yet in the database file; `None` without a log.
    fn uncheckpointed_bytes(&self) -> Result<Option<u64>> {
        self.with_control(|control| {
            let answer = control.first_row("PRAGMA wal_checkpoint(NOOP)")?;
            let number = |column: usize| answer.get(column).and_then(|text| text.parse::<u64>().ok());
            let page_size: Option<u64> = control.pragma("page_size")?.parse().ok();
            // Both are -1, and so not a valid u64, if the journal is not a log.
            Ok(match (number(1), number(2), page_size) {
                (Some(frames), Some(done), Some(page)) => Some(frames.saturating_sub(done) * (page + WAL_FRAME_HEADER)),
                _ => None,
            })
        })
    }

    /// The length of the log file, used or not; `None` if there is none.
    fn wal_file_bytes(&self) -> Option<Gauge> {
        let mut wal = self.file.clone().into_os_string();
        wal.push("-wal");
        // Only read the metadata: opening and closing the file would drop SQLite's locks.
        std::fs::metadata(wal).ok().map(|wal| Gauge::new("wal_file_bytes", wal.len() as f64))
    }
}

impl Instance for SqliteInstance {
    fn session(&self) -> Result<Session> {
        let handle = self.connect().map_err(|error| self.explain_exclusive(error))?;
        let share = match self.pragmas.cache_size {
            Some(size) => {
                handle.run(&format!("PRAGMA cache_size = {size}"))?;
                None
            }
            None => Some(self.cache.join()),
        };
        Ok(Session::Sql(Box::new(SqliteSession::new(handle, share, self.status.join()))))
    }

    /// Collects statistics for the planner, then empties the log.
    fn settle(&self) -> Result<()> {
        self.with_control(|control| {
            control.run(&format!("PRAGMA analysis_limit = {ANALYSIS_LIMIT}; ANALYZE; PRAGMA optimize"))?;
            self.checkpoint(control)
        })
    }

    fn drain(&self) -> Result<()> {
        self.with_control(|control| self.checkpoint(control))
    }

    /// Log frames that no checkpoint has written back yet. Empty without a log, because a rollback journal defers no
    /// work.
    fn debt(&self) -> Vec<Gauge> {
        // The query would wait for the only permitted session.
        let frames = if self.pragmas.is_exclusive { None } else { self.uncheckpointed_bytes().ok() };
        match frames {
            Some(Some(bytes)) => vec![Gauge::new("wal_uncheckpointed_bytes", bytes as f64)],
            Some(None) => Vec::new(),
            // The exact number is unknown; the log's length is its upper bound.
            None => self.wal_file_bytes().into_iter().collect(),
        }
    }

    fn counters(&self) -> Vec<Gauge> {
        let mut counters = self.status.counters();
        counters.extend(self.wal_file_bytes());
        if self.pragmas.is_exclusive {
            return counters;
        }
        for (pragma, name) in [("page_count", "page_count"), ("freelist_count", "freelist_count_pages")] {
            let value = self.with_control(|control| control.pragma(pragma));
            if let Some(value) = value.ok().and_then(|text| text.parse().ok()) {
                counters.push(Gauge::new(name, value));
            }
        }
        counters
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let allocations = if allocations_uncounted() { "off" } else { "on: SQLite was in use before" };
        let mut settings = vec![
            ("cache".to_owned(), self.pragmas.describe_cache(self.cache_bytes)),
            ("threading mode".to_owned(), "multi-thread (SQLITE_OPEN_NOMUTEX)".to_owned()),
            ("SQLITE_CONFIG_MEMSTATUS".to_owned(), allocations.to_owned()),
        ];
        let read = self.with_control(|control| {
            let mut read = self.pragmas.read_back(control);
            read.push(("foreign_keys".to_owned(), control.pragma("foreign_keys")?));
            Ok(read)
        });
        match read {
            Ok(read) => settings.extend(read),
            Err(error) => settings.push(("pragmas".to_owned(), error.to_string())),
        }
        settings
    }

    /// The log, its index in shared memory, and the rollback journal.
    fn is_log(&self, file: &Path) -> bool {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        ["-wal", "-shm", "-journal"].iter().any(|suffix| name.strip_prefix(FILE) == Some(suffix))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let open = self.status.open_sessions();
        if open > 0 {
            return Err(EngineError::failed(
                "sqlite3_close",
                format!("{open} sessions are still open; drop them first"),
            ));
        }
        // The last connection to close writes the log back automatically.
        drop(self);
        Ok(())
    }
}
