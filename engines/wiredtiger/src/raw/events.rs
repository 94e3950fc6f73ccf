//! The library's messages. They are more specific than its return codes: the code for a panic does not say that the
//! disk is full.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ffi;

/// The number of messages kept. Few are enough, because a failed session needs only its own last message.
const KEPT: usize = 16;

/// The event handler of one connection and the errors it has received.
#[repr(C)]
pub struct Events {
    /// The first member, because the library passes back a pointer to it. In a cell, because the library fills in
    /// missing methods.
    handler: UnsafeCell<ffi::EventHandler>,
    received: Mutex<RecordedErrors>,
}

#[derive(Default)]
struct RecordedErrors {
    /// The session's address (0 for none) and the message, oldest first.
    errors: Vec<(usize, String)>,
    /// The first error about a full device, kept to explain a later panic.
    disk_full: Option<String>,
}

// SAFETY: after it is passed to the library, only the library uses the handler, and the rest is behind a lock.
unsafe impl Sync for Events {}

impl Events {
    /// A handler without messages.
    pub fn new() -> Self {
        let handler = ffi::EventHandler {
            handle_error: on_error,
            handle_message: on_message,
            handle_progress: on_progress,
            handle_close: None,
        };
        Self { handler: UnsafeCell::new(handler), received: Mutex::default() }
    }

    /// The handler in the form that the library takes.
    pub fn raw(&self) -> *mut ffi::EventHandler {
        std::ptr::from_ref(self).cast::<ffi::EventHandler>().cast_mut()
    }

    /// Takes the last message about `session` or about no session; if `session` is null, about any.
    pub fn take(&self, session: *const ffi::Session) -> Option<String> {
        let session = session.addr();
        let mut received = self.received();
        let last = received.errors.iter().rposition(|(whose, _)| session == 0 || *whose == session || *whose == 0)?;
        let message = received.errors.swap_remove(last).1;
        received.errors.retain(|(whose, _)| *whose != session);
        Some(message)
    }

    /// The first message about a full device, if there was one.
    pub fn disk_full(&self) -> Option<String> {
        self.received().disk_full.clone()
    }

    /// The first message, which shows where the problem began.
    pub fn first(&self) -> Option<String> {
        self.received().errors.first().map(|(_, message)| message.clone())
    }

    /// The last message.
    pub fn last(&self) -> Option<String> {
        self.received().errors.last().map(|(_, message)| message.clone())
    }

    fn received(&self) -> MutexGuard<'_, RecordedErrors> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

unsafe extern "C" fn on_error(
    handler: *mut ffi::EventHandler,
    session: *mut ffi::Session,
    code: c_int,
    message: *const c_char,
) -> c_int {
    // SAFETY: the library passes the pointer of `Events::raw`, whose creator keeps it alive, and a C string that lives
    // through the call.
    let (events, message) = unsafe { (&*handler.cast_const().cast::<Events>(), CStr::from_ptr(message)) };
    let message = without_preamble(&message.to_string_lossy()).to_owned();
    let mut received = events.received();
    if code == libc::ENOSPC {
        received.disk_full.get_or_insert_with(|| message.clone());
    }
    if received.errors.len() == KEPT {
        received.errors.remove(0);
    }
    received.errors.push((session.addr(), message));
    0
}

/// Writes messages (of `verbose`) to standard error. The library's default is standard output, which the program uses
/// for its own output.
unsafe extern "C" fn on_message(_: *mut ffi::EventHandler, _: *mut ffi::Session, message: *const c_char) -> c_int {
    // SAFETY: a C string that lives through the call.
    eprintln!("wiredtiger: {}", unsafe { CStr::from_ptr(message) }.to_string_lossy());
    0
}

unsafe extern "C" fn on_progress(_: *mut ffi::EventHandler, _: *mut ffi::Session, _: *const c_char, _: u64) -> c_int {
    0
}

/// Strips the time, process and thread that the library puts before a message.
fn without_preamble(message: &str) -> &str {
    match message.strip_prefix('[').and_then(|rest| rest.split_once("], ")) {
        Some((_, words)) => words,
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reader_gets_the_message_without_the_thread() {
        let message = "[1795294201:783775][14501:0x7fe896a87380], connection: eviction target must be lower";
        assert_eq!(without_preamble(message), "connection: eviction target must be lower");
        assert_eq!(without_preamble("unknown configuration key: 'x'"), "unknown configuration key: 'x'");
    }
}
