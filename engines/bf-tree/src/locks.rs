//! Key locks: one session at a time may change a key. The library itself has no key locks.

use std::sync::{Condvar, Mutex, PoisonError};

/// Number of lock slots; keys that hash to the same slot share a lock.
const PLACES: usize = 1024;

/// A lock that a session holds by slot number instead of by a guard that borrows the table.
#[derive(Debug, Default)]
struct LockSlot {
    is_held: Mutex<bool>,
    is_free: Condvar,
}

#[derive(Debug)]
pub(crate) struct Locks(Box<[LockSlot]>);

impl Locks {
    /// Creates the table with every lock free.
    pub fn new() -> Self {
        Self((0..PLACES).map(|_| LockSlot::default()).collect())
    }

    /// Returns the slot of a key.
    pub fn place(key: &[u8]) -> usize {
        // FNV-1a hash of the key.
        let hash = key
            .iter()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211));
        (hash >> 32) as usize % PLACES
    }

    /// Waits until the lock is free, then takes it. Deadlock is impossible because a session holds at most one lock.
    pub fn lock(&self, place: usize) {
        let LockSlot { is_held, is_free } = &self.0[place];
        let held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
        *is_free.wait_while(held, |held| *held).unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Releases the lock and wakes the next waiter.
    pub fn unlock(&self, place: usize) {
        let LockSlot { is_held, is_free } = &self.0[place];
        *is_held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        is_free.notify_one();
    }
}
