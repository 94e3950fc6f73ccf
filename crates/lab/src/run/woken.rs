//! Wakers of an event loop's clients, for clients that wait for another thread rather than a connection or a time.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// The number under which the loop's own event is registered; no client has it.
pub const CLIENT: u32 = u32::MAX;

/// The clients that were woken and have not been polled since.
pub struct Woken {
    clients: Mutex<Vec<usize>>,
    /// Readable while the list is not empty.
    event: OwnedFd,
}

impl Woken {
    /// An empty list.
    pub fn new() -> io::Result<Self> {
        // SAFETY: it takes numbers and returns a descriptor.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self { clients: Mutex::default(), event: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The descriptor that becomes readable when a client is woken.
    pub fn fd(&self) -> RawFd {
        self.event.as_raw_fd()
    }

    pub fn waker(self: &Arc<Self>, client: usize) -> Waker {
        Waker::from(Arc::new(OneClient { woken: self.clone(), client }))
    }

    /// Takes the clients that were woken. Return the list with [`Woken::recycle`].
    pub fn take(&self) -> Vec<usize> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = 0u64;
        // SAFETY: eight bytes are read into eight. It fails only if the event was read already.
        unsafe {
            libc::read(self.fd(), (&raw mut count).cast(), size_of::<u64>());
        }
        std::mem::take(&mut clients)
    }

    /// Takes the storage back, if no client was woken meanwhile.
    pub fn recycle(&self, list: Vec<usize>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.is_empty() {
            *clients = list;
        }
    }

    fn wake(&self, client: usize) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.contains(&client) {
            return;
        }
        clients.push(client);
        let one = 1u64;
        // SAFETY: eight bytes are written from eight. It could block only at 2^64 wakes.
        unsafe {
            libc::write(self.fd(), (&raw const one).cast(), size_of::<u64>());
        }
    }
}

struct OneClient {
    woken: Arc<Woken>,
    client: usize,
}

impl Wake for OneClient {
    fn wake(self: Arc<Self>) {
        self.woken.wake(self.client);
    }
}
