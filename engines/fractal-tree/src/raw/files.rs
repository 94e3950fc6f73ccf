//! Replacements for fsync, write and pwrite, which the library calls through hooks.
//!
//! They serve two purposes. A `no-sync` commit must reach the log file without a sync to the device, but the library
//! only knows synced commits and commits in memory. And when the device is full, the library retries every second,
//! forever, and blocks the caller.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a write found the device full. Later writes are skipped, so the files stay as a kill at this moment would
/// leave them. One flag is enough because a process runs one trial on one device.
static FULL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in a commit that must write but not sync.
    static WRITES_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Whether the device was found full.
#[inline]
pub fn are_full() -> bool {
    FULL.load(Ordering::Relaxed)
}

/// Runs `does` while this thread's syncs are skipped.
#[inline]
pub fn without_sync<T>(does: impl FnOnce() -> T) -> T {
    WRITES_ONLY.set(true);
    let done = does();
    WRITES_ONLY.set(false);
    done
}

/// Replaces fsync.
pub unsafe extern "C" fn sync(file: c_int) -> c_int {
    if are_full() || WRITES_ONLY.get() {
        return 0;
    }
    // SAFETY: the library's own descriptor.
    unsafe { libc::fsync(file) }
}

/// Replaces write, for the log.
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    if are_full() {
        return length as isize;
    }
    // SAFETY: descriptor and bytes belong to the library.
    written(unsafe { libc::write(file, bytes, length) }, length)
}

/// Replaces pwrite, for the trees.
pub unsafe extern "C" fn write_at(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    if are_full() {
        return length as isize;
    }
    // SAFETY: descriptor and bytes belong to the library.
    written(unsafe { libc::pwrite(file, bytes, length, offset) }, length)
}

/// Returns the result of a write to the library. It reports success when the device is full, so that waiting threads
/// continue. Every later session call then reports the full device.
fn written(written: isize, length: usize) -> isize {
    let is_full = written < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSPC);
    if !is_full {
        return written;
    }
    FULL.store(true, Ordering::Relaxed);
    length as isize
}
