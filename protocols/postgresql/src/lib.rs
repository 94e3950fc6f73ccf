//! The client of PostgreSQL's protocol, version 3.0, which every release since 7.4 supports.
//!
//! Source: the chapter "Frontend/Backend Protocol" of PostgreSQL's documentation.
#![deny(missing_docs)]

#[doc(hidden)]
pub mod codec;
mod connection;
mod error;
pub mod libpq;
mod query;
mod session;
#[doc(hidden)]
pub mod startup;

pub use error::PgError;
pub use rumba_transport::{
    Address, Identified, Loss, OnLost, Rows, Secret, TableName, TableObserver, Target, Templates, Tls, TransportError,
};
/// A connection for administration.
pub type Admin = rumba_transport::Admin<connection::Connection>;

pub use session::{PgCounts, PgSession, SessionOptions};
