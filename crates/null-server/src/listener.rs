//! Where clients come in, and which loop they are given to.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::config::Listen;
use crate::event_loop::Mailbox;
use crate::server::ServerError;

/// Clients that may wait to be let in; hundreds connect at once.
const BACKLOG: i32 = 4096;

/// Starts to listen; also gives the place in words.
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
        Ok(_) => match UnixStream::connect(path) {
            // Whoever made it is gone.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
            Ok(_) => return Err(ServerError::Occupied(path.to_owned())),
        },
    }
    UnixListener::bind(path).map_err(failed)
}

/// Lets clients in and gives them to the loops in turn.
pub struct Acceptor {
    listener: OwnedFd,
    is_tcp: bool,
    mailboxes: Vec<Arc<Mailbox>>,
    accepted: u32,
    /// Given up to turn a client away when there are no descriptors left.
    reserve: Option<OwnedFd>,
}

impl Acceptor {
    /// An acceptor for these loops.
    pub fn new(listener: OwnedFd, is_tcp: bool, mailboxes: Vec<Arc<Mailbox>>) -> Self {
        let reserve = rustix::io::dup(&listener).ok();
        Self { listener, is_tcp, mailboxes, accepted: 0, reserve }
    }

    /// The next client, its number, and the loop that it belongs to; `None` when nobody waits.
    pub fn accept(&mut self) -> Option<(OwnedFd, u32, Arc<Mailbox>)> {
        loop {
            match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    if self.is_tcp {
                        // Without it an answer can wait for the acknowledgement of the one before.
                        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
                    }
                    let mailbox = self.mailboxes[self.accepted as usize % self.mailboxes.len()].clone();
                    // Numbers that mean something else in the loop's events are left out.
                    self.accepted = (self.accepted + 1) % 0xFFFF_FFF0;
                    return Some((socket, self.accepted, mailbox));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE) if self.reserve.take().is_some() => {
                    let turned_away = rustix::net::accept(&self.listener);
                    drop(turned_away);
                    self.reserve = rustix::io::dup(&self.listener).ok();
                }
                Err(_) => return None,
            }
        }
    }
}

impl AsFd for Acceptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
