//! The clients of a run, as its reports see them: in this process, or on other hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_lab::run::cells::Counts;
use rumba_lab::run::driver::{Made, Running};
use rumba_lab::run::group::{ClientGroup, Waited};
use rumba_workload_sysbench::counters::{COUNTERS, Counters, EventTimes, total};
use rumba_workload_sysbench::setup::Events;
use serde::{Deserialize, Serialize};

/// The clients' own counts so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Their sums, in the order of `Counter`.
    pub counters: [u64; COUNTERS],
    pub times: Vec<EventTimes>,
    /// Statements that looked for rows and found none.
    pub not_found: u64,
    /// Errors by their codes.
    pub errors: BTreeMap<String, u64>,
}

impl Figures {
    /// Those of these clients.
    pub fn of(clients: &[Arc<Counters>]) -> Self {
        let mut errors = BTreeMap::new();
        for (code, count) in clients.iter().flat_map(|client| client.errors()) {
            *errors.entry(code).or_default() += count;
        }
        Self {
            counters: total(clients.iter().map(Arc::as_ref)),
            times: clients.iter().map(|client| client.times()).collect(),
            not_found: clients.iter().map(|client| client.not_found()).sum(),
            errors,
        }
    }

    /// Adds those of another host.
    pub fn merge(&mut self, other: Self) {
        // A script may subtract from its counts.
        self.counters.iter_mut().zip(other.counters).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
        self.times.extend(other.times);
        self.not_found += other.not_found;
        for (code, count) in other.errors {
            *self.errors.entry(code).or_default() += count;
        }
    }
}

pub trait Clients {
    /// Waits until a time, or until every client has ended. A client that fails stops the others.
    fn wait(&mut self, until: Instant) -> Waited;
    /// The events since the last call.
    fn collect(&mut self) -> Counts;
    /// Their own counts.
    fn figures(&mut self) -> Figures;
    /// Restarts the search for the shortest and the longest event.
    fn begin_extremes(&mut self);
    /// From now on, events count. Those before are dropped, and so are arrivals that wait.
    fn end_warmup(&mut self);
    /// Lets the clients of a closed loop end by themselves at this time.
    fn end_by(&mut self, at: Instant);
    /// Lets the clients end after the event in flight.
    fn stop(&mut self);
    /// Stops clients that are still busy. Returns the last events, and the number of those in flight.
    fn cut(&mut self) -> (Counts, u32);
    /// The first failure, if a client has failed.
    fn failure(&self) -> Option<&EngineError>;
    /// When the last client ended, once all have.
    fn ended_at(&self) -> Option<Instant>;
    /// The number of clients that have not ended.
    fn active(&self) -> usize;
    /// The number of clients in an event.
    fn inside(&self) -> usize;
    /// Arrivals that are due and not begun, counted up to `most`.
    fn waiting(&self, most: usize) -> u64;
    /// Waits for the rest of clients that have all ended.
    fn join(self: Box<Self>);
}

/// Clients of this process that wait for their start.
pub struct Ready {
    /// The clients.
    pub made: Made,
    pub counters: Vec<Arc<Counters>>,
    /// The number of events left.
    pub events: Events,
    /// Whether events arrive at a rate.
    pub has_rate: bool,
}

impl Ready {
    /// Starts them.
    pub fn start(self) -> Here {
        let Self { made, counters, events, has_rate } = self;
        Here { running: made.start(), counters, events, has_rate }
    }
}

/// Running clients of this process.
pub struct Here {
    running: Running,
    counters: Vec<Arc<Counters>>,
    events: Events,
    has_rate: bool,
}

impl Clients for Here {
    fn wait(&mut self, until: Instant) -> Waited {
        self.running.wait(until)
    }

    fn collect(&mut self) -> Counts {
        self.running.collect()
    }

    fn figures(&mut self) -> Figures {
        Figures::of(&self.counters)
    }

    fn begin_extremes(&mut self) {
        self.counters.iter().for_each(|client| client.begin_extremes());
    }

    fn end_warmup(&mut self) {
        if self.has_rate {
            self.running.forget_waiting();
        }
        self.running.collect();
        // After the collection: events that end in between are reported in addition to the requested number, so none is
        // lost.
        self.events.count(true);
        self.begin_extremes();
    }

    fn end_by(&mut self, at: Instant) {
        self.running.end_by(at);
    }

    fn stop(&mut self) {
        self.running.stop();
    }

    fn cut(&mut self) -> (Counts, u32) {
        let (counts, censored) = self.running.cut();
        (counts, u32::try_from(censored.open.len()).unwrap_or(u32::MAX))
    }

    fn failure(&self) -> Option<&EngineError> {
        self.running.failure()
    }

    fn ended_at(&self) -> Option<Instant> {
        self.running.ended_at()
    }

    fn active(&self) -> usize {
        self.running.active()
    }

    fn inside(&self) -> usize {
        self.running.inside()
    }

    fn waiting(&self, most: usize) -> u64 {
        self.running.waiting(most)
    }

    fn join(self: Box<Self>) {
        self.running.join();
    }
}
