//! What the library calls in place of the system's fsync, write and pwrite: it offers a hook for each.
//!
//! Two things want them. A commit under `no-sync` is to be in the log's file, not only in the library's memory, and not
//! on the device: the library itself knows only commits that are synced and commits that wait in memory. And where the
//! device is full, the library waits for ever, a second at a time, with whoever asked.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a write has found the device full. What comes after is not written any more: the files stay as a kill at this
/// moment would have left them. A process has one trial, so one device.
static FULL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread is in a commit that is to be written and not synced.
    static WRITES_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Whether the device was found full.
#[inline]
pub fn are_full() -> bool {
    FULL.load(Ordering::Relaxed)
}

/// Does something in which this thread syncs nothing.
#[inline]
pub fn without_sync<T>(does: impl FnOnce() -> T) -> T {
    WRITES_ONLY.set(true);
    let done = does();
    WRITES_ONLY.set(false);
    done
}

/// In place of fsync.
pub unsafe extern "C" fn sync(file: c_int) -> c_int {
    if are_full() || WRITES_ONLY.get() {
        return 0;
    }
    // SAFETY: the library's own descriptor.
    unsafe { libc::fsync(file) }
}

/// In place of write: of the log.
pub unsafe extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    if are_full() {
        return length as isize;
    }
    // SAFETY: descriptor and bytes are the library's.
    written(unsafe { libc::write(file, bytes, length) }, length)
}

/// In place of pwrite: of the trees.
pub unsafe extern "C" fn write_at(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    if are_full() {
        return length as isize;
    }
    // SAFETY: descriptor and bytes are the library's.
    written(unsafe { libc::pwrite(file, bytes, length, offset) }, length)
}

/// What the library is told of a write. That all is well, where the device is full: whoever waits goes on, and every
/// call of a session says from then on that it is full.
fn written(written: isize, length: usize) -> isize {
    let is_full = written < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOSPC);
    if !is_full {
        return written;
    }
    FULL.store(true, Ordering::Relaxed);
    length as isize
}
