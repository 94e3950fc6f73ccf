//! The clients' clock and their signals: the end of the schedule, a change of the arrivals, and changing numbers of
//! clients.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use quanta::Clock;
use rumba_results::client_steps::ClientSteps;

/// Nanoseconds since the clients' start, the same for all of them. It uses the processor's time-stamp counter if that
/// is reliable.
#[derive(Clone, Debug)]
pub struct RunClock {
    clock: Clock,
    epoch: u64,
    /// The start, if a test sets the time instead of the system.
    simulated_from: Option<Instant>,
}

impl RunClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let clock = Clock::new();
        let epoch = clock.raw();
        Self { clock, epoch, simulated_from: None }
    }

    /// A clock that a test sets, such as `quanta::Clock::mock`'s. A client paced by it never sleeps; the test advances
    /// the clock to the awaited time. The time is `start` plus the nanoseconds since the clients' start.
    pub fn simulated(clock: Clock, start: Instant) -> Self {
        let epoch = clock.raw();
        Self { clock, epoch, simulated_from: Some(start) }
    }

    /// The instant at which it will show `at_ns`, for a driver's waits; it shows `now_ns` now.
    pub fn instant(&self, at_ns: u64, now_ns: u64) -> Instant {
        match self.simulated_from {
            Some(start) => start + Duration::from_nanos(at_ns),
            // Relative to now, because the time-stamp counter and the system's clock drift apart.
            None => Instant::now() + Duration::from_nanos(at_ns - now_ns),
        }
    }

    /// The current time of the clock.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.delta_as_nanos(self.epoch, self.clock.raw())
    }
}

/// No stop: clients run on.
const NEVER: u64 = u64::MAX;
/// Stop at once: everything is due later than this.
const AT_ONCE: u64 = 0;

/// The end of the clients. An operation starts if it is due before the end, by the clients' clock. Operations due
/// before the end therefore still start after it, and no others do. Every client reads it for each operation. Its cache
/// lines hold only values that are written once or twice in a run.
#[derive(Debug)]
#[repr(align(128))]
pub struct Stop {
    end_ns: AtomicU64,
    /// The earliest due time that counts.
    counted_from_ns: AtomicU64,
    /// The number of changes of the arrivals or of the active clients.
    schedule: AtomicU64,
    /// Numbers of active clients, once their time has begun.
    steps: OnceLock<BegunSteps>,
    /// The threads whose clients may wait for an arrival.
    threads: Mutex<Vec<Waker>>,
}

/// Numbers of active clients, and the start of their time in nanoseconds since the clients' start.
#[derive(Debug)]
pub struct BegunSteps {
    pub steps: ClientSteps,
    pub from_ns: u64,
}

/// The signals to clients that wait for a time.
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
            steps: OnceLock::new(),
            threads: Mutex::default(),
        }
    }
}

impl Stop {
    /// Ends the clients after the operation in flight, even if more is due.
    pub fn set(&self) {
        self.end_ns.store(AT_ONCE, Relaxed);
    }

    /// Ends the clients when they have served everything due before this time.
    pub fn set_at(&self, end_ns: u64) {
        // The minimum keeps an earlier stop in force.
        self.end_ns.fetch_min(end_ns, Relaxed);
    }

    /// Counts times from here on: operations due earlier count as due now.
    pub fn count_from(&self, now_ns: u64) {
        self.counted_from_ns.store(now_ns, Relaxed);
    }

    /// The time from which times are counted.
    #[inline]
    pub fn counted_from_ns(&self) -> u64 {
        self.counted_from_ns.load(Relaxed)
    }

    /// Whether an operation with this due time may start.
    #[inline]
    pub fn lets_begin(&self, due_ns: u64) -> bool {
        due_ns < self.end_ns.load(Relaxed)
    }

    /// Whether clients are to end after the operation in flight.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.end_ns.load(Relaxed) == AT_ONCE
    }

    /// The current signals; waiting clients check again when they change.
    #[inline]
    pub fn reported(&self) -> SignalState {
        SignalState { end_ns: self.end_ns.load(Relaxed), schedule: self.schedule() }
    }

    /// Wakes a thread when the arrivals change.
    pub fn wakes(&self, thread: Waker) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
    }

    /// Signals changed arrivals: a waiting client may have to start earlier.
    pub fn reschedule(&self) {
        // A thread that sees the new number also sees the earlier change of the queues.
        self.schedule.fetch_add(1, Release);
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Waker::wake_by_ref);
    }

    /// Begins the time of numbers of active clients, and wakes waiting clients. Only the first call counts.
    pub fn begin_steps(&self, steps: ClientSteps, from_ns: u64) {
        let _ = self.steps.set(BegunSteps { steps, from_ns });
        self.reschedule();
    }

    /// The numbers of active clients, once their time has begun.
    #[inline]
    pub fn steps(&self) -> Option<&BegunSteps> {
        self.steps.get()
    }

    /// The number of the schedule by which arrivals are due.
    #[inline]
    pub fn schedule(&self) -> u64 {
        self.schedule.load(Acquire)
    }
}
