//! A session: one client's connection on the load path.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll};

use rumba_core::engine::EngineError;
use rumba_core::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};

use crate::Target;

/// What a session does when its connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLost {
    /// The trial fails.
    #[default]
    Fail,
    /// It connects anew; the operation at hand is given up and counted.
    Reconnect,
}

/// How rows are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadWay {
    /// The fastest that the server has.
    #[default]
    Auto,
    /// MariaDB's COM_STMT_BULK_EXECUTE.
    BulkExecute,
    /// LOAD DATA LOCAL, from memory.
    LoadData,
    /// INSERT statements of many rows, as text.
    Insert,
}

/// What all sessions of an instance count together; each adds only when the
/// rare thing happens.
#[derive(Debug, Default)]
pub struct WireCounts {
    /// Transactions that the server ended to break a deadlock.
    pub deadlocks: AtomicU64,
    /// Statements that waited too long for a lock.
    pub lock_wait_timeouts: AtomicU64,
    /// Connections lost.
    pub connections_lost: AtomicU64,
    /// Connections made anew.
    pub reconnects: AtomicU64,
}

/// What a session is told.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// What a table's definition ends with.
    pub table_options: String,
    /// Statements to run on every new connection: isolation level, names.
    pub setup: Vec<String>,
    /// What happens when the connection is lost.
    pub on_lost: OnLost,
    /// How rows are loaded.
    pub load: LoadWay,
    /// What is counted.
    pub counts: Arc<WireCounts>,
}

/// A session.
pub struct WireSession;

impl WireSession {
    /// Connects.
    ///
    /// # Errors
    /// The server's or the system's words.
    pub fn connect(_target: &Target, _options: &SessionOptions) -> Result<Self, EngineError> {
        todo!()
    }
}

impl SqlSession for WireSession {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn prepare(&mut self, _sql: &str) -> Result<Statement, EngineError> {
        todo!()
    }

    fn prepare_rows(&mut self, _table: &str, _columns: &[&str]) -> Result<Statement, EngineError> {
        todo!()
    }

    fn submit(&mut self, _statement: Statement, _params: &[Param<'_>]) -> Result<(), EngineError> {
        todo!()
    }

    fn submit_rows(&mut self, _rows: Statement, _values: &[Param<'_>]) -> Result<(), EngineError> {
        todo!()
    }

    fn poll_answer(&mut self, _context: &mut Context<'_>, _visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        todo!()
    }

    fn run(&mut self, _sql: &str) -> Result<(), EngineError> {
        todo!()
    }
}
