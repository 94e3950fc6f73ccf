//! One thread's session on a database.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

use rumba_engine_api::error::{EngineError, Result};

use super::connection::Connection;
use super::{c_string, ffi};

/// A session's cursor, by its position among the open ones.
pub type CursorId = usize;

/// One of the library's statistics.
#[derive(Clone, Debug)]
pub struct Statistic {
    /// Its key in this version of the library.
    pub id: i32,
    /// The library's description: `cache: bytes read into cache`.
    pub description: String,
}

/// A session and the cursors it keeps open.
pub struct Session {
    raw: NonNull<ffi::Session>,
    pub(super) cursors: Vec<NonNull<ffi::Cursor>>,
    connection: Arc<Connection>,
}

// SAFETY: a session and its cursors may move between threads as long as one
// uses them at a time (WiredTiger's reference guide, "Multithreading"), which
// `&mut self` and the lack of Sync ensure.
unsafe impl Send for Session {}

impl Session {
    /// Opens a session with snapshot isolation, for transactions and for reads outside of them.
    pub fn open(connection: &Arc<Connection>) -> Result<Self> {
        const CALL: &str = "WT_CONNECTION.open_session";
        let mut raw = null_mut();
        // SAFETY: the connection is open as long as its handle lives; without
        // a handler the session reports to the connection's.
        let code = unsafe {
            (connection.raw.as_ref().open_session)(
                connection.raw.as_ptr(),
                null_mut(),
                c"isolation=snapshot".as_ptr(),
                &mut raw,
            )
        };
        match NonNull::new(raw) {
            Some(raw) if code == 0 => Ok(Self { raw, cursors: Vec::new(), connection: connection.clone() }),
            _ => Err(connection.failure(CALL, code, null())),
        }
    }

    /// Creates a table.
    pub fn create(&mut self, uri: &str, config: &str) -> Result<()> {
        let (uri, config) = (c_string(uri), c_string(config));
        // SAFETY: the session is open, the strings live through the call.
        let code = unsafe { (self.raw.as_ref().create)(self.raw.as_ptr(), uri.as_ptr(), config.as_ptr()) };
        self.check("WT_SESSION.create", code)
    }

    /// Opens a cursor on a table and keeps it. Its inserts replace existing rows, and removing an absent row is no
    /// error (`overwrite`, the default).
    pub fn open_cursor(&mut self, uri: &str) -> Result<CursorId> {
        let cursor = self.raw_cursor(uri, null())?;
        self.cursors.push(cursor);
        Ok(self.cursors.len() - 1)
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        let code = unsafe { (self.raw.as_ref().begin_transaction)(self.raw.as_ptr(), null()) };
        self.check("WT_SESSION.begin_transaction", code)
    }

    /// Commits the transaction; an error rolls it back.
    pub fn commit(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        let code = unsafe { (self.raw.as_ref().commit_transaction)(self.raw.as_ptr(), null()) };
        self.check("WT_SESSION.commit_transaction", code)
    }

    /// Rolls the transaction back.
    pub fn rollback(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        let code = unsafe { (self.raw.as_ref().rollback_transaction)(self.raw.as_ptr(), null()) };
        self.check("WT_SESSION.rollback_transaction", code)
    }

    /// Writes a checkpoint of the whole database, after waiting for a running one.
    pub fn checkpoint(&mut self) -> Result<()> {
        // SAFETY: the session is open.
        let code = unsafe { (self.raw.as_ref().checkpoint)(self.raw.as_ptr(), null()) };
        self.check("WT_SESSION.checkpoint", code)
    }

    /// The library's metadata for an object: the configuration it was created with, including defaults.
    pub fn metadata(&mut self, uri: &str) -> Result<String> {
        let cursor = self.raw_cursor("metadata:", null())?;
        let key = c_string(uri);
        let mut value: *const c_char = null();
        // SAFETY: the cursor is open; keys and values of metadata are strings
        // (`key_format=S`, `value_format=S`), and the value is copied before
        // the cursor is closed.
        let (code, value) = unsafe {
            let methods = cursor.as_ref();
            (methods.set_key)(cursor.as_ptr(), key.as_ptr());
            let mut code = (methods.search)(cursor.as_ptr());
            if code == 0 {
                code = (methods.get_value)(cursor.as_ptr(), &raw mut value);
            }
            let copy = if code == 0 { CStr::from_ptr(value).to_string_lossy().into_owned() } else { String::new() };
            (methods.close)(cursor.as_ptr());
            (code, copy)
        };
        self.check("WT_SESSION.open_cursor(metadata:)", code)?;
        Ok(value)
    }

    /// All statistics of the connection.
    pub fn statistics(&mut self) -> Result<Vec<Statistic>> {
        let cursor = self.statistics_cursor()?;
        let mut found = Vec::new();
        // SAFETY: the cursor is open; its key is an integer and its value two
        // strings and a 64-bit integer (`key_format=i`, `value_format=SSq`).
        // The strings are copied before the cursor moves.
        let code = unsafe {
            let methods = cursor.as_ref();
            let code = loop {
                let mut code = (methods.next)(cursor.as_ptr());
                let (mut id, mut description) = (0 as c_int, null::<c_char>());
                let (mut text, mut value) = (null::<c_char>(), 0i64);
                if code == 0 {
                    code = (methods.get_key)(cursor.as_ptr(), &raw mut id);
                }
                if code == 0 {
                    code = (methods.get_value)(cursor.as_ptr(), &raw mut description, &raw mut text, &raw mut value);
                }
                if code != 0 {
                    break code;
                }
                let description = CStr::from_ptr(description).to_string_lossy().into_owned();
                found.push(Statistic { id, description });
            };
            (methods.close)(cursor.as_ptr());
            code
        };
        match code {
            ffi::WT_NOTFOUND => Ok(found),
            _ => Err(self.failure("WT_CURSOR.next(statistics:)", code)),
        }
    }

    /// The current values of these statistics, `None` for one that cannot be read.
    pub fn statistic_values(&mut self, wanted: &[Statistic]) -> Result<Vec<Option<i64>>> {
        let cursor = self.statistics_cursor()?;
        // SAFETY: as in `statistics`.
        unsafe {
            let methods = cursor.as_ref();
            let values = wanted.iter().map(|statistic| {
                let (mut description, mut text, mut value) = (null::<c_char>(), null::<c_char>(), 0i64);
                (methods.set_key)(cursor.as_ptr(), statistic.id as c_int);
                let read = (methods.search)(cursor.as_ptr()) == 0
                    && (methods.get_value)(cursor.as_ptr(), &raw mut description, &raw mut text, &raw mut value) == 0;
                read.then_some(value)
            });
            let values = values.collect();
            (methods.close)(cursor.as_ptr());
            Ok(values)
        }
    }

    /// A statistics cursor holds the values of the time it was opened.
    fn statistics_cursor(&mut self) -> Result<NonNull<ffi::Cursor>> {
        self.raw_cursor("statistics:", c"statistics=(fast)".as_ptr())
    }

    fn raw_cursor(&mut self, uri: &str, config: *const c_char) -> Result<NonNull<ffi::Cursor>> {
        let uri = c_string(uri);
        let mut raw = null_mut();
        // SAFETY: the session is open, the strings live through the call.
        let code =
            unsafe { (self.raw.as_ref().open_cursor)(self.raw.as_ptr(), uri.as_ptr(), null_mut(), config, &mut raw) };
        match NonNull::new(raw) {
            Some(raw) if code == 0 => Ok(raw),
            _ => Err(self.failure("WT_SESSION.open_cursor", code)),
        }
    }

    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        self.connection.check(call, code, self.raw.as_ptr())
    }

    pub(super) fn failure(&self, call: &'static str, code: c_int) -> EngineError {
        self.connection.failure(call, code, self.raw.as_ptr())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.connection.has_panicked() {
            return;
        }
        // SAFETY: the session is open and this is its only handle; closing it
        // closes its cursors and rolls back its transaction.
        let code = unsafe { (self.raw.as_ref().close)(self.raw.as_ptr(), null()) };
        // Only checks for a panic, because `drop` cannot return an error.
        let _ = self.connection.check("WT_SESSION.close", code, null());
    }
}
