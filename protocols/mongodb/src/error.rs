//! Errors between client and server.

use rumba_engine_api::bson::Malformed;
use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_transport::{TransportError, server_text};

use crate::codec::reply::Refusal;

/// Error codes that the client handles.
pub(crate) mod code {
    pub const LOCK_TIMEOUT: i32 = 24;
    pub const COMMAND_NOT_FOUND: i32 = 59;
    pub const WRITE_CONFLICT: i32 = 112;
    pub const SNAPSHOT_TOO_OLD: i32 = 239;
    pub const SNAPSHOT_UNAVAILABLE: i32 = 246;
    pub const NO_SUCH_TRANSACTION: i32 = 251;
    pub const TEMPORARILY_UNAVAILABLE: i32 = 365;
    pub const DUPLICATE_KEY: i32 = 11000;
    pub const DUPLICATE_KEY_ON_UPDATE: i32 = 11001;
    pub const DISK_FULL: i32 = 14031;
}

/// An error between client and server.
#[derive(Debug, thiserror::Error)]
pub enum MongoError {
    /// The server reported an error.
    #[error("server error {code}{}: {message}", Named(.name))]
    Server {
        /// The server's error code: 11000.
        code: i32,
        /// The code's name: `DuplicateKey`; empty if the server does not report it.
        name: String,
        /// The server's message, with a remedy if there is a common one.
        message: String,
    },
    /// The connection failed or was lost, or cannot be encrypted as requested.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The request is impossible; nothing was sent, and the connection is unchanged.
    #[error("{0}")]
    Unable(String),
    /// The server violated the protocol, or used a part that this client does not know.
    #[error("protocol: {0}")]
    Protocol(String),
}

/// Appends a code's name, if there is one.
struct Named<'a>(&'a str);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, " ({})", self.0) }
    }
}

impl MongoError {
    /// The error for a server's refusal.
    #[cold]
    pub(crate) fn refused(refusal: &Refusal<'_>) -> Self {
        let mut message = server_text(refusal.message);
        if refusal.of_concern {
            message.insert_str(0, "it was written, but not with the requested write concern: ");
        }
        if let Some(remedy) = remedy(refusal.code) {
            message.push_str("; ");
            message.push_str(remedy);
        }
        MongoError::Server { code: refusal.code, name: server_text(refusal.name), message }
    }

    /// Converts to an engine error; `call` is the failed call.
    #[cold]
    pub fn during(&self, call: &'static str) -> EngineError {
        match self {
            MongoError::Server { code: code::DISK_FULL, .. } => EngineError::DiskFull(format!("{call}: {self}")),
            MongoError::Server { code, name, message } => {
                let words = if name.is_empty() { message.clone() } else { format!("{name}: {message}") };
                EngineError::refused(call, error_code(*code), words)
            }
            other => EngineError::failed(call, other.to_string()),
        }
    }

    /// Whether the connection is lost, so that a new one may help.
    pub fn is_lost(&self) -> bool {
        match self {
            MongoError::Transport(TransportError::Io { .. }) => true,
            MongoError::Server { code, .. } => lost(*code),
            MongoError::Transport(_) | MongoError::Protocol(_) | MongoError::Unable(_) => false,
        }
    }

    /// Whether the server does not know the command.
    pub(crate) fn is_unknown_command(&self) -> bool {
        matches!(self, MongoError::Server { code: code::COMMAND_NOT_FOUND, .. })
    }
}

impl From<Malformed> for MongoError {
    fn from(malformed: Malformed) -> Self {
        MongoError::Protocol(malformed.to_string())
    }
}

/// Converts a server's error code.
pub(crate) fn error_code(code: i32) -> ErrorCode {
    ErrorCode::of_vendor(u32::try_from(code).unwrap_or_default())
}

/// Whether an error code means that the server accepts no more requests of this client, or no writes. For example, it
/// is shutting down, is no longer the primary, or is recovering. (The specification's "state change errors" and network
/// errors.)
pub(crate) fn lost(code: i32) -> bool {
    matches!(code, 6 | 7 | 89 | 91 | 189 | 9001 | 10058 | 10107 | 11600 | 11602 | 13435 | 13436)
}

fn remedy(code: i32) -> Option<&'static str> {
    match code {
        13 => Some("log in, or have the user granted a role that allows it"),
        18 => Some("check the user's name, its password, and the database that knows it (authSource)"),
        20 => Some(
            "transactions need a replica set, if only of one (mongod --replSet NAME, then rs.initiate()), and a storage engine \
             that has them",
        ),
        26 => Some("the collection or database is not there; load the data first"),
        10107 | 13435 => Some("name the primary of the replica set"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_device_and_missing_write_concern_are_recognized() {
        let full = Refusal { code: 14031, message: b"no room", ..Refusal::default() };
        assert!(matches!(MongoError::refused(&full).during("insert"), EngineError::DiskFull(_)));
        let unsure = Refusal { code: 64, message: b"waiting", of_concern: true, ..Refusal::default() };
        assert!(MongoError::refused(&unsure).to_string().contains("not with the requested write concern"));
    }

    #[test]
    fn control_characters_of_a_server_are_escaped() {
        let refusal = Refusal { code: 2, name: b"Bad\rValue", message: b"\x1b[2J", of_concern: false };
        let error = MongoError::refused(&refusal).to_string();
        assert_eq!(error, r"server error 2 (Bad\u000dValue): \u001b[2J");
    }

    #[test]
    fn shutdown_and_stepdown_lose_the_server_refusals_do_not() {
        let of = |code| MongoError::refused(&Refusal { code, ..Refusal::default() }).is_lost();
        assert!([91, 189, 10107, 11600].into_iter().all(of));
        assert!(![18, 112, 11000, 59].into_iter().any(of));
    }
}
