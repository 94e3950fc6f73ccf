//! Shared parts of the tests: synthetic results, and the statistics over them.

pub use rumba_statistics as compare;
pub mod history;
pub mod ladder;
pub mod proof;
pub mod synthetic;
