//! Creates data directories and caches them as templates.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rumba_engine_api::error::Result;
use rumba_server_kit::failure::full_or_failed;
use rumba_server_kit::identity::Identity;
use rumba_server_kit::process::dies_with_us;
use rumba_server_kit::template;

use crate::failure::LOG_WORDS;
use crate::launch::{SIGNALS, SUPERUSER};
use crate::software::{Software, command};

/// Version of the recipe below; change it so that older templates are not used.
const RECIPE: &str = "\nrecipe 1";

/// Creates a data directory at `data`. If possible it copies a template made earlier with the same server and options.
///
/// # Errors
/// The output of `initdb`; a full device.
pub fn provide(software: &Software, checksums: Option<bool>, identity: Option<&Identity>, data: &Path) -> Result<()> {
    let key = format!("{}\n{checksums:?}{RECIPE}", software.build());
    let make = |data: &Path, adjacent: &Path| initialise(software, checksums, identity, data, &adjacent.join("log"));
    template::provide(&software.short_name(), &key, data, make)
}

/// Creates a cluster in which every byte except zero is a character and text sorts by its bytes, as in the published
/// runs.
fn initialise(
    software: &Software,
    checksums: Option<bool>,
    identity: Option<&Identity>,
    data: &Path,
    log: &Path,
) -> Result<()> {
    let failed = |error: io::Error| full_or_failed("initdb", error.to_string());
    if let Some(identity) = identity {
        identity.own(data).map_err(failed)?;
    }
    let mut command = command(&software.initdb);
    command.args(["--no-sync", "--auth=peer", "--encoding=LATIN1", "--locale=C", "--username", SUPERUSER]);
    match checksums {
        Some(true) => _ = command.arg("--data-checksums"),
        // Before release 18 checksums are off by default, and there is no option to disable them.
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
