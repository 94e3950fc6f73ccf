//! Decides when the next operation starts: at once (closed loop) or at the next arrival of the schedule (open loop).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rumba_engine_api::wait::{Wait, wait_for};
use rumba_engine_api::worker::{Op, OpKind, Pace, StatementCounts};

use super::active::ActivePeriods;
use super::cells::Cells;
use super::in_flight::InFlight;
use super::queue::{Arrival, LATEST_NS, Queue};
use super::stop::{RunClock, Stop};

/// The longest wait for an arrival before the stop flag is checked again.
pub const NAP: Duration = Duration::from_millis(50);

/// How long a client of an event loop continues with operations that never wait. When operations take less than a
/// microsecond, switching after each one evicts the next client's data from the cache. Rows that a script hands over
/// then took several times the CPU.
const SLICE_NS: u64 = 10_000;

/// The total number of polls of an event loop's clients. A client that sees the same number between two operations is
/// still in the same poll.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Turns(AtomicU64);

impl Turns {
    /// A client is about to be polled; called only by the loop's own thread.
    #[inline]
    pub fn next(&self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    #[inline]
    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The pace of one client, the same under every driver; times by the clients' clock.
pub struct ClientPace {
    clock: RunClock,
    cells: Arc<Cells>,
    stop: Arc<Stop>,
    in_flight: Arc<InFlight>,
    due: Due,
    sharing: Option<Sharing>,
    /// The time at which the client became free.
    free_ns: u64,
    /// The intended start of the operation in flight.
    intended_ns: u64,
    /// Its actual start.
    started_ns: u64,
    wakes_on_time: bool,
}

/// The rule for when a client's next operation is due.
pub enum Due {
    /// As soon as it is free: a closed loop.
    WhenFree,
    /// The same, but the next operation not before this time.
    FirstAt(u64),
    /// As soon as it is free, in the periods in which the client is active.
    InSteps(Box<ActivePeriods>),
    /// Never: the client is connected and idle.
    Never,
    /// At the next arrival that the client takes: an open loop.
    AtArrival {
        queue: Arc<Queue>,
        /// The arrival that it has taken and not started.
        taken: Option<Taken>,
    },
}

/// An arrival that a client has taken, with its due time by a schedule. The due time is computed again when the
/// schedule has changed.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    arrival: Arrival,
    due_ns: u64,
    schedule: u64,
}

/// State of a client that shares its thread with others.
struct Sharing {
    turns: Arc<Turns>,
    /// The poll in which it last started an operation.
    last: u64,
    /// The start of the first operation in this poll; `None` before it.
    since_ns: Option<u64>,
    /// A time in the past: waiting for it lets the other clients run first.
    passed: Instant,
}

impl ClientPace {
    /// A pace that records into `cells` of its thread, and reports its state in `in_flight`.
    pub fn new(clock: RunClock, cells: Arc<Cells>, stop: Arc<Stop>, in_flight: Arc<InFlight>, due: Due) -> Self {
        let free_ns = clock.now_ns();
        let (intended_ns, started_ns, wakes_on_time) = (0, 0, false);
        Self { clock, cells, stop, in_flight, due, sharing: None, free_ns, intended_ns, started_ns, wakes_on_time }
    }

    /// The pace of the only client of a closed loop, without a stop flag.
    pub fn alone(cells: Arc<Cells>) -> Self {
        Self::new(RunClock::start(), cells, Arc::default(), Arc::default(), Due::WhenFree)
    }

    /// The same for a client of an event loop: after [`SLICE_NS`] of operations that never waited, the loop's other
    /// clients run first.
    #[must_use]
    pub fn sharing(self, turns: Arc<Turns>) -> Self {
        Self { sharing: Some(Sharing { turns, last: u64::MAX, since_ns: None, passed: Instant::now() }), ..self }
    }

    /// Whether the thread's other clients run first.
    #[inline]
    fn gives_way(&mut self) -> bool {
        let Some(sharing) = &mut self.sharing else { return false };
        let last = std::mem::replace(&mut sharing.last, sharing.turns.now());
        if last != sharing.last {
            sharing.since_ns = None;
            return false;
        }
        // Uses the recorded times of its operations, to avoid reading the clock.
        let since_ns = *sharing.since_ns.get_or_insert(self.started_ns);
        self.free_ns.saturating_sub(since_ns) >= SLICE_NS && wait_for(Wait::Until(sharing.passed))
    }

    /// Waits for an operation of a closed loop with a start time.
    fn poll_first(&mut self, first_ns: u64) -> Poll<bool> {
        let polled = self.poll_until(first_ns);
        if polled == Poll::Ready(true) {
            self.free_ns = self.free_ns.max(first_ns);
            (self.due, self.intended_ns) = (Due::WhenFree, self.free_ns);
        }
        polled
    }

    /// Waits for the client's next active period, if it is not active.
    fn poll_step(&mut self) -> Poll<bool> {
        loop {
            let Due::InSteps(active) = &mut self.due else { return Poll::Ready(false) };
            let due_ns = active.due_ns(self.free_ns, &self.stop);
            let polled = match due_ns <= self.free_ns {
                true => Poll::Ready(self.stop.lets_begin(due_ns)),
                false => match self.poll_once(due_ns) {
                    Some(polled) => polled,
                    None => continue,
                },
            };
            if polled == Poll::Ready(true) {
                (self.free_ns, self.intended_ns) = (self.free_ns.max(due_ns), due_ns);
            }
            return polled;
        }
    }

    /// Takes the next arrival and waits for it. A past arrival starts at once and keeps its intended start, so no
    /// arrival is skipped.
    fn poll_arrival(&mut self) -> Poll<bool> {
        loop {
            let Some(due_ns) = self.arrival_ns() else { return Poll::Ready(false) };
            let Some(polled) = self.poll_once(due_ns) else { continue };
            if polled == Poll::Ready(true) {
                self.intended_ns = due_ns;
                if let Due::AtArrival { taken, .. } = &mut self.due {
                    *taken = None;
                }
            }
            return polled;
        }
    }

    /// The due time of the taken arrival, after taking one if needed; `None` if the client may take none.
    #[inline]
    fn arrival_ns(&mut self) -> Option<u64> {
        let Due::AtArrival { queue, taken } = &mut self.due else { return None };
        // Read the schedule before the queue, so that a change meanwhile is seen the next time.
        let schedule = self.stop.schedule();
        let arrival = match *taken {
            Some(known) if known.schedule == schedule => return Some(known.due_ns),
            Some(known) => known.arrival,
            None if self.stop.is_set() => return None,
            None => {
                self.in_flight.unsettled();
                queue.take()
            }
        };
        let due_ns = queue.due_ns(arrival);
        self.in_flight.has_arrival(due_ns);
        *taken = Some(Taken { arrival, due_ns, schedule });
        Some(due_ns)
    }

    /// Waits until a due time; false if the operation must not start.
    fn poll_until(&self, due_ns: u64) -> Poll<bool> {
        loop {
            if let Some(polled) = self.poll_once(due_ns) {
                return polled;
            }
        }
    }

    /// The same; if the thread itself has to wait, it waits for a nap and returns `None`.
    #[inline]
    fn poll_once(&self, due_ns: u64) -> Option<Poll<bool>> {
        if !self.stop.lets_begin(due_ns) {
            return Some(Poll::Ready(false));
        }
        let now_ns = self.clock.now_ns();
        if due_ns <= now_ns {
            return Some(Poll::Ready(true));
        }
        if wait_for(Wait::Until(self.clock.instant(due_ns, now_ns))) {
            return Some(Poll::Pending);
        }
        std::thread::sleep(Duration::from_nanos(due_ns - now_ns).min(NAP));
        None
    }
}

/// Sets the timer slack, so that the kernel wakes this thread on time. The default of up to 50 µs would count as
/// response time.
pub fn wake_on_time() {
    // SAFETY: it sets a number of the calling thread. If it is refused, wake-ups are later, which the lateness shows.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

impl Pace for ClientPace {
    #[inline]
    fn poll_turn(&mut self, _context: &mut Context<'_>) -> Poll<bool> {
        if self.gives_way() {
            return Poll::Pending;
        }
        match self.due {
            Due::WhenFree => {
                self.intended_ns = self.free_ns;
                Poll::Ready(self.stop.lets_begin(self.intended_ns))
            }
            Due::FirstAt(first_ns) => self.poll_first(first_ns),
            Due::Never => self.poll_until(LATEST_NS),
            Due::InSteps(_) => self.poll_step(),
            Due::AtArrival { .. } => self.poll_arrival(),
        }
    }

    fn pause(&mut self, pause: Duration) {
        if !std::mem::replace(&mut self.wakes_on_time, true) {
            wake_on_time();
        }
        let from_ns = match &mut self.due {
            Due::WhenFree => self.free_ns,
            Due::FirstAt(first_ns) => self.free_ns.max(*first_ns),
            Due::InSteps(active) => return active.pause_until(self.free_ns + pause.as_nanos() as u64),
            Due::AtArrival { .. } | Due::Never => return,
        };
        self.due = Due::FirstAt(from_ns + pause.as_nanos() as u64);
    }

    #[inline]
    fn start(&mut self, kind: OpKind) {
        self.started_ns = self.clock.now_ns();
        self.in_flight.has_operation(kind, self.intended_ns, self.started_ns);
    }

    #[inline]
    fn set_kind(&mut self, kind: OpKind) {
        self.in_flight.set_kind(kind);
    }

    #[inline]
    fn statements(&mut self, kind: OpKind, statements: StatementCounts) {
        self.cells.statements(kind, statements);
    }

    #[inline]
    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        let now_ns = self.clock.now_ns();
        // A delay by the engine is not the client's lateness: the client could start when it was both due and free.
        let could_start_ns = self.intended_ns.max(self.free_ns);
        let late_ns = self.started_ns - could_start_ns;
        self.in_flight.unsettled();
        let response_ns = now_ns - self.intended_ns.max(self.stop.counted_from_ns()).min(now_ns);
        self.cells.record(kind, op, now_ns - self.started_ns, response_ns, late_ns);
        self.in_flight.has_nothing();
        self.free_ns = now_ns;
        response_ns
    }

    fn given_up(&mut self) {
        self.in_flight.has_nothing();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::cells::Collector;

    #[test]
    fn a_pause_is_waited_for_and_is_no_part_of_the_response() {
        let cells = Arc::new(Cells::new(1));
        let mut pace = ClientPace::alone(cells.clone());
        let mut context = Context::from_waker(std::task::Waker::noop());
        let pause = Duration::from_millis(200);
        let before = Instant::now();
        for _ in 0..2 {
            pace.pause(pause);
            assert_eq!(pace.poll_turn(&mut context), Poll::Ready(true));
            pace.start(0);
            pace.done(0, Op::default());
        }
        assert!(before.elapsed() >= 2 * pause);
        // SAFETY: it reads a number of the calling thread.
        assert_eq!(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) }, 1, "the kernel adds no time to the pause");
        // Without a pause, the next operation is due at once.
        assert_eq!(pace.poll_turn(&mut context), Poll::Ready(true));
        let counts = Collector::new(vec![cells], 1).collect();
        assert_eq!(counts.ops(), 2);
        assert!(counts.kinds[0].response.max_ns < pause.as_nanos() as u64);
    }

    #[test]
    fn stop_ends_a_pause_early() {
        let mut pace = ClientPace::alone(Arc::new(Cells::new(1)));
        pace.pause(Duration::from_secs(3600));
        pace.stop.set();
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert_eq!(pace.poll_turn(&mut context), Poll::Ready(false));
    }
}
