//! Reduces intervals for drawing: at most [`POINTS`] per trial, without losing any stall.

use std::collections::BTreeMap;

use rumba_results::engine_samples::EngineTimeSeries;
use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind};
use serde::Serialize;

use crate::marks::{Marks, marks};
use crate::packed::POINTS;

/// A series over a trial's timeline; no number if the interval has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The stable name of the series: `ops_per_s`.
    pub name: &'static str,
    /// One value per point.
    #[serde(serialize_with = "crate::packed::serialize")]
    pub values: Vec<Option<f64>>,
    /// The reason, if there are no numbers at all.
    pub absent: Option<String>,
}

/// A trial's timeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Seconds since the trial's start, per point.
    pub at_s: Vec<f64>,
    /// The phases in order: name, start and end in seconds since the trial's start.
    pub phases: Vec<(String, f64, f64)>,
    /// The suspensions in order: start and end, seconds since the trial's start.
    pub suspended: Vec<(f64, f64)>,
    /// Checkpoints, flushes and compactions of the engine.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: Marks,
    /// The series.
    pub series: Vec<Series>,
    /// Seconds that one pair of points covers; `None` when every interval is a point.
    pub bucket_s: Option<f64>,
}

type Values = fn(&[Interval]) -> Vec<Metric>;

const SERIES: [(&str, Values); 11] = [
    ("active_clients", |all| each(all, active_clients)),
    ("ops_per_s", |all| each(all, |interval| Metric::from(interval.ops as f64).per(interval.seconds, "time"))),
    ("p99_ms", |all| each(all, |interval| interval.p99_ms.clone())),
    ("wkb_per_op", written_per_op),
    ("write_mb_s", |all| each(all, |interval| megabytes(&interval.spent.device_write_bytes, interval))),
    ("read_mb_s", |all| each(all, |interval| megabytes(&interval.spent.device_read_bytes, interval))),
    ("device_await_ms", |all| each(all, await_ms)),
    ("device_queue_length", |all| each(all, |interval| interval.spent.device_queue_s.per(interval.seconds, "time"))),
    ("device_utilisation_percent", |all| each(all, utilisation_percent)),
    // The number of busy cores used by clients and engine, including a server's.
    ("cpu_cores", |all| each(all, |interval| interval.spent.cpu_s.per(interval.seconds, "time"))),
    ("ctx_switches_per_s", |all| each(all, |interval| interval.spent.host_ctx_switches.per(interval.seconds, "time"))),
];

/// Seconds over which writes per operation are averaged: flushes and compactions write in bursts, and a second between
/// two of them is not representative.
const WINDOW_S: f64 = 15.0;

/// The largest gap between two intervals that count as adjacent.
const NEIGHBOURS_S: f64 = 0.01;

fn each(intervals: &[Interval], value: impl Fn(&Interval) -> Metric) -> Vec<Metric> {
    intervals.iter().map(value).collect()
}

fn megabytes(bytes: &Metric, interval: &Interval) -> Metric {
    bytes.map(|bytes| bytes / f64::from(1 << 20)).per(interval.seconds, "time")
}

/// The mean number of clients that the plan had active.
fn active_clients(interval: &Interval) -> Metric {
    Metric::from(interval.active_clients.ok_or_else(|| "the number of clients did not change".to_owned()))
}

/// The average time of a read or write of the device.
fn await_ms(interval: &Interval) -> Metric {
    let spent = &interval.spent;
    let requests = spent.device_reads.plus(&spent.device_writes);
    let request_ms = spent.device_read_s.plus(&spent.device_write_s).map(|seconds| seconds * 1e3);
    request_ms.over(&requests, "device reads or writes")
}

/// The share of time in which the device had a request in flight. The kernel's clock for it is coarse, so an interval
/// may show slightly more than its length.
fn utilisation_percent(interval: &Interval) -> Metric {
    interval
        .spent
        .device_busy_s
        .map(|seconds| 100.0 * seconds)
        .per(interval.seconds, "time")
        .map(|share| share.min(100.0))
}

/// KB written to the device per operation (per row, in the load) over the last
/// [`WINDOW_S`] seconds of the same part of the trial.
fn written_per_op(intervals: &[Interval]) -> Vec<Metric> {
    let serves = |interval: &Interval| {
        matches!(interval.phase, PhaseKind::Age | PhaseKind::Warmup | PhaseKind::Loop(_) | PhaseKind::Backlog)
    };
    let loads = |interval: &Interval| interval.phase == PhaseKind::Load;
    let until = |at: usize| match &intervals[at] {
        last if serves(last) => written_in_window(&intervals[..=at], serves),
        last if loads(last) => written_in_window(&intervals[..=at], loads),
        _ => Metric::absent("no operations in this phase"),
    };
    (0..intervals.len()).map(until).collect()
}

/// The figure over the last intervals of a part.
fn written_in_window(intervals: &[Interval], is_part: impl Fn(&Interval) -> bool) -> Metric {
    let from_s = intervals.last().map_or(0.0, |last| last.start_s) - WINDOW_S;
    let within = |interval: &&Interval| is_part(interval) && interval.start_s > from_s;
    // A suspended second has no reading of its meters. No value is lost, because the next reading contains its share.
    let is_known =
        |interval: &&Interval| interval.suspended_s == 0.0 || interval.spent.device_write_bytes.value().is_some();
    let window: Vec<&Interval> = intervals.iter().rev().take_while(within).filter(is_known).collect();
    let bytes = window.iter().fold(Metric::Value(0.0), |sum, interval| sum.plus(&interval.spent.device_write_bytes));
    // In manipulated files the sum may exceed the range of whole numbers.
    let ops: f64 = window.iter().map(|interval| interval.ops as f64).sum();
    bytes.map(|bytes| bytes / 1024.0).per(ops, "operations")
}

/// A trial's timeline. Above [`POINTS`] intervals of the load or of the run, its neighbours within one phase form buckets of two points each. Every
/// series keeps its own smallest and largest value of the bucket in their order of time, so that a stall of one second
/// stays visible in an hour.
pub fn timeline(intervals: &[Interval], course: &EngineTimeSeries) -> Timeline {
    // It separates the load from the run, and belongs to neither.
    let is_shown = |interval: &&Interval| interval.phase != PhaseKind::VerifyLoad;
    let intervals: &[Interval] = &intervals.iter().filter(is_shown).cloned().collect::<Vec<_>>();
    let runs: Vec<&[Interval]> = intervals.chunk_by(|a, b| a.phase == b.phase).collect();
    let phases = runs.iter().filter_map(|run| {
        let (first, last) = (run.first()?, run.last()?);
        (first.phase != PhaseKind::Provision)
            .then(|| (first.phase.to_string(), round(first.start_s), round(last.start_s + last.seconds)))
    });
    let phases = phases.collect();
    let makes_data =
        |phase| matches!(phase, PhaseKind::Provision | PhaseKind::Load | PhaseKind::Settle | PhaseKind::Age);
    let is_of_load = |run: &&&[Interval]| run.first().is_some_and(|first| makes_data(first.phase));
    let loaded = runs.iter().take_while(|run| is_of_load(run)).count();
    let buckets = [buckets(&runs[..loaded]), buckets(&runs[loaded..])].concat();
    let at_s = buckets.iter().flat_map(|bucket| ends(bucket)).collect();
    let series = SERIES.map(|(name, values)| series(name, thinned(&values(intervals), &buckets)));
    let longest = buckets.iter().filter(|bucket| bucket.len() > 1).max_by_key(|bucket| bucket.len());
    let bucket_s = longest.map(|bucket| round(bucket.iter().map(|interval| interval.seconds).sum()));
    let (suspended, marks) = (suspended(intervals), marks(course));
    Timeline { at_s, phases, suspended, marks, series: series.into(), bucket_s }
}

/// The intervals in which the measurement was suspended; adjacent ones are merged.
fn suspended(intervals: &[Interval]) -> Vec<(f64, f64)> {
    let mut stretches: Vec<(f64, f64)> = Vec::new();
    for interval in intervals.iter().filter(|interval| interval.suspended_s > 0.0) {
        let (from, until) = (interval.start_s, interval.start_s + interval.seconds);
        match stretches.last_mut() {
            Some((_, end)) if from - *end < NEIGHBOURS_S => *end = until,
            _ => stretches.push((from, until)),
        }
    }
    stretches.into_iter().map(|(from, until)| (round(from), round(until))).collect()
}

/// Each interval, or about [`POINTS`] / 2 slices, which do not cross phases.
fn buckets<'a>(runs: &[&'a [Interval]]) -> Vec<&'a [Interval]> {
    let (count, most) = (runs.iter().map(|run| run.len()).sum::<usize>(), POINTS / 2);
    // Every phase may end in a partial bucket, so one is reserved for each.
    let size = if count > POINTS { count.div_ceil(most.saturating_sub(runs.len()).max(1)) } else { 1 };
    runs.iter().flat_map(|run| run.chunks(size)).collect()
}

/// The times of a bucket's points: of its first and its middle interval, or of its only one.
fn ends(bucket: &[Interval]) -> Vec<f64> {
    let start = bucket.first().map_or(0.0, |interval| interval.start_s);
    let end = bucket.last().map_or(start, |interval| interval.start_s + interval.seconds);
    if bucket.len() == 1 { vec![round(start)] } else { vec![round(start), round((start + end) / 2.0)] }
}

fn thinned(values: &[Metric], buckets: &[&[Interval]]) -> Vec<Metric> {
    let mut rest = values;
    let mut kept = Vec::with_capacity(2 * buckets.len());
    for bucket in buckets {
        let (own, after) = rest.split_at(bucket.len());
        match own {
            [only] => kept.push(only.clone()),
            several => kept.extend(extremes(several)),
        }
        rest = after;
    }
    kept
}

pub fn extremes(values: &[Metric]) -> [Metric; 2] {
    let numbers: Vec<f64> = values.iter().filter_map(Metric::value).collect();
    let smallest = numbers.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
    let largest = numbers.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    match (smallest, largest) {
        (Some(low), Some(high)) if low.0 <= high.0 => [Metric::from(*low.1), Metric::from(*high.1)],
        (Some(low), Some(high)) => [Metric::from(*high.1), Metric::from(*low.1)],
        _ => {
            let first = values.first().cloned().unwrap_or_default();
            [first.clone(), first]
        }
    }
}

fn series(name: &'static str, metrics: Vec<Metric>) -> Series {
    let values: Vec<Option<f64>> = metrics.iter().map(|metric| metric.value().map(round)).collect();
    let reason = || match metrics.first() {
        Some(Metric::Absent { absent }) => absent.clone(),
        _ => "no interval was kept".to_owned(),
    };
    let absent = values.iter().all(Option::is_none).then(reason);
    Series { name, values: if absent.is_some() { Vec::new() } else { values }, absent }
}

/// Four significant digits: more are not visible, and the page stays small.
pub fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if digits >= 0 {
        let scale = 10f64.powi(digits.min(300));
        (value * scale).round() / scale
    } else {
        value.round()
    }
}

#[cfg(test)]
mod tests {
    use rumba_results::samples;

    use super::*;

    fn intervals(phase: PhaseKind, count: u64, start_s: f64) -> Vec<Interval> {
        let interval = |second| Interval {
            ops: 1000 + second % 7,
            p99_ms: Metric::Value(1.0),
            ..samples::interval(phase, start_s + second as f64)
        };
        (0..count).map(interval).collect()
    }

    fn drawn(intervals: &[Interval]) -> Timeline {
        timeline(intervals, &EngineTimeSeries::default())
    }

    fn named<'a>(timeline: &'a Timeline, name: &str) -> &'a Series {
        timeline.series.iter().find(|series| series.name == name).unwrap()
    }

    #[test]
    fn one_second_without_operations_in_an_hour_stays_visible() {
        let mut hour = intervals(PhaseKind::Loop(1), 3600, 0.0);
        hour[1234].ops = 0;
        hour[2000].p99_ms = Metric::Value(4000.0);
        let timeline = drawn(&hour);
        assert!(timeline.at_s.len() <= POINTS, "{}", timeline.at_s.len());
        assert!(named(&timeline, "ops_per_s").values.contains(&Some(0.0)));
        assert!(named(&timeline, "p99_ms").values.contains(&Some(4000.0)));
        assert!(timeline.at_s.is_sorted());
    }

    #[test]
    fn buckets_keep_to_their_phase_and_points_to_their_number() {
        for loops in [1, 3, 40, 100] {
            let mut all = intervals(PhaseKind::Warmup, 601, 0.0);
            for number in 1..=loops {
                all.extend(intervals(PhaseKind::Loop(number), 17, all.len() as f64));
            }
            let timeline = drawn(&all);
            assert!(timeline.at_s.len() <= POINTS, "{loops} loops: {}", timeline.at_s.len());
            assert_eq!(timeline.phases.len() as u32, loops + 1);
            assert_eq!(timeline.at_s.len(), named(&timeline, "ops_per_s").values.len());
        }
    }

    #[test]
    fn few_intervals_of_the_run_are_drawn_whole_after_a_long_load() {
        for load in [600, 7200] {
            let mut all = intervals(PhaseKind::Load, load, 0.0);
            all.extend(intervals(PhaseKind::Loop(1), 600, load as f64));
            let timeline = drawn(&all);
            let of_run: Vec<f64> = timeline.at_s.iter().copied().filter(|at| *at >= load as f64).collect();
            let each: Vec<f64> = (load..load + 600).map(|second| second as f64).collect();
            assert_eq!((of_run, timeline.bucket_s.is_some()), (each, load > 600));
            assert!(timeline.at_s.len() <= 2 * POINTS);
        }
    }

    #[test]
    fn a_series_without_numbers_gives_its_reason() {
        let timeline = drawn(&intervals(PhaseKind::Load, 5, 0.0));
        let written = named(&timeline, "write_mb_s");
        assert_eq!(written.absent.as_deref(), Some("not measured in this phase"));
        assert!(written.values.is_empty());
    }

    #[test]
    fn writes_per_op_are_averaged_and_restart_after_the_load() {
        let mut all = intervals(PhaseKind::Load, 20, 0.0);
        all.extend(intervals(PhaseKind::Warmup, 20, 20.0));
        all.extend(intervals(PhaseKind::Drain, 3, 40.0));
        for (second, interval) in all.iter_mut().enumerate() {
            interval.ops = if interval.phase == PhaseKind::Drain { 0 } else { 100 };
            // A burst of 30,000 KB every fifteenth second of the warmup.
            let burst = interval.phase == PhaseKind::Warmup && second % 15 == 0;
            interval.spent.device_write_bytes = Metric::Value(if burst { 30_000.0 * 1024.0 } else { 0.0 });
        }
        let values = written_per_op(&all);
        assert_eq!(values[19], Metric::Value(0.0));
        assert_eq!(values[34], Metric::Value(20.0), "1,500 operations carry one burst");
        assert_eq!(values[39], Metric::Value(20.0), "so they do in every window");
        assert_eq!(values[40], Metric::absent("no operations in this phase"));
    }

    #[test]
    fn a_suspension_is_a_stretch_of_seconds_without_operations() {
        let mut run = intervals(PhaseKind::Loop(1), 20, 100.0);
        for (second, interval) in run.iter_mut().enumerate() {
            interval.spent.device_write_bytes = Metric::Value(1024.0 * interval.ops as f64);
            if (5..9).contains(&second) {
                (interval.ops, interval.suspended_s) = (0, 1.0);
                interval.p99_ms = Metric::absent("no client ran");
                interval.spent.device_write_bytes = Metric::absent("no client ran");
            }
        }
        run[15].suspended_s = 0.3;
        let timeline = drawn(&run);
        assert_eq!(timeline.suspended, [(105.0, 109.0), (115.0, 116.0)]);
        assert_eq!(named(&timeline, "ops_per_s").values[5..9], [Some(0.0); 4], "each second is there");
        assert_eq!(named(&timeline, "p99_ms").values[5..9], [None; 4]);
        assert_eq!(named(&timeline, "wkb_per_op").values, [Some(1.0); 20], "a gap takes no figure from its neighbours");
    }

    #[test]
    fn device_times_are_drawn_and_absent_without_requests() {
        let mut run = intervals(PhaseKind::Loop(1), 2, 0.0);
        for interval in &mut run {
            interval.spent.device_writes = Metric::Value(0.0);
            interval.spent.device_write_s = Metric::Value(0.0);
            interval.spent.device_busy_s = Metric::Value(0.25);
            interval.spent.device_queue_s = Metric::Value(1.5);
            interval.spent.host_ctx_switches = Metric::Value(700.0);
        }
        run[0].spent.device_reads = Metric::Value(100.0);
        run[0].spent.device_read_s = Metric::Value(0.2);
        run[1].spent.device_reads = Metric::Value(0.0);
        run[1].spent.device_read_s = Metric::Value(0.0);
        let timeline = drawn(&run);
        assert_eq!(named(&timeline, "device_await_ms").values, [Some(2.0), None]);
        assert_eq!(named(&timeline, "device_queue_length").values, [Some(1.5); 2]);
        assert_eq!(named(&timeline, "device_utilisation_percent").values, [Some(25.0); 2]);
        assert_eq!(named(&timeline, "ctx_switches_per_s").values, [Some(700.0); 2]);
    }
}
