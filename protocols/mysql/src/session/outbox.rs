//! Outgoing data: the statements, and how much of them is sent.

use std::collections::VecDeque;
use std::io;

use crate::connection::Connection;

/// A send buffer larger than this shrinks when its size is no longer needed.
const AMPLE: usize = 16 << 10;
/// The number of consecutive flushes without need for the size after which it shrinks.
const PATIENCE: u32 = 64;

/// How a statement was sent, which determines the format of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a prepared statement, with binary rows.
    Binary,
    /// As text, with text rows.
    Text,
    /// LOAD DATA, for which the server requests a file.
    Load {
        /// The number of sent rows.
        rows: u64,
    },
    /// The statement was not sent, because there were no rows.
    Nothing,
}

/// A statement with a pending answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its number in the session.
    pub(super) statement: usize,
    /// The stream position at which it ends.
    pub(super) end: u64,
    pub(super) kind: Kind,
    /// False if more statements of the same call follow.
    pub(super) last: bool,
    /// Whether the next statement is in the same request, and is skipped if this one fails.
    pub(super) grouped: bool,
}

impl Pending {
    /// Whether nothing after it may be sent before it is answered. The server would read it as the file, or must not
    /// execute it if this one fails.
    #[inline]
    pub(super) fn is_barrier(&self) -> bool {
        !self.last || matches!(self.kind, Kind::Load { .. })
    }
}

/// Statements sent or queued, in the order of their answers.
pub(super) type Queue = rumba_transport::Queue<Pending>;

/// The progress of sending, and the files that the server will request.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// The stream position of the send buffer's first byte.
    base: u64,
    /// The number of barriers in the queue.
    pub(super) barriers: usize,
    /// The files to load, framed, in the order of their statements.
    files: VecDeque<Vec<u8>>,
    /// The sent part of the first file, after the server has requested it.
    fed: Option<usize>,
    /// A spare buffer for the next file.
    spare: Vec<u8>,
    /// Consecutive flushes for which an ample buffer was enough.
    modest: u32,
}

impl Outbox {
    /// The stream position at which the send buffer ends.
    #[inline]
    pub(super) fn end(&self, send: &[u8]) -> u64 {
        self.base + send.len() as u64
    }

    /// The index of this stream position in the send buffer, if nothing from it on is sent.
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

    /// Queues a file until the server requests it.
    pub(super) fn keep(&mut self, file: Vec<u8>) {
        self.files.push_back(file);
    }

    /// The server requests the first file; false if there is none.
    pub(super) fn feed(&mut self) -> bool {
        self.fed = self.files.front().map(|_| 0);
        self.fed.is_some()
    }

    /// The first file's statement is answered.
    pub(super) fn fed(&mut self) {
        self.fed = None;
        self.spare = self.files.pop_front().unwrap_or_default();
    }

    /// Whether a statement is completely sent, including its file.
    pub(super) fn is_sent(&self, connection: &Connection, pending: &Pending) -> bool {
        // Bytes that the encryption holds back are not sent, so the server would never answer them.
        let sent = connection.sent.saturating_sub(connection.stream.held_back());
        self.fed.is_none() && self.base + sent as u64 >= pending.end
    }

    /// Skips unsent bytes up to a position.
    pub(super) fn skip_to(&mut self, connection: &mut Connection, end: u64) {
        let skipped = usize::try_from(end.saturating_sub(self.base)).unwrap_or(usize::MAX);
        connection.sent = skipped.min(connection.send.len()).max(connection.sent);
    }

    /// Whether there are unsent bytes.
    #[inline]
    pub(super) fn is_waiting(&self, connection: &Connection) -> bool {
        connection.sent < connection.send.len() || self.fed.is_some() || connection.stream.holds_back()
    }

    /// Sends as much as permitted and as there is space for; `WouldBlock` if there is no more space.
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

    /// Stops sending: the other end is closed, but its earlier messages may be readable.
    pub(super) fn give_up(&mut self, connection: &mut Connection) {
        connection.sent = connection.send.len();
        self.fed = None;
    }

    /// Clears everything after the connection is lost.
    pub(super) fn reset(&mut self) {
        *self = Self { spare: std::mem::take(&mut self.spare), ..Self::default() };
    }
}
