//! Data directories that a server takes seconds to make: each is made once, kept in the cache, and copied from there.

use std::io;
use std::path::{Path, PathBuf};

use rumba_core::error::EngineError;

use crate::cache::{self, Draft};
use crate::failure::full_or_failed;

/// Puts a new data directory at `data`, a copy of one that was made before if there is one. `name` is its server's in the
/// names of files, and `key` says all that makes it another than others. `make` is told two empty directories: the one to
/// make it in, and one for its log and other files of the moment.
///
/// # Errors
/// That of `make`; the system's words; a full device.
pub fn provide(
    name: &str,
    key: &str,
    data: &Path,
    make: impl FnOnce(&Path, &Path) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let template = template(name, key, make)?;
    cache::copy_tree(&template, data).map_err(|error| failed("copy of an empty data directory", &error))
}

fn template(
    name: &str,
    key: &str,
    make: impl FnOnce(&Path, &Path) -> Result<(), EngineError>,
) -> Result<PathBuf, EngineError> {
    let failed = |error: io::Error| failed("template of a data directory", &error);
    let place = cache::root()?.join("templates").join(format!("{name}-{:016x}", cache::number_of(key)));
    if place.is_dir() {
        return Ok(place);
    }
    let draft = Draft::new(&place).map_err(failed)?;
    // The log is beside the data directory, which has to be empty when a server makes its own; as that one, it is found
    // and removed by the next draft if this process is killed.
    let beside = Draft::new(&place).map_err(failed)?;
    make(draft.path(), beside.path())?;
    draft.settle().map_err(failed)?;
    Ok(place)
}

fn failed(call: &'static str, error: &io::Error) -> EngineError {
    full_or_failed(call, error.to_string())
}
