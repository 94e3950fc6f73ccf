//! Errors between client and server.

use std::time::Duration;

use rumba_engine_api::error::{EngineError, ErrorCode, SqlState};
use rumba_transport::{Address, TransportError, server_text};

use crate::codec::Malformed;
use crate::codec::message::Refusal;

/// The SQLSTATE of a full device.
const DISK_FULL: [u8; 5] = *b"53100";

/// An error between client and server.
#[derive(Debug, thiserror::Error)]
pub enum PgError {
    /// The server reported an error.
    #[error("server error {sqlstate}: {message}")]
    Server {
        /// The SQLSTATE, such as 40P01.
        sqlstate: SqlState,
        /// The server's message, with its detail and hint.
        message: String,
        /// Whether the server closes the connection after it.
        fatal: bool,
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

impl PgError {
    /// The error for a server's refusal, with a remedy if there is a common one.
    pub(crate) fn refused(refusal: &Refusal<'_>) -> Self {
        let mut message = server_text(refusal.message);
        for (before, more) in [("; ", refusal.detail), ("; hint: ", refusal.hint)] {
            if !more.is_empty() {
                message.push_str(before);
                message.push_str(&server_text(more));
            }
        }
        if let Some(remedy) = remedy(refusal) {
            message.push_str("; ");
            message.push_str(remedy);
        }
        let fatal = refusal.is_fatal();
        PgError::Server { sqlstate: SqlState(refusal.sqlstate), message, fatal }
    }

    /// Adds the stage of the login, and the address: see [`TransportError::awaiting`].
    #[cold]
    pub(crate) fn awaiting(self, awaited: &str, address: &Address, waited: Duration) -> Self {
        match self {
            PgError::Transport(error) => PgError::Transport(error.awaiting(awaited, address, waited)),
            other => other,
        }
    }

    /// Converts the error of a connection attempt. A server that is absent or has ended is reported as a lost
    /// connection.
    #[cold]
    pub(crate) fn at_login(&self) -> EngineError {
        if self.is_lost() { EngineError::Lost(self.to_string()) } else { self.during("connect") }
    }

    /// Converts to an engine error; `call` is the failed call.
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

    /// Whether the connection is lost, so that a new one may help.
    pub fn is_lost(&self) -> bool {
        match self {
            PgError::Transport(TransportError::Io { .. }) => true,
            PgError::Server { sqlstate, fatal, .. } => *fatal || lost(&sqlstate.0),
            PgError::Transport(_) | PgError::Protocol(_) | PgError::Unable(_) => false,
        }
    }

    /// Whether the server is running but does not accept clients yet.
    pub fn is_starting(&self) -> bool {
        matches!(self, PgError::Server { sqlstate, .. } if sqlstate.0 == *b"57P03")
    }

    /// Whether the reason for a failed connection may be temporary: the server is starting, or has too many
    /// connections.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            // Every refused login is fatal, and few of the reasons are temporary.
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

/// Whether the server closes the connection with this error, because of shutdown, a crash of another backend, or an
/// idle session. Also true if it is still starting.
pub(crate) fn lost(sqlstate: &[u8]) -> bool {
    // The server also reports 08P01 for a single malformed message.
    (sqlstate.starts_with(b"08") && sqlstate != b"08P01")
        || matches!(sqlstate, b"57P01" | b"57P02" | b"57P03" | b"57P04" | b"57P05" | b"25P03")
}

/// The remedy for a prepared statement that the server does not know, knows already, or knows as another one.
pub(crate) const OF_A_POOLER: &str = "a pooler that gives each transaction another connection loses prepared \
    statements; send statements as text: --db-ps-mode=disable with rumba sysbench, prepared = false in an experiment";

fn remedy(refusal: &Refusal<'_>) -> Option<&'static str> {
    // PgBouncer's message. Its SQLSTATE, 08P01, is that of any violation of the protocol.
    if refusal.message.starts_with(b"unsupported startup parameter") {
        return Some(
            "unset the variable that requests it (PGOPTIONS, PGTZ, PGDATESTYLE, PGGEQO), or list the parameter in the \
             pooler's ignore_startup_parameters",
        );
    }
    match &refusal.sqlstate {
        b"26000" | b"42P05" => Some(OF_A_POOLER),
        b"28000" => Some("let this host and user in: pg_hba.conf, and then SELECT pg_reload_conf()"),
        b"28P01" => Some("check the user's name and the password"),
        b"3D000" => Some("create the database, or name another one"),
        b"42501" => Some("GRANT the user the privilege"),
        b"53300" => Some("raise the server's max_connections, or run fewer clients"),
        _ => None,
    }
}
