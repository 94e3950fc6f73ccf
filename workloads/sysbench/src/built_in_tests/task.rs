//! A client of a built-in test: events, one after another, until none are left or the time is over.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use crate::counters::Counters;
use crate::setup::Events;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{Client, Op, Pace};

use crate::built_in_tests::failure::Failure;

/// There is one type of event.
const EVENT: usize = 0;

/// The work of one thread.
pub(crate) trait Task {
    /// The values drawn before an event's time begins.
    type Event;

    /// The next event; `None` when the thread has done its part.
    fn next(&mut self) -> Option<Self::Event>;

    /// Does the timed work.
    fn execute(&mut self, event: Self::Event) -> Result<(), Failure>;

    /// The work after the last event, within the time of the run.
    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A task with its event counters.
pub(crate) struct TaskClient<T> {
    pub(crate) task: T,
    pub(crate) counters: Arc<Counters>,
    pub(crate) events: Events,
}

impl<T: Task> TaskClient<T> {
    async fn go(&mut self, pace: &mut dyn Pace) -> Result<()> {
        // sysbench checks the limit of events first, and then waits for an arrival of `--rate`.
        while self.events.take() && poll_fn(|context| pace.poll_turn(context)).await {
            let Some(event) = self.task.next() else {
                pace.given_up();
                break;
            };
            pace.start(EVENT);
            self.task.execute(event)?;
            self.counters.event(pace.done(EVENT, Op::default()));
        }
        Ok(self.task.end()?)
    }
}

impl<T: Task> Client for TaskClient<T> {
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(self.go(pace))
    }
}
