//! The clients' clock, and what they are told: the moment from which nothing is begun any more, and that their arrivals
//! are due at other times.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use quanta::Clock;

/// Nanoseconds since the clients' start, the same for all of them, from the
/// processor's time-stamp counter where that is sound.
#[derive(Clone, Debug)]
pub struct RunClock {
    clock: Clock,
    epoch: u64,
    /// When it started, where its time is not the system's but a test's.
    simulated_from: Option<Instant>,
}

impl RunClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let clock = Clock::new();
        let epoch = clock.raw();
        Self { clock, epoch, simulated_from: None }
    }

    /// A clock that somebody else sets, such as `quanta::Clock::mock`'s: nothing that is paced by it sleeps, whoever
    /// drives it sets the time that is waited for. That is `start` and the nanoseconds since the clients' start.
    pub fn simulated(clock: Clock, start: Instant) -> Self {
        let epoch = clock.raw();
        Self { clock, epoch, simulated_from: Some(start) }
    }

    /// When it will say `at_ns`, as drivers are told of waits; it says `now_ns`.
    pub fn instant(&self, at_ns: u64, now_ns: u64) -> Instant {
        match self.simulated_from {
            Some(start) => start + Duration::from_nanos(at_ns),
            // From now: the time-stamp counter and the system's clock drift apart.
            None => Instant::now() + Duration::from_nanos(at_ns - now_ns),
        }
    }

    /// What it says.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.delta_as_nanos(self.epoch, self.clock.raw())
    }
}

/// Clients run on.
const NEVER: u64 = u64::MAX;
/// Everything is due later than that.
const AT_ONCE: u64 = 0;

/// When clients end: an operation is begun if it is due before that, by the
/// clients' clock. So what was due before the end is still begun after it, and
/// nothing else is. Every client reads it per operation, so nothing that is
/// written shares its cache lines but what is told once or twice in a run.
#[derive(Debug)]
#[repr(align(128))]
pub struct Stop {
    end_ns: AtomicU64,
    /// Nothing is taken to have been due before that.
    counted_from_ns: AtomicU64,
    /// How often arrivals have become due at other times.
    schedule: AtomicU64,
    /// The threads whose clients may wait for an arrival.
    threads: Mutex<Vec<Waker>>,
}

/// What clients that wait for a time have been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalState {
    end_ns: u64,
    schedule: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            end_ns: AtomicU64::new(NEVER),
            counted_from_ns: AtomicU64::new(0),
            schedule: AtomicU64::new(0),
            threads: Mutex::default(),
        }
    }
}

impl Stop {
    /// Asks the clients to end after the operation in flight, whatever is due.
    pub fn set(&self) {
        self.end_ns.store(AT_ONCE, Relaxed);
    }

    /// Asks the clients to end when they have served what is due before this time.
    pub fn set_at(&self, end_ns: u64) {
        // Whoever has been told to end at once is not told to go on.
        self.end_ns.fetch_min(end_ns, Relaxed);
    }

    /// Has times be counted from here on: what was due before is counted as if it had been due now.
    pub fn count_from(&self, now_ns: u64) {
        self.counted_from_ns.store(now_ns, Relaxed);
    }

    /// From when on times are counted.
    #[inline]
    pub fn counted_from_ns(&self) -> u64 {
        self.counted_from_ns.load(Relaxed)
    }

    /// Whether an operation that is due then is begun.
    #[inline]
    pub fn lets_begin(&self, due_ns: u64) -> bool {
        due_ns < self.end_ns.load(Relaxed)
    }

    /// Whether clients are to end after the operation in flight.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.end_ns.load(Relaxed) == AT_ONCE
    }

    /// What it says now; it changes when clients that wait are to look again.
    #[inline]
    pub fn told(&self) -> SignalState {
        SignalState { end_ns: self.end_ns.load(Relaxed), schedule: self.schedule() }
    }

    /// Has a thread woken when arrivals become due at other times.
    pub fn wakes(&self, thread: Waker) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// The queues' arrivals are due at other times from here on: whoever waits for one may have to begin it earlier.
    pub fn reschedule(&self) {
        // Who sees it sees what the queues were told before.
        self.schedule.fetch_add(1, Release);
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake_by_ref);
    }

    /// The number of the schedule by which arrivals are due.
    #[inline]
    pub fn schedule(&self) -> u64 {
        self.schedule.load(Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_due_before_end_begin_and_none_after_a_stop() {
        let stop = Stop::default();
        assert!(stop.lets_begin(u64::MAX - 1));
        stop.set_at(100);
        assert!(stop.lets_begin(99) && !stop.lets_begin(100) && !stop.is_set());
        stop.set();
        assert!(!stop.lets_begin(0) && stop.is_set());
        stop.set_at(100);
        assert!(stop.is_set(), "a stop is not taken back");
    }
}
