//! Tests the client with a real PostgreSQL, which the tests start and stop.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod load;
mod locks;
mod login;
mod lost;
mod statements;
mod support;
