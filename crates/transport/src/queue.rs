//! What was sent or is about to be, in the order of its answers.

use std::slice::Iter;

/// A queue that never moves what is answered, so that the usual case costs two indices; without an allocation for each
/// while it runs dry now and then, or holds no more than it has room for.
#[derive(Debug)]
pub struct Queue<T> {
    pending: Vec<T>,
    /// How many of them are answered already.
    answered: usize,
}

impl<T: Copy> Queue<T> {
    /// With room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { pending: Vec::with_capacity(capacity), answered: 0 }
    }

    /// The one whose answer comes next.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.pending.get(self.answered)
    }

    /// The one submitted last.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.pending[self.answered..].last_mut()
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, pending: T) {
        if self.pending.len() == self.pending.capacity() {
            // A pipeline that never runs dry must not grow.
            self.pending.drain(..self.answered);
            self.answered = 0;
        }
        self.pending.push(pending);
    }

    /// Takes the one that is answered.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let first = *self.front()?;
        self.answered += 1;
        if self.answered == self.pending.len() {
            self.clear();
        }
        Some(first)
    }

    /// Forgets all.
    #[inline]
    pub fn clear(&mut self) {
        self.pending.clear();
        self.answered = 0;
    }

    /// Those that are not answered, in order.
    pub fn iter(&self) -> Iter<'_, T> {
        self.pending[self.answered..].iter()
    }
}
