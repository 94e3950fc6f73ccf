//! sysbench's built-in tests: cpu, memory, threads, mutex, fileio.
//!
//! Whoever runs one goes this way:
//!
//! ```text
//! OptionSet, Settings ─► BuiltInTest::of          options checked, refused in sysbench's words
//!                          │ prepare, cleanup     files of fileio
//!                          │ mode_text            before a run
//!                          ▼ start                memory is taken, files are opened
//!                        Started ─► client        one for each thread; each ends by itself or when its pace ends
//!                          intermediate, cumulative: reports
//! ```
//!
//! Events do what sysbench's do, instruction by instruction where that is what is measured, so that figures can be
//! compared. Every client blocks: it needs a thread of its own.
#![deny(missing_docs)]

mod barrier;
mod built_in;
mod cpu;
mod failure;
mod fileio;
mod memory;
mod mutex;
mod pages;
mod posix_mutex;
mod task;
#[cfg(test)]
mod testing;
mod threads;

pub use built_in::{BuiltInTest, Purpose, Started};
pub use failure::{FAILED, Failure};
