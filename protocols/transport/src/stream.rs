//! A socket, encrypted or not, that blocks only while its thread has no other work.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rumba_engine_api::wait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use rustls::ClientConnection;

use crate::{Address, TransportError};

/// The event to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Data to read.
    ToRead,
    /// Space to write.
    ToWrite,
}

/// A connected socket.
pub struct Stream {
    socket: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    /// Whether a read may block. On a Unix socket it would be woken needlessly when the server receives a request. The
    /// kernel has one wait queue for readers and writers, and only wakes selectively for poll.
    may_block: bool,
    next_read: RecvFlags,
    /// The number of bytes last accepted for encryption.
    taken: usize,
}

impl Stream {
    /// Connects before `deadline`.
    pub fn connect(address: &Address, deadline: Instant) -> Result<Self, TransportError> {
        let socket = match address {
            Address::Socket(path) => connect_socket(path, deadline)
                .map_err(|cause| TransportError::io(format!("connecting to {}", path.display()), cause))?,
            Address::Tcp { host, port } => connect_tcp(host, *port, deadline)
                .map_err(|cause| TransportError::io(format!("connecting to {host}:{port}"), cause))?,
        };
        let may_block = matches!(address, Address::Tcp { .. });
        Ok(Self { socket, tls: None, may_block, next_read: RecvFlags::DONTWAIT, taken: 0 })
    }

    /// Encrypts the connection from here on.
    pub fn encrypt(&mut self, tls: Box<ClientConnection>) {
        self.tls = Some(tls);
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// The descriptor to poll.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Reads available bytes. It blocks first if [`Stream::wait`] delegated the wait to it. 0 means the end.
    ///
    /// # Errors
    /// `WouldBlock` if no bytes are available, and the system's own.
    #[inline]
    pub fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => {
                let flags = std::mem::replace(&mut self.next_read, RecvFlags::DONTWAIT);
                receive(self.socket.as_fd(), room, flags)
            }
            Some(tls) => read_encrypted(self.socket.as_fd(), tls, room),
        }
    }

    /// Sends as much as there is space for. Encrypted bytes may remain unsent: see [`Stream::holds_back`].
    ///
    /// # Errors
    /// `WouldBlock` if there is no space, and the system's own.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => send(self.socket.as_fd(), bytes),
            Some(tls) => {
                self.taken = write_encrypted(self.socket.as_fd(), tls, bytes)?;
                Ok(self.taken)
            }
        }
    }

    /// Sends bytes from index `sent` on, and advances it. Returns whether it must wait for space. After an error all are
    /// counted as sent: the server's last message may still be readable, and if not, the read reports the error.
    #[inline]
    pub fn send_from(&mut self, bytes: &[u8], sent: &mut usize) -> bool {
        while *sent < bytes.len() || self.holds_back() {
            match self.write(bytes.get(*sent..).unwrap_or_default()) {
                Ok(more) => *sent += more,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => {
                    *sent = bytes.len().max(*sent);
                    break;
                }
            }
        }
        false
    }

    /// Whether encrypted bytes wait for space. Any write sends them, even an empty one.
    #[inline]
    fn holds_back(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// The number of bytes accepted by [`Stream::write`] that may still be unsent.
    pub fn held_back(&self) -> usize {
        if self.holds_back() { self.taken } else { 0 }
    }

    /// Waits until the socket is ready, for a polled session. Returns true if a driver does the waiting, and the caller
    /// must poll again. Otherwise the next [`Stream::read`] finds the socket ready, or blocks itself, because waiting
    /// and reading in one system call saves one.
    #[inline]
    pub fn wait(&mut self, ready: Ready) -> bool {
        let socket = self.raw();
        let wait = match ready {
            Ready::ToRead => wait::Wait::Readable(socket),
            Ready::ToWrite => wait::Wait::Writable(socket),
        };
        if wait::wait_for(wait) {
            return true;
        }
        // On an encrypted connection, bytes may arrive that contain no data to read.
        if self.may_block && ready == Ready::ToRead && !self.is_encrypted() {
            self.next_read = RecvFlags::empty();
        } else {
            // The next read reports an error of the socket.
            let _ = self.block(ready, None);
        }
        false
    }

    /// Blocks until the socket is ready, or until the deadline.
    ///
    /// # Errors
    /// `TimedOut` after the deadline, and the system's own.
    pub fn block(&self, ready: Ready, deadline: Option<Instant>) -> io::Result<()> {
        let wanted = match ready {
            Ready::ToRead => PollFlags::IN,
            Ready::ToWrite => PollFlags::OUT,
        };
        loop {
            let left = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return Err(io::ErrorKind::TimedOut.into()),
                Some(left) => Some(Timespec::try_from(left).map_err(io::Error::other)?),
                None => None,
            };
            match poll(&mut [PollFd::new(&self.socket, wanted)], left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        wait::forget(self.raw());
    }
}

fn connect_socket(path: &Path, deadline: Instant) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            // The server's accept queue is full, for example with a thousand clients.
            Err(Errno::AGAIN) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<OwnedFd> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    // The kind distinguishes it from an address that does not answer.
    let unknown = |cause: io::Error| io::Error::new(io::ErrorKind::NotFound, cause);
    for address in (host, port).to_socket_addrs().map_err(unknown)? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream.into());
            }
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

#[inline]
fn receive(socket: BorrowedFd<'_>, room: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut *room, flags) {
            Ok((taken, _)) => return Ok(taken),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[inline]
fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match rustix::net::send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            sent => return Ok(sent?),
        }
    }
}

/// The socket under an encrypted connection.
struct Below<'a>(BorrowedFd<'a>);

impl Read for Below<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        receive(self.0, room, RecvFlags::DONTWAIT)
    }
}

impl Write for Below<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(self.0, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read_encrypted(socket: BorrowedFd<'_>, tls: &mut ClientConnection, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match tls.reader().read(room) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A killed server sends no TLS close message; treat that as the end as well.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
            taken => return taken,
        }
        if tls.read_tls(&mut Below(socket))? == 0 {
            return Ok(0);
        }
        let processed = tls.process_new_packets();
        // Send the encryption's own answers, such as alerts.
        while tls.wants_write() && tls.write_tls(&mut Below(socket)).is_ok_and(|sent| sent > 0) {}
        processed.map_err(io::Error::other)?;
    }
}

/// Encrypts and sends. Unsent bytes go first, so at most one call's bytes are held back.
fn write_encrypted(socket: BorrowedFd<'_>, tls: &mut ClientConnection, bytes: &[u8]) -> io::Result<usize> {
    send_encrypted(socket, tls)?;
    let taken = tls.writer().write(bytes)?;
    match send_encrypted(socket, tls) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(taken),
    }
}

fn send_encrypted(socket: BorrowedFd<'_>, tls: &mut ClientConnection) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut Below(socket))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::rc::Rc;

    use super::*;

    /// A driver that takes over no wait, as for threads with one client each.
    struct Alone;

    impl wait::Driver for Alone {
        fn wait(&self, _wait: wait::Wait) -> bool {
            false
        }

        fn forget(&self, _fd: RawFd) {}
    }

    /// A server that answers after each requested pause.
    fn answers(mut theirs: impl Write + Send + 'static, requested: std::sync::mpsc::Receiver<Duration>) {
        std::thread::spawn(move || {
            for pause in requested {
                std::thread::sleep(pause);
                theirs.write_all(b"pong").unwrap();
            }
        });
    }

    #[test]
    fn idle_thread_blocks_in_read_only_after_wait_is_requested() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (local, remote) = (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = remote.local_addr().unwrap().port();
        let deadline = Instant::now() + Duration::from_secs(10);
        let _driven = wait::drive_with(Rc::new(Alone));
        for address in [Address::Socket(path), Address::Tcp { host: "127.0.0.1".to_owned(), port }] {
            let mut stream = Stream::connect(&address, deadline).unwrap();
            let (fetch, requested) = std::sync::mpsc::channel();
            match address {
                Address::Socket(_) => answers(local.accept().unwrap().0, requested),
                Address::Tcp { .. } => answers(remote.accept().unwrap().0, requested),
            }
            let (mut room, pause) = ([0; 8], Duration::from_millis(20));
            for _ in 0..2 {
                let reported = stream.read(&mut room).unwrap_err();
                assert_eq!(reported.kind(), io::ErrorKind::WouldBlock, "the thread did not wait");
                let before = Instant::now();
                fetch.send(pause).unwrap();
                assert!(!stream.wait(Ready::ToRead), "the stream is not polled again");
                let waits_in_its_read = stream.next_read == RecvFlags::empty();
                assert_eq!(waits_in_its_read, matches!(address, Address::Tcp { .. }), "{address:?}");
                assert_eq!(stream.read(&mut room).unwrap(), 4);
                assert!(before.elapsed() >= pause);
            }
            drop(fetch);
            assert!(!stream.wait(Ready::ToRead));
            assert_eq!(stream.read(&mut room).unwrap(), 0, "the end wakes it, too");
        }
    }
}
