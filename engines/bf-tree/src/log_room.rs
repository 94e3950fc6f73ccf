//! Admission control for the log's segment.
//!
//! The library waits for space in the log by recursion (`append_and_wait` of 0.5.7), and the event it waits for before
//! each retry has always happened already. Writers that meet a full segment therefore spin and take the processor from
//! the thread that would empty the segment. In a debug build they overflow their stacks; in a release build the call
//! compiles to a busy loop.
//!
//! A segment that is less than half full is never emptied, so an entry that does not fit behind its contents would wait
//! forever. Both faults are impossible while pending entries fill at most half a segment, because the entries already in the
//! segment then fill less than the other half.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Limits the bytes of log entries that may be pending at once.
#[derive(Debug)]
pub(crate) struct LogRoom {
    most: usize,
    left: Mutex<usize>,
    is_more: Condvar,
}

impl LogRoom {
    /// Creates a limit for a log with segments of this size, with all space free.
    pub fn new(segment: usize) -> Self {
        Self { most: segment / 2, left: Mutex::new(segment / 2), is_more: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `write`, which appends an entry of `entry` bytes, after waiting for space.
    pub fn with<T>(&self, entry: usize, write: impl FnOnce() -> T) -> T {
        // The library itself refuses an entry that can never fit.
        let taken = Taken { room: self, bytes: entry.min(self.most) };
        let left = self.is_more.wait_while(self.left(), |left| *left < taken.bytes);
        *left.unwrap_or_else(PoisonError::into_inner) -= taken.bytes;
        write()
    }
}

/// Guard that returns the reserved bytes, also when the library panics.
struct Taken<'a> {
    room: &'a LogRoom,
    bytes: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.room.left() += self.bytes;
        self.room.is_more.notify_all();
    }
}
