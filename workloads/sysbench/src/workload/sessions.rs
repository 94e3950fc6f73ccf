//! The sessions that an experiment gives its clients, as scripts connect to them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::cli::OptionSet;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Dialect, SqlSession};

use crate::host::{DRIVERS, Host, Rank, Remedy};
use crate::remedy::Ignored;

/// One session for each client, until its script requests it.
pub(super) struct Sessions {
    driver: usize,
    ignored: Option<Ignored>,
    waiting: Mutex<HashMap<u32, Box<dyn SqlSession>>>,
}

impl Sessions {
    /// For a script that is only inspected.
    pub(super) fn none() -> Self {
        Self { driver: 0, ignored: None, waiting: Mutex::default() }
    }

    /// For an engine with this dialect.
    ///
    /// # Errors
    /// sysbench has no driver for it.
    pub(super) fn of(dialect: Dialect, options: &OptionSet) -> Result<Self, EngineError> {
        let name = match dialect {
            Dialect::MySql => "mysql",
            Dialect::PostgreSql => "pgsql",
            Dialect::Sqlite => "sqlite",
            other => return Err(EngineError::failed("connect", format!("scripts have no driver for {other:?}"))),
        };
        let driver = DRIVERS.iter().position(|driver| driver.name == name).unwrap_or_default();
        Ok(Self { driver, ignored: Some(Ignored::of(options, name)), waiting: Mutex::default() })
    }

    /// Keeps a client's session for its script.
    pub(super) fn give(&self, client: u32, session: Box<dyn SqlSession>) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(client, session);
    }
}

impl Host for Sessions {
    fn default_driver(&self) -> Option<usize> {
        Some(self.driver)
    }

    fn connect(&self, driver: usize, client: u32, _turn: u32) -> Result<Box<dyn SqlSession>, EngineError> {
        if driver != self.driver {
            let words =
                format!("this engine speaks to the driver {}, not {}", DRIVERS[self.driver].name, DRIVERS[driver].name);
            return Err(EngineError::failed("connect", words));
        }
        let session = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&client);
        session.ok_or_else(|| {
            let words = "in an experiment each client has one connection, from its first connect() to its end: use \
                         `rumba sysbench` for scripts that connect more often";
            EngineError::failed("connect", words)
        })
    }

    fn leaves(&self, client: u32) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&client);
    }

    fn remedy(&self, _driver: usize, error: &EngineError) -> Remedy {
        self.ignored.as_ref().map_or(Remedy::Fatal, |ignored| ignored.remedy(error))
    }

    /// The error that ends a client is reported elsewhere; other messages have no place in an experiment.
    fn log(&self, _rank: Rank, _words: &str) {}
}
