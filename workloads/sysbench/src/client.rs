//! One client of a run, or one thread of a load: its interpreter, on a fiber.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::{Client, Pace};

use crate::counters::Counters;
use crate::failure::{Function, ScriptError};
use crate::fiber::{End, Fiber};
use crate::host::Host;
use crate::interpreter::{Fill, Interpreter, Work};
use crate::setup::Setup;

/// A client that runs a script's events, or fills the database.
pub struct ScriptClient {
    // Dropped before the interpreter, because its stack may be in the middle of a call of it.
    fiber: Option<Fiber>,
    interpreter: Box<Interpreter>,
    work: Work,
    host: Arc<dyn Host>,
    number: u32,
}

impl Drop for ScriptClient {
    fn drop(&mut self) {
        self.host.leaves(self.number);
    }
}

impl ScriptClient {
    /// The client with this number, after its `thread_init`.
    ///
    /// # Errors
    /// The script is missing, cannot be loaded, or its `thread_init` fails.
    pub fn new(setup: &Arc<Setup>, number: u32, counters: Arc<Counters>) -> Result<Self, ScriptError> {
        let client = Self::of(setup, number, counters, Work::Events)?;
        client.interpreter.call(Function::ThreadInit)?;
        client.interpreter.tidy_up();
        Ok(client)
    }

    /// The client with this number, for filling the database: each statement is an operation of the load.
    ///
    /// # Errors
    /// The script is missing, or cannot be loaded.
    pub(crate) fn filling(
        setup: &Arc<Setup>,
        number: u32,
        counters: Arc<Counters>,
        fill: Fill,
    ) -> Result<Self, ScriptError> {
        Self::of(setup, number, counters, Work::Fill(fill))
    }

    fn of(setup: &Arc<Setup>, number: u32, counters: Arc<Counters>, work: Work) -> Result<Self, ScriptError> {
        let interpreter = Box::new(Interpreter::new(setup, number, counters)?);
        interpreter.tidy_up();
        Ok(Self { fiber: None, interpreter, work, host: setup.host.clone(), number })
    }

    /// Runs its events, or fills the database; like [`Client::run`], but with the script's own errors.
    pub fn work<'a>(&'a mut self, pace: &'a mut dyn Pace) -> impl Future<Output = Result<(), ScriptError>> + 'a {
        poll_fn(self.begin(pace))
    }

    /// Begins its work; the returned function continues it.
    fn begin<'a>(&'a mut self, pace: &'a mut dyn Pace) -> impl FnMut(&mut Context<'_>) -> Poll<End> + 'a {
        // SAFETY: only the returned function polls the fiber, and it holds both borrows for as long.
        let pace = unsafe { std::mem::transmute::<NonNull<dyn Pace + 'a>, NonNull<dyn Pace>>(NonNull::from(pace)) };
        let (interpreter, work) = (&raw const *self.interpreter, self.work);
        let made = Fiber::new(self.interpreter.setup().stack_bytes(), move |waits| {
            // SAFETY: the interpreter is boxed, and dropped after the fiber.
            let interpreter = unsafe { &*interpreter };
            interpreter.run(work, pace, waits)
        });
        let mut fiber = made.map(|made| self.fiber.insert(made));
        move |context: &mut Context<'_>| match &mut fiber {
            Ok(fiber) => fiber.poll(context),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

impl Client for ScriptClient {
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        let mut work = self.begin(pace);
        Box::pin(poll_fn(move |context| work(context).map_err(EngineError::from)))
    }
}
