//! A separate stack for each client. A script that waits for a statement's answer pauses in the middle of any
//! operation, and other clients of the thread continue.
//!
//! LuaJIT has its own coroutines, but they cannot yield from inside a C function, and a trace ends at each of them.
//! Here the interpreter only sees a C function that takes its time.

use std::task::{Context, Poll};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rumba_engine_api::worker::block_on;

use crate::failure::ScriptError;

/// The context that a resumed fiber receives for its polls. It is valid until the fiber pauses again.
type Given = *mut Context<'static>;
/// How a fiber's work ends.
pub type End = Result<(), ScriptError>;

/// Room for LuaJIT's compiler, for a script's C functions, and for some 200 nested calls of `gsub` (`crate::depth`).
/// Only touched pages use memory. The size is below 2 MiB, so that it does not fit a huge page, which would use memory
/// at once.
const LEAST_STACK_BYTES: usize = (2 << 20) - (64 << 10);
/// More than any host has, so that the host refuses larger requests itself.
const MOST_STACK_BYTES: usize = 1 << 46;

/// Work on a separate stack.
pub struct Fiber(Coroutine<Given, (), End>);

impl Fiber {
    /// Work that has not begun, on a stack with at least this many bytes. `waits` lets the work pause, for as long as
    /// it lasts.
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

    /// Continues the work until it waits or ends.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        // The fiber uses the context only until it pauses, which is before this returns.
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
            // SAFETY: the frames of an interpreter cannot be unwound. The stack owns nothing: it holds references to
            // the client and its interpreter, which are dropped after it.
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

    /// Waits for an answer; meanwhile other clients of the thread continue.
    #[inline]
    pub fn wait<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        loop {
            // SAFETY: the context was given with the last resumption and is valid until this pauses. The yielder lives
            // as long as the work, of which this is a part.
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
