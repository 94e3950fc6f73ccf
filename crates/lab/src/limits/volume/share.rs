//! One budget of operations for reads and writes together.
//!
//! The kernel throttles each direction separately. A real device serves both with the same hardware, so writes take
//! capacity from reads. The two limits are therefore updated twenty times a second. A direction that needs less than
//! half leaves the rest to the other; if both want more, each gets half. A direction may have been limited while the
//! other left its share unused. It then gets that credit in the next periods, up to the burst of the kernel's throttle.
//! Operations beyond the budget are taken back.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_engine_api::limits::StorageLimit;

use super::loop_device::LoopDevice;
use super::throttle::Throttle;
use crate::limits::error::{LimitError, STORAGE, refused};

/// How often the budget is divided: half a slice of the kernel's throttle, which passes a slice's operations at once.
/// With longer periods, a burst of one direction waits for its share longer than the burst lasts. At 200 ms, reads and
/// writes that alternate every 300 ms reached 54% of the budget; at 50 ms, all of it.
const PERIOD: Duration = Duration::from_millis(50);
/// A direction that reaches this share of its limit may want more.
const FULL: f64 = 0.95;
/// Headroom above a direction's current rate, so that growth is seen; larger than the margin of [`FULL`].
const HEADROOM: f64 = 1.1;
/// The share of the budget that every direction keeps.
const LEAST: f64 = 0.02;
/// Seconds of unused budget that are granted later: a slice of the kernel's throttle.
const CREDIT_S: f64 = 0.1;
/// The share of the budget that one period takes back at most, so that no direction stalls.
const TAKEN_BACK: f64 = 0.9;
/// Limits that change by less stay as they are.
const CHANGE: f64 = 0.02;

/// The division of a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// The budget, operations per second.
    total: f64,
    /// The permitted reads and writes in this period, operations per second.
    reads: f64,
    writes: f64,
    /// Unused operations of the budget; negative if more were used.
    credit: f64,
}

impl Split {
    fn new(total: u32) -> Self {
        let total = f64::from(total);
        Self { total, reads: total / 2.0, writes: total / 2.0, credit: 0.0 }
    }

    /// The next division, after this many seconds with these operations.
    fn after(self, seconds: f64, reads: f64, writes: f64) -> Self {
        let unused = self.total * seconds - reads - writes;
        let credit = (self.credit + unused).min(self.total * CREDIT_S);
        let period_s = PERIOD.as_secs_f64();
        let total = (self.total + credit / period_s).max(self.total * (1.0 - TAKEN_BACK));
        let (did_reads, did_writes) = (reads / seconds, writes / seconds);
        let half = total / 2.0;
        let wanted = match (did_reads >= FULL * self.reads, did_writes >= FULL * self.writes) {
            (true, true) => half,
            (true, false) => total - (did_writes * HEADROOM).min(half),
            (false, true) => (did_reads * HEADROOM).min(half),
            (false, false) => did_reads + (total - did_reads - did_writes) / 2.0,
        };
        let least = total * LEAST;
        let reads = wanted.clamp(least, total - least);
        Self { reads, writes: total - reads, credit, ..self }
    }

    fn is_far_from(self, other: Self) -> bool {
        let far = |a: f64, b: f64| (a - b).abs() > CHANGE * a.min(b);
        far(self.reads, other.reads) || far(self.writes, other.writes)
    }

    /// These limits, capped by the separate limit of each direction.
    fn limits(self, storage: &StorageLimit) -> StorageLimit {
        let within = |rate: f64, own: Option<u32>| Some((rate.round() as u32).clamp(1, own.unwrap_or(u32::MAX)));
        StorageLimit {
            read_iops: within(self.reads, storage.read_iops),
            write_iops: within(self.writes, storage.write_iops),
            ..storage.clone()
        }
    }
}

/// A running division of a budget. Dropping it stops the division and leaves the last limits in force.
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
            go_first();
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let now = served(&device)?;
                let seconds = (now.at - seen.at).as_secs_f64();
                let done = |now: u64, before: u64| now.saturating_sub(before) as f64;
                let next = split.after(seconds, done(now.reads, seen.reads), done(now.writes, seen.writes));
                seen = now;
                // A small change is not written, so the division in force stays the basis of the next period.
                split = if next.is_far_from(split) {
                    by.set(&device, &next.limits(&storage))?;
                    next
                } else {
                    Split { credit: next.credit, ..split }
                };
            }
            Ok(())
        };
        Ok(Self { stop: Some(stop), thread: Some(std::thread::spawn(divide)) })
    }

    /// Ends the division.
    ///
    /// # Errors
    /// The error that stopped it earlier.
    pub fn end(mut self) -> Result<(), LimitError> {
        self.stop_and_wait()
    }

    fn stop_and_wait(&mut self) -> Result<(), LimitError> {
        self.stop = None;
        // A panic was reported by the thread itself; the limits of that moment stay in force.
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or(Ok(())))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // The error is dropped; a caller that needs it uses `end`.
        let _ = self.stop_and_wait();
    }
}

/// Gives this thread, and those that it starts, real-time priority, so that it runs when its time comes. On a busy host
/// it would otherwise wait for a CPU, and a burst of one direction for its share. Alternating reads and writes then used
/// three quarters of a budget. The thread runs for only some microseconds at a time.
pub(super) fn go_first() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: it sets the calling thread's own policy, from a value that outlives the call. If refused, the priority is
    // unchanged.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority);
    }
}

/// Operations requested from a device, as the throttle counts them: before merging.
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

    const PERIOD_S: f64 = 0.05;

    /// Runs the division for `periods` periods with this demand for reads and writes per second. Returns the rates
    /// served, and the largest excess over the budget in any run of periods, in seconds of the budget.
    fn served(total: u32, periods: usize, wanted: impl Fn(usize) -> (f64, f64)) -> (f64, f64, f64) {
        let mut split = Split::new(total);
        let (mut reads, mut writes, mut beyond, mut most) = (0.0, 0.0, 0.0_f64, 0.0_f64);
        for period in 0..periods {
            let (read, written) = wanted(period);
            let (read, written) = (read.min(split.reads) * PERIOD_S, written.min(split.writes) * PERIOD_S);
            split = split.after(PERIOD_S, read, written);
            (reads, writes) = (reads + read, writes + written);
            beyond = (beyond + read + written - f64::from(total) * PERIOD_S).max(0.0);
            most = most.max(beyond);
        }
        let seconds = periods as f64 * PERIOD_S;
        (reads / seconds, writes / seconds, most / f64::from(total))
    }

    #[test]
    fn unused_share_of_one_direction_goes_to_the_other() {
        let (reads, writes, _) = served(1000, 400, |_| (5000.0, 0.0));
        assert!((985.0..=1005.0).contains(&reads) && writes == 0.0, "{reads} {writes}");
        let (reads, writes, _) = served(1000, 400, |_| (100.0, 5000.0));
        assert!((reads - 100.0).abs() < 5.0 && (885.0..=905.0).contains(&writes), "{reads} {writes}");
    }

    #[test]
    fn both_get_half_when_both_want_more() {
        let (reads, writes, _) = served(1000, 400, |_| (5000.0, 5000.0));
        assert!((reads - 500.0).abs() < 5.0 && (writes - 500.0).abs() < 5.0, "{reads} {writes}");
    }

    #[test]
    fn bursts_of_either_direction_use_the_whole_budget() {
        // Reads and writes alternate, each for 300 ms; then bursts of writes for half a second over steady reads.
        let (reads, writes, _) = served(1000, 480, |at| if at / 6 % 2 == 0 { (9e3, 0.0) } else { (0.0, 9e3) });
        assert!(reads + writes >= 950.0 && (reads - writes).abs() < 100.0, "{reads} {writes}");
        let (reads, writes, _) = served(1000, 480, |at| (9e3, if at % 10 < 4 { 9e3 } else { 0.0 }));
        assert!(reads + writes >= 950.0 && writes >= 100.0, "{reads} {writes}");
    }

    #[test]
    fn budget_overshoots_by_one_slice_at_most_and_never_accrues() {
        let idle_then_busy = |at| if at < 200 { (0.0, 0.0) } else { (9e3, 9e3) };
        let (_, _, beyond) = served(777, 400, idle_then_busy);
        assert!(beyond <= CREDIT_S + 1e-9, "{beyond}");
        let (_, _, beyond) = served(777, 400, |at| if at % 7 < 3 { (9e3, 20.0) } else { (3.0, 9e3) });
        assert!(beyond <= CREDIT_S + 1e-9, "{beyond}");
    }

    #[test]
    fn overspent_budget_is_taken_back() {
        let split = Split::new(1000).after(PERIOD_S, 100.0, 50.0);
        assert!(split.reads + split.writes <= 1000.0 * (1.0 - TAKEN_BACK) + 1e-9, "{split:?}");
        let split = split.after(PERIOD_S, 0.0, 0.0).after(PERIOD_S, 0.0, 0.0);
        assert!((split.reads + split.writes - 1000.0).abs() < 1e-6, "150 were done of 150: {split:?}");
    }

    #[test]
    fn each_direction_keeps_its_own_limit() {
        let storage = StorageLimit { write_iops: Some(100), ..StorageLimit::unthrottled() };
        let limits = Split::new(1000).limits(&storage);
        assert_eq!((limits.read_iops, limits.write_iops), (Some(500), Some(100)));
    }
}
