//! The address of a server, and the user to connect as.

use std::path::PathBuf;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Socket(PathBuf),
    /// A host and a port.
    Tcp {
        /// Name or number.
        host: String,
        /// Port.
        port: u16,
    },
}

/// The address for error messages: the socket's path, or the host and the port.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Socket(path) => path.display().fmt(f),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// A password, which is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// Reveals the password, for logging in.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// How the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// No encryption.
    #[default]
    Off,
    /// Encrypts over TCP without verification if the server supports it. A Unix socket is not encrypted, because no
    /// other process reads it.
    Preferred,
    /// Encryption, without verifying the server.
    Required,
    /// Encryption, and the server's certificate must be signed by one of these authorities or the system's. The host
    /// name is not checked.
    Signed {
        /// A PEM file of authorities.
        ca: Option<PathBuf>,
    },
    /// Encryption, and the server's certificate and host name are verified, by these authorities or the system's.
    Verified {
        /// A PEM file of authorities.
        ca: Option<PathBuf>,
    },
    /// One of the others, with a client certificate for a server that requests one.
    Identified(Box<Identified>),
}

/// Encryption with a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified {
    /// How the connection is encrypted.
    pub how: Tls,
    /// A PEM file of the certificate, and of its chain to the authority.
    pub certificate: PathBuf,
    /// A PEM file of its private key.
    pub key: PathBuf,
}

impl Tls {
    /// Whether unencrypted connections are refused.
    pub fn is_required(&self) -> bool {
        match self {
            Tls::Off | Tls::Preferred => false,
            Tls::Required | Tls::Signed { .. } | Tls::Verified { .. } => true,
            Tls::Identified(own) => own.how.is_required(),
        }
    }
}

impl Target {
    /// Logs in, and again without encryption if that is only preferred and fails: a server may offer encryption and not
    /// agree on it with this client. `is_tls` recognizes such an error.
    ///
    /// # Errors
    /// That of the last login.
    pub fn enter<T, E>(&self, is_tls: impl Fn(&E) -> bool, enter: impl Fn(&Self) -> Result<T, E>) -> Result<T, E> {
        match enter(self) {
            Err(error) if self.tls == Tls::Preferred && is_tls(&error) => {
                enter(&Self { tls: Tls::Off, ..self.clone() })
            }
            entered => entered,
        }
    }
}

/// The address of a server, and the user to connect as.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server's address.
    pub address: Address,
    /// The user.
    pub user: String,
    /// The user's password.
    pub password: Secret,
    /// The schema to use.
    pub database: Option<String>,
    /// How the connection is encrypted.
    pub tls: Tls,
}

impl Target {
    /// A server without authentication, over an unencrypted connection.
    pub fn anonymous(address: Address) -> Self {
        Self { address, user: String::new(), password: Secret::default(), database: None, tls: Tls::Off }
    }
}
