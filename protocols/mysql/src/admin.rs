//! A connection for administration, which may block and allocate memory.

use std::time::{Duration, Instant};

use rumba_transport::{Address, CONNECT, insist};

use crate::connection::Connection;
use crate::query::query;
use crate::{Target, WireError};

/// The rows of an answer, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows; NULL is `None`.
    pub rows: Vec<Vec<Option<String>>>,
}

/// A connection for administration.
pub struct Admin {
    connection: Connection,
    target: Target,
    timeout: Option<Duration>,
}

impl Admin {
    /// Connects; `timeout` limits connecting and each answer.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, WireError> {
        let connection = Connection::open(target, Instant::now() + timeout)?;
        Ok(Self { connection, target: target.clone(), timeout: Some(timeout) })
    }

    /// Reconnects after the connection was lost, with the same retries as a session that may reconnect. Locks and
    /// session variables of the earlier connection are lost.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub fn reconnect(&mut self) -> Result<(), WireError> {
        let connect = || Connection::open(&self.target, Instant::now() + CONNECT);
        self.connection = insist(connect, WireError::may_pass)?;
        Ok(())
    }

    /// Runs one statement and returns its rows. With several statements, the rows are those of the first that returns
    /// any.
    ///
    /// # Errors
    /// See [`WireError`]. After any error except [`WireError::Server`] the connection is unusable.
    pub fn query(&mut self, sql: &str) -> Result<Rows, WireError> {
        query(&mut self.connection, sql, self.timeout.map(|timeout| Instant::now() + timeout))
    }

    /// The address of the server.
    pub fn address(&self) -> &Address {
        &self.target.address
    }

    /// Changes the timeout of an answer; `None` waits forever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The version in the server's greeting.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }
}
