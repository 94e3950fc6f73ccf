//! Errors of a connection to a server.

use std::io;
use std::time::Duration;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::printable::printable;

use crate::incoming::LONGEST;
use crate::{Address, tls};

/// An error of a connection to a server.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The connection failed or was lost.
    #[error("{what}: {cause}")]
    Io {
        /// The failed operation.
        what: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The requested encryption is impossible, or the certificate is not trusted.
    #[error("TLS: {0}")]
    Tls(String),
    /// The server violated the protocol. A new connection does not help, because the server would send the same again.
    #[error("protocol: {0}")]
    Protocol(String),
}

impl TransportError {
    /// The system's error for an operation.
    pub fn io(what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        TransportError::Io { what: what.into(), cause: cause.into() }
    }

    /// The error for more bytes than are accepted.
    #[cold]
    pub(crate) fn too_long(limit: usize) -> Self {
        let limit = match limit {
            0..0x10_0000 => format!("{} KiB", limit >> 10),
            _ => format!("{} MiB", limit >> 20),
        };
        TransportError::Protocol(format!(
            "the server sends more than the {limit} that are accepted here; check that the address is that of a server \
             of this protocol"
        ))
    }

    /// Adds to a failed connection attempt what was awaited from `address`, and how long if that is the reason. A server
    /// may accept a connection and then say nothing.
    #[cold]
    #[must_use]
    pub fn awaiting(self, awaited: &str, address: &Address, waited: Duration) -> Self {
        match self {
            Self::Io { cause, .. } if cause.kind() == io::ErrorKind::TimedOut => {
                Self::io(format!("waiting for {awaited} of {address}"), timed(cause, waited))
            }
            Self::Io { what, cause } => Self::io(format!("{what} {address}, before {awaited}"), cause),
            other => other,
        }
    }

    /// Converts an error from receiving: errors of the encryption are wrapped in I/O errors.
    pub fn receiving(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => tls::refused(error),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                let words = io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed the connection");
                Self::io("receiving from the server", words)
            }
            None if error.kind() == io::ErrorKind::InvalidData => Self::too_long(LONGEST),
            None => Self::io("receiving from the server", error),
        }
    }
}

/// The same error, with the time waited if that is the reason.
pub fn timed(cause: io::Error, waited: Duration) -> io::Error {
    match cause.kind() {
        kind @ io::ErrorKind::TimedOut => {
            io::Error::new(kind, format!("no answer within {:.1} s", waited.as_secs_f64()))
        }
        _ => cause,
    }
}

/// A server's text for a person: as UTF-8 and [`printable`]. Some messages contain a value of a user's table:
/// `Duplicate entry '…' for key`.
pub fn server_text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes)).into_owned()
}

/// The error for a caller's mistake or for an operation that a session does not support.
#[cold]
pub fn call_failed(call: &'static str, message: &str) -> EngineError {
    EngineError::Failed { call, message: message.to_owned() }
}

/// The statement that an error concerns, shortened for reading; empty if its text was not kept.
pub fn in_statement(sql: &[u8]) -> String {
    const LONGEST: usize = 200;
    let sql = String::from_utf8_lossy(sql);
    match sql.char_indices().nth(LONGEST) {
        _ if sql.is_empty() => String::new(),
        Some((end, _)) => format!(", in: {} …", &sql[..end]),
        None => format!(", in: {sql}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_obeys_a_server() {
        let text = server_text(b"Duplicate entry 'a\x1b[2Jb\r\xc2\x9b\xe2\x80\xae\xff' for key\n\t'PRIMARY'");
        assert_eq!(text, "Duplicate entry 'a\\u001b[2Jb\\u000d\\u009b\\u202e\u{fffd}' for key\n\t'PRIMARY'");
        assert_eq!(server_text("żółw 😀".as_bytes()), "żółw 😀");
    }
}
