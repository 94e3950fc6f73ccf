//! One budget of operations for reads and writes together.
//!
//! The kernel throttles each direction by itself. A device serves both with the
//! same arms and channels: what writes take, reads do not get. So the two limits
//! are set anew several times a second, and always add up to the budget: a
//! direction that needs less than half leaves the rest to the other, and where
//! both want more than half, each gets half.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_core::limits::StorageLimit;

use super::error::{LimitError, STORAGE, refused};
use super::throttle::Throttle;
use crate::provision::LoopDevice;

/// How often the budget is divided anew: two slices of the kernel's throttle.
const PERIOD: Duration = Duration::from_millis(200);
/// A direction that reaches this share of its limit may want more.
const FULL: f64 = 0.95;
/// Room above what a direction did, so that its growth is seen; more than what [`FULL`] takes.
const HEADROOM: f64 = 1.1;
/// The share of the budget that every direction keeps.
const LEAST: f64 = 0.02;
/// Limits that change by less stay as they are.
const CHANGE: f64 = 0.02;

/// The division of a budget, in operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    total: f64,
    reads: f64,
}

impl Split {
    fn new(total: u32) -> Self {
        let total = f64::from(total);
        Self { total, reads: total / 2.0 }
    }

    fn writes(self) -> f64 {
        self.total - self.reads
    }

    /// What becomes of it after a period with these operations per second.
    fn after(self, reads: f64, writes: f64) -> Self {
        let wanted = match (reads >= FULL * self.reads, writes >= FULL * self.writes()) {
            (true, true) => (self.reads + self.total / 2.0) / 2.0,
            (true, false) => self.total - writes * HEADROOM,
            (false, true) => reads * HEADROOM,
            (false, false) => reads + (self.total - reads - writes) / 2.0,
        };
        let least = self.total * LEAST;
        Self { reads: wanted.clamp(least, self.total - least), ..self }
    }

    fn is_far_from(self, other: Self) -> bool {
        (self.reads - other.reads).abs() > CHANGE * self.reads.min(self.writes())
    }

    /// These limits, within those that each direction has of its own.
    fn limits(self, storage: &StorageLimit) -> StorageLimit {
        let within = |rate: f64, own: Option<u32>| Some((rate.round() as u32).clamp(1, own.unwrap_or(u32::MAX)));
        StorageLimit {
            read_iops: within(self.reads, storage.read_iops),
            write_iops: within(self.writes(), storage.write_iops),
            ..storage.clone()
        }
    }
}

/// A budget that is being divided; dropping it ends that and leaves the last limits in force.
#[derive(Debug)]
pub struct Share {
    /// Closed to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<Result<(), LimitError>>>,
}

impl Share {
    /// Divides a budget between the reads and writes of a device from now on.
    ///
    /// # Errors
    /// When the first limits cannot be set.
    pub fn begin(total: u32, storage: &StorageLimit, device: &LoopDevice, by: &Throttle) -> Result<Self, LimitError> {
        let (storage, device, by) = (storage.clone(), device.clone(), by.clone());
        let mut split = Split::new(total);
        by.set(&device, &split.limits(&storage))?;
        let mut seen = served(&device)?;
        let (stop, stopped) = channel::<()>();
        let divide = move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = served(&device)?;
                let seconds = (now.at - seen.at).as_secs_f64();
                let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
                let next = split.after(rate(now.reads, seen.reads), rate(now.writes, seen.writes));
                seen = now;
                if next.is_far_from(split) {
                    split = next;
                    by.set(&device, &split.limits(&storage))?;
                }
            }
            Ok(())
        };
        Ok(Self { stop: Some(stop), thread: Some(std::thread::spawn(divide)) })
    }

    /// Ends the division.
    ///
    /// # Errors
    /// What kept it from being done until now.
    pub fn end(mut self) -> Result<(), LimitError> {
        self.stop_and_wait()
    }

    fn stop_and_wait(&mut self) -> Result<(), LimitError> {
        self.stop = None;
        // A thread that panicked has said so; the limits of that moment have stayed in force.
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // `end` is for those who want to know.
        let _ = self.stop_and_wait();
    }
}

/// Operations that a device had been asked for, as the throttle counts them: before merging.
struct Served {
    at: Instant,
    reads: u64,
    writes: u64,
}

fn served(device: &LoopDevice) -> Result<Served, LimitError> {
    let file = format!("/sys/dev/block/{}/stat", device.number);
    let text = fs::read_to_string(&file).map_err(refused(STORAGE, format!("read {file}")))?;
    // Documentation/block/stat.rst: reads, merged, sectors, ms; the same of writes.
    let fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
    let sum = |first: usize| fields.get(first..first + 2).map_or(0, |pair| pair.iter().sum());
    Ok(Served { at: Instant::now(), reads: sum(0), writes: sum(4) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Divides until nothing changes, for those who want this many of each.
    fn settled(total: u32, reads: f64, writes: f64) -> (f64, f64) {
        let mut split = Split::new(total);
        for _ in 0..100 {
            split = split.after(reads.min(split.reads), writes.min(split.writes()));
        }
        (split.reads, split.writes())
    }

    #[test]
    fn what_one_direction_leaves_the_other_gets() {
        let (reads, writes) = settled(1000, 5000.0, 0.0);
        assert_eq!((reads, writes), (980.0, 20.0));
        let (reads, writes) = settled(1000, 100.0, 5000.0);
        assert!((reads - 110.0).abs() < 1.0 && (writes - 890.0).abs() < 1.0, "{reads} {writes}");
    }

    #[test]
    fn both_get_half_when_both_want_more() {
        let (reads, writes) = settled(1000, 5000.0, 5000.0);
        assert!((reads - 500.0).abs() < 1.0 && (writes - 500.0).abs() < 1.0, "{reads} {writes}");
    }

    #[test]
    fn the_budget_is_never_exceeded() {
        let mut split = Split::new(777);
        for (reads, writes) in [(0.0, 0.0), (777.0, 0.0), (300.0, 477.0), (1.0, 900.0), (400.0, 10.0)] {
            split = split.after(reads, writes);
            let limits = split.limits(&StorageLimit::unthrottled());
            let sum = limits.read_iops.unwrap() + limits.write_iops.unwrap();
            assert!((776..=778).contains(&sum), "{limits:?}");
        }
    }
}
