//! The clients of a phase, wherever they run: in this process, or on other hosts.

use std::sync::Arc;
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_results::arrivals::Arrivals;
use rumba_results::client_steps::ClientSteps;

use super::cells::Counts;
use super::cut::Censored;

/// The reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The time has come.
    Until,
    /// Every client has ended.
    AllEnded,
}

/// Running clients, as a trial directs them.
pub trait ClientGroup {
    /// Waits until a time, or until every client has ended. A client that fails stops the others.
    fn wait(&mut self, until: Instant) -> Waited;
    /// The counts since the last call.
    fn collect(&mut self) -> Counts;
    /// The first failure, if a client has failed.
    fn failure(&self) -> Option<&EngineError>;
    /// Lets the clients end when everything due by now is served. In a closed loop these are the operations in flight;
    /// in an open loop, also the arrivals until now.
    fn finish(&mut self);
    /// Lets the clients end after the operation in flight.
    fn stop(&mut self);
    /// Stops the clients that are still busy. Returns the counts since the last collection, and the open operations.
    /// Operations that end later are in neither.
    fn cut(&mut self) -> (Counts, Censored);
    /// Replaces the arrivals from this moment, which is their time zero, and wakes clients that wait for an arrival.
    fn shape(&mut self, arrivals: &Arc<Arrivals>, from: Instant);
    /// Begins the time of these numbers of active clients at this moment, for clients whose number changes.
    fn begin_steps(&mut self, steps: &ClientSteps, from: Instant);
    /// The number of clients that have not ended.
    fn active(&self) -> usize;
    /// Waits for the rest of clients that have all ended.
    fn join(self: Box<Self>);
}
