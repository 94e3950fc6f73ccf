//! The `rocksdb` engine: RocksDB's pessimistic transactions through its C API, from a shared library that is loaded at
//! run time.
//!
//! See `docs/engines/rocksdb.md` for how rumba finds the library, for the settings, and for settle and drain.
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
mod stopped;
mod transaction;

pub use catalogue::catalogue;
pub use engine::RocksDb;

#[cfg(test)]
mod tests;
