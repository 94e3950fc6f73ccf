//! What goes wrong inside an engine, as everybody who drives one needs to know it.

use std::any::Any;
use std::fmt;

/// The SQL standard's code of five characters for what went wrong: `23505`.
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

/// By what an engine's error is known to programs, as far as the engine gives it one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ErrorCode {
    /// The engine's own number: 1213 of MySQL, 2067 of SQLite; 0 if it has none, as PostgreSQL's have.
    pub vendor: u32,
    /// The SQLSTATE, where the engine tells one.
    pub sqlstate: Option<SqlState>,
}

impl ErrorCode {
    /// The engine has no code for it.
    pub const NONE: ErrorCode = ErrorCode { vendor: 0, sqlstate: None };

    /// A number of the engine's own, without an SQLSTATE.
    pub const fn of_vendor(vendor: u32) -> Self {
        Self { vendor, sqlstate: None }
    }

    /// A number of the engine's own (0 if it has none) and an SQLSTATE.
    pub const fn of_server(vendor: u32, sqlstate: [u8; 5]) -> Self {
        Self { vendor, sqlstate: Some(SqlState(sqlstate)) }
    }
}

/// As messages have it: `server error 1213 (40001)`, `server error 40P01`, `error 2067`; nothing where there is none.
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

/// A code behind other words, if there is one.
struct Behind(ErrorCode);

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == ErrorCode::NONE { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// What an engine refused, with its own code and words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {code}: {words}")]
pub struct Refusal {
    /// The engine's function that failed, or what was being done.
    pub call: &'static str,
    /// The code that statistics and scripts know it by; [`ErrorCode::NONE`] where the engine gives none.
    pub code: ErrorCode,
    /// Its words, with a remedy where one is known, and the statement where there is one.
    pub words: String,
}

/// An error's words, and behind them those of what it came from: some tell which call failed and leave why to their
/// source.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// What stood in a transaction's way, as its engine tells it: what it is counted by when it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// In words: `deadlock`.
    pub why: &'static str,
    /// The engine's code.
    pub code: ErrorCode,
}

impl Conflict {
    /// That of an error. A script may begin again after others than conflicts.
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

/// As messages have it: `deadlock: server error 1213 (40001)`.
impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.why, Behind(self.code))
    }
}

/// What went wrong inside an engine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    /// Another transaction stood in the way; rolling back and trying again may succeed.
    /// Carries no allocation: it happens on the load path.
    #[error("conflict: {why}{}", Behind(*code))]
    Conflict {
        /// What stood in the way.
        why: &'static str,
        /// The engine's code for it.
        code: ErrorCode,
    },
    /// A row with this key is there already, and the statement did nothing. Whether its transaction goes on is told by
    /// [`crate::sql::SqlSession::survives_errors`]. Carries no allocation: it happens on the load path.
    #[error("a row with this key is there already{}", Behind(*.0))]
    Duplicate(ErrorCode),
    /// The connection was lost, the session has made a new one. Whether the
    /// operation at hand took effect is not known, so it is not tried again.
    /// Carries no allocation: what a server's end costs a thousand clients is counted.
    #[error("the connection was lost and made anew: {0}")]
    CutOff(&'static str),
    /// The connection is lost, and the session makes no other: why, in words.
    #[error("connection: {0}")]
    Lost(String),
    /// There is no room on the device of the data: the trial fails with this cause, and not with that of whatever broke
    /// next.
    #[error("the device is full: {0}")]
    DiskFull(String),
    /// The engine refused something, and has a code for it.
    // Boxed, for every answer's result is as large as the largest error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Anything else: the engine's call and its own words.
    #[error("{call}: {message}")]
    Failed {
        /// The engine's function that failed.
        call: &'static str,
        /// Its message.
        message: String,
    },
}

impl EngineError {
    /// A conflict that the engine has no code for.
    pub const fn conflict(why: &'static str) -> Self {
        EngineError::Conflict { why, code: ErrorCode::NONE }
    }

    /// A failure of `call`, told apart from a full device by the engine's words.
    pub fn failed(call: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        if tells_of_full_device(&message) {
            return EngineError::DiskFull(format!("{call}: {message}"));
        }
        EngineError::Failed { call, message }
    }

    /// What the engine refused with a code of its own, told apart from a full device by its words.
    pub fn refused(call: &'static str, code: ErrorCode, words: impl Into<String>) -> Self {
        let refusal = Refusal { call, code, words: words.into() };
        if tells_of_full_device(&refusal.words) {
            return EngineError::DiskFull(refusal.to_string());
        }
        EngineError::Refused(Box::new(refusal))
    }

    /// Whether trying the whole transaction again may succeed.
    pub fn is_conflict(&self) -> bool {
        matches!(self, EngineError::Conflict { .. })
    }

    /// The engine's code; [`ErrorCode::NONE`] where it told none.
    pub fn code(&self) -> ErrorCode {
        match self {
            EngineError::Conflict { code, .. } | EngineError::Duplicate(code) => *code,
            EngineError::Refused(refusal) => refusal.code,
            EngineError::CutOff(_) | EngineError::Lost(_) | EngineError::DiskFull(_) | EngineError::Failed { .. } => {
                ErrorCode::NONE
            }
        }
    }

    /// The same with `more` behind its words, such as a remedy; what has no words of its own stays as it is.
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

fn tells_of_full_device(words: &str) -> bool {
    let lower = words.to_ascii_lowercase();
    ["no space left", "disk is full", "disk full"].iter().any(|full| lower.contains(full))
}

/// What a panic that was caught says.
pub fn of_panic(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_with_the_code_that_its_engine_gave() {
        let told = |code| EngineError::refused("execute", code, "no such table").followed_by("; make it").to_string();
        let mysql = ErrorCode::of_server(1146, *b"42S02");
        assert_eq!(told(mysql), "execute: server error 1146 (42S02): no such table; make it");
        assert_eq!(told(ErrorCode::of_server(0, *b"42P01")), "execute: server error 42P01: no such table; make it");
        assert_eq!(told(ErrorCode::of_vendor(1)), "execute: error 1: no such table; make it");
        let deadlock = EngineError::Conflict { why: "deadlock", code: ErrorCode::of_server(1213, *b"40001") };
        assert_eq!(deadlock.to_string(), "conflict: deadlock: server error 1213 (40001)");
        assert_eq!(Conflict::of(&deadlock).to_string(), "deadlock: server error 1213 (40001)");
        assert_eq!(Conflict::of(&EngineError::failed("write", "no")).to_string(), "write");
        assert_eq!(EngineError::conflict("busy").to_string(), "conflict: busy");
        let duplicate = EngineError::Duplicate(ErrorCode::of_server(0, *b"23505"));
        assert_eq!(duplicate.to_string(), "a row with this key is there already: server error 23505");
    }

    #[test]
    fn what_an_error_came_from_is_told_behind_it() {
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
    fn no_answer_is_made_larger_by_what_could_have_gone_wrong() {
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
