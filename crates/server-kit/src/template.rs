//! Templates of data directories: each takes a server seconds to create, so rumba creates it once, caches it, and
//! copies it.

use std::io;
use std::path::{Path, PathBuf};

use rumba_engine_api::error::{EngineError, Result};

use crate::cache::{self, Draft};
use crate::failure::full_or_failed;

/// Creates a data directory at `data` by copying a template, which is created first if it is missing. `name` is the
/// server's name for file names, and `key` contains everything that distinguishes the template from others. `make`
/// receives two empty directories: one for the data, and one for its log and temporary files.
///
/// # Errors
/// The error of `make`; the system's error; a full device.
pub fn provide(name: &str, key: &str, data: &Path, make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<()> {
    let template = template(name, key, make)?;
    cache::copy_tree(&template, data).map_err(|error| failed("copy of an empty data directory", &error))
}

fn template(name: &str, key: &str, make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<PathBuf> {
    let failed = |error: io::Error| failed("template of a data directory", &error);
    let place = cache::root()?.join("templates").join(format!("{name}-{:016x}", cache::number_of(key)));
    if place.is_dir() {
        return Ok(place);
    }
    let draft = Draft::new(&place).map_err(failed)?;
    // The log needs a separate directory, because the data directory must be empty when a server initializes it. If
    // this process is killed, the next draft finds and removes both.
    let adjacent = Draft::new(&place).map_err(failed)?;
    make(draft.path(), adjacent.path())?;
    draft.settle().map_err(failed)?;
    Ok(place)
}

fn failed(call: &'static str, error: &io::Error) -> EngineError {
    full_or_failed(call, error.to_string())
}
