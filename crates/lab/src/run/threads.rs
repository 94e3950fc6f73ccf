//! The driver `threads`: a client has its thread, and waits for its connections with it.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use rumba_core::error::EngineError;
use rumba_core::wait::{Driver, Wait, drive_with};
use rumba_core::worker::{Client, unparker};

use super::pace::{ClientPace, NAP};
use super::poller::until;
use super::room;

/// So few threads that the host has them, or says at once that it has not.
const FEW: u32 = 64;

/// Refuses more threads, one for each client that counts so many types of operations, than this process can have.
///
/// # Errors
/// What bounds them, and the number that would work.
pub fn allow(threads: u32, kinds: usize) -> Result<(), EngineError> {
    if threads <= FEW {
        return Ok(());
    }
    match room::of_threads(kinds).and_then(|most| most.refusal(threads)) {
        Some((problem, remedy)) => Err(EngineError::failed("clients", format!("{problem}; {remedy}"))),
        None => Ok(()),
    }
}

/// The time that the thread's client has said that it waits for.
#[derive(Default)]
struct ThreadDriver(Cell<Option<Instant>>);

impl Driver for ThreadDriver {
    /// For its connection a client waits in the call that reads, one for each answer: nobody else has the thread.
    fn wait(&self, wait: Wait) -> bool {
        match wait {
            Wait::Until(time) => self.0.set(Some(time)),
            Wait::Readable(_) | Wait::Writable(_) => return false,
        }
        true
    }

    fn forget(&self, _fd: RawFd) {}
}

/// Runs a client on the current thread to its end.
pub fn run(client: &mut dyn Client, mut pace: ClientPace) -> Result<(), EngineError> {
    let driver = Rc::new(ThreadDriver::default());
    let _driven = drive_with(driver.clone());
    let waker = unparker();
    let mut context = Context::from_waker(&waker);
    let mut run = client.run(&mut pace);
    loop {
        driver.0.set(None);
        if let Poll::Ready(end) = run.as_mut().poll(&mut context) {
            return end;
        }
        match driver.0.get() {
            // In naps: polled too early, the client looks whether it is to stop and waits again. Who has something to tell
            // it at once unparks its thread.
            Some(time) => std::thread::park_timeout(until(time).min(NAP)),
            None => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn few_threads_skip_the_check_and_too_many_name_the_maximum() {
        assert_eq!(allow(FEW, 10), Ok(()));
        let error = allow(4_000_000_000, 10).unwrap_err().to_string();
        assert!(error.contains("4000000000 clients are more than the") && error.contains("or fewer"), "{error}");
    }
}
