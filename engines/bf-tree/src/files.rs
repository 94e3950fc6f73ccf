//! The files of an instance.

use std::fs;
use std::path::Path;

use rumba_core::error::EngineError;

/// Its leaves, as far as they are not in the cache alone; worth nothing without the tree that is in memory.
pub(crate) const DATA: &str = "data";
/// All of it as it was at one moment, from which it is opened.
pub(crate) const SNAPSHOT: &str = "snapshot";
/// What was written since the instance was opened.
pub(crate) const LOG: &str = "wal";

/// An error of the file system, in the words of what was done.
pub(crate) fn failed(call: &'static str) -> impl Fn(std::io::Error) -> EngineError {
    move |error| EngineError::failed(call, error.to_string())
}

/// Removes a file that may be absent.
pub(crate) fn remove(path: &Path) -> Result<(), EngineError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("unlink")(error)),
        _ => Ok(()),
    }
}
