//! Outgoing data: the statements, and how much of them is sent.

use std::collections::VecDeque;

use rumba_transport::Channel;

/// How a statement was sent, which determines the format of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a prepared statement, with binary rows.
    Binary,
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
    /// The number of barriers in the queue.
    pub(super) barriers: usize,
    /// The files to load, framed, in the order of their statements.
    files: VecDeque<Vec<u8>>,
    /// The sent part of the first file, after the server has requested it.
    fed: Option<usize>,
    /// A spare buffer for the next file.
    spare: Vec<u8>,
}

impl Outbox {
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
    pub(super) fn is_sent(&self, channel: &Channel, pending: &Pending) -> bool {
        self.fed.is_none() && channel.sent_to() >= pending.end
    }

    /// Sends as much as permitted and as there is space for. Returns whether it must wait for space.
    #[inline]
    pub(super) fn flush(&mut self, channel: &mut Channel, queue: &Queue) -> bool {
        if self.barriers > 0 { self.flush_to_barrier(channel, queue) } else { channel.flush() }
    }

    #[cold]
    fn flush_to_barrier(&mut self, channel: &mut Channel, queue: &Queue) -> bool {
        if let (Some(fed), Some(file)) = (&mut self.fed, self.files.front()) {
            if channel.stream.send_from(file, fed) {
                return true;
            }
            self.fed = None;
        }
        let barrier = queue.iter().find(|pending| pending.is_barrier());
        channel.flush_to(barrier.map_or(u64::MAX, |pending| pending.end))
    }

    /// Clears everything after the connection is lost.
    pub(super) fn reset(&mut self) {
        *self = Self { spare: std::mem::take(&mut self.spare), ..Self::default() };
    }
}
