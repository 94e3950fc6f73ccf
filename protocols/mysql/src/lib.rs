//! The client of the MySQL protocol, for MySQL, MariaDB and related servers.
#![deny(missing_docs)]

#[doc(hidden)]
pub mod codec;
mod connection;
mod error;
#[doc(hidden)]
pub mod handshake;
mod public_key;
mod query;
mod session;

pub use error::{UNREACHABLE, WireError};
pub use rumba_transport::{
    Address, Identified, Loss, OnLost, Rows, Secret, TableName, TableObserver, Target, Templates, Tls,
};
/// A connection for administration.
pub type Admin = rumba_transport::Admin<connection::Connection>;

pub use session::{LoadWay, SessionOptions, WireCounts, WireSession};
