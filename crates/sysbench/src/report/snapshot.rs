//! A run at one moment: all that any report tells.

use std::collections::BTreeMap;

use super::number;
use crate::histogram::Bucket;

/// What has happened since the last report of the same kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Threads that have not ended.
    pub threads_running: u32,
    /// Since the last report of this kind.
    pub interval_s: f64,
    /// Since the start, without the warm-up.
    pub elapsed_s: f64,
    /// What happened.
    pub counts: Counts,
    /// Of events; closing reports alone tell it.
    pub latency: Latency,
    /// In the order in which they were asked for; empty if none were.
    pub percentiles: Vec<Percentile>,
    /// With `--rate`.
    pub queue: Option<Queue>,
    /// What each thread did; closing reports alone tell how even it is.
    pub threads: Vec<ThreadTimes>,
    /// Events that were going on when the run was ended by force.
    pub unfinished_events: u32,
    /// How often each error was ignored, by the code that the database gives it.
    pub errors_by_code: BTreeMap<String, u64>,
    /// How latencies are distributed, if that was asked for.
    pub histogram: Vec<Bucket>,
    /// With `--db-debug` and all the verbosity there is.
    pub statements: Option<StatementTimes>,
}

/// What happened, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that ended.
    pub events: u64,
    /// Queries that gave rows.
    pub reads: u64,
    /// Queries that changed rows.
    pub writes: u64,
    /// Queries that did neither; of `fileio`, syncs.
    pub others: u64,
    /// Errors after which an event was begun anew.
    pub ignored_errors: u64,
    /// Connections made anew.
    pub reconnects: u64,
    /// Of files.
    pub bytes_read: u64,
    /// Of files.
    pub bytes_written: u64,
}

/// How long events took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Of the shortest; 0 without any.
    pub min_ns: u64,
    /// Their mean; 0 without any.
    pub avg_ns: u64,
    /// Of the longest.
    pub max_ns: u64,
    /// Of all together.
    pub sum_ns: u64,
}

/// So many percent of the events took at most so long.
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
    /// That are going on.
    pub concurrency: u64,
}

/// What one thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// That ended.
    pub events: u64,
    /// The shortest; any without events.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Of all events together.
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
    /// Of every kind.
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

impl Latency {
    /// Of the events of all threads.
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

/// Mean and standard deviation over threads, of events and of the time that they took.
pub(super) struct Evenness {
    pub(super) events_avg: f64,
    pub(super) events_stddev: f64,
    pub(super) time_avg_s: f64,
    pub(super) time_stddev_s: f64,
}

impl Snapshot {
    pub(super) fn events_per_s(&self) -> f64 {
        self.per_s(self.counts.events)
    }

    pub(super) fn per_s(&self, count: u64) -> f64 {
        number::per_second(count, self.interval_s)
    }

    pub(super) fn evenness(&self) -> Evenness {
        let events = self.threads.iter().map(|thread| thread.events as f64);
        let times = self.threads.iter().map(|thread| number::seconds(thread.sum_ns));
        let (events_avg, events_stddev) = mean_and_deviation(&events.collect::<Vec<_>>());
        let (time_avg_s, time_stddev_s) = mean_and_deviation(&times.collect::<Vec<_>>());
        Evenness { events_avg, events_stddev, time_avg_s, time_stddev_s }
    }
}

fn mean_and_deviation(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len().max(1) as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (mean - number) * (mean - number)).sum();
    (mean, (squares / count).sqrt())
}
