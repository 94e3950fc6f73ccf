//! Tests of counters, with captured answers and with real servers.

mod captured;
mod real;
pub(crate) mod server;
