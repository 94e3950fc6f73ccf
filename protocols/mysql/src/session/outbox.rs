//! What is on its way to the server: which statements, and how far.

use std::collections::VecDeque;
use std::io;

use crate::connection::Connection;

/// A send buffer that grew beyond this is given back when it is not needed any more.
const AMPLE: usize = 16 << 10;
/// So many flushes in a row did not need it.
const PATIENCE: u32 = 64;

/// How a statement was sent, and so how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Prepared: rows are binary.
    Binary,
    /// As text: rows are text.
    Text,
    /// LOAD DATA: the server asks for so many rows.
    Load {
        /// How many rows are sent.
        rows: u64,
    },
    /// Nothing was sent: there were no rows.
    Nothing,
}

/// A statement whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its number in the session.
    pub(super) statement: usize,
    /// The position in the stream of bytes where it ends.
    pub(super) end: u64,
    pub(super) kind: Kind,
    /// False where more statements of the same call follow.
    pub(super) last: bool,
    /// Whether the next statement is of the same request, and is left out if this one fails.
    pub(super) grouped: bool,
}

impl Pending {
    /// Whether nothing beyond it may be sent before it is answered: the server
    /// would take it for the file; or, if this fails, it is not to be done at all.
    #[inline]
    pub(super) fn is_barrier(&self) -> bool {
        !self.last || matches!(self.kind, Kind::Load { .. })
    }
}

/// Statements sent or about to be, in the order of their answers.
pub(super) type Queue = rumba_transport::Queue<Pending>;

/// How far the sending is, and the files that the server will ask for.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The position in the stream of the send buffer's first byte.
    base: u64,
    /// How many statements of the queue are barriers.
    pub(super) barriers: usize,
    /// The files to be loaded, framed, in the order of their statements.
    files: VecDeque<Vec<u8>>,
    /// How much of the first file is sent, once the server has asked for it.
    fed: Option<usize>,
    /// A file's buffer for the next one.
    spare: Vec<u8>,
    /// Flushes in a row that an ample buffer had been enough for.
    modest: u32,
}

impl Outbox {
    /// The position in the stream where the send buffer ends.
    #[inline]
    pub(super) fn end(&self, send: &[u8]) -> u64 {
        self.base + send.len() as u64
    }

    /// Where in the send buffer this position of the stream is, if nothing from it on is sent.
    pub(super) fn unsent(&self, connection: &Connection, position: u64) -> Option<usize> {
        let at = usize::try_from(position.checked_sub(self.base)?).ok()?;
        (connection.sent <= at && at < connection.send.len()).then_some(at)
    }

    /// An empty buffer for a file.
    pub(super) fn file(&mut self) -> Vec<u8> {
        let mut file = std::mem::take(&mut self.spare);
        file.clear();
        file
    }

    /// Keeps a file for when the server asks for it.
    pub(super) fn keep(&mut self, file: Vec<u8>) {
        self.files.push_back(file);
    }

    /// The server asks for the first file; false if there is none.
    pub(super) fn feed(&mut self) -> bool {
        self.fed = self.files.front().map(|_| 0);
        self.fed.is_some()
    }

    /// The first file's statement is answered.
    pub(super) fn fed(&mut self) {
        self.fed = None;
        self.spare = self.files.pop_front().unwrap_or_default();
    }

    /// Whether all of a statement is sent, its file included.
    pub(super) fn is_sent(&self, connection: &Connection, pending: &Pending) -> bool {
        // What the encryption holds back counts as not sent: the server would never answer it.
        let sent = connection.sent.saturating_sub(connection.stream.held_back());
        self.fed.is_none() && self.base + sent as u64 >= pending.end
    }

    /// Leaves out what is not sent yet up to a position.
    pub(super) fn skip_to(&mut self, connection: &mut Connection, end: u64) {
        let skipped = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX);
        connection.sent = skipped.min(connection.send.len()).max(connection.sent);
    }

    /// Whether anything is left to send.
    #[inline]
    pub(super) fn is_waiting(&self, connection: &Connection) -> bool {
        connection.sent < connection.send.len() || self.fed.is_some() || connection.stream.holds_back()
    }

    /// Sends what may be sent, as far as there is room; `WouldBlock` when there is no more.
    #[inline]
    pub(super) fn flush(&mut self, connection: &mut Connection, queue: &Queue) -> io::Result<()> {
        if self.barriers > 0 {
            return self.flush_to_barrier(connection, queue);
        }
        while connection.sent < connection.send.len() || connection.stream.holds_back() {
            connection.sent += connection.stream.write(&connection.send[connection.sent..])?;
        }
        self.empty(connection);
        Ok(())
    }

    #[cold]
    fn flush_to_barrier(&mut self, connection: &mut Connection, queue: &Queue) -> io::Result<()> {
        if let (Some(fed), Some(file)) = (&mut self.fed, self.files.front()) {
            while *fed < file.len() || connection.stream.holds_back() {
                *fed += connection.stream.write(&file[*fed..])?;
            }
            self.fed = None;
        }
        let barrier = queue.iter().find(|pending| pending.is_barrier()).map_or(u64::MAX, |pending| pending.end);
        let limit = usize::try_from(barrier.saturating_sub(self.base)).unwrap_or(usize::MAX).min(connection.send.len());
        while connection.sent < limit || connection.stream.holds_back() {
            connection.sent += connection.stream.write(&connection.send[connection.sent..limit])?;
        }
        if connection.sent == connection.send.len() {
            self.empty(connection);
        }
        Ok(())
    }

    #[inline]
    fn empty(&mut self, connection: &mut Connection) {
        let sent = connection.send.len();
        self.base += sent as u64;
        connection.send.clear();
        connection.sent = 0;
        if connection.send.capacity() > AMPLE {
            self.modest = if sent > AMPLE { 0 } else { self.modest + 1 };
            if self.modest >= PATIENCE {
                connection.send.shrink_to(AMPLE);
            }
        }
    }

    /// Sends nothing more: the other end is closed, though it may have said something before.
    pub(super) fn give_up(&mut self, connection: &mut Connection) {
        connection.sent = connection.send.len();
        self.fed = None;
    }

    /// Forgets everything: the connection is gone.
    pub(super) fn reset(&mut self) {
        *self = Self { spare: std::mem::take(&mut self.spare), ..Self::default() };
    }
}
