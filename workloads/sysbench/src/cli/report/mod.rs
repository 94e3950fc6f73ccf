//! The output of a run: text from plain values.
//!
//! Every function returns whole lines, ends included, for [`crate::cli::log::Log::report`]. Formats are sysbench's to the
//! blank. Several percentiles, which sysbench does not have, are lines of the same form. Other figures of rumba's own
//! stand after the closing report, because some programs parse it by the positions of its numbers.

pub mod built_in;
mod cumulative;
mod document;
mod intermediate;
mod number;
mod progress;
mod snapshot;

pub use cumulative::{Closing, cumulative, ignored_errors};
pub use document::{Document, Errors, Latencies, Moment, Queries, Total};
pub use intermediate::intermediate;
pub use progress::{INITIALIZING, THREADS_STARTED, checkpoint, histogram, running_with, warming_up};
pub use snapshot::{Counts, Fairness, Latency, Percentile, Queue, Snapshot, StatementTimes, ThreadTimes};

/// The wording of the closing report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// That of the releases up to 1.0.20, which distributions package and most tools expect.
    #[default]
    V1_0,
    /// That of sysbench's main branch.
    V1_1,
}

impl Layout {
    /// The layout of a version's name, `1.0` or `1.1`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "1.0" => Some(Layout::V1_0),
            "1.1" => Some(Layout::V1_1),
            _ => None,
        }
    }
}

/// Whether a test uses a database. If it does, its events are transactions, and its queries are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// It has connected to one, or tried to.
    Sql,
    /// It has not.
    Other,
}

#[cfg(test)]
mod tests;
