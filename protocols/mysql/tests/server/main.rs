//! Tests the client with a real MariaDB, which the tests start and stop.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod groups;
mod load;
mod locks;
mod login;
mod lost;
mod sha2;
mod statements;
mod support;
