//! The client of the MySQL protocol: what MySQL, MariaDB and their relatives speak.
#![deny(missing_docs)]

mod admin;
mod error;
mod session;
mod target;

pub use admin::{Admin, Rows};
pub use error::WireError;
pub use session::{LoadWay, OnLost, SessionOptions, WireCounts, WireSession};
pub use target::{Address, Secret, Target, Tls};
