//! Errors of a connection to a server.

use std::io;

use crate::tls;

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
}

impl TransportError {
    /// The system's error for an operation.
    pub fn io(what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        TransportError::Io { what: what.into(), cause: cause.into() }
    }

    /// Converts an error from receiving: errors of the encryption are wrapped in I/O errors.
    pub fn receiving(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => tls::refused(error),
            None if error.kind() == io::ErrorKind::UnexpectedEof => {
                let words = io::Error::new(io::ErrorKind::UnexpectedEof, "the server has closed the connection");
                Self::io("receiving from the server", words)
            }
            None => Self::io("receiving from the server", error),
        }
    }
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
