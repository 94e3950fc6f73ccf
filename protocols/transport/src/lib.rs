//! Connections to servers, for any protocol: sockets that never block, encryption, a receive buffer, and handling of
//! lost connections.
#![deny(missing_docs)]

mod created;
mod error;
mod incoming;
mod lent;
mod link;
mod queue;
mod stream;
mod target;
mod tls;

pub use created::{TableName, TableObserver, announce};
pub use error::{TransportError, in_statement, server_text, timed};
pub use incoming::Incoming;
pub use lent::{give_back, lent};
pub use link::{CONNECT, Link, Linked, Loss, OnLost, Refused, insist, left_out};
pub use queue::Queue;
pub use stream::{Ready, Stream};
pub use target::{Address, Identified, Secret, Target, Tls};
pub use tls::client as tls_client;
