//! A stack of its own for each client, so that a script that calls for a statement's answer stops in the middle of
//! whatever it is doing, and other clients of the thread go on.
//!
//! LuaJIT has coroutines of its own, but they cannot be left from inside a call of a C function, and a trace ends at
//! each of them. Here the interpreter sees a C function that takes its time.

use std::task::{Context, Poll};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rumba_core::worker::block_on;

use crate::failure::ScriptError;

/// What a resumed fiber is given: the context that its polls take. It is good until the fiber stops again.
type Given = *mut Context<'static>;
/// How a fiber's work ends.
pub type End = Result<(), ScriptError>;

/// Room for LuaJIT's compiler, what a script's C functions need, and some 200 calls of `gsub` within each other
/// (`crate::depth`). Only what is touched becomes memory; into less than 2 MiB no huge page fits, which would at once.
const LEAST_STACK_BYTES: usize = (2 << 20) - (64 << 10);
/// More than any host has: it refuses this itself.
const MOST_STACK_BYTES: usize = 1 << 46;

/// Work on a stack of its own.
pub struct Fiber(Coroutine<Given, (), End>);

impl Fiber {
    /// Work that has not begun, on a stack of so many bytes or more. `waits` is told how to stop, for as long as the
    /// work lasts.
    ///
    /// # Errors
    /// The host has no memory for the stack.
    pub fn new(stack_bytes: usize, work: impl FnOnce(&Waits) -> End + 'static) -> Result<Self, ScriptError> {
        let stack = DefaultStack::new(stack_bytes.clamp(LEAST_STACK_BYTES, MOST_STACK_BYTES))
            .map_err(|error| ScriptError::Stack(error.to_string()))?;
        let stack_end = stack.limit().get();
        let work =
            move |yielder: &Yielder<Given, ()>, given: Given| work(&Waits { yielder, given: given.into(), stack_end });
        Ok(Self(Coroutine::with_stack(stack, work)))
    }

    /// Goes on with the work until it waits or ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // The fiber uses it until it stops, which is before this returns.
        let given: Given = std::ptr::from_mut(context).cast();
        match self.0.resume(given) {
            CoroutineResult::Yield(()) => Poll::Pending,
            CoroutineResult::Return(end) => Poll::Ready(end),
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        if self.0.started() && !self.0.done() {
            // SAFETY: the frames of an interpreter cannot be unwound. What lies on the stack owns nothing: it is
            // references to the client and its interpreter, which are dropped after it.
            unsafe { self.0.force_reset() };
        }
    }
}

/// The way out of a fiber.
pub struct Waits {
    yielder: *const Yielder<Given, ()>,
    given: std::cell::Cell<Given>,
    stack_end: usize,
}

impl Waits {
    /// The lowest address of the fiber's stack.
    pub fn stack_end(&self) -> usize {
        self.stack_end
    }

    /// Waits for an answer; other clients of the thread go on meanwhile.
    #[inline]
    pub fn wait<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        loop {
            // SAFETY: the context was given with the last resumption and is good until this stops; the yielder
            // lives as long as the work, of which this is a part.
            let context = unsafe { &mut *self.given.get() };
            match poll(context) {
                Poll::Ready(value) => return value,
                Poll::Pending => self.given.set(unsafe { &*self.yielder }.suspend(())),
            }
        }
    }
}

/// Waits for an answer with the whole thread.
pub fn wait_alone<T>(poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    block_on(std::future::poll_fn(poll))
}
