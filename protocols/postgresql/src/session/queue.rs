//! Statements sent or queued, in the order of their answers.

/// How a statement was sent, which determines the format of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As a prepared statement: Bind and Execute.
    Binary,
    /// As text, or as rows to load: the server ends its answer without a Sync.
    Text,
    /// The statement was not sent, because there were no rows.
    Nothing,
}

/// A statement with a pending answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its number in the session.
    pub(super) statement: usize,
    pub(super) kind: Kind,
    /// Whether the server reports after it that it is ready; otherwise others of its group follow.
    pub(super) last: bool,
    /// The stream position at which it ends.
    pub(super) end: u64,
}

/// Statements sent or queued, in the order of their answers.
pub(super) type Queue = rumba_transport::Queue<Pending>;

/// The end of the group whose answers come next.
pub(super) fn group_end(queue: &Queue) -> u64 {
    queue.iter().find(|pending| pending.last).map_or(0, |pending| pending.end)
}
