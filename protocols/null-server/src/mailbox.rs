//! Messages to a loop of another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// New sockets and the stop request for a loop of another thread.
pub struct Mailbox {
    sockets: Mutex<Vec<(OwnedFd, u32)>>,
    stop: AtomicBool,
    wake: OwnedFd,
}

impl Mailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// The host has no free descriptor.
    pub fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { sockets: Mutex::default(), stop: AtomicBool::new(false), wake })
    }

    /// Passes a connection to the loop.
    pub fn give(&self, socket: OwnedFd, id: u32) {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner).push((socket, id));
        self.ring();
    }

    /// Requests the loop to end.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        self.ring();
    }

    /// The descriptor that is readable when there is mail.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Whether the loop is requested to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Takes the passed connections, and their numbers.
    pub fn take(&self) -> Vec<(OwnedFd, u32)> {
        // It fails only if the mail is taken already.
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
        std::mem::take(&mut *self.sockets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn ring(&self) {
        // A write fails only if the counter is full, and then the loop is awake anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}
