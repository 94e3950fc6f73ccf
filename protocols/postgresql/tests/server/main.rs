//! Tests the client with a real PostgreSQL, which the tests start and stop.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod hostile;
mod load;
mod locks;
mod login;
mod lost;
mod pooler;
mod statements;
mod support;
