//! What goes wrong between client and server.

use rumba_core::error::{EngineError, ErrorCode, SqlState};
use rumba_transport::TransportError;

use crate::codec::Malformed;
use crate::codec::message::Refusal;

/// The SQLSTATE of a device that is full.
const DISK_FULL: [u8; 5] = *b"53100";

/// What goes wrong between client and server.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// The server refused, in its own words.
    #[error("server error {sqlstate}: {message}")]
    Server {
        /// The SQLSTATE, such as 40P01.
        sqlstate: SqlState,
        /// The server's message, with its detail and hint.
        message: String,
        /// Whether it ends the connection with it.
        fatal: bool,
    },
    /// The connection could not be made, or was lost; or it cannot be encrypted as asked.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// What was asked for cannot be done; nothing was sent, and the connection is as it was.
    #[error("{0}")]
    Unable(String),
    /// The server said something that the protocol does not allow, or that this client does not know.
    #[error("protocol: {0}")]
    Protocol(String),
}

impl PgError {
    /// The server's refusal, with a remedy where there is a usual one.
    pub(crate) fn refused(refusal: &Refusal<'_>) -> Self {
        let mut message = String::from_utf8_lossy(refusal.message).into_owned();
        for (before, more) in [("; ", refusal.detail), ("; hint: ", refusal.hint)] {
            if !more.is_empty() {
                message.push_str(before);
                message.push_str(&String::from_utf8_lossy(more));
            }
        }
        if let Some(remedy) = remedy(&refusal.sqlstate) {
            message.push_str("; ");
            message.push_str(remedy);
        }
        let fatal = refusal.is_fatal();
        PgError::Server { sqlstate: SqlState(refusal.sqlstate), message, fatal }
    }

    /// What it is to whoever drives the engine; `call` is what failed with it.
    #[cold]
    pub fn during(&self, call: &'static str) -> EngineError {
        match self {
            PgError::Server { sqlstate: SqlState(DISK_FULL), .. } => EngineError::DiskFull(format!("{call}: {self}")),
            PgError::Server { sqlstate, message, .. } => {
                EngineError::refused(call, ErrorCode::of_server(0, sqlstate.0), message.as_str())
            }
            other => EngineError::failed(call, other.to_string()),
        }
    }

    /// Whether the connection is gone, and another one may do better.
    pub fn is_lost(&self) -> bool {
        match self {
            PgError::Transport(TransportError::Io { .. }) => true,
            PgError::Server { sqlstate, fatal, .. } => *fatal || lost(&sqlstate.0),
            PgError::Transport(TransportError::Tls(_)) | PgError::Protocol(_) | PgError::Unable(_) => false,
        }
    }

    /// Whether the server is there and takes nobody yet.
    pub fn is_starting(&self) -> bool {
        matches!(self, PgError::Server { sqlstate, .. } if sqlstate.0 == *b"57P03")
    }

    /// Whether what kept it from connecting may pass: a server that starts, or that has no room yet.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            // Every refusal of a login is fatal, and few of them pass.
            PgError::Server { sqlstate, .. } => sqlstate.0 == *b"53300" || lost(&sqlstate.0),
            other => other.is_lost(),
        }
    }
}

impl From<Malformed> for PgError {
    fn from(malformed: Malformed) -> Self {
        PgError::Protocol(malformed.to_string())
    }
}

/// Whether the server ends the connection with this error: shutdown, a crash of another backend, an idle session;
/// or does not take any yet, because it starts.
pub(crate) fn lost(sqlstate: &[u8]) -> bool {
    // 08P01 is also said of a single malformed message.
    (sqlstate.starts_with(b"08") && sqlstate != b"08P01")
        || matches!(sqlstate, b"57P01" | b"57P02" | b"57P03" | b"57P04" | b"57P05" | b"25P03")
}

fn remedy(sqlstate: &[u8; 5]) -> Option<&'static str> {
    match sqlstate {
        b"28000" => Some("let this host and user in: pg_hba.conf, and then SELECT pg_reload_conf()"),
        b"28P01" => Some("check the user's name and the password"),
        b"3D000" => Some("create the database, or name another one"),
        b"42501" => Some("GRANT the user what it needs"),
        b"53300" => Some("raise the server's max_connections, or run fewer clients"),
        _ => None,
    }
}
