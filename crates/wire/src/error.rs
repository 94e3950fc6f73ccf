//! What goes wrong between client and server.

/// What goes wrong between client and server.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The server refused, in its own words.
    #[error("server error {code} ({sqlstate}): {message}")]
    Server {
        /// The server's number, such as 1213.
        code: u16,
        /// The SQLSTATE, such as 40001.
        sqlstate: String,
        /// The server's message.
        message: String,
    },
    /// The connection could not be made, or was lost.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's words.
        cause: std::io::Error,
    },
    /// The server said something that the protocol does not allow, or that this client does not know.
    #[error("protocol: {0}")]
    Protocol(String),
    /// The connection cannot be encrypted as asked, or the certificate is not trusted.
    #[error("TLS: {0}")]
    Tls(String),
}
