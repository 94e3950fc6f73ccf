//! Who may change a key: one session at a time. The library has nothing of the kind.

use std::sync::{Condvar, Mutex, PoisonError};

/// Keys share a lock with others of the same place.
const PLACES: usize = 1024;

/// A lock that a session holds by its number, and not by a guard that borrows it.
#[derive(Debug, Default)]
struct LockSlot {
    is_held: Mutex<bool>,
    is_free: Condvar,
}

/// The locks of an instance.
#[derive(Debug)]
pub(crate) struct Locks(Box<[LockSlot]>);

impl Locks {
    /// All free.
    pub fn new() -> Self {
        Self((0..PLACES).map(|_| LockSlot::default()).collect())
    }

    /// The place of a key.
    pub fn place(key: &[u8]) -> usize {
        // FNV-1a over its bytes.
        let hash = key
            .iter()
            .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211));
        (hash >> 32) as usize % PLACES
    }

    /// Waits until nobody else holds it. A session holds one, so that nobody waits in a circle.
    pub fn lock(&self, place: usize) {
        let LockSlot { is_held, is_free } = &self.0[place];
        let held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
        *is_free.wait_while(held, |held| *held).unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Lets the next one in.
    pub fn unlock(&self, place: usize) {
        let LockSlot { is_held, is_free } = &self.0[place];
        *is_held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        is_free.notify_one();
    }
}
