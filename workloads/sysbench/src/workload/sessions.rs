//! The sessions that an experiment gives its clients, as scripts connect to them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::cli::OptionSet;
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, SqlSession};

use crate::host::{DRIVERS, Host, Rank, Remedy};
use crate::remedy::Ignored;

/// One session for each client, until its script requests it.
pub(super) struct Sessions {
    driver: usize,
    ignored: Option<Ignored>,
    /// Whether scripts use keys and values, and no SQL.
    has_key_values: bool,
    waiting: Mutex<HashMap<u32, Session>>,
}

impl Sessions {
    /// For a script that is only inspected.
    pub(super) fn none() -> Self {
        Self { driver: 0, ignored: None, has_key_values: false, waiting: Mutex::default() }
    }

    pub(super) fn of_key_values() -> Self {
        Self { has_key_values: true, ..Self::none() }
    }

    /// For an engine with this dialect.
    ///
    /// # Errors
    /// sysbench has no driver for it.
    pub(super) fn of(dialect: Dialect, options: &OptionSet) -> Result<Self> {
        let name = match dialect {
            Dialect::MySql => "mysql",
            Dialect::PostgreSql => "pgsql",
            Dialect::Sqlite => "sqlite",
            other => return Err(EngineError::failed("connect", format!("scripts have no driver for {other:?}"))),
        };
        let driver = DRIVERS.iter().position(|driver| driver.name == name).unwrap_or_default();
        Ok(Self { driver, ignored: Some(Ignored::of(options, name)), ..Self::none() })
    }

    /// Keeps a client's session for its script.
    pub(super) fn give(&self, client: u32, session: Session) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(client, session);
    }

    fn take(&self, client: u32) -> Option<Session> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&client)
    }
}

impl Host for Sessions {
    fn default_driver(&self) -> Option<usize> {
        Some(self.driver)
    }

    fn connect(&self, driver: usize, client: u32, _turn: u32) -> Result<Box<dyn SqlSession>> {
        if self.has_key_values {
            let words = "this workload has keys and values: use rumba.kv(), or `rumba run sysbench` for SQL";
            return Err(EngineError::failed("connect", words));
        }
        if driver != self.driver {
            let words =
                format!("this engine speaks to the driver {}, not {}", DRIVERS[self.driver].name, DRIVERS[driver].name);
            return Err(EngineError::failed("connect", words));
        }
        match self.take(client) {
            Some(Session::Sql(session)) => Ok(session),
            _ => {
                let words = "in an experiment each client has one connection, from its first connect() to its end: use \
                             `rumba sysbench` for scripts that connect more often";
                Err(EngineError::failed("connect", words))
            }
        }
    }

    fn key_values(&self, client: u32) -> Result<Session> {
        let words = match self.has_key_values {
            true => "there is no session yet; call rumba.kv() in prepare() and thread_init()",
            false => "this workload speaks SQL; run the script by `rumba run lua`",
        };
        let session = if self.has_key_values { self.take(client) } else { None };
        session.ok_or_else(|| EngineError::failed("rumba.kv", words))
    }

    fn leaves(&self, client: u32) {
        drop(self.take(client));
    }

    fn remedy(&self, _driver: usize, error: &EngineError) -> Remedy {
        self.ignored.as_ref().map_or(Remedy::Fatal, |ignored| ignored.remedy(error))
    }

    /// The error that ends a client is reported elsewhere; other messages have no place in an experiment.
    fn log(&self, _rank: Rank, _words: &str) {}
}
