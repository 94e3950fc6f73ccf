//! Measures how long readable answers waited until their event loop reached their clients.

use std::sync::Arc;

use super::cells::Cells;
use super::stop::RunClock;

/// A shorter wait did not sleep, because two context switches take longer. Its events were present before it began.
const AT_ONCE_NS: u64 = 3_000;
/// The extra time for each connection that such a wait reports.
const PER_EVENT_NS: u64 = 100;

/// The lateness of one event loop. It reads the clock twice for each wait and once for each further client, and makes
/// no system call.
pub struct Lateness {
    cells: Arc<Cells>,
    clock: RunClock,
    /// The end of the last wait.
    looked_ns: u64,
    /// The time at which its events became readable, as far as known.
    ready_ns: u64,
}

impl Lateness {
    /// Counts into the cells of the loop's thread, by the clients' clock.
    pub fn new(cells: Arc<Cells>, clock: RunClock) -> Self {
        let now_ns = clock.now_ns();
        Self { cells, clock, looked_ns: now_ns, ready_ns: now_ns }
    }

    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// A wait that began at `from_ns` has ended with this many connections.
    ///
    /// After a sleep they became readable now. Without a sleep they became readable since the end of the wait before,
    /// while the loop was busy with other clients. Half of that time is counted, which is the mean if answers arrive
    /// evenly.
    #[inline]
    pub fn looked(&mut self, from_ns: u64, events: usize) {
        let now_ns = self.clock.now_ns();
        let slept = now_ns - from_ns > AT_ONCE_NS + PER_EVENT_NS * events as u64;
        self.ready_ns = if slept { now_ns } else { now_ns - (now_ns - self.looked_ns) / 2 };
        self.looked_ns = now_ns;
    }

    /// The loop reaches the client of one of these connections.
    #[inline]
    pub fn taken(&self, number: usize) {
        // The first is polled as soon as the wait has ended.
        let now_ns = if number == 0 { self.looked_ns } else { self.clock.now_ns() };
        self.cells.received_late(now_ns - self.ready_ns);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use quanta::Clock;

    use super::super::cells::Collector;
    use super::*;

    #[test]
    fn lateness_counts_clients_served_first_and_not_loop_sleep() {
        let (clock, mock) = Clock::mock();
        let cells = Arc::new(Cells::new(1));
        let mut lateness = Lateness::new(cells.clone(), RunClock::simulated(clock, Instant::now()));
        let mut collector = Collector::new(vec![cells], 1);
        let mut late_ns = || collector.collect().receive_late_ns;
        let passes = |us: u64| mock.increment(Duration::from_micros(us));
        // An idle loop: it sleeps for 500 µs until an answer arrives, and takes it.
        let from_ns = lateness.now_ns();
        passes(500);
        lateness.looked(from_ns, 1);
        lateness.taken(0);
        assert_eq!(late_ns(), 0);
        // Three answers wake it together, and each client keeps it busy for 100 µs.
        let from_ns = lateness.now_ns();
        passes(500);
        lateness.looked(from_ns, 3);
        for number in 0..3 {
            lateness.taken(number);
            passes(100);
        }
        assert_eq!(late_ns(), 300_000, "none, 100 and 200 µs");
        // An answer that arrived in these 300 µs is readable at once.
        let from_ns = lateness.now_ns();
        passes(1);
        lateness.looked(from_ns, 1);
        lateness.taken(0);
        assert_eq!(late_ns(), 150_500, "half of the time since the loop looked");
    }
}
