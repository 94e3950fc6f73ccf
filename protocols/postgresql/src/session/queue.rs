//! Statements sent or about to be, in the order of their answers.

/// How a statement was sent, and so how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Prepared: Bind and Execute.
    Binary,
    /// As text, or rows to be loaded: the server ends its answer by itself.
    Text,
    /// Nothing was sent: there were no rows.
    Nothing,
}

/// A statement whose answer is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its number in the session.
    pub(super) statement: usize,
    pub(super) kind: Kind,
    /// Whether the server says after it that it is ready; otherwise others of its group follow.
    pub(super) last: bool,
    /// The position in the stream of bytes where it ends.
    pub(super) end: u64,
}

/// Statements sent or about to be, in the order of their answers.
pub(super) type Queue = rumba_transport::Queue<Pending>;

/// Where the group ends whose answers come next.
pub(super) fn group_end(queue: &Queue) -> u64 {
    queue.iter().find(|pending| pending.last).map_or(0, |pending| pending.end)
}
