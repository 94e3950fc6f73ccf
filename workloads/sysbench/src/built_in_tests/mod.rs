//! sysbench's built-in tests: cpu, memory, threads, mutex, fileio.
//!
//! A run takes these steps:
//!
//! ```text
//! OptionSet, Settings ─► BuiltInTest::of          options checked, refused in sysbench's words
//!                          │ prepare, cleanup     files of fileio
//!                          │ mode_text            before a run
//!                          ▼ start                memory is taken, files are opened
//!                        Started ─► client        one for each thread; each ends on its own or with its pace
//!                          intermediate, cumulative: reports
//! ```
//!
//! Events do the same work as sysbench's, instruction by instruction where that is measured, so that figures can be
//! compared. Every client blocks, so it needs its own thread.

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
