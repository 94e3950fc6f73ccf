//! The operations of the load path. Each resets its cursor, so that between calls no page is pinned in the cache and no
//! snapshot is held outside a transaction.

use std::ffi::c_int;
use std::slice;

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::Scan;

use super::ffi;
use super::session::{CursorId, Session};

impl Session {
    /// Reads the value of `key` into `value`; false if there is none.
    ///
    /// # Errors
    /// A conflict; the library's error message.
    #[inline]
    pub fn search(&mut self, cursor: CursorId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        const CALL: &str = "WT_CURSOR.search";
        value.clear();
        let raw = self.cursors[cursor].as_ptr();
        let key = ffi::Item::of(key);
        let mut found = ffi::Item::EMPTY;
        // SAFETY: the cursor is open as long as the session. Keys and values
        // are items (`key_format=u`, `value_format=u`). The key lives through
        // the call that uses it. The value belongs to the cursor and is copied
        // before the cursor is reset.
        let code = unsafe {
            let methods = &*raw;
            (methods.set_key)(raw, &raw const key);
            match (methods.search)(raw) {
                0 => {}
                // The library has reset the cursor already.
                ffi::WT_NOTFOUND => return Ok(false),
                code => return Err(self.failure(CALL, code)),
            }
            let code = (methods.get_value)(raw, &raw mut found);
            if code == 0 {
                value.extend_from_slice(bytes_of(&found));
            }
            let reset = (methods.reset)(raw);
            if code == 0 { reset } else { code }
        };
        self.check(CALL, code)?;
        Ok(true)
    }

    /// Inserts `key`, or replaces its value.
    ///
    /// # Errors
    /// A conflict; the library's error message.
    #[inline]
    pub fn insert(&mut self, cursor: CursorId, key: &[u8], value: &[u8]) -> Result<()> {
        let raw = self.cursors[cursor].as_ptr();
        let (key, value) = (ffi::Item::of(key), ffi::Item::of(value));
        // SAFETY: as in `search`; the library copies key and value during the
        // insert, after which the cursor has neither.
        let code = unsafe {
            let methods = &*raw;
            (methods.set_key)(raw, &raw const key);
            (methods.set_value)(raw, &raw const value);
            (methods.insert)(raw)
        };
        self.check("WT_CURSOR.insert", code)
    }

    /// Removes `key`, which may be absent.
    ///
    /// # Errors
    /// A conflict; the library's error message.
    #[inline]
    pub fn remove(&mut self, cursor: CursorId, key: &[u8]) -> Result<()> {
        let raw = self.cursors[cursor].as_ptr();
        let key = ffi::Item::of(key);
        // SAFETY: as in `search`; a cursor without a position has none after a remove.
        let code = unsafe {
            let methods = &*raw;
            (methods.set_key)(raw, &raw const key);
            (methods.remove)(raw)
        };
        if code == ffi::WT_NOTFOUND {
            return Ok(());
        }
        self.check("WT_CURSOR.remove", code)
    }

    /// Visits the entries of a range in key order; returns how many.
    ///
    /// # Errors
    /// A conflict; the library's error message.
    pub fn scan(&mut self, cursor: CursorId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        if scan.limit == 0 || scan.from >= scan.to {
            return Ok(0);
        }
        let raw = self.cursors[cursor].as_ptr();
        let from = ffi::Item::of(scan.from);
        let (mut key, mut value) = (ffi::Item::EMPTY, ffi::Item::EMPTY);
        let (mut exact, mut visited): (c_int, usize) = (0, 0);
        // SAFETY: as in `search`; key and value belong to the cursor until it
        // moves, and `visit` cannot keep them nor reach the cursor.
        let code = unsafe {
            let methods = &*raw;
            let mut code = 0;
            if scan.from.is_empty() {
                // The library does not accept an empty key; `next` from no position is the first entry.
                exact = -1;
            } else {
                (methods.set_key)(raw, &raw const from);
                code = (methods.search_near)(raw, &mut exact);
            }
            if code == 0 && exact < 0 {
                code = (methods.next)(raw);
            }
            while code == 0 {
                code = (methods.get_key)(raw, &raw mut key);
                if code != 0 || bytes_of(&key) >= scan.to {
                    break;
                }
                code = (methods.get_value)(raw, &raw mut value);
                if code != 0 {
                    break;
                }
                visit(bytes_of(&key), bytes_of(&value));
                visited += 1;
                if visited == scan.limit {
                    break;
                }
                code = (methods.next)(raw);
            }
            let reset = (methods.reset)(raw);
            if matches!(code, 0 | ffi::WT_NOTFOUND) { reset } else { code }
        };
        self.check("WT_CURSOR.next", code)?;
        Ok(visited)
    }
}

/// The bytes of an item that a cursor filled in.
///
/// # Safety
/// The item's owner keeps them unchanged during `'a`.
#[inline]
unsafe fn bytes_of<'a>(item: &ffi::Item) -> &'a [u8] {
    if item.size == 0 {
        // The pointer may be null here, which a slice does not permit.
        return &[];
    }
    // SAFETY: `size` bytes from `data` are the item's, see above.
    unsafe { slice::from_raw_parts(item.data.cast(), item.size) }
}
