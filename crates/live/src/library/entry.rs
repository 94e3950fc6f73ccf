//! One result in the list.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rumba_engine_api::error::of_panic;
use rumba_lab::store;
use rumba_results::comparison::Row;
use rumba_results::record::Status;
use rumba_results::results::Results;
use serde::{Deserialize, Serialize};

use super::notes::Note;

/// An entry of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name of its directory.
    pub name: String,
    /// Its summary.
    pub kept: CachedResult,
    /// Users' notes on it.
    pub note: Note,
    /// Whether a run is writing it now.
    pub is_running: bool,
}

impl Entry {
    /// How its trials ended, in words.
    pub fn ending(&self) -> String {
        let CachedResult { details: Some(details), trials, .. } = &self.kept else { return "not read yet".to_owned() };
        let planned = trials.len();
        let counts = [
            (details.done, "done"),
            (details.failed, "failed"),
            (details.suspended, "suspended"),
            (details.interrupted, "interrupted"),
            (details.cut_off, if self.is_running { "running" } else { "cut off" }),
            (planned.saturating_sub(details.trials()), if self.is_running { "to come" } else { "not run" }),
        ];
        let reported = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        reported.collect::<Vec<_>>().join(", ")
    }
}

/// Detects changes of files: lengths and modification times in nanoseconds.
pub(super) type Stamp = Vec<(u64, i64)>;

/// The cached summary of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CachedResult {
    pub experiment: String,
    pub source: Option<String>,
    pub started: String,
    pub rumba: String,
    pub trials: Vec<String>,
    /// The reason why the experiment cannot be read.
    pub problem: Option<String>,
    pub details: Option<Details>,
    /// The stamp of the experiment and of the page, which is written last.
    pub(super) stamp: Stamp,
    /// The stamp of the records, while not all trials have ended.
    pub(super) records: Stamp,
}

/// The summary of a result's records.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Details {
    /// Its workload.
    pub workload: String,
    /// Trials that ended as planned.
    pub done: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Trials whose measurement was suspended.
    pub suspended: usize,
    /// Trials that were stopped by their user.
    pub interrupted: usize,
    /// Trials without an end: running or cut off.
    pub cut_off: usize,
    /// Whether all planned trials have ended.
    all_ended: bool,
    /// Every engine with every number of clients.
    pub figures: Vec<EntryFigure>,
    /// The reason why they cannot be read.
    pub problem: Option<String>,
}

/// One engine with one number of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryFigure {
    /// The engine's name in the experiment.
    pub engine: String,
    /// The number of clients.
    pub clients: u32,
    /// Median operations per second over the repeats, as in the report.
    pub ops_per_s: Option<f64>,
}

impl Details {
    pub(super) fn read(directory: &Path) -> Self {
        Self::of(|| store::read_records(directory).map_err(|error| error.to_string()))
    }

    /// The summary of these records, or the reason why they cannot be read. A manipulated record may cause a panic in
    /// its reader, which then would retry it for ever and never reach the others.
    fn of(read: impl FnOnce() -> Result<Results, String>) -> Self {
        let reported = catch_unwind(AssertUnwindSafe(|| read().map(|results| Self::of_results(&results))))
            .unwrap_or_else(|panic| Err(format!("reading it panicked: {}", of_panic(panic.as_ref()))));
        reported.unwrap_or_else(|problem| Self { problem: Some(problem), all_ended: true, ..Self::default() })
    }

    fn of_results(results: &Results) -> Self {
        let mut details = Self::default();
        for record in results.trials.iter().map(|trial| &trial.record) {
            *match record.status {
                Status::Running => &mut details.cut_off,
                Status::Done => &mut details.done,
                Status::Failed { .. } => &mut details.failed,
                Status::Interrupted => &mut details.interrupted,
                Status::Suspended { .. } => &mut details.suspended,
            } += 1;
        }
        details.workload = results.trials.first().map(|trial| trial.record.plan.workload.clone()).unwrap_or_default();
        details.figures = rumba_statistics::rows(results).into_iter().map(figure).collect();
        // A trial without a record is reported as missing.
        details.all_ended = details.cut_off == 0 && results.missing.is_empty();
        details
    }

    fn trials(&self) -> usize {
        self.done + self.failed + self.suspended + self.interrupted + self.cut_off
    }

    /// Whether it is complete, unless a user resumes it.
    pub fn is_settled(&self) -> bool {
        self.all_ended
    }
}

fn figure(row: Row) -> EntryFigure {
    // A partial run has no rate that is comparable with others.
    let run = row.run.as_ref().filter(|run| !run.partial);
    let ops_per_s = run.and_then(|run| run.median("ops_per_s").value());
    EntryFigure { engine: row.engine, clients: row.clients, ops_per_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_crash_the_reader_are_reported_as_settled() {
        let details = Details::of(|| panic!("no such loop"));
        assert!(details.problem.as_ref().is_some_and(|problem| problem.contains("no such loop")), "{details:?}");
        assert!(details.is_settled(), "it gets no later update");
        assert_eq!(Details::of(|| Err("not JSON".to_owned())).problem.as_deref(), Some("not JSON"));
    }
}
