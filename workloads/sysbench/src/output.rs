//! Standard output. Scripts write to it through C's stream, and the program through Rust's. Both note failed writes, so
//! that a run ends when its reports have no reader, and a report that could not be written is no success.

use std::ffi::c_int;
use std::io::{self, Write};
use std::ptr::null_mut;
use std::sync::OnceLock;

unsafe extern "C" {
    /// C's stream of standard output.
    #[link_name = "stdout"]
    static OF_SCRIPTS: *mut libc::FILE;
    /// As `ferror`, but without the stream's lock, which a script holds while it waits for a slow reader.
    fn ferror_unlocked(stream: *mut libc::FILE) -> c_int;
}

/// The first failed write of the program itself.
static FAILURE: OnceLock<io::Error> = OnceLock::new();

/// Prints a text. An error is noted for [`is_closed`] and [`finish`].
pub fn print(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The first one is kept.
        let _ = FAILURE.set(error);
    }
}

/// Whether a write has failed because there is no reader any more: the pipe's reader has gone, or the terminal hung up.
pub fn is_closed() -> bool {
    (FAILURE.get().is_some() || has_script_failed()) && is_reader_gone()
}

/// Writes out what scripts have printed.
///
/// # Errors
/// Some output could not be written, now or before.
pub fn finish() -> io::Result<()> {
    // SAFETY: the stream exists as long as the process.
    let flushed = unsafe { libc::fflush(OF_SCRIPTS) };
    let error = io::Error::last_os_error();
    match FAILURE.get() {
        Some(first) => Err(io::Error::new(first.kind(), first.to_string())),
        None if flushed != 0 => Err(error),
        None if has_script_failed() && is_reader_gone() => Err(io::ErrorKind::BrokenPipe.into()),
        None if has_script_failed() => Err(io::Error::other("a line of the script could not be written")),
        None => Ok(()),
    }
}

/// Writes out all streams of C, before the process is ended by a signal.
pub fn flush_all() {
    // SAFETY: a null pointer stands for all streams.
    unsafe { libc::fflush(null_mut()) };
}

fn has_script_failed() -> bool {
    // SAFETY: the stream exists as long as the process; only its flags are read.
    unsafe { ferror_unlocked(OF_SCRIPTS) != 0 }
}

fn is_reader_gone() -> bool {
    let mut stdout = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: the structure is one, and it exists for the call.
    let polled = unsafe { libc::poll(&raw mut stdout, 1, 0) };
    polled > 0 && stdout.revents & (libc::POLLERR | libc::POLLHUP) != 0
}
