//! The client against a real MariaDB, which these tests start and stop.
#![allow(clippy::unwrap_used)]

mod load;
mod locks;
mod login;
mod lost;
mod sha2;
mod statements;
mod support;
