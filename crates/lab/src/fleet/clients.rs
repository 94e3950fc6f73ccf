//! The clients of a phase on several hosts, directed as if they ran in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::workload::State;
use rumba_results::arrivals::Arrivals;
use rumba_results::client_steps::ClientSteps;
use serde_json::Value;

use super::hosts::Fleet;
use super::orders::{Head, Order, Role};
use crate::run::cells::Counts;
use crate::run::cut::Censored;
use crate::run::driver::Schedule;
use crate::run::group::{ClientGroup, Waited};

/// The time from the order to start until the start, besides two round trips.
const LEAD: Duration = Duration::from_millis(10);
/// The longest wait for the answer to a short order.
const SHORT: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Their work.
    pub role: Role,
    /// Their number on all hosts.
    pub clients: u32,
    /// The number of types of operations.
    pub kinds: usize,
    /// When their operations are due.
    pub schedule: Schedule,
}

/// Clients that are made on all hosts and wait for their start.
pub struct FleetMade {
    fleet: Arc<Mutex<Fleet>>,
    phase: Phase,
}

struct FleetClients {
    fleet: Arc<Mutex<Fleet>>,
    phase: Phase,
    failure: Option<EngineError>,
}

pub fn held(fleet: &Mutex<Fleet>) -> MutexGuard<'_, Fleet> {
    fleet.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FleetMade {
    /// Makes the clients on all hosts, over data in this state.
    ///
    /// # Errors
    /// A client that cannot be made; a loss.
    pub fn new(fleet: &Arc<Mutex<Fleet>>, phase: Phase, state: State) -> Result<Self, EngineError> {
        let Phase { role, clients, schedule, .. } = phase;
        let order = Order::Phase { role, clients, schedule, state: state.clone() };
        held(fleet).prepare(&order, state)?;
        Ok(Self { fleet: fleet.clone(), phase })
    }

    /// Starts all clients at one time.
    pub fn start(self) -> Box<dyn ClientGroup> {
        let Self { fleet, phase } = self;
        let mut hosts = held(&fleet);
        let there = hosts.there();
        hosts.measure_clocks(&there);
        let agreed = Instant::now() + LEAD + 2 * hosts.round_trip();
        let order = |hosts: &Fleet, rank| Order::Start { at_ns: hosts.by_clock_of(rank, agreed) };
        for (rank, (started_ns, head)) in hosts.ask::<(u64, Head)>(order, SHORT) {
            hosts.note_start(rank, agreed, started_ns, head);
        }
        drop(hosts);
        Box::new(FleetClients { fleet, phase, failure: None })
    }
}

impl FleetClients {
    /// Sends each host its order.
    fn order(&mut self, order: impl Fn(&Fleet, u32) -> Order) {
        let _: Vec<(u32, Value)> = held(&self.fleet).ask(order, SHORT);
        self.look_for_failure();
    }

    fn look_for_failure(&mut self) {
        let found = held(&self.fleet).check();
        if let (Err(error), None) = (found, &self.failure) {
            self.failure = Some(error);
            // The others end too.
            self.stop();
        }
    }

    fn have_all_ended(&self) -> bool {
        let mut fleet = held(&self.fleet);
        fleet.there().into_iter().all(|rank| fleet.host(rank).has_ended)
    }

    fn counts(&mut self, order: &Order) -> (Counts, Censored) {
        let (counts, heads) = held(&self.fleet).counts(order, self.phase.role, self.phase.kinds);
        let mut censored = Censored::default();
        heads.into_iter().filter_map(|head| head.censored).for_each(|open| censored.merge(open));
        self.look_for_failure();
        (counts, censored)
    }
}

impl ClientGroup for FleetClients {
    fn wait(&mut self, until: Instant) -> Waited {
        loop {
            self.look_for_failure();
            if self.have_all_ended() {
                return Waited::AllEnded;
            }
            if !held(&self.fleet).take_next(until) {
                return Waited::Until;
            }
        }
    }

    fn collect(&mut self) -> Counts {
        self.counts(&Order::Collect).0
    }

    fn failure(&self) -> Option<&EngineError> {
        self.failure.as_ref()
    }

    fn finish(&mut self) {
        self.order(|_, _| Order::Finish);
    }

    fn stop(&mut self) {
        let _: Vec<(u32, Value)> = held(&self.fleet).ask_all(&Order::Stop, SHORT);
    }

    fn cut(&mut self) -> (Counts, Censored) {
        self.counts(&Order::Cut)
    }

    fn shape(&mut self, arrivals: &Arc<Arrivals>, from: Instant) {
        self.order(|hosts, rank| Order::Shape {
            arrivals: Arrivals::clone(arrivals),
            from_ns: hosts.by_clock_of(rank, from),
        });
    }

    fn begin_steps(&mut self, steps: &ClientSteps, from: Instant) {
        self.order(|hosts, rank| Order::Steps { steps: steps.clone(), from_ns: hosts.by_clock_of(rank, from) });
    }

    fn active(&self) -> usize {
        let mut fleet = held(&self.fleet);
        fleet.there().into_iter().filter(|rank| !fleet.host(*rank).has_ended).count()
    }

    fn join(self: Box<Self>) {
        held(&self.fleet).leave();
    }
}
