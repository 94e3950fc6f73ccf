//! When the next operation starts: at once (closed loop) or at the arrival
//! that the schedule says (open loop).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use quanta::Clock;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_core::wait::{Wait, wait_for};
use rumba_core::worker::{Op, OpKind, Pace};

use super::cells::Cells;

/// The longest wait for an arrival before the stop flag is looked at again.
pub const NAP: Duration = Duration::from_millis(50);

/// Set when clients are to end after the operation at hand. Every client reads
/// it per operation, so nothing that is written shares its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Stop(AtomicBool);

impl Stop {
    /// Asks the clients to end.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether they were asked.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// How often the clients of an event loop have been polled in all. A client
/// that sees the same number twice between two operations has had its turn.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Turns(AtomicU64);

impl Turns {
    /// A client is about to be polled; only the loop's own thread calls this.
    #[inline]
    pub fn next(&self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    #[inline]
    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The pace of one client, the same under every driver. Times are nanoseconds
/// since its making, from the processor's time-stamp counter where that is sound.
pub struct ClientPace {
    clock: Clock,
    epoch: u64,
    cells: Arc<Cells>,
    stop: Arc<Stop>,
    arrivals: Option<Arrivals>,
    sharing: Option<Sharing>,
    /// When the client became free.
    free_ns: u64,
    /// The intended start of the operation at hand.
    intended_ns: u64,
    /// Its actual start.
    started_ns: u64,
}

/// What a client needs that has its thread together with others.
struct Sharing {
    turns: Arc<Turns>,
    /// The turn in which it last began an operation.
    last: u64,
    /// A time that has passed: waiting for it lets the others go first.
    passed: Instant,
}

/// An open loop's arrivals: exponential gaps, so that the clients together
/// make a Poisson stream (as sysbench's `--rate` and LinkBench's requester do).
pub struct Arrivals {
    mean_gap_ns: f64,
    /// The next arrival.
    next_ns: f64,
    random: Xoshiro256PlusPlus,
}

impl Arrivals {
    /// Arrivals at this rate per second, which the seed fixes.
    pub fn new(rate: f64, seed: u64) -> Self {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut arrivals = Self { mean_gap_ns: 1e9 / rate, next_ns: 0.0, random };
        arrivals.advance();
        arrivals
    }

    /// Takes the next arrival, nanoseconds since the start.
    #[inline]
    pub fn take_ns(&mut self) -> f64 {
        let next_ns = self.next_ns;
        self.advance();
        next_ns
    }

    fn advance(&mut self) {
        // 1 - u is in (0, 1], so the logarithm is finite.
        self.next_ns -= (1.0 - self.random.random::<f64>()).ln() * self.mean_gap_ns;
    }
}

impl ClientPace {
    /// A pace that records into `cells`; `rate` is this client's share of the
    /// operations per second, closed loop if absent.
    pub fn new(cells: Arc<Cells>, stop: Arc<Stop>, rate: Option<f64>, seed: u64) -> Self {
        let clock = Clock::new();
        let epoch = clock.raw();
        let arrivals = rate.map(|rate| Arrivals::new(rate, seed));
        Self { clock, epoch, cells, stop, arrivals, sharing: None, free_ns: 0, intended_ns: 0, started_ns: 0 }
    }

    /// The same for a client of an event loop: after an operation that never
    /// waited, the loop's other clients come first.
    #[must_use]
    pub fn sharing(self, turns: Arc<Turns>) -> Self {
        Self { sharing: Some(Sharing { turns, last: u64::MAX, passed: Instant::now() }), ..self }
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.clock.delta_as_nanos(self.epoch, self.clock.raw())
    }

    /// Whether the other clients of the thread are to go first.
    #[inline]
    fn gives_way(&mut self) -> bool {
        let Some(sharing) = &mut self.sharing else { return false };
        let last = std::mem::replace(&mut sharing.last, sharing.turns.now());
        last == sharing.last && wait_for(Wait::Until(sharing.passed))
    }

    /// Waits for the next arrival; one that is already past starts at once and
    /// keeps its intended start: no arrival is skipped.
    fn poll_arrival(&mut self) -> Poll<bool> {
        loop {
            if self.stop.is_set() {
                return Poll::Ready(false);
            }
            let now_ns = self.now_ns() as f64;
            let Some(arrivals) = &mut self.arrivals else { return Poll::Ready(true) };
            let wait_ns = arrivals.next_ns - now_ns;
            if wait_ns <= 0.0 {
                self.intended_ns = arrivals.take_ns() as u64;
                return Poll::Ready(true);
            }
            let wait = Duration::from_nanos(wait_ns as u64);
            if wait_for(Wait::Until(Instant::now() + wait)) {
                return Poll::Pending;
            }
            std::thread::sleep(wait.min(NAP));
        }
    }
}

impl Pace for ClientPace {
    #[inline]
    fn poll_turn(&mut self, _context: &mut Context<'_>) -> Poll<bool> {
        if self.gives_way() {
            return Poll::Pending;
        }
        if self.arrivals.is_some() {
            return self.poll_arrival();
        }
        self.intended_ns = self.free_ns;
        Poll::Ready(!self.stop.is_set())
    }

    #[inline]
    fn start(&mut self) {
        self.started_ns = self.now_ns();
    }

    #[inline]
    fn done(&mut self, kind: OpKind, op: Op) {
        let now_ns = self.now_ns();
        // What the engine made it wait for is not the client's lateness: it could start when it was both due and free.
        let could_start_ns = self.intended_ns.max(self.free_ns);
        let late_ns = self.started_ns - could_start_ns;
        self.cells.record(kind, op, now_ns - self.started_ns, now_ns - self.intended_ns, late_ns);
        self.free_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::cells::Collector;

    #[test]
    fn a_late_start_counts_in_the_response_and_not_in_the_service() {
        let cells = Arc::new(Cells::new(1));
        let mut pace = ClientPace::new(cells.clone(), Arc::default(), Some(1_000.0), 7);
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert_eq!(pace.poll_turn(&mut context), Poll::Ready(true));
        // The server's stall: the arrival is due, but the client gets to it 20 ms later.
        std::thread::sleep(Duration::from_millis(20));
        pace.start();
        pace.done(0, Op::default());
        let counts = Collector::new(vec![cells], 1).collect();
        assert!(counts.kinds[0].response.max_ns >= 20_000_000);
        assert!(counts.kinds[0].service.max_ns < counts.kinds[0].response.max_ns);
    }

    #[test]
    fn no_arrival_is_skipped_however_late_the_client_is() {
        let cells = Arc::new(Cells::new(1));
        let mut pace = ClientPace::new(cells.clone(), Arc::default(), Some(1e6), 7);
        std::thread::sleep(Duration::from_millis(5));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut last_ns = 0;
        for _ in 0..1_000 {
            assert_eq!(pace.poll_turn(&mut context), Poll::Ready(true));
            assert!(pace.intended_ns >= last_ns, "arrivals keep their order");
            last_ns = pace.intended_ns;
            pace.start();
            pace.done(0, Op::default());
        }
        // A thousand arrivals at a million a second span about a millisecond,
        // though they were served 5 ms late and later.
        assert!((500_000..2_000_000).contains(&last_ns), "{last_ns}");
        assert_eq!(Collector::new(vec![cells], 1).collect().ops(), 1_000);
    }
}
