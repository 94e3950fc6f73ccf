//! Figures read from captured answers and from real servers.

mod captured;
mod real;
pub(crate) mod server;
