//! A stack of its own for each client, so that a script that calls for a statement's answer stops in the middle of
//! whatever it is doing, and other clients of the thread go on.
//!
//! LuaJIT has coroutines of its own, but they cannot be left from inside a call of a C function, and a trace ends at
//! each of them. Here the interpreter sees a C function that takes its time.

use std::task::{Context, Poll};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rumba_core::error::EngineError;
use rumba_core::worker::block_on;

/// What a resumed fiber is given: the context that its polls take. It is good until the fiber stops again.
type Given = *mut Context<'static>;
/// How a fiber's work ends.
pub type End = Result<(), EngineError>;

/// Room for LuaJIT's compiler and what a script's C functions need; only what is touched becomes memory.
const STACK_BYTES: usize = 256 << 10;

/// Work on a stack of its own.
pub struct Fiber(Coroutine<Given, (), End>);

impl Fiber {
    /// Work that has not begun. `waits` is told how to stop, for as long as the work lasts.
    ///
    /// # Errors
    /// The host has no memory for the stack.
    pub fn new(work: impl FnOnce(&Waits) -> End + 'static) -> Result<Self, EngineError> {
        let stack = DefaultStack::new(STACK_BYTES)
            .map_err(|error| EngineError::failed("clients", format!("no memory for a client's stack: {error}")))?;
        Ok(Self(Coroutine::with_stack(stack, move |yielder, given| work(&Waits { yielder, given: given.into() }))))
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
}

impl Waits {
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
