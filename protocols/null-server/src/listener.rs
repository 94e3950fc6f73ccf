//! Accepts clients and assigns them to loops.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::config::Listen;
use crate::error::ServerError;
use crate::mailbox::Mailbox;

/// The listen backlog; hundreds of clients connect at once.
const BACKLOG: i32 = 4096;

/// Starts to listen; also returns the address as text.
pub fn listen(at: &Listen) -> Result<(OwnedFd, String), ServerError> {
    let (socket, place): (OwnedFd, String) = match at {
        Listen::Socket(path) => {
            let place = path.display().to_string();
            (socket_at(path)?.into(), place)
        }
        Listen::Port(port) => {
            let failed = |cause| ServerError::Listen { place: format!("127.0.0.1:{port}"), cause };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).map_err(failed)?;
            let place = listener.local_addr().map_err(failed)?.to_string();
            (listener.into(), place)
        }
    };
    let ready = || -> io::Result<()> {
        rustix::net::listen(&socket, BACKLOG)?;
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(())
    };
    ready().map_err(|cause| ServerError::Listen { place: place.clone(), cause })?;
    Ok((socket, place))
}

fn socket_at(path: &Path) -> Result<UnixListener, ServerError> {
    let failed = |cause| ServerError::Listen { place: path.display().to_string(), cause };
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(ServerError::NotASocket(path.to_owned())),
        Ok(_) => match knock(path) {
            // The server that created the socket is gone.
            Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(failed)?,
            // It does not accept clients now, and a client would have to wait.
            Ok(()) | Err(Errno::AGAIN) => return Err(ServerError::Occupied(path.to_owned())),
            Err(error) => return Err(failed(error.into())),
        },
    }
    UnixListener::bind(path).map_err(failed)
}

/// Checks without blocking whether a server listens on a socket.
fn knock(path: &Path) -> rustix::io::Result<()> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, INHERITED_BY_NONE, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)
}

/// The result of one accept.
pub enum Arrival {
    /// A client, its number, and its loop.
    Client(OwnedFd, u32, Arc<Mailbox>),
    /// A client that disconnected or was refused; others may be waiting.
    Gone,
    /// No client is waiting.
    NoUser,
    /// The host has no descriptor or no memory for the waiting client.
    NotNow,
}

/// Accepts clients and assigns them to the loops in turn.
pub struct Acceptor {
    listener: OwnedFd,
    is_tcp: bool,
    mailboxes: Vec<Arc<Mailbox>>,
    accepted: u32,
    /// A spare descriptor, used to refuse a client when no descriptors are left.
    reserve: Option<OwnedFd>,
    /// The message to a refused client.
    refusal: Vec<u8>,
}

impl Acceptor {
    /// An acceptor for these loops; `refusal` is the message to refused clients.
    pub fn new(listener: OwnedFd, is_tcp: bool, mailboxes: Vec<Arc<Mailbox>>, refusal: Vec<u8>) -> Self {
        let mut acceptor = Self { listener, is_tcp, mailboxes, accepted: 0, reserve: None, refusal };
        acceptor.keep_reserve();
        acceptor
    }

    /// Accepts once; repeated calls allow the caller to stop in between.
    pub fn accept(&mut self) -> Arrival {
        match rustix::net::accept_with(&self.listener, INHERITED_BY_NONE) {
            Ok(socket) => self.admit(socket),
            Err(Errno::AGAIN) => Arrival::NoUser,
            Err(Errno::INTR | Errno::CONNABORTED) => Arrival::Gone,
            // The kernel returns this error even if no client is waiting.
            Err(Errno::MFILE | Errno::NFILE) => self.turn_away(),
            Err(_) => Arrival::NotNow,
        }
    }

    fn admit(&mut self, socket: OwnedFd) -> Arrival {
        if self.is_tcp {
            // Otherwise an answer can wait for the acknowledgement of the one before.
            let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        }
        let mailbox = self.mailboxes[self.accepted as usize % self.mailboxes.len()].clone();
        // Skip numbers with a special meaning in the loop's events.
        self.accepted = (self.accepted + 1) % 0xFFFF_FFF0;
        Arrival::Client(socket, self.accepted, mailbox)
    }

    /// Accepts the first waiting client with the spare descriptor, sends it the reason, and closes.
    fn turn_away(&mut self) -> Arrival {
        self.reserve = None;
        let arrival = match rustix::net::accept_with(&self.listener, INHERITED_BY_NONE) {
            Ok(socket) => {
                // If the client does not read, the message is lost.
                let _ = rustix::net::send(&socket, &self.refusal, SendFlags::NOSIGNAL);
                Arrival::Gone
            }
            Err(Errno::AGAIN) => Arrival::NoUser,
            Err(Errno::INTR | Errno::CONNABORTED) => Arrival::Gone,
            Err(_) => Arrival::NotNow,
        };
        self.keep_reserve();
        arrival
    }

    fn keep_reserve(&mut self) {
        self.reserve = rustix::io::fcntl_dupfd_cloexec(&self.listener, 0).ok();
    }
}

const INHERITED_BY_NONE: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
