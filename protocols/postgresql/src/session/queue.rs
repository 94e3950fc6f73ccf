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
    /// Whether it is carried out in a transaction that a statement before it began.
    pub(super) in_block: bool,
}

/// The queue; what is answered is not moved, so that the usual case costs two indices.
#[derive(Debug)]
pub(super) struct Queue {
    pending: Vec<Pending>,
    /// How many of them are answered already.
    answered: usize,
}

impl Queue {
    /// With room for so many statements.
    pub(super) fn with_capacity(statements: usize) -> Self {
        Self { pending: Vec::with_capacity(statements), answered: 0 }
    }

    /// The statement whose answer comes next.
    #[inline]
    pub(super) fn front(&self) -> Option<&Pending> {
        self.pending.get(self.answered)
    }

    /// The statement submitted last.
    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut Pending> {
        self.pending[self.answered..].last_mut()
    }

    #[inline]
    pub(super) fn push(&mut self, pending: Pending) {
        if self.pending.len() == self.pending.capacity() {
            // A pipeline that never runs dry must not grow.
            self.pending.drain(..self.answered);
            self.answered = 0;
        }
        self.pending.push(pending);
    }

    /// Takes the statement that is answered.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.answered += 1;
        if self.answered >= self.pending.len() {
            self.clear();
        }
    }

    /// How many are to be answered.
    pub(super) fn len(&self) -> usize {
        self.pending.len() - self.answered
    }

    /// Where the group ends whose answers come next.
    pub(super) fn group_end(&self) -> u64 {
        self.pending[self.answered..].iter().find(|pending| pending.last).map_or(0, |pending| pending.end)
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.pending.clear();
        self.answered = 0;
    }
}
