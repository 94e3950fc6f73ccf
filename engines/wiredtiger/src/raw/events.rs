//! What the library says beside its return codes. Its return codes are coarse
//! (a panic does not say that the disk is full); its messages are not.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::ffi;

/// A session that fails is told about its own last message, so few are kept.
const KEPT: usize = 16;

/// The event handler of one connection and the errors it has heard.
#[repr(C)]
pub struct Events {
    /// First, because the library hands back a pointer to it; in a cell,
    /// because it fills in the methods that are missing.
    handler: UnsafeCell<ffi::EventHandler>,
    heard: Mutex<RecordedErrors>,
}

#[derive(Default)]
struct RecordedErrors {
    /// The session's address (0 for none) and the message, oldest first.
    errors: Vec<(usize, String)>,
    /// The first error about a full device, kept to explain a later panic.
    disk_full: Option<String>,
}

// SAFETY: the handler is the library's alone once it has been handed over, and
// the rest is behind a lock.
unsafe impl Sync for Events {}

impl Events {
    /// A handler that has heard nothing.
    pub fn new() -> Self {
        let handler = ffi::EventHandler {
            handle_error: on_error,
            handle_message: on_message,
            handle_progress: on_progress,
            handle_close: None,
        };
        Self { handler: UnsafeCell::new(handler), heard: Mutex::default() }
    }

    /// The handler as the library takes it.
    pub fn raw(&self) -> *mut ffi::EventHandler {
        std::ptr::from_ref(self).cast::<ffi::EventHandler>().cast_mut()
    }

    /// Takes the last message about `session` or about none in particular;
    /// without a session, about anything.
    pub fn take(&self, session: *const ffi::Session) -> Option<String> {
        let session = session.addr();
        let mut heard = self.heard();
        let last = heard.errors.iter().rposition(|(whose, _)| session == 0 || *whose == session || *whose == 0)?;
        let message = heard.errors.swap_remove(last).1;
        heard.errors.retain(|(whose, _)| *whose != session);
        Some(message)
    }

    /// What was said about a full device, if anything was.
    pub fn disk_full(&self) -> Option<String> {
        self.heard().disk_full.clone()
    }

    /// The first message about anything: where it began.
    pub fn first(&self) -> Option<String> {
        self.heard().errors.first().map(|(_, message)| message.clone())
    }

    /// The last message about anything.
    pub fn last(&self) -> Option<String> {
        self.heard().errors.last().map(|(_, message)| message.clone())
    }

    fn heard(&self) -> MutexGuard<'_, RecordedErrors> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

unsafe extern "C" fn on_error(
    handler: *mut ffi::EventHandler,
    session: *mut ffi::Session,
    code: c_int,
    message: *const c_char,
) -> c_int {
    // SAFETY: the library hands back the pointer of `Events::raw`, whose maker
    // keeps it alive, and a C string that lives through the call.
    let (events, message) = unsafe { (&*handler.cast_const().cast::<Events>(), CStr::from_ptr(message)) };
    let message = without_preamble(&message.to_string_lossy()).to_owned();
    let mut heard = events.heard();
    if code == libc::ENOSPC {
        heard.disk_full.get_or_insert_with(|| message.clone());
    }
    if heard.errors.len() == KEPT {
        heard.errors.remove(0);
    }
    heard.errors.push((session.addr(), message));
    0
}

/// Messages (of `verbose`) go to standard error: the library's own way is
/// standard output, which belongs to the program.
unsafe extern "C" fn on_message(_: *mut ffi::EventHandler, _: *mut ffi::Session, message: *const c_char) -> c_int {
    // SAFETY: a C string that lives through the call.
    eprintln!("wiredtiger: {}", unsafe { CStr::from_ptr(message) }.to_string_lossy());
    0
}

unsafe extern "C" fn on_progress(_: *mut ffi::EventHandler, _: *mut ffi::Session, _: *const c_char, _: u64) -> c_int {
    0
}

/// A message without the time, process and thread that the library puts in front.
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
    fn the_reader_gets_the_words_and_not_the_thread() {
        let message = "[1795294201:783775][14501:0x7fe896a87380], connection: eviction target must be lower";
        assert_eq!(without_preamble(message), "connection: eviction target must be lower");
        assert_eq!(without_preamble("unknown configuration key: 'x'"), "unknown configuration key: 'x'");
    }
}
