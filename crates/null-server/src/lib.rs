//! The null server: it speaks the MySQL protocol and gives fixed answers.
//!
//! Against it a client has nobody but itself to wait for, so it shows what the
//! client costs; with a delay, every answer comes a known time after its
//! question, so it shows whether a client measures latency truly.
//!
//! A thread is an epoll loop with the connections that it was given; answers
//! are made when the server starts, so that a question costs a `recv`, a copy
//! and a `send`, and several questions of one connection cost them once.
#![deny(missing_docs)]

mod answers;
mod commands;
mod config;
mod connection;
mod constants;
mod event_loop;
mod handshake;
mod listener;
mod packet;
mod resultset;
mod server;
mod sql;
mod statements;
mod variables;

pub use config::{Column, ColumnKind, Config, Listen};
pub use server::{NullServer, ServerError, allow_many_connections};

/// The version that the server greets with.
pub const VERSION: &str = "8.0.0-rumba-null";
