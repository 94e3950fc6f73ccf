//! A queue of sent or pending requests in the order of their answers.

use std::slice::Iter;

/// A queue that keeps answered entries in place, so that the common case only updates two indices. It allocates no
/// memory per entry while it periodically runs empty, or stays within its capacity.
#[derive(Debug)]
pub struct Queue<T> {
    pending: Vec<T>,
    /// The number of answered entries at the front.
    answered: usize,
}

impl<T: Copy> Queue<T> {
    /// A queue with this capacity.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { pending: Vec::with_capacity(capacity), answered: 0 }
    }

    /// The entry whose answer comes next.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.pending.get(self.answered)
    }

    /// The newest entry.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.pending[self.answered..].last_mut()
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, pending: T) {
        if self.pending.len() == self.pending.capacity() {
            // A pipeline that never runs empty must not grow the queue.
            self.pending.drain(..self.answered);
            self.answered = 0;
        }
        self.pending.push(pending);
    }

    /// Removes the answered entry.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.answered += 1;
        if self.answered == self.pending.len() {
            self.clear();
        }
        Some(first)
    }

    /// Removes all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.pending.clear();
        self.answered = 0;
    }

    /// The unanswered entries, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        self.pending[self.answered..].iter()
    }
}
