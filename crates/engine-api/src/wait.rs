//! Waiting without blocking the thread: a client reports to its driver what it waits for.
//!
//! The thread itself waits if it serves only this client, or if there is no driver, for example while a schema is
//! created. [`wait_for`] then returns false, and its caller blocks. If it can, one system call waits and reads.

use std::cell::RefCell;
use std::future::Future;
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The event that a client waits for before it is polled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Readable, or the end of the connection.
    Readable(RawFd),
    /// Writable, or the end of the connection.
    Writable(RawFd),
    /// A time.
    Until(Instant),
}

/// A driver runs clients on the current thread, and knows which of them it is polling.
pub trait Driver {
    /// Registers the event after which the current client is polled again; a later wait of the same poll replaces an
    /// earlier one. A client may be polled too early and then waits again. Returns false if the thread has no other
    /// client to run: the client then blocks.
    #[must_use = "a future that is not polled again has to block"]
    fn wait(&self, wait: Wait) -> bool;

    /// A connection is about to be closed; its number may be reused.
    fn forget(&self, fd: RawFd);
}

thread_local! {
    static DRIVER: RefCell<Option<Rc<dyn Driver>>> = const { RefCell::new(None) };
}

/// Makes a driver the current thread's until the guard is dropped.
#[must_use = "the driver is the thread's until this is dropped"]
pub fn drive_with(driver: Rc<dyn Driver>) -> Driven {
    Driven { before: DRIVER.replace(Some(driver)) }
}

/// Makes every client on the current thread wait by blocking until the guard is dropped, for work that always blocks.
#[must_use = "the driver is back when this is dropped"]
pub fn without_driver() -> Driven {
    Driven { before: DRIVER.replace(None) }
}

/// A guard for a thread with a driver; dropping it restores the previous driver.
pub struct Driven {
    before: Option<Rc<dyn Driver>>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        DRIVER.replace(self.before.take());
    }
}

/// Registers with the thread's driver what the current client waits for. Returns false if there is no driver, or one
/// that does not support it; the caller must then block.
#[inline]
pub fn wait_for(wait: Wait) -> bool {
    DRIVER.with_borrow(|driver| driver.as_ref().is_some_and(|driver| driver.wait(wait)))
}

/// Informs the thread's driver that a connection is about to be closed.
pub fn forget(fd: RawFd) {
    DRIVER.with_borrow(|driver| {
        if let Some(driver) = driver {
            driver.forget(fd);
        }
    });
}

/// A pause of a client; other clients of its thread go on.
pub fn sleep(pause: Duration) -> Sleep {
    Sleep { until: Instant::now() + pause }
}

/// See [`sleep`].
#[derive(Debug)]
pub struct Sleep {
    until: Instant,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        if wait_for(Wait::Until(self.until)) {
            return Poll::Pending;
        }
        std::thread::sleep(left);
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::block_on;

    #[derive(Default)]
    struct WaitRecorder(RefCell<Vec<Wait>>);

    impl Driver for WaitRecorder {
        fn wait(&self, wait: Wait) -> bool {
            self.0.borrow_mut().push(wait);
            true
        }

        fn forget(&self, _fd: RawFd) {}
    }

    #[test]
    fn driver_receives_waits_of_its_thread_until_it_ends() {
        let received = Rc::new(WaitRecorder::default());
        {
            let _driven = drive_with(received.clone());
            let mut sleep = sleep(Duration::from_secs(60));
            let until = sleep.until;
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert_eq!(Pin::new(&mut sleep).poll(&mut context), Poll::Pending);
            assert!(wait_for(Wait::Readable(7)));
            assert_eq!(*received.0.borrow(), [Wait::Until(until), Wait::Readable(7)]);
        }
        assert!(!wait_for(Wait::Readable(7)));
    }

    #[test]
    fn block_on_does_not_wait_through_the_driver_of_other_work() {
        let received = Rc::new(WaitRecorder::default());
        let _driven = drive_with(received.clone());
        let before = Instant::now();
        block_on(sleep(Duration::from_millis(2)));
        assert!(before.elapsed() >= Duration::from_millis(2));
        assert!(received.0.borrow().is_empty());
        assert!(wait_for(Wait::Readable(7)), "the driver is back");
    }
}
