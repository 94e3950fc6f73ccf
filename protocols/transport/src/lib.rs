//! Connections to servers, for any protocol: sockets that never block, encryption, a receive buffer, and handling of
//! lost connections.
#![deny(missing_docs)]

mod admin;
mod channel;
mod created;
mod error;
mod incoming;
mod lent;
mod link;
mod queue;
mod stream;
mod target;
mod template;
mod tls;

pub use admin::{Admin, Blocking, Rows};
pub use channel::Channel;
pub use created::{TableName, TableObserver, announce};
pub use error::{TransportError, call_failed, in_statement, server_text, timed};
pub use incoming::Incoming;
pub use link::{CONNECT, Link, LinkCounts, Linked, Loss, OnLost, insist, left_out};
pub use queue::Queue;
pub use stream::{Ready, Stream};
pub use target::{Address, Identified, Secret, Target, Tls};
pub use template::{Template, Templates, put_doubled, quoted_name};
pub use tls::client as tls_client;
