//! The periods in which a client is active, if the number of active clients changes within a trial.
//!
//! Each client computes its own periods once, when the loops begin. Clients share nothing that is written while they
//! work.

use super::queue::LATEST_NS;
use super::stop::{BegunSteps, Stop};

/// The active periods of one client of a closed loop, by the clients' clock.
#[derive(Debug)]
pub struct ActivePeriods {
    client: u32,
    /// Its delay in each period, so that clients that a step adds do not stay together.
    offset_ns: u64,
    paused_until_ns: u64,
    /// Whether the loops have begun, which determine the periods.
    has_begun: bool,
    /// Start and end, in order.
    periods: Vec<(u64, u64)>,
}

impl ActivePeriods {
    /// Until the loops begin, the first `first` clients are active.
    pub fn new(client: u32, first: u32, offset_ns: u64) -> Self {
        let periods = if client < first { vec![(offset_ns, u64::MAX)] } else { Vec::new() };
        Self { client, offset_ns, paused_until_ns: 0, has_begun: false, periods }
    }

    /// Sets the end of the pause before the next operation.
    pub fn pause_until(&mut self, until_ns: u64) {
        self.paused_until_ns = until_ns;
    }

    /// The due time of the next operation of a client that is free since `free_ns`.
    pub fn due_ns(&mut self, free_ns: u64, stop: &Stop) -> u64 {
        if !self.has_begun
            && let Some(begun) = stop.steps()
        {
            (self.has_begun, self.periods) = (true, self.after(begun));
        }
        let from_ns = free_ns.max(self.paused_until_ns);
        let next = self.periods.iter().find(|(_, end_ns)| from_ns < *end_ns);
        next.map_or(LATEST_NS, |(start_ns, _)| from_ns.max(*start_ns))
    }

    fn after(&self, begun: &BegunSteps) -> Vec<(u64, u64)> {
        // The conversion of a float saturates: the first start is 0, and the last end the largest number.
        let at_ns = |at_s: f64| (begun.from_ns as f64 + at_s * 1e9) as u64;
        let periods = begun.steps.active(self.client).into_iter();
        periods.map(|(start_s, end_s)| (at_ns(start_s).saturating_add(self.offset_ns), at_ns(end_s))).collect()
    }
}
