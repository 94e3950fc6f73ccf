//! An open database.

use std::ffi::c_int;
use std::path::Path;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rumba_engine_api::error::{EngineError, Result};

use super::events::Events;
use super::library::Library;
use super::{c_string, ffi};

/// An open database. Closed by [`Connection::close`], or when the last session is dropped.
pub struct Connection {
    pub(super) raw: NonNull<ffi::Connection>,
    library: Arc<Library>,
    events: &'static Events,
    panicked: AtomicBool,
    closed: bool,
}

// SAFETY: connection handles may be shared between threads (WiredTiger's
// reference guide, "Multithreading"); the rest is Send and Sync itself.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens a database in an existing directory.
    pub fn open(library: &Arc<Library>, home: &Path, config: &str) -> Result<Arc<Self>> {
        // Never freed: the library's threads may report to it until the process ends.
        let events: &'static Events = Box::leak(Box::new(Events::new()));
        let (home, config) = (c_string(&home.to_string_lossy()), c_string(config));
        let mut raw = null_mut();
        // SAFETY: the strings live through the call, the handler forever.
        let code = unsafe { (library.open)(home.as_ptr(), events.raw(), config.as_ptr(), &mut raw) };
        match (code, NonNull::new(raw)) {
            (0, Some(raw)) => Ok(Arc::new(Self {
                raw,
                library: library.clone(),
                events,
                panicked: AtomicBool::new(false),
                closed: false,
            })),
            _ => Err(error(library, events, "wiredtiger_open", code, null())),
        }
    }

    /// Closes the database, which writes a checkpoint.
    ///
    /// # Errors
    /// The library's error message; sessions that are still open; an earlier panic.
    pub fn close(self: Arc<Self>) -> Result<()> {
        const CALL: &str = "WT_CONNECTION.close";
        let mut connection = Arc::try_unwrap(self)
            .map_err(|_| EngineError::failed(CALL, "sessions are still open; drop them before the instance"))?;
        if connection.has_panicked() {
            return Err(error(&connection.library, connection.events, CALL, ffi::WT_PANIC, null()));
        }
        connection.closed = true;
        // SAFETY: this was the last handle and every session is closed; `closed` prevents a second close in Drop.
        let code = unsafe { (connection.raw.as_ref().close)(connection.raw.as_ptr(), null()) };
        connection.check(CALL, code, null())
    }

    /// Whether the library has panicked. No call is allowed then, least of all closing, which would wait for
    /// transactions that never end.
    pub(super) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int, session: *const ffi::Session) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failure(call, code, session)) }
    }

    #[cold]
    pub(super) fn failure(&self, call: &'static str, code: c_int, session: *const ffi::Session) -> EngineError {
        if matches!(code, ffi::WT_PANIC | ffi::WT_RUN_RECOVERY) {
            self.panicked.store(true, Ordering::Relaxed);
        }
        error(&self.library, self.events, call, code, session)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.closed || self.has_panicked() {
            return;
        }
        // SAFETY: no session is left, as each holds the connection. `drop` cannot return an error; `close` does.
        unsafe { (self.raw.as_ref().close)(self.raw.as_ptr(), null()) };
    }
}

impl Library {
    /// Checks whether `method` accepts `config`.
    pub fn validate(&self, method: &str, config: &str) -> Result<(), String> {
        let events = Events::new();
        let (method, config) = (c_string(method), c_string(config));
        // SAFETY: without a session the library only reads the strings; they live through the call, and so does the
        // handler.
        let code = unsafe { (self.validate)(null_mut(), events.raw(), method.as_ptr(), config.as_ptr()) };
        match code {
            0 => Ok(()),
            _ => Err(events.first().unwrap_or_else(|| self.words(code))),
        }
    }
}

fn error(
    library: &Library,
    events: &Events,
    call: &'static str,
    code: c_int,
    session: *const ffi::Session,
) -> EngineError {
    match code {
        ffi::WT_ROLLBACK => return EngineError::conflict("WT_ROLLBACK: conflict between concurrent operations"),
        ffi::WT_CACHE_FULL => return EngineError::conflict("WT_CACHE_FULL: no room in the cache in time"),
        _ => {}
    }
    let words = library.words(code);
    let panicked = matches!(code, ffi::WT_PANIC | ffi::WT_RUN_RECOVERY);
    let detail = if panicked { events.last() } else { events.take(session) };
    let message = match detail {
        Some(detail) => format!("{words} ({code}): {detail}"),
        None => format!("{words} ({code})"),
    };
    if code == libc::ENOSPC {
        return EngineError::DiskFull(format!("{call}: {message}"));
    }
    match events.disk_full().filter(|_| panicked) {
        Some(cause) => EngineError::DiskFull(format!("{call}: {message}; it began with: {cause}")),
        None => EngineError::failed(call, message),
    }
}
