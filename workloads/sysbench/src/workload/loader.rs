//! A thread of a script's `prepare`: each statement that changes rows is an operation of the load.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;

use rumba_core::error::EngineError;
use rumba_core::worker::{Client, Pace};

use crate::counters::Counters;
use crate::fiber::Fiber;
use crate::interpreter::{Fill, Interpreter, ScriptError};
use crate::setup::Setup;

/// One thread of it.
pub(super) struct ScriptLoader {
    // Dropped before the interpreter, which its stack may be in the middle of.
    fiber: Option<Fiber>,
    interpreter: Box<Interpreter>,
    fill: Fill,
}

impl ScriptLoader {
    /// The thread of a number.
    pub(super) fn new(
        setup: &Arc<Setup>,
        number: u32,
        counters: Arc<Counters>,
        fill: Fill,
    ) -> Result<Self, ScriptError> {
        let interpreter = Box::new(Interpreter::new(setup, number, counters)?);
        Ok(Self { fiber: None, interpreter, fill })
    }
}

impl Client for ScriptLoader {
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<(), EngineError>> + 'a>> {
        // SAFETY: the fiber is polled by the future below alone, which holds both borrows for as long.
        let pace = unsafe { std::mem::transmute::<NonNull<dyn Pace + 'a>, NonNull<dyn Pace>>(NonNull::from(pace)) };
        let interpreter = &raw const *self.interpreter;
        let fill = self.fill;
        let made = Fiber::new(move |waits| {
            // SAFETY: the interpreter is boxed, and dropped after the fiber.
            let interpreter = unsafe { &*interpreter };
            interpreter.load_rows(fill, pace, waits).map_err(|error| EngineError::failed("script", error.to_string()))
        });
        let fiber = match made {
            Ok(fiber) => self.fiber.insert(fiber),
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        Box::pin(poll_fn(move |context| fiber.poll(context)))
    }
}
