//! The files of an instance.

use std::fs;
use std::path::Path;

use rumba_engine_api::error::{EngineError, Result};

/// Leaf pages written to the file. They are useless without the inner tree, which exists in memory only.
pub(crate) const DATA: &str = "data";
/// A consistent snapshot of the whole tree, from which the next instance opens.
pub(crate) const SNAPSHOT: &str = "snapshot";
/// Writes since the instance was opened.
pub(crate) const LOG: &str = "wal";

/// Maps a file-system error to an engine error that names the failed call.
pub(crate) fn failed(call: &'static str) -> impl Fn(std::io::Error) -> EngineError {
    move |error| EngineError::failed(call, error.to_string())
}

/// Removes a file that may be absent.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("unlink")(error)),
        _ => Ok(()),
    }
}
