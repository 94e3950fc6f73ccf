//! What is printed of a run: text from plain values.
//!
//! Every function gives whole lines, ends included, for [`crate::log::Log::report`]. Formats are sysbench's to the blank;
//! what it does not have (several percentiles, errors by code) comes as lines or words of the same form, and only where
//! there is something to tell.

pub mod built_in;
mod cumulative;
mod document;
pub mod hooks;
mod intermediate;
mod number;
mod progress;
mod snapshot;

pub use cumulative::{Closing, cumulative};
pub use document::{Document, Errors, Fairness, HistogramRow, Latencies, LatenciesOfAll, Moment, Queries, Total};
pub use intermediate::intermediate;
pub use progress::{INITIALIZING, READING_STDIN, THREADS_STARTED, checkpoint, histogram, running_with, warming_up};
pub use snapshot::{Counts, Latency, Percentile, Queue, Snapshot, StatementTimes, ThreadTimes};

/// The words of the closing report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Of sysbench's main branch.
    #[default]
    V1_1,
    /// Of the releases up to 1.0.20, which distributions have and most tools were written for.
    V1_0,
}

/// Whether a test asks a database: then its events are transactions, and what they ask is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// It has connected to one, or tried to.
    Sql,
    /// It has not.
    Other,
}

#[cfg(test)]
mod tests;
