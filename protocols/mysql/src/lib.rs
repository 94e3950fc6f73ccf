//! The client of the MySQL protocol, for MySQL, MariaDB and related servers.
#![deny(missing_docs)]

mod admin;
#[doc(hidden)]
pub mod codec;
mod connection;
mod error;
#[doc(hidden)]
pub mod handshake;
mod public_key;
mod query;
mod receive;
mod session;

pub use admin::{Admin, Rows};
pub use error::{UNREACHABLE, WireError};
pub use rumba_transport::{Address, Identified, Loss, OnLost, Secret, TableName, TableObserver, Target, Tls};
pub use session::{LoadWay, SessionOptions, Templates, WireCounts, WireSession};
