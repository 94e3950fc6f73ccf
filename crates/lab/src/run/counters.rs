//! Counters that share no page with anything else.

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Counters that start at zero, on separate pages. No cache line is shared with other data. A page is allocated at the
/// first write, near the core that writes. An allocator guarantees neither when it reuses memory.
pub struct Counters {
    start: NonNull<AtomicU32>,
    length: usize,
}

// SAFETY: it owns its memory, which holds only atomics.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

/// The number of counters on the smallest page that Linux has.
const PER_PAGE: usize = 4096 / size_of::<AtomicU32>();

impl Counters {
    /// Writes to every page, so that the kernel allocates them. For counters that have not counted yet.
    pub fn touch(&self) {
        // Stores a zero over a zero; the store of an atomic is not optimised away.
        self.iter().step_by(PER_PAGE).for_each(|counter| counter.store(0, Relaxed));
    }

    /// This many counters.
    pub fn new(length: usize) -> Self {
        if length == 0 {
            return Self { start: NonNull::dangling(), length };
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever the kernel puts it, overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes(length), protection, flags, -1, 0) };
        let start = if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) };
        match start {
            Some(start) => Self { start, length },
            None => handle_alloc_error(Layout::new::<AtomicU32>()),
        }
    }
}

const fn bytes(length: usize) -> usize {
    length * size_of::<AtomicU32>()
}

impl Deref for Counters {
    type Target = [AtomicU32];

    #[inline]
    fn deref(&self) -> &[AtomicU32] {
        // SAFETY: the mapping has this length, is aligned to a page, zeroed by the kernel, and lives as long as this
        // value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: the mapping is this value's own, and nothing borrows from it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), bytes(self.length)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_start_at_zero_even_where_others_have_counted_before() {
        for _ in 0..3 {
            let counters = Counters::new(100_000);
            assert!(counters.iter().all(|counter| counter.load(Relaxed) == 0));
            counters.iter().for_each(|counter| counter.store(7, Relaxed));
        }
        assert!(Counters::new(0).is_empty());
    }
}
