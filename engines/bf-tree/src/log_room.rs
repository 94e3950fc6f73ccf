//! Room in the log's segment, which writers wait for here.
//!
//! The library looks for room by calling itself until there is some (`append_and_wait` of 0.5.7; what it waits for before
//! it does so has always come already), so that writers that meet a full segment take the processor from the thread that
//! would empty it. In a debug build they overflow their stacks; in a release build the call is a loop, and spins. And a
//! segment that is less than half full is never emptied: an entry that does not fit behind it then would find no room for
//! ever. Neither happens while entries on their way fill no more than half a segment: what lies there before them fills
//! less than the other half.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The bytes of entries that may be on their way at once.
#[derive(Debug)]
pub(crate) struct LogRoom {
    most: usize,
    left: Mutex<usize>,
    is_more: Condvar,
}

impl LogRoom {
    /// All of it free, for a log of such segments.
    pub fn new(segment: usize) -> Self {
        Self { most: segment / 2, left: Mutex::new(segment / 2), is_more: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what writes an entry of so many bytes, once there is room for it.
    pub fn with<T>(&self, entry: usize, write: impl FnOnce() -> T) -> T {
        // What would never fit the library refuses by itself.
        let taken = Taken { room: self, bytes: entry.min(self.most) };
        let left = self.is_more.wait_while(self.left(), |left| *left < taken.bytes);
        *left.unwrap_or_else(PoisonError::into_inner) -= taken.bytes;
        write()
    }
}

/// Given back also when the library panics.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn entries_on_their_way_fill_half_a_segment_at_most() {
        let (room, on_their_way) = (LogRoom::new(1024), AtomicUsize::new(0));
        let write = |entry: usize| {
            room.with(entry, || {
                let bytes = on_their_way.fetch_add(entry, SeqCst) + entry;
                assert!(bytes <= 512, "{bytes}");
                std::thread::yield_now();
                on_their_way.fetch_sub(entry, SeqCst);
            });
        };
        std::thread::scope(|scope| {
            (1..=8)
                .for_each(|client| drop(scope.spawn(move || (0..500).for_each(|turn| write(1 + client * turn % 512)))));
        });
        assert_eq!(*room.left(), 512);
        room.with(5000, || ());
        assert_eq!(*room.left(), 512, "one that never fits waits for no more than there is");
    }
}
