//! Resamples the seconds of a trial's loops to an even clock.

use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind};

use crate::statistics::median;

/// The most steps of an analysed time series. A longer one is averaged to this number, which keeps every trend and
/// every lasting change of level.
const MOST: f64 = 512.0;

/// Operations served and bytes written in a span of time, as in an interval of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// Its start, in seconds on any clock.
    pub start_s: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Operations that ended in it.
    pub ops: u64,
    /// Bytes that the device wrote in it.
    pub written_bytes: Metric,
}

impl From<&Interval> for Served {
    fn from(interval: &Interval) -> Self {
        let Interval { start_s, seconds, ops, .. } = *interval;
        Self { start_s, seconds, ops, written_bytes: interval.spent.device_write_bytes.clone() }
    }
}

/// One step of the clock: a second, or more in a very long run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Its middle, in seconds since the loops' start.
    pub at_s: f64,
    /// The measured part of it, in seconds.
    pub seconds: f64,
    /// Operations that ended in it.
    pub ops: f64,
    /// Bytes that the device wrote in it.
    pub written_bytes: f64,
}

/// An evenly spaced time series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its start, on the clock of its source.
    pub start_s: f64,
    /// Length of a step in seconds.
    pub step_s: f64,
    /// The steps in order. A step of which less than half was measured is left out.
    pub seconds: Vec<Second>,
    /// The reason why bytes written are not known, if they are not.
    pub unwritten: Option<String>,
}

/// Operations served and bytes written in a trial's loops, second by second.
pub fn loops(intervals: &[Interval]) -> Vec<Served> {
    intervals.iter().filter(|interval| matches!(interval.phase, PhaseKind::Loop(_))).map(Served::from).collect()
}

/// The series of these spans; `None` if there are none.
///
/// An interval that the harness could not end in time, or that was lost, lengthens or interrupts the record's seconds.
/// The counts of an interval are therefore distributed over the steps that it covers, and a step that none covers is
/// missing.
pub fn series(served: &[Served]) -> Option<Series> {
    let served: Vec<&Served> = served.iter().filter(|served| served.seconds > 0.0).collect();
    let (first, last) = (served.first()?, served.last()?);
    let (start_s, length_s) = (first.start_s, last.start_s + last.seconds - first.start_s);
    let lengths: Vec<f64> = served.iter().map(|served| served.seconds).collect();
    let step_s = median(&lengths)?.max(length_s / MOST);
    // A short remainder joins the last step instead of forming one.
    let mut seconds = vec![Second::default(); (length_s / step_s + 0.5).floor().max(1.0) as usize];
    for served in &served {
        share_out(served, served.start_s - start_s, step_s, &mut seconds);
    }
    for (number, second) in seconds.iter_mut().enumerate() {
        second.at_s = (number as f64 + 0.5) * step_s;
    }
    seconds.retain(|second| second.seconds >= step_s / 2.0);
    let unwritten = served.iter().find_map(|served| served.written_bytes.reason());
    Some(Series { start_s, step_s, seconds, unwritten: unwritten.map(str::to_owned) })
}

/// Operations per second of these steps.
pub fn ops_per_s(steps: &[Second]) -> Option<f64> {
    let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
    let ops: f64 = steps.iter().map(|step| step.ops).sum();
    (seconds > 0.0).then(|| ops / seconds)
}

/// KB written per operation of these steps; `None` if no operation ended.
pub fn wkb_per_op(steps: &[Second]) -> Option<f64> {
    let bytes: f64 = steps.iter().map(|step| step.written_bytes).sum();
    let ops: f64 = steps.iter().map(|step| step.ops).sum();
    (ops > 0.0).then(|| bytes / 1024.0 / ops)
}

fn share_out(served: &Served, from_s: f64, step_s: f64, seconds: &mut [Second]) {
    let until_s = from_s + served.seconds;
    let written = served.written_bytes.value().unwrap_or_default();
    let (first, end) = ((from_s / step_s).max(0.0) as usize, (until_s / step_s).ceil() as usize);
    for (number, second) in seconds.iter_mut().enumerate().take(end).skip(first) {
        let (start, end) = (number as f64 * step_s, (number + 1) as f64 * step_s);
        let covered = (until_s.min(end) - from_s.max(start)).max(0.0);
        let share = covered / served.seconds;
        second.seconds += covered;
        second.ops += share * served.ops as f64;
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
    /// The ratio of a second's bytes to its operations is undefined if a second has no operations, and gives too much
    /// weight to seconds with few. Each step is therefore its contribution to the ratio of the sums r: r plus (bytes −
    /// r · operations) over the mean operations of a step. Their mean is r, and their trend is r's.
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
