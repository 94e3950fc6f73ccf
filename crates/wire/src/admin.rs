//! A connection for administration: it blocks and allocates as it likes.

use std::time::Duration;

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
pub struct Admin;

impl Admin {
    /// Connects; `timeout` bounds connecting and each answer.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn connect(_target: &Target, _timeout: Duration) -> Result<Self, WireError> {
        todo!()
    }

    /// Runs one statement and takes its rows.
    ///
    /// # Errors
    /// See [`WireError`].
    pub fn query(&mut self, _sql: &str) -> Result<Rows, WireError> {
        todo!()
    }

    /// Changes the time that an answer may take; `None` waits for ever.
    pub fn set_timeout(&mut self, _timeout: Option<Duration>) {
        todo!()
    }

    /// The version that the server greeted with.
    pub fn server_version(&self) -> &str {
        todo!()
    }
}
