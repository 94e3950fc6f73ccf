//! An allocator that counts, for tests of code that must not allocate.
//!
//! ```
//! use rumba_testkit::allocations::{self, Counting};
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting;
//!
//! assert_eq!(allocations::during(|| drop(vec![1u8; 16])), 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread separately.
pub struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// How often this thread has allocated so far.
pub fn count() -> u64 {
    COUNT.get()
}

/// Bytes that this thread has allocated less those that it has freed.
pub fn bytes() -> i64 {
    BYTES.get()
}

/// The number of this thread's allocations during some work.
pub fn during(work: impl FnOnce()) -> u64 {
    let before = count();
    work();
    count() - before
}

/// The bytes that this thread has allocated for each of `count` values, once all are made.
pub fn bytes_of_each<T>(count: usize, make: impl FnMut() -> T) -> i64 {
    let before = bytes();
    let mut all = Vec::with_capacity(count);
    all.resize_with(count, make);
    (bytes() - before) / count as i64
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches only numbers of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        BYTES.set(BYTES.get() + layout.size() as i64);
        // SAFETY: the caller's guarantees hold for the system's allocator too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        // SAFETY: see `alloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        BYTES.set(BYTES.get() + size as i64 - layout.size() as i64);
        // SAFETY: see `alloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
