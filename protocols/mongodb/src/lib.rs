//! The client of MongoDB's protocol: OP_MSG, which every server since 3.6 supports.
//!
//! Source: the pages "MongoDB Wire Protocol" and "Database Commands" of MongoDB's manual, and the specifications of its
//! drivers (`mongodb/specifications`): handshake, authentication, transactions.
#![deny(missing_docs)]

mod admin;
#[doc(hidden)]
pub mod codec;
mod connection;
mod error;
#[doc(hidden)]
pub mod login;
mod session;

pub use admin::Admin;
pub use codec::hello::Hello;
pub use error::MongoError;
pub use rumba_transport::{Address, OnLost, Secret, Target, Tls, TransportError};
pub use session::{MongoCounts, MongoSession, SessionOptions};
