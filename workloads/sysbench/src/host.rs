//! What the interpreters of a run need of the program that runs them.

use rumba_core::error::EngineError;
use rumba_core::sql::SqlSession;

/// How much a message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The run cannot go on.
    Fatal,
    /// Something is wrong.
    Alert,
    /// Something may be wrong.
    Warning,
    /// What happens.
    Notice,
}

/// What becomes of an error that a statement ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// The run ends with it, unless the script's hook says otherwise.
    Fatal,
    /// The event is begun again.
    Restart,
    /// The transaction is rolled back, and the event begun again.
    RollBackAndRestart,
}

/// A way to databases that scripts can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverInfo {
    /// What `drv:name()` says: `mysql`.
    pub name: &'static str,
    /// Its name in words.
    pub about: &'static str,
}

/// The drivers that there are, in the order of their numbers.
pub const DRIVERS: [DriverInfo; 3] = [
    DriverInfo { name: "mysql", about: "MySQL driver" },
    DriverInfo { name: "pgsql", about: "PostgreSQL driver" },
    DriverInfo { name: "sqlite", about: "SQLite driver" },
];

/// The program that runs scripts.
pub trait Host: Send + Sync {
    /// The drivers; others know them by their position.
    fn drivers(&self) -> &[DriverInfo];

    /// A script asks for a driver, by its name or without.
    fn driver_asked(&self) {}

    /// The driver of a script that names none; `None` where what was asked for is none, which has been told.
    fn default_driver(&self) -> Option<usize>;

    /// A connection for a client, which has made `turn` others before: where there are several servers, each turn is the
    /// next one's. One that is made anew keeps its turn.
    ///
    /// # Errors
    /// The server's or the system's words.
    fn connect(&self, driver: usize, client: u32, turn: u32) -> Result<Box<dyn SqlSession>, EngineError>;

    /// A client has ended: a connection that was kept for it and that it never asked for is nobody's.
    fn leaves(&self, _client: u32) {}

    /// What becomes of an error.
    fn remedy(&self, driver: usize, error: &EngineError) -> Remedy;

    /// Tells whoever started the run.
    fn log(&self, level: Level, words: &str);
}
