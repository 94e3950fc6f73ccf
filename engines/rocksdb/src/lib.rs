//! The `rocksdb` engine: RocksDB's pessimistic transactions through its C API,
//! from a shared library that is loaded at run time.
//!
//! `docs/engines/rocksdb.md` says how the library is found, what the settings
//! are and what settle and drain do.
#![deny(missing_docs)]

#[cfg(test)]
#[macro_use(test)]
extern crate rumba_testkit;
#[cfg(test)]
rumba_testkit::main!();

mod access;
mod catalogue;
mod counters;
mod db;
mod effective;
mod engine;
mod ffi;
mod instance;
mod library;
mod memory;
mod names;
mod plan;
mod quiet;
mod session;
mod transaction;

pub use catalogue::Libraries;
pub use engine::RocksDb;

#[cfg(test)]
mod tests;
