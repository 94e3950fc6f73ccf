//! epoll for an event loop: level-triggered, each connection registered once, at its first wait.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

/// The most events that one wait returns.
const EVENTS: usize = 256;

/// The event that a client waits for at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    Read,
    Write,
}

impl Interest {
    fn mask(self) -> u32 {
        // The end of the connection is always reported.
        (match self {
            Interest::Read => libc::EPOLLIN,
            Interest::Write => libc::EPOLLOUT,
        }) as u32
    }
}

/// An event for the client that waits at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub client: u32,
    /// The connection.
    pub fd: RawFd,
}

/// The registration of a connection.
type Registered = Option<(Interest, u32)>;

/// An epoll instance and its registrations.
pub struct Poller {
    epoll: OwnedFd,
    /// Indexed by the connection's descriptor.
    registered: RefCell<Vec<Registered>>,
}

/// A buffer for the events of one wait.
pub struct Events {
    list: Box<[libc::epoll_event; EVENTS]>,
    count: usize,
}

impl Events {
    /// An empty buffer.
    pub fn new() -> Self {
        Self { list: Box::new([libc::epoll_event { events: 0, u64: 0 }; EVENTS]), count: 0 }
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.count
    }

    /// One event.
    pub fn get(&self, number: usize) -> Ready {
        let data = self.list[number].u64;
        Ready { client: (data >> 32) as u32, fd: data as u32 as RawFd }
    }
}

impl Poller {
    /// A new epoll instance.
    pub fn new() -> io::Result<Self> {
        // SAFETY: it takes a flag and returns a descriptor.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self { epoll: unsafe { OwnedFd::from_raw_fd(fd) }, registered: RefCell::default() })
    }

    /// Reports events of this connection to this client. It makes a system call only if the registration changes.
    pub fn watch(&self, fd: RawFd, interest: Interest, client: u32) -> io::Result<()> {
        let place = usize::try_from(fd).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
        let mut registered = self.registered.borrow_mut();
        if registered.len() <= place {
            registered.resize(place + 64, None);
        }
        if registered[place] == Some((interest, client)) {
            return Ok(());
        }
        let change = if registered[place].is_some() { libc::EPOLL_CTL_MOD } else { libc::EPOLL_CTL_ADD };
        match self.control(change, fd, interest, client) {
            // The kernel dropped the registration: the descriptor belongs to a new connection by now.
            Err(error) if change == libc::EPOLL_CTL_MOD && error.raw_os_error() == Some(libc::ENOENT) => {
                self.control(libc::EPOLL_CTL_ADD, fd, interest, client)?;
            }
            other => other?,
        }
        registered[place] = Some((interest, client));
        Ok(())
    }

    /// Stops reporting events of this connection.
    pub fn forget(&self, fd: RawFd) {
        let mut registered = self.registered.borrow_mut();
        let known = usize::try_from(fd).ok().and_then(|place| registered.get_mut(place)).and_then(Option::take);
        if known.is_some() {
            // Fails if the connection is closed already, and then there is nothing to remove.
            let _ = self.control(libc::EPOLL_CTL_DEL, fd, Interest::Read, 0);
        }
    }

    fn control(&self, change: i32, fd: RawFd, interest: Interest, client: u32) -> io::Result<()> {
        let data = u64::from(client) << 32 | u64::from(fd as u32);
        let mut event = libc::epoll_event { events: interest.mask(), u64: data };
        // SAFETY: the event lives through the call, and the kernel checks the descriptors.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), change, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for events, at most for this time; without a limit if none is given.
    ///
    /// # Errors
    /// The system's error. A signal is no error: it returns no events.
    pub fn wait(&self, events: &mut Events, most: Option<Duration>) -> io::Result<()> {
        events.count = 0;
        let count = match most {
            None => self.wait_ms(events, -1),
            Some(most) if most.is_zero() => self.wait_ms(events, 0),
            Some(most) => match self.wait_ns(events, most) {
                // Linux before 5.11 waits only in milliseconds. The remaining fraction is spent in waits of length
                // zero, because too long a wait would add lateness.
                -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) => {
                    self.wait_ms(events, i32::try_from(most.as_millis()).unwrap_or(i32::MAX))
                }
                count => count,
            },
        };
        match usize::try_from(count) {
            Ok(count) => events.count = count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn wait_ms(&self, events: &mut Events, most_ms: i32) -> i32 {
        // SAFETY: the list has space for the requested number of events.
        unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.list.as_mut_ptr(), EVENTS as i32, most_ms) }
    }

    fn wait_ns(&self, events: &mut Events, most: Duration) -> i32 {
        let time =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos() as libc::c_long };
        let (epoll, no_mask) = (self.epoll.as_raw_fd(), std::ptr::null::<libc::sigset_t>());
        // SAFETY: the list has space for the requested number of events, the time lives through the call, and without a
        // mask its size does not matter.
        let count = unsafe {
            let list = events.list.as_mut_ptr();
            libc::syscall(libc::SYS_epoll_pwait2, epoll, list, EVENTS as i32, &raw const time, no_mask, 8usize)
        };
        count as i32
    }
}

/// The duration until a time; zero if it has passed.
pub fn until(time: Instant) -> Duration {
    time.saturating_duration_since(Instant::now())
}
