//! Errors between client and server.

use std::io;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, ErrorCode, SqlState};
use rumba_transport::{TransportError, server_text, timed};

use crate::Address;
use crate::codec::Malformed;
use crate::codec::answer::Refusal;

/// The numbers of MariaDB's client library, with which sysbench is built, for a server that cannot be connected to, and
/// for a host name without an address. Scripts and users know them.
pub const UNREACHABLE: [u32; 2] = [CONNECTION_ERROR, UNKNOWN_HOST];
const CONNECTION_ERROR: u32 = 2002;
const UNKNOWN_HOST: u32 = 2005;

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
    /// No connection could be made.
    #[error("{what}: {cause}")]
    Unreachable {
        /// The number and the words of MariaDB's client library.
        refusal: (u32, String),
        /// The failed operation.
        what: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The connection failed or was lost.
    #[error("{what}: {cause}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        cause: io::Error,
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
        let mut message = server_text(refusal.message);
        if let Some(remedy) = remedy(refusal.code) {
            message.push_str("; ");
            message.push_str(remedy);
        }
        WireError::Server { code: refusal.code, sqlstate: SqlState(refusal.state), message }
    }

    /// The error of a connection attempt that has taken this long.
    #[cold]
    pub(crate) fn unreachable(address: &Address, error: TransportError, waited: Duration) -> Self {
        let TransportError::Io { what, cause } = error else { return error.into() };
        let number = number_of(&cause);
        let refusal = match address {
            Address::Socket(path) => {
                let words = format!("Can't connect to local server through socket '{}' ({number})", path.display());
                (CONNECTION_ERROR, words)
            }
            // The transport's kind of error for a name without an address.
            Address::Tcp { host, .. } if cause.kind() == io::ErrorKind::NotFound => {
                (UNKNOWN_HOST, format!("Unknown server host '{host}'"))
            }
            Address::Tcp { host, .. } => (CONNECTION_ERROR, format!("Can't connect to server on '{host}' ({number})")),
        };
        WireError::Unreachable { refusal, what, cause: timed(cause, waited) }
    }

    /// Adds the stage of the login, and the address: see [`TransportError::awaiting`].
    #[cold]
    pub(crate) fn awaiting(self, awaited: &str, address: &Address, waited: Duration) -> Self {
        match self {
            WireError::Io { what, cause } => {
                TransportError::Io { what, cause }.awaiting(awaited, address, waited).into()
            }
            other => other,
        }
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
            WireError::Unreachable { refusal: (number, words), .. } => {
                EngineError::refused(call, ErrorCode::of_server(*number, *b"HY000"), format!("{words}; {self}"))
            }
            other => EngineError::failed(call, other.to_string()),
        }
    }

    /// Whether the reason for a failed connection may be temporary: the server is starting, or has too many
    /// connections.
    pub(crate) fn may_pass(&self) -> bool {
        self.is_lost() || matches!(self, WireError::Server { code: 1040 | 1203, .. })
    }

    /// Whether the connection is lost, so that a new one may help.
    pub fn is_lost(&self) -> bool {
        match self {
            WireError::Unreachable { .. } | WireError::Io { .. } => true,
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
            TransportError::Protocol(words) => WireError::Protocol(words),
        }
    }
}

impl From<Malformed> for WireError {
    fn from(malformed: Malformed) -> Self {
        WireError::Protocol(malformed.to_string())
    }
}

fn number_of(cause: &io::Error) -> i32 {
    const TIMED_OUT: i32 = 110;
    match cause.raw_os_error() {
        Some(number) => number,
        None if cause.kind() == io::ErrorKind::TimedOut => TIMED_OUT,
        None => 0,
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
        1044 => Some("GRANT the user the privileges on this schema"),
        1045 | 1698 => Some("check the user's name, its host part, and the password"),
        1049 => Some("create the schema, or name another one"),
        1461 => Some(
            "raise the server's max_prepared_stmt_count to the number of clients times the statements of each, or send \
             statements as text (prepared = false, or --db-ps-mode=disable)",
        ),
        1129 | 1130 => Some("let this host connect: the user's host part, or FLUSH HOSTS"),
        3159 => Some("turn TLS on for this connection"),
        _ => None,
    }
}
