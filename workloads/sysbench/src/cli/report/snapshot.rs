//! A run at one moment: the figures of all reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::number;
use crate::cli::histogram::Bucket;

/// The figures since the last report of the same kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Threads that have not ended.
    pub threads_running: u32,
    /// Since the last report of this kind.
    pub interval_s: f64,
    /// Since the start, without the warm-up.
    pub elapsed_s: f64,
    /// The counts.
    pub counts: Counts,
    /// The latencies of events; only closing reports print them.
    pub latency: Latency,
    /// In the requested order; empty if none were requested.
    pub percentiles: Vec<Percentile>,
    /// With `--rate`.
    pub queue: Option<Queue>,
    /// The figures of each thread; only closing reports print their fairness.
    pub threads: Vec<ThreadTimes>,
    /// Events in progress when the run was ended by force.
    pub unfinished_events: u32,
    /// How often each error was ignored, by the database's error code.
    pub errors_by_code: BTreeMap<String, u64>,
    /// The distribution of latencies, if requested.
    pub histogram: Vec<Bucket>,
    /// With `--db-debug` and the highest verbosity.
    pub statements: Option<StatementTimes>,
}

/// The counts by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that ended.
    pub events: u64,
    /// Queries that gave rows.
    pub reads: u64,
    /// Queries that changed rows.
    pub writes: u64,
    /// Queries that did neither; for `fileio`, syncs.
    pub others: u64,
    /// Queries that looked for rows and found none.
    pub not_found: u64,
    /// Errors after which an event was restarted.
    pub ignored_errors: u64,
    /// Reconnects.
    pub reconnects: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
}

/// How long events took. JSON reports have milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// The shortest; 0 without any.
    #[serde(rename = "min", serialize_with = "number::write_ms")]
    pub min_ns: u64,
    /// Their mean; 0 without any.
    #[serde(rename = "avg", serialize_with = "number::write_ms")]
    pub avg_ns: u64,
    /// The longest.
    #[serde(rename = "max", serialize_with = "number::write_ms")]
    pub max_ns: u64,
    /// The sum.
    #[serde(rename = "sum", serialize_with = "number::write_ms")]
    pub sum_ns: u64,
}

/// A latency that this percentage of the events does not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    /// From 0 to 100.
    pub percent: f64,
    /// No longer than the longest.
    pub latency_ms: f64,
}

/// Events of `--rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// That have arrived and wait.
    pub length: u64,
    /// Events in progress.
    pub concurrency: u64,
}

/// The figures of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// That ended.
    pub events: u64,
    /// The shortest; any without events.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The sum over all events.
    pub sum_ns: u64,
}

/// How long the database took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementTimes {
    /// To carry statements out.
    pub executing: Latency,
    /// To hand out rows.
    pub fetching: Latency,
}

impl Counts {
    /// The queries of all kinds.
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

impl Latency {
    /// Computes the latencies over the events of all threads.
    pub fn of(threads: &[ThreadTimes]) -> Self {
        let busy = || threads.iter().filter(|thread| thread.events > 0);
        let events: u64 = busy().map(|thread| thread.events).sum();
        let sum_ns: u64 = busy().map(|thread| thread.sum_ns).sum();
        Self {
            min_ns: busy().map(|thread| thread.min_ns).min().unwrap_or(0),
            avg_ns: sum_ns.checked_div(events).unwrap_or(0),
            max_ns: busy().map(|thread| thread.max_ns).max().unwrap_or(0),
            sum_ns,
        }
    }
}

/// The fairness of threads: mean and standard deviation over them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fairness {
    /// How many.
    pub threads: usize,
    /// Events of a thread.
    pub events_avg: f64,
    /// Their deviation.
    pub events_stddev: f64,
    /// Time that a thread's events took.
    pub time_avg_s: f64,
    /// Its deviation.
    pub time_stddev_s: f64,
}

impl Snapshot {
    pub(super) fn events_per_s(&self) -> f64 {
        self.per_s(self.counts.events)
    }

    pub(super) fn per_s(&self, count: u64) -> f64 {
        number::per_second(count, self.interval_s)
    }

    pub(super) fn fairness(&self) -> Fairness {
        let events = self.threads.iter().map(|thread| thread.events as f64);
        let times = self.threads.iter().map(|thread| number::seconds(thread.sum_ns));
        let (events_avg, events_stddev) = mean_and_deviation(&events.collect::<Vec<_>>());
        let (time_avg_s, time_stddev_s) = mean_and_deviation(&times.collect::<Vec<_>>());
        Fairness { threads: self.threads.len(), events_avg, events_stddev, time_avg_s, time_stddev_s }
    }
}

fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (mean - number) * (mean - number)).sum();
    (mean, (squares / count).sqrt())
}
