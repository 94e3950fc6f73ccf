//! A connection for administration: it blocks and allocates as it likes.

use std::time::{Duration, Instant};

use rumba_transport::{Address, CONNECT, insist};

use crate::connection::Connection;
use crate::query::query;
use crate::{Target, WireError};

/// utf8mb4_general_ci, which every server since MySQL 5.5.3 knows.
const COLLATION: u8 = 45;

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
    /// Connects; `timeout` bounds connecting and each answer.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, WireError> {
        let connection = Connection::open(target, COLLATION, Instant::now() + timeout)?;
        Ok(Self { connection, target: target.clone(), timeout: Some(timeout) })
    }

    /// Connects anew after the connection was lost, trying for as long as a session that may reconnect does. What the
    /// connection before held, such as locks and session variables, it does not hold.
    ///
    /// # Errors
    /// What kept it from connecting until it gave up.
    pub fn reconnect(&mut self) -> Result<(), WireError> {
        let connect = || Connection::open(&self.target, COLLATION, Instant::now() + CONNECT);
        self.connection = insist(connect, WireError::may_pass)?;
        Ok(())
    }

    /// Runs one statement and takes its rows. Of several statements, the rows
    /// are those of the first that has any.
    ///
    /// # Errors
    /// See [`WireError`]. After any but [`WireError::Server`] the connection is of no more use.
    pub fn query(&mut self, sql: &str) -> Result<Rows, WireError> {
        query(&mut self.connection, sql, self.timeout.map(|timeout| Instant::now() + timeout))
    }

    /// Where the server is.
    pub fn address(&self) -> &Address {
        &self.target.address
    }

    /// Changes the time that an answer may take; `None` waits for ever.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The version that the server greeted with.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }
}
