//! The clients of a phase, wherever they run: in this process, or on other hosts.

use std::sync::Arc;
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_results::arrivals::Arrivals;
use rumba_results::client_steps::ClientSteps;

use super::cells::Counts;
use super::cut::Censored;
use super::driver::{Running, Waited};

/// Running clients, as a trial directs them. The methods are those of [`Running`].
pub trait ClientGroup {
    /// Waits until a time, or until every client has ended. A client that fails stops the others.
    fn wait(&mut self, until: Instant) -> Waited;
    /// The counts since the last call.
    fn collect(&mut self) -> Counts;
    /// The first failure, if a client has failed.
    fn failure(&self) -> Option<&EngineError>;
    /// Lets the clients end when everything due by now is served.
    fn finish(&mut self);
    /// Lets the clients end after the operation in flight.
    fn stop(&mut self);
    /// Stops the clients that are still busy, and returns the last counts and the open operations.
    fn cut(&mut self) -> (Counts, Censored);
    /// Replaces the arrivals from this moment.
    fn shape(&mut self, arrivals: &Arc<Arrivals>, from: Instant);
    /// Begins the time of these numbers of active clients at this moment.
    fn begin_steps(&mut self, steps: &ClientSteps, from: Instant);
    /// The number of clients that have not ended.
    fn active(&self) -> usize;
    /// Waits for the rest of clients that have all ended.
    fn join(self: Box<Self>);
}

impl ClientGroup for Running {
    fn wait(&mut self, until: Instant) -> Waited {
        Running::wait(self, until)
    }

    fn collect(&mut self) -> Counts {
        Running::collect(self)
    }

    fn failure(&self) -> Option<&EngineError> {
        Running::failure(self)
    }

    fn finish(&mut self) {
        Running::finish(self);
    }

    fn stop(&mut self) {
        Running::stop(self);
    }

    fn cut(&mut self) -> (Counts, Censored) {
        Running::cut(self)
    }

    fn shape(&mut self, arrivals: &Arc<Arrivals>, from: Instant) {
        Running::shape(self, arrivals, from);
    }

    fn begin_steps(&mut self, steps: &ClientSteps, from: Instant) {
        Running::begin_steps(self, steps, from);
    }

    fn active(&self) -> usize {
        Running::active(self)
    }

    fn join(self: Box<Self>) {
        Running::join(*self);
    }
}
