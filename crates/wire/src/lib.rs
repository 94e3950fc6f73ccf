//! The client of the MySQL protocol: what MySQL, MariaDB and their relatives speak.
#![deny(missing_docs)]

mod admin;
mod again;
#[doc(hidden)]
pub mod codec;
mod connection;
mod error;
#[doc(hidden)]
pub mod handshake;
mod query;
mod receive;
mod session;
mod stream;
mod target;
mod tls;

pub use admin::{Admin, Rows};
pub use error::WireError;
pub use session::{LoadWay, OnLost, SessionOptions, WireCounts, WireSession};
pub use target::{Address, Secret, Target, Tls};
