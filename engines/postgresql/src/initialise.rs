//! Making a data directory, and the cache of data directories already made.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rumba_core::error::EngineError;
use rumba_server_kit::cache::{self, Draft};
use rumba_server_kit::failure::full_or_failed;
use rumba_server_kit::identity::Identity;
use rumba_server_kit::process::dies_with_us;

use crate::failure::LOG_WORDS;
use crate::launch::{SIGNALS, SUPERUSER};
use crate::software::{Software, command};

/// Changes with the recipe below, so that templates made by older ones are not used.
const RECIPE: &str = "\nrecipe 1";

/// Puts a new data directory at `data`, copied from one that was made before
/// with the same server and in the same way if there is one.
///
/// # Errors
/// What `initdb` said; a full device.
pub fn provide(
    software: &Software,
    checksums: Option<bool>,
    identity: Option<&Identity>,
    data: &Path,
) -> Result<(), EngineError> {
    let template = template(software, checksums, identity)?;
    cache::copy_tree(&template, data).map_err(|error| failed("copy of an empty data directory", &error))
}

fn failed(call: &'static str, error: &io::Error) -> EngineError {
    full_or_failed(call, error.to_string())
}

fn template(software: &Software, checksums: Option<bool>, identity: Option<&Identity>) -> Result<PathBuf, EngineError> {
    let failed = |error: io::Error| failed("template of a data directory", &error);
    let key = format!("{}\n{checksums:?}{RECIPE}", software.build());
    let name = format!("{}-{:016x}", software.short_name(), cache::number_of(&key));
    let place = cache::root()?.join("templates").join(name);
    if place.is_dir() {
        return Ok(place);
    }
    let draft = Draft::new(&place).map_err(failed)?;
    if let Some(identity) = identity {
        identity.own(draft.path()).map_err(failed)?;
    }
    // The log is beside the data directory, which has to be empty; as that one, it is found and removed by the next draft
    // if this process is killed.
    let beside = Draft::new(&place).map_err(failed)?;
    initialise(software, checksums, identity, draft.path(), &beside.path().join("log"))?;
    draft.settle().map_err(failed)?;
    Ok(place)
}

/// A cluster in which every byte but zero is a character, and text sorts by its bytes, as the published runs have it.
fn initialise(
    software: &Software,
    checksums: Option<bool>,
    identity: Option<&Identity>,
    data: &Path,
    log: &Path,
) -> Result<(), EngineError> {
    let failed = |error: io::Error| failed("initdb", &error);
    let mut command = command(&software.initdb);
    command.args(["--no-sync", "--auth=peer", "--encoding=LATIN1", "--locale=C", "--username", SUPERUSER]);
    match checksums {
        Some(true) => _ = command.arg("--data-checksums"),
        // Before 18 there are none unless they are asked for, and no way to say so.
        Some(false) if software.version.0 >= 18 => _ = command.arg("--no-data-checksums"),
        Some(false) | None => {}
    }
    command.arg("--pgdata").arg(data);
    let file = File::create(log).map_err(failed)?;
    command.stdout(file.try_clone().map_err(failed)?).stderr(file);
    if let Some(identity) = identity {
        identity.take_on(&mut command);
    }
    dies_with_us(&mut command, SIGNALS.abort);
    let status = command.status().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let explained = LOG_WORDS.explain(&text, &[]);
    Err(full_or_failed("initdb", format!("{} ended with {status}; {explained}", software.initdb.display())))
}
