//! The driver `threads`: a client has its thread, which waits for what the
//! client waits for.

use std::cell::Cell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Poll};

use rumba_core::engine::EngineError;
use rumba_core::wait::{Driver, Wait, drive_with};
use rumba_core::worker::{Client, unparker};

use super::pace::{ClientPace, NAP};
use super::poller::until;

/// What the thread's client has said that it waits for.
#[derive(Default)]
struct Heard(Cell<Option<Wait>>);

impl Driver for Heard {
    fn wait(&self, wait: Wait) {
        self.0.set(Some(wait));
    }

    fn forget(&self, _fd: RawFd) {}
}

/// Runs a client on the current thread to its end.
pub fn run(client: &mut dyn Client, mut pace: ClientPace) -> Result<(), EngineError> {
    let heard = Rc::new(Heard::default());
    let _driven = drive_with(heard.clone());
    let waker = unparker();
    let mut context = Context::from_waker(&waker);
    let mut run = client.run(&mut pace);
    loop {
        heard.0.set(None);
        if let Poll::Ready(end) = run.as_mut().poll(&mut context) {
            return end;
        }
        match heard.0.get() {
            Some(Wait::Readable(fd)) => wait_at(fd, libc::POLLIN),
            Some(Wait::Writable(fd)) => wait_at(fd, libc::POLLOUT),
            // In naps: polled too early, the client looks whether it is to stop and waits again.
            Some(Wait::Until(time)) => std::thread::sleep(until(time).min(NAP)),
            None => std::thread::park(),
        }
    }
}

/// Waits at one connection. A signal, or anything else that ends the wait too
/// early, has the client look for itself: its own call finds the error.
fn wait_at(fd: RawFd, events: i16) {
    let mut one = libc::pollfd { fd, events, revents: 0 };
    // SAFETY: one descriptor in a list of one that lives through the call; the kernel checks its number.
    unsafe {
        libc::poll(&mut one, 1, -1);
    }
}
