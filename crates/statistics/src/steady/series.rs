//! The seconds of a trial's loops on an even clock.

use rumba_core::metric::Metric;
use rumba_core::record::{Interval, PhaseKind};

use crate::median;

/// The most steps that a course is looked at in: a longer one is averaged into
/// as many, which keeps every trend and every change of level that lasts.
const MOST: f64 = 512.0;

/// One step of the clock: a second, or more in a very long run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its middle, in seconds since the loops' start.
    pub at_s: f64,
    /// How much of it was measured, in seconds.
    pub seconds: f64,
    /// Operations that ended in it.
    pub ops: f64,
    /// Bytes that the device wrote in it.
    pub written_bytes: f64,
}

/// The loops of a trial, evenly clocked.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The loops' start, in seconds since the trial's.
    pub start_s: f64,
    /// Length of a step in seconds.
    pub step_s: f64,
    /// The steps in order. One of which less than half was measured is left out.
    pub seconds: Vec<Second>,
    /// Why bytes written are not known, where they are not.
    pub unwritten: Option<String>,
}

/// The series of a trial's loops; `None` of none.
///
/// An interval that the harness could not end in time, or that was lost,
/// stretches or tears the record's seconds: what an interval counted is shared
/// out over the steps that it covers, and a step that none covers is missing.
pub fn series(intervals: &[Interval]) -> Option<Series> {
    let is_loop = |interval: &&Interval| matches!(interval.phase, PhaseKind::Loop(_)) && interval.seconds > 0.0;
    let loops: Vec<&Interval> = intervals.iter().filter(is_loop).collect();
    let (first, last) = (loops.first()?, loops.last()?);
    let (start_s, length_s) = (first.start_s, last.start_s + last.seconds - first.start_s);
    let lengths: Vec<f64> = loops.iter().map(|interval| interval.seconds).collect();
    let step_s = median(&lengths)?.max(length_s / MOST);
    // A last sliver joins no step of its own.
    let mut seconds = vec![Second::default(); (length_s / step_s + 0.5).floor().max(1.0) as usize];
    for interval in &loops {
        share_out(interval, interval.start_s - start_s, step_s, &mut seconds);
    }
    for (number, second) in seconds.iter_mut().enumerate() {
        second.at_s = (number as f64 + 0.5) * step_s;
    }
    seconds.retain(|second| second.seconds >= step_s / 2.0);
    let unwritten = loops.iter().find_map(|interval| interval.spent.device_write_bytes.reason());
    Some(Series { start_s, step_s, seconds, unwritten: unwritten.map(str::to_owned) })
}

fn share_out(interval: &Interval, from_s: f64, step_s: f64, seconds: &mut [Second]) {
    let until_s = from_s + interval.seconds;
    let written = interval.spent.device_write_bytes.value().unwrap_or_default();
    let (first, end) = ((from_s / step_s).max(0.0) as usize, (until_s / step_s).ceil() as usize);
    for (number, second) in seconds.iter_mut().enumerate().take(end).skip(first) {
        let (start, end) = (number as f64 * step_s, (number + 1) as f64 * step_s);
        let covered = (until_s.min(end) - from_s.max(start)).max(0.0);
        let share = covered / interval.seconds;
        second.seconds += covered;
        second.ops += share * interval.ops as f64;
        second.written_bytes += share * written;
    }
}

impl Series {
    /// The middles of the steps, in seconds since the loops' start.
    pub fn times(&self) -> Vec<f64> {
        self.seconds.iter().map(|second| second.at_s).collect()
    }

    /// Operations per second, step by step.
    pub fn ops_per_s(&self) -> Result<Vec<f64>, String> {
        Ok(self.seconds.iter().map(|second| second.ops / second.seconds).collect())
    }

    /// KB written per operation, step by step.
    ///
    /// Bytes of a second over operations of that second have no mean where a
    /// second may have no operations, and weigh its seconds wrongly where it
    /// has few. So each step is what it adds to the ratio of the sums r: r plus
    /// (bytes − r · operations) over the mean operations of a step. Their mean
    /// is r, and their trend is r's.
    pub fn wkb_per_op(&self) -> Result<Vec<f64>, String> {
        if let Some(reason) = &self.unwritten {
            return Err(reason.clone());
        }
        let (ops, bytes, seconds) = self.seconds.iter().fold((0.0, 0.0, 0.0), |(ops, bytes, seconds), second| {
            (ops + second.ops, bytes + second.written_bytes, seconds + second.seconds)
        });
        let ratio = Metric::from(bytes / 1024.0).per(ops, "operations in the loops");
        let ratio = ratio.value().ok_or_else(|| ratio.reason().unwrap_or_default().to_owned())?;
        let beyond = |second: &Second| (second.written_bytes / 1024.0 - ratio * second.ops) / second.seconds;
        Ok(self.seconds.iter().map(|second| ratio + beyond(second) * seconds / ops).collect())
    }
}
