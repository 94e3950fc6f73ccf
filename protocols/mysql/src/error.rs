//! Errors between client and server.

use rumba_engine_api::error::{EngineError, ErrorCode, SqlState};
use rumba_transport::TransportError;

use crate::codec::Malformed;
use crate::codec::answer::Refusal;

/// An error between client and server.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server reported an error.
    #[error("server error {code} ({sqlstate}): {message}")]
    Server {
        /// The server's error code, such as 1213.
        code: u16,
        /// The SQLSTATE, such as 40001.
        sqlstate: SqlState,
        /// The server's message.
        message: String,
    },
    /// The connection failed or was lost.
    #[error("{what}: {cause}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The request is impossible; nothing was sent, and the connection is unchanged.
    #[error("{0}")]
    Unable(String),
    /// The server violated the protocol, or used a part that this client does not know.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The requested encryption is impossible, or the certificate is not trusted.
    #[error("TLS: {0}")]
    Tls(String),
}

impl WireError {
    /// The error for a server's refusal, with a remedy if there is a common one.
    pub(crate) fn refused(refusal: &Refusal<'_>) -> Self {
        let mut message = String::from_utf8_lossy(refusal.message).into_owned();
        if let Some(remedy) = remedy(refusal.code) {
            message.push_str("; ");
            message.push_str(remedy);
        }
        WireError::Server { code: refusal.code, sqlstate: SqlState(refusal.state), message }
    }

    /// Converts to an engine error; `call` is the failed call.
    #[cold]
    pub fn during(&self, call: &'static str) -> EngineError {
        match self {
            WireError::Server { code, message, .. } if is_disk_full(*code, message.as_bytes()) => {
                EngineError::DiskFull(format!("{call}: {self}"))
            }
            WireError::Server { code, sqlstate, message } => {
                EngineError::refused(call, ErrorCode::of_server((*code).into(), sqlstate.0), message.as_str())
            }
            other => EngineError::failed(call, other.to_string()),
        }
    }

    pub(crate) fn io(what: impl Into<String>, cause: impl Into<std::io::Error>) -> Self {
        WireError::Io { what: what.into(), cause: cause.into() }
    }

    /// Whether the reason for a failed connection may be temporary: the server is starting, or has too many
    /// connections.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_lost() || matches!(self, WireError::Server { code: 1040 | 1203, .. })
    }

    /// Whether the connection is lost, so that a new one may help.
    pub fn is_lost(&self) -> bool {
        match self {
            WireError::Io { .. } => true,
            WireError::Server { code, .. } => lost(*code),
            WireError::Protocol(_) | WireError::Tls(_) | WireError::Unable(_) => false,
        }
    }
}

impl From<TransportError> for WireError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Io { what, cause } => WireError::Io { what, cause },
            TransportError::Tls(words) => WireError::Tls(words),
        }
    }
}

impl From<Malformed> for WireError {
    fn from(malformed: Malformed) -> Self {
        WireError::Protocol(malformed.to_string())
    }
}

/// Whether the server closes the connection with this error: shutdown, KILL, a broken or idle connection.
pub(crate) fn lost(code: u16) -> bool {
    matches!(code, 1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1184 | 1927 | 2006 | 2013 | 3169 | 4031)
}

fn is_disk_full(code: u16, message: &[u8]) -> bool {
    matches!(code, 1021 | 1114)
        || [&b"errno: 28"[..], b"errcode: 28", b"error 28", b"no space left"]
            .iter()
            .any(|words| contains(message, words))
}

/// Whether `text` contains `words`, which are in lower case, ignoring case.
pub(crate) fn contains(text: &[u8], words: &[u8]) -> bool {
    text.windows(words.len()).any(|window| window.eq_ignore_ascii_case(words))
}

fn remedy(code: u16) -> Option<&'static str> {
    match code {
        1040 | 1203 => Some("raise the server's max_connections, or run fewer clients"),
        1044 => Some("GRANT the user what it needs on this schema"),
        1045 | 1698 => Some("check the user's name, its host part, and the password"),
        1049 => Some("create the schema, or name another one"),
        1129 | 1130 => Some("let this host connect: the user's host part, or FLUSH HOSTS"),
        3159 => Some("turn TLS on for this connection"),
        _ => None,
    }
}
