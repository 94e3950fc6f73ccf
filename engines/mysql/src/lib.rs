//! InnoDB, MyRocks and other engines of MySQL and MariaDB servers.
//!
//! See `docs/engines/mysql.md` for the servers, their installation, and how settings map to variables.
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod capability;
mod catalogue;
mod compression;
mod connections;
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
mod overruled;
mod places;
mod plan;
mod profile;
mod readback;
mod redo;
mod rehearsal;
mod requested;
mod software;
mod sql;
#[cfg(test)]
mod testing;
mod upkeep;

pub use catalogue::catalogue;
pub use engine::MySqlEngine;
