//! The null server: a server with fixed answers for the protocol of MySQL, PostgreSQL or MongoDB.
//!
//! A client that runs against it waits only for itself, so the run measures the client's own cost. With a delay, every
//! answer comes a known time after its request, so the run checks the client's latency measurement.
//!
//! Each thread runs an epoll loop with its share of the connections. Answers are made when the server starts, so a
//! request costs a `recv`, a copy and a `send`. Several requests of one connection share these costs.
#![deny(missing_docs)]

mod config;
mod connection;
mod dialogue;
mod error;
mod event_loop;
mod held;
mod listener;
mod mailbox;
mod mongodb;
mod mysql;
mod postgresql;
mod server;
mod sql;
mod taken;
mod text;

pub use config::{Column, ColumnKind, Config, Listen, Protocol};
pub use error::ServerError;
pub use held::Held;
pub use server::{NullServer, allow_many_connections};
