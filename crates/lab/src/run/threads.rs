//! The driver `threads`: each client has its own thread, which also waits for its connections.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_engine_api::worker::{Client, unparker};

use super::pace::{ClientPace, NAP};
use super::poller::until;
use super::room;

/// Few enough threads that the host either has them or refuses at once.
const FEW: u32 = 64;

/// Refuses more threads than this process can have, with one client and this many operation types each.
///
/// # Errors
/// The limit that applies, and the number that would work.
pub fn allow(threads: u32, kinds: usize) -> Result<(), EngineError> {
    if threads <= FEW {
        return Ok(());
    }
    match room::of_threads(kinds).and_then(|most| most.refusal(threads)) {
        Some((problem, remedy)) => Err(EngineError::failed("clients", format!("{problem}; {remedy}"))),
        None => Ok(()),
    }
}

/// The time that the thread's client waits for.
#[derive(Default)]
struct ThreadDriver(Cell<Option<Instant>>);

impl Driver for ThreadDriver {
    /// A wait for a connection is left to the client's read call, because no other client needs the thread.
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
            // Sleep in naps: a client that is polled too early checks the stop flag and waits again. An urgent signal
            // unparks the thread.
            Some(time) => std::thread::park_timeout(until(time).min(NAP)),
            None => std::thread::park(),
        }
    }
}
