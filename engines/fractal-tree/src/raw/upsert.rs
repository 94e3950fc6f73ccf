//! The update function, which computes a new value when a message reaches it in a buffer or in a leaf.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use rumba_engine_api::delta;

use super::ffi::{Db, Dbt, SetValue};

thread_local! {
    /// Buffer for the new value. It is thread-local because clients, flushers and the cleaner all apply messages.
    static NEW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Applies a message, which is a [`delta::Delta`]. Recovery calls it again for the same message.
pub unsafe extern "C" fn update(
    _db: *mut Db,
    _key: *const Dbt,
    old: *const Dbt,
    message: *const Dbt,
    set: SetValue,
    set_extra: *mut c_void,
) -> c_int {
    let mut new = NEW.take();
    // SAFETY: the library keeps both alive through this call; an absent value is null.
    let (old, message) = unsafe { (old.as_ref().map(|old| old.bytes()), (*message).bytes()) };
    if delta::apply(message, old, &mut new) {
        // SAFETY: the setter copies the value before it returns.
        unsafe { set(&Dbt::of(&new), set_extra) };
    }
    NEW.set(new);
    0
}
