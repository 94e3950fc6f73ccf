//! A connection for administration, which may block and allocate memory.

use std::time::{Duration, Instant};

use crate::link::insist;
use crate::{Address, CONNECT, Target};

/// The rows of an answer, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows; NULL is `None`.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A connection that runs SQL with blocking calls.
pub trait Blocking: Sized {
    /// The protocol's error.
    type Error;

    /// Connects and logs in, before `deadline`.
    fn open(target: &Target, deadline: Instant) -> Result<Self, Self::Error>;

    /// Runs statements; the rows are those of the first that returns any.
    ///
    /// # Errors
    /// The server's, or that the connection was lost.
    fn query(&mut self, sql: &str, deadline: Option<Instant>) -> Result<Rows, Self::Error>;

    /// The server's version.
    fn version(&self) -> &str;

    /// Whether the reason for a failed connection may be temporary: the server is starting, or has too many
    /// connections.
    fn may_pass(error: &Self::Error) -> bool;
}

/// A connection for administration.
pub struct Admin<C> {
    connection: C,
    target: Target,
    timeout: Option<Duration>,
}

impl<C: Blocking> Admin<C> {
    /// Connects; `timeout` limits connecting and each answer.
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, C::Error> {
        let connection = C::open(target, Instant::now() + timeout)?;
        Ok(Self { connection, target: target.clone(), timeout: Some(timeout) })
    }

    /// Reconnects after the connection was lost, with the same retries as a session that may reconnect. Locks and
    /// session variables of the earlier connection are lost.
    pub fn reconnect(&mut self) -> Result<(), C::Error> {
        self.connection = insist(|| C::open(&self.target, Instant::now() + CONNECT), C::may_pass)?;
        Ok(())
    }

    /// Runs one statement and returns its rows. With several statements, the rows are those of the first that returns
    /// any. An answer of more than 16 MiB is an error, because its rows are kept in memory.
    ///
    /// # Errors
    /// The server's, or that the connection was lost. After any error that the server did not report, the connection is
    /// unusable.
    pub fn query(&mut self, sql: &str) -> Result<Rows, C::Error> {
        self.connection.query(sql, self.timeout.map(|timeout| Instant::now() + timeout))
    }

    /// The address of the server.
    pub fn address(&self) -> &Address {
        &self.target.address
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The version that the server reports.
    pub fn server_version(&self) -> &str {
        self.connection.version()
    }
}
