//! The null server: it speaks MySQL's protocol, PostgreSQL's or MongoDB's, and gives fixed answers.
//!
//! Against it a client has nobody but itself to wait for, so it shows what the
//! client costs; with a delay, every answer comes a known time after its
//! question, so it shows whether a client measures latency truly.
//!
//! A thread is an epoll loop with the connections that it was given; answers
//! are made when the server starts, so that a question costs a `recv`, a copy
//! and a `send`, and several questions of one connection cost them once.
#![deny(missing_docs)]

mod config;
mod connection;
mod dialogue;
mod event_loop;
mod held;
mod listener;
mod mongodb;
mod mysql;
mod postgresql;
mod server;
mod sql;
mod text;

pub use config::{Column, ColumnKind, Config, Listen, Protocol};
pub use held::Held;
pub use server::{NullServer, ServerError, allow_many_connections};
