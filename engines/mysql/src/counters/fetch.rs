//! The interface to a server: one statement, its rows.

use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_mysql::{Admin, Rows, WireError};

/// A connection that answers SQL.
pub trait Request {
    /// Runs one statement and returns its rows.
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError>;
}

impl Request for Admin {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        self.query(sql)
    }
}

/// Runs one statement; `call` names it in an error.
pub(crate) fn query(admin: &mut dyn Request, call: &'static str, sql: &str) -> Result<Rows> {
    admin.fetch(sql).map_err(|error| failed(call, &error))
}

/// The error of a statement, with the remedy where a privilege is missing.
pub(crate) fn failed(call: &'static str, error: &WireError) -> EngineError {
    let remedy = match error {
        WireError::Server { code, .. } if is_denied(*code) => {
            "; grant rumba's user the privilege that is named, on this server"
        }
        _ => "",
    };
    error.during(call).followed_by(remedy)
}

/// Whether the server refused because of a missing privilege: on a schema (1044), a table (1142), a column (1143), a
/// routine (1370), or a global one (1227).
pub(crate) fn is_denied(code: u16) -> bool {
    matches!(code, 1044 | 1142 | 1143 | 1227 | 1370)
}

/// The text of a cell; empty for NULL or a missing column.
pub(crate) fn cell(row: &[Option<String>], column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}
