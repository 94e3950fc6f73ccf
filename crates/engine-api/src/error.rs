//! Errors inside an engine, in the terms that all its callers need.

use std::any::Any;
use std::fmt;

/// The SQL standard's five-character error code: `23505`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqlState({self})")
    }
}

/// The codes by which programs identify an engine's error, as far as the engine gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// The engine's own number: 1213 in MySQL, 2067 in SQLite; 0 if it has none, as in PostgreSQL.
    pub vendor: u32,
    /// The SQLSTATE, if the engine reports one.
    pub sqlstate: Option<SqlState>,
}

impl ErrorCode {
    /// The engine has no code for it.
    pub const NONE: ErrorCode = ErrorCode { vendor: 0, sqlstate: None };

    /// The engine's own number, without an SQLSTATE.
    pub const fn of_vendor(vendor: u32) -> Self {
        Self { vendor, sqlstate: None }
    }

    /// The engine's own number (0 if it has none) and an SQLSTATE.
    pub const fn of_server(vendor: u32, sqlstate: [u8; 5]) -> Self {
        Self { vendor, sqlstate: Some(SqlState(sqlstate)) }
    }
}

/// The form in messages: `server error 1213 (40001)`, `server error 40P01`, `error 2067`; empty without a code.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.vendor, self.sqlstate) {
            (0, None) => Ok(()),
            (0, Some(sqlstate)) => write!(f, "server error {sqlstate}"),
            (vendor, Some(sqlstate)) => write!(f, "server error {vendor} ({sqlstate})"),
            (vendor, None) => write!(f, "error {vendor}"),
        }
    }
}

/// A code after other words, if there is one.
struct Behind(ErrorCode);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ErrorCode::NONE { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// An engine's refusal, with its own code and words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}: {words}")]
pub struct Refusal {
    /// The engine's function that failed, or the task.
    pub call: &'static str,
    /// The code used by statistics and scripts; [`ErrorCode::NONE`] if the engine gives none.
    pub code: ErrorCode,
    /// Its message, with a remedy if one is known, and with the statement if there is one.
    pub words: String,
}

/// An error's message followed by the messages of its sources, because some errors name the failed call and leave the
/// reason to their source.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// The reason for a conflict as its engine reports it. Retries are counted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// In words: `deadlock`.
    pub why: &'static str,
    /// The engine's code.
    pub code: ErrorCode,
}

impl Conflict {
    /// The reason of an error. Scripts may retry after errors other than conflicts.
    pub fn of(error: &EngineError) -> Self {
        let why = match error {
            EngineError::Conflict { why, .. } => *why,
            EngineError::Duplicate(_) => "duplicate key",
            EngineError::CutOff(_) | EngineError::Lost(_) => "connection lost",
            EngineError::DiskFull(_) => "the device is full",
            EngineError::Refused(_) => "refused",
            EngineError::Failed { call, .. } => *call,
        };
        Self { why, code: error.code() }
    }
}

/// The form in messages: `deadlock: server error 1213 (40001)`.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.why, Behind(self.code))
    }
}

/// A result of an engine, unless another error is named.
pub type Result<T = (), E = EngineError> = std::result::Result<T, E>;

/// An error inside an engine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Another transaction was in the way; rolling back and retrying may succeed. Carries no allocation: it happens on
    /// the load path.
    #[error("conflict: {why}{}", Behind(*code))]
    Conflict {
        /// The reason.
        why: &'static str,
        /// The engine's code for it.
        code: ErrorCode,
    },
    /// A row with this key exists already, and the statement did nothing. [`crate::sql::SqlSession::survives_errors`]
    /// reports whether the transaction goes on. Carries no allocation: it happens on the load path.
    #[error("a row with this key is there already{}", Behind(*.0))]
    Duplicate(ErrorCode),
    /// The connection was lost, and the session has opened a new one. It is not known whether the current operation
    /// took effect, so it is not retried. Carries no allocation, because a server's end can affect a thousand clients
    /// at once.
    #[error("the connection was lost and opened again: {0}")]
    CutOff(&'static str),
    /// The connection is lost, and the session does not reconnect: the reason, in words.
    #[error("connection: {0}")]
    Lost(String),
    /// The device of the data is full. The trial fails with this cause, and not with the cause of a later error.
    #[error("the device is full: {0}")]
    DiskFull(String),
    /// The engine refused something, and has a code for it.
    // Boxed, for every answer's result is as large as the largest error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Any other error: the engine's call and its own words.
    #[error("{call}: {message}")]
    Failed {
        /// The engine's function that failed.
        call: &'static str,
        /// Its message.
        message: String,
    },
}

impl EngineError {
    /// A conflict without an engine's code.
    pub const fn conflict(why: &'static str) -> Self {
        EngineError::Conflict { why, code: ErrorCode::NONE }
    }

    /// A failure of `call`; the engine's message decides whether it means a full device.
    pub fn failed(call: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        if reports_of_full_device(&message) {
            return EngineError::DiskFull(format!("{call}: {message}"));
        }
        EngineError::Failed { call, message }
    }

    /// A refusal with the engine's own code; its message decides whether it means a full device.
    pub fn refused(call: &'static str, code: ErrorCode, words: impl Into<String>) -> Self {
        let refusal = Refusal { call, code, words: words.into() };
        if reports_of_full_device(&refusal.words) {
            return EngineError::DiskFull(refusal.to_string());
        }
        EngineError::Refused(Box::new(refusal))
    }

    /// Whether a retry of the whole transaction may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, EngineError::Conflict { .. })
    }

    /// The engine's code; [`ErrorCode::NONE`] if it reported none.
    pub fn code(&self) -> ErrorCode {
        match self {
            EngineError::Conflict { code, .. } | EngineError::Duplicate(code) => *code,
            EngineError::Refused(refusal) => refusal.code,
            EngineError::CutOff(_) | EngineError::Lost(_) | EngineError::DiskFull(_) | EngineError::Failed { .. } => {
                ErrorCode::NONE
            }
        }
    }

    /// The same error with `more`, such as a remedy, after its message; an error that has no message is unchanged.
    #[must_use]
    pub fn followed_by(mut self, more: &str) -> Self {
        match &mut self {
            EngineError::Refused(refusal) => refusal.words.push_str(more),
            EngineError::Failed { message: words, .. } | EngineError::Lost(words) | EngineError::DiskFull(words) => {
                words.push_str(more);
            }
            EngineError::Conflict { .. } | EngineError::Duplicate(_) | EngineError::CutOff(_) => {}
        }
        self
    }
}

fn reports_of_full_device(words: &str) -> bool {
    let lower = words.to_ascii_lowercase();
    ["no space left", "disk is full", "disk full"].iter().any(|full| lower.contains(full))
}

/// The message of a caught panic.
pub fn of_panic(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_reported_with_the_engines_error_code() {
        let reported =
            |code| EngineError::refused("execute", code, "no such table").followed_by("; make it").to_string();
        let mysql = ErrorCode::of_server(1146, *b"42S02");
        assert_eq!(reported(mysql), "execute: server error 1146 (42S02): no such table; make it");
        assert_eq!(reported(ErrorCode::of_server(0, *b"42P01")), "execute: server error 42P01: no such table; make it");
        assert_eq!(reported(ErrorCode::of_vendor(1)), "execute: error 1: no such table; make it");
        let deadlock = EngineError::Conflict { why: "deadlock", code: ErrorCode::of_server(1213, *b"40001") };
        assert_eq!(deadlock.to_string(), "conflict: deadlock: server error 1213 (40001)");
        assert_eq!(Conflict::of(&deadlock).to_string(), "deadlock: server error 1213 (40001)");
        assert_eq!(Conflict::of(&EngineError::failed("write", "no")).to_string(), "write");
        assert_eq!(EngineError::conflict("busy").to_string(), "conflict: busy");
        let duplicate = EngineError::Duplicate(ErrorCode::of_server(0, *b"23505"));
        assert_eq!(duplicate.to_string(), "a row with this key is there already: server error 23505");
    }

    #[test]
    fn error_is_followed_by_its_cause() {
        #[derive(Debug, thiserror::Error)]
        #[error("dlopen failed")]
        struct Failed {
            source: Refusal,
        }
        let source = Refusal { call: "open", code: ErrorCode::of_vendor(2), words: "it is not there".to_owned() };
        assert_eq!(with_sources(&Failed { source }), "dlopen failed: open: error 2: it is not there");
        assert_eq!(with_sources(&fmt::Error), fmt::Error.to_string());
    }

    #[test]
    fn error_handling_makes_no_answer_larger() {
        use crate::sql::Answer;
        assert!(size_of::<EngineError>() <= size_of::<Answer>());
    }

    #[test]
    fn full_device_is_detected_by_message_and_codes_are_readable() {
        let code = ErrorCode::of_vendor(13);
        assert!(matches!(EngineError::refused("write", code, "Disk full"), EngineError::DiskFull(_)));
        assert_eq!(EngineError::refused("write", code, "no").code(), code);
        assert_eq!(EngineError::Duplicate(code).code(), code);
        assert_eq!(EngineError::failed("write", "no").code(), ErrorCode::NONE);
    }
}
