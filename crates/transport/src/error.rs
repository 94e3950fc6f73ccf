//! What goes wrong on the way to a server.

use std::io;

use crate::tls;

/// What goes wrong on the way to a server.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The connection could not be made, or was lost.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's words.
        cause: io::Error,
    },
    /// The connection cannot be encrypted as asked, or the certificate is not trusted.
    #[error("TLS: {0}")]
    Tls(String),
}

impl TransportError {
    /// The system's words about what was being done.
    pub fn io(what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        TransportError::Io { what: what.into(), cause: cause.into() }
    }

    /// What receiving failed with: the encryption's own errors come wrapped.
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

/// The statement that an error is about, cut to what can be read; nothing where its text was not kept.
pub fn in_statement(sql: &[u8]) -> String {
    const LONGEST: usize = 200;
    let sql = String::from_utf8_lossy(sql);
    match sql.char_indices().nth(LONGEST) {
        _ if sql.is_empty() => String::new(),
        Some((end, _)) => format!(", in: {} …", &sql[..end]),
        None => format!(", in: {sql}"),
    }
}
