//! The services that the interpreters of a run need from the program.

pub use crate::cli::log::Rank;
pub use crate::cli::options::{DRIVERS, Driver};
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;

/// The remedy for a statement's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The run ends with it, unless the script's hook decides otherwise.
    Fatal,
    /// The event is begun again.
    Restart,
    /// The transaction is rolled back, and the event restarted.
    RollBackAndRestart,
}

/// The program that runs scripts.
pub trait Host: Send + Sync {
    /// The drivers that scripts can request; others know them by their position.
    fn drivers(&self) -> &[Driver] {
        &DRIVERS
    }

    /// A script requests a driver, by name or the default.
    fn driver_requested(&self) {}

    /// The driver of a script that names none; `None` if the requested driver does not exist, which has been reported.
    fn default_driver(&self) -> Option<usize>;

    /// A connection for a client that has made `turn` others before. If there are several servers, each turn uses the
    /// next. A reconnect keeps its turn.
    fn connect(&self, driver: usize, client: u32, turn: u32) -> Result<Box<dyn SqlSession>>;

    /// A client's session for keys and values.
    ///
    /// # Errors
    /// There is none.
    fn key_values(&self, _client: u32) -> Result<Session> {
        Err(EngineError::failed("rumba.kv", "this run has no keys and values; run the script by `rumba run lua`"))
    }

    /// A client has ended: a connection that was kept for it, and that it never requested, is released.
    fn leaves(&self, _client: u32) {}

    /// The remedy for an error.
    fn remedy(&self, driver: usize, error: &EngineError) -> Remedy;

    /// Reports a client's statement whose error ends the run.
    fn statement_failed(&self, _client: u32, words: &str) {
        self.log(Rank::Fatal, words);
    }

    /// Reports a message to the user.
    fn log(&self, rank: Rank, words: &str);
}
