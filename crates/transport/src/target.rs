//! Where a server is, and who one is to it.

use std::path::PathBuf;

/// Where a server listens.
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

/// As errors name it: the socket's path, or the host and the port.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Socket(path) => path.display().fmt(f),
            Address::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// A password: never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a password.
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    /// The password, for whom it is meant.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Whether the connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Never.
    #[default]
    Off,
    /// Over TCP, if the server offers it, whoever that is; not over a socket, which nobody else reads.
    Preferred,
    /// Always, whoever the server is.
    Required,
    /// Always, and one of these authorities, or of the system's, has signed the server's certificate, whatever host it is
    /// for.
    Signed {
        /// A PEM file of authorities.
        ca: Option<PathBuf>,
    },
    /// Always, and the server's certificate is verified, by these authorities
    /// or by the system's.
    Verified {
        /// A PEM file of authorities.
        ca: Option<PathBuf>,
    },
    /// As another of these says, with a certificate of one's own for a server that asks who one is.
    Identified(Box<Identified>),
}

/// With a certificate of one's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified {
    /// Whether the connection is encrypted.
    pub how: Tls,
    /// A PEM file of the certificate, and of those that lead to its authority.
    pub certificate: PathBuf,
    /// A PEM file of its private key.
    pub key: PathBuf,
}

impl Tls {
    /// Whether there is no connection without it.
    pub fn is_required(&self) -> bool {
        match self {
            Tls::Off | Tls::Preferred => false,
            Tls::Required | Tls::Signed { .. } | Tls::Verified { .. } => true,
            Tls::Identified(own) => own.how.is_required(),
        }
    }
}

/// Where a server is, and who one is to it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// The user.
    pub user: String,
    /// The user's password.
    pub password: Secret,
    /// The schema to use.
    pub database: Option<String>,
    /// Whether the connection is encrypted.
    pub tls: Tls,
}

impl Target {
    /// A server that asks nobody who they are, over a connection that is not encrypted.
    pub fn anonymous(address: Address) -> Self {
        Self { address, user: String::new(), password: Secret::default(), database: None, tls: Tls::Off }
    }
}
