//! The C library's mutex, which `threads` and `mutex` measure. Rust's own mutex is different: it spins before it
//! sleeps.

use std::cell::UnsafeCell;

/// A mutex that guards nothing. It must not be moved once it has been locked.
#[repr(transparent)]
pub(crate) struct PosixMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a mutex is made to be shared.
unsafe impl Send for PosixMutex {}
// SAFETY: the same.
unsafe impl Sync for PosixMutex {}

impl PosixMutex {
    /// One that is free.
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Does something while it is locked.
    #[inline(always)]
    pub(crate) fn locked(&self, action: impl FnOnce()) {
        // SAFETY: it is initialized, and does not move: owners keep mutexes in a box.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        action();
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
