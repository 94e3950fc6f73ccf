//! The way to a server: one statement, its rows.

use rumba_core::engine::EngineError;
use rumba_wire::{Admin, Rows, WireError};

/// Something that answers SQL.
pub trait Ask {
    /// Runs one statement and takes its rows.
    ///
    /// # Errors
    /// See [`WireError`].
    fn ask(&mut self, sql: &str) -> Result<Rows, WireError>;
}

impl Ask for Admin {
    fn ask(&mut self, sql: &str) -> Result<Rows, WireError> {
        self.query(sql)
    }
}

/// Runs one statement; `call` names it in an error.
pub(crate) fn query(admin: &mut dyn Ask, call: &'static str, sql: &str) -> Result<Rows, EngineError> {
    admin.ask(sql).map_err(|error| failed(call, &error))
}

/// The error of a statement, with the remedy where a privilege is missing.
pub(crate) fn failed(call: &'static str, error: &WireError) -> EngineError {
    /// `ER_SPECIFIC_ACCESS_DENIED_ERROR`: a privilege is missing.
    const ACCESS_DENIED: u16 = 1227;
    let remedy = match error {
        WireError::Server { code: ACCESS_DENIED, .. } => {
            "; grant rumba's user SUPER, or the privilege that is named, on this server"
        }
        _ => "",
    };
    EngineError::failed(call, format!("{error}{remedy}"))
}

/// The text of a cell; nothing for NULL or a column that is not there.
pub(crate) fn cell(row: &[Option<String>], column: usize) -> &str {
    row.get(column).and_then(Option::as_deref).unwrap_or_default()
}
