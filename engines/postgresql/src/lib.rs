//! PostgreSQL: heap tables with vacuum, and separate B-tree indexes.
//!
//! See `docs/engines/postgresql.md` for the servers, how rumba runs them, and how settings map to server settings.
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod catalogue;
mod control;
mod counters;
mod dsn;
mod engine;
mod existing;
mod failure;
mod initialise;
mod instance;
mod launch;
mod marker;
mod memory;
mod options;
mod plan;
mod processes;
mod quantity;
mod readback;
mod shared_memory;
mod software;
#[cfg(test)]
mod tests;
mod upkeep;
mod waits;
mod wal;

pub use catalogue::catalogue;
pub use engine::PostgreSql;
