//! Errors of the server.

use std::io;
use std::path::PathBuf;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Another server uses the socket.
    #[error("{0}: a server answers on this socket")]
    Occupied(PathBuf),
    /// The path is not a socket.
    #[error("{0}: a file of this name exists and is not a socket")]
    NotASocket(PathBuf),
    /// The system refuses the address.
    #[error("cannot listen on {place}: {cause}")]
    Listen {
        /// Path, or address and port.
        place: String,
        /// The system's error.
        cause: io::Error,
    },
    /// The requested result set is impossible.
    #[error("{0}")]
    Answer(String),
    /// The host provides no threads or descriptors.
    #[error("the host gives no {what}: {cause}")]
    Host {
        /// The missing resource.
        what: &'static str,
        /// The system's error.
        cause: io::Error,
    },
}
