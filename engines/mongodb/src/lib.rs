//! Servers that speak MongoDB's protocol: MongoDB itself with its storage engines, and SecantusDB.
//!
//! See `docs/engines/mongodb.md` for the servers, how rumba runs them, and how settings map to their options.
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod brand;
mod catalogue;
mod control;
mod counters;
mod dsn;
mod engine;
mod existing;
mod instance;
mod launch;
mod options;
mod plan;
mod readback;
mod software;
#[cfg(test)]
mod tests;

pub use catalogue::catalogue;
pub use engine::MongoEngine;
