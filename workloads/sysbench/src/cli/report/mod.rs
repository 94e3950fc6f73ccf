//! The output of a run: text from plain values.
//!
//! Every function returns whole lines, ends included, for [`crate::cli::log::Log::report`]. Formats are sysbench's to the
//! blank. Figures that sysbench does not have (several percentiles, errors by code) are lines or words of the same
//! form, printed only if present.

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

/// The wording of the closing report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// That of sysbench's main branch.
    #[default]
    V1_1,
    /// That of the releases up to 1.0.20, which distributions package and most tools expect.
    V1_0,
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
