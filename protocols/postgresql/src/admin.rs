//! A connection for administration: it blocks and allocates as it likes.

use std::time::{Duration, Instant};

use rumba_transport::{Address, CONNECT, insist};

use crate::connection::Connection;
use crate::query::query;
use crate::{PgError, Target};

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
    /// See [`PgError`].
    pub fn connect(target: &Target, timeout: Duration) -> Result<Self, PgError> {
        let connection = Connection::open(target, Instant::now() + timeout)?;
        Ok(Self { connection, target: target.clone(), timeout: Some(timeout) })
    }

    /// Connects anew after the connection was lost, trying for as long as a session that may reconnect does. What the
    /// connection before held, such as locks and session variables, it does not hold.
    ///
    /// # Errors
    /// What kept it from connecting until it gave up.
    pub fn reconnect(&mut self) -> Result<(), PgError> {
        self.connection = insist(|| Connection::open(&self.target, Instant::now() + CONNECT), PgError::may_pass)?;
        Ok(())
    }

    /// Runs one statement and takes its rows. Of several statements, which are one transaction, the rows are those of
    /// the first that has any.
    ///
    /// # Errors
    /// See [`PgError`]. After any but [`PgError::Server`] the connection is of no more use.
    pub fn query(&mut self, sql: &str) -> Result<Rows, PgError> {
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

    /// The version that the server says it is: `15.18 (Debian 15.18-0+deb12u1)`.
    pub fn server_version(&self) -> &str {
        &self.connection.version
    }
}
