//! leftovers: everything that a killed run may have left, on the host and on existing servers.

use std::path::{Path, PathBuf};

use rumba_engine_api::engine::EngineConfig;

use crate::limits;
use crate::provision::{DATA_DIRECTORY, Kind, Leftover, ProvisionError, ResourceRegistry};
use crate::registry::Registry;

/// The tables of a trial on an existing server, as the ledger lists them. The server alone knows which are left, so
/// [`clean`] queries it.
pub const EXISTING_SERVER: Kind = Kind {
    name: "existing-server",
    words: "what a trial may have created on the server",
    is_owned: |_, _| Ok(true),
    clean: |_, _| Ok(()),
};

/// Every kind of resource that a run makes and lists.
const KINDS: [Kind; 4] = [DATA_DIRECTORY, EXISTING_SERVER, limits::KINDS[0], limits::KINDS[1]];

/// The leftovers of killed runs, the newest first, then resources of runs that may still live out of sight.
///
/// # Errors
/// When the ledger cannot be read.
pub fn find(ledger: &ResourceRegistry) -> Result<Vec<Leftover>, ProvisionError> {
    ledger.leftovers(&KINDS)
}

/// Cleans leftovers, and at the end once more those that failed. A data directory on a volume that has lost its device
/// accepts no change; it goes with its volume.
pub fn clean_each<E>(
    found: &[Leftover],
    clean: impl Fn(&Leftover) -> Result<(), E>,
) -> Vec<(&Leftover, Result<(), E>)> {
    let all = found.iter().map(|leftover| (leftover, clean(leftover)));
    let (cleaned, failed): (Vec<_>, Vec<_>) = all.partition(|(_, result)| result.is_ok());
    let again = failed.into_iter().map(|(leftover, _)| (leftover, clean(leftover)));
    cleaned.into_iter().chain(again).collect()
}

/// Removes a leftover. The password of a server is where a run takes it from.
///
/// # Errors
/// The leftover that could not be removed, which stays listed, and a remedy.
pub fn clean(ledger: &ResourceRegistry, leftover: &Leftover, registry: &Registry) -> Result<(), String> {
    if leftover.is_of(&EXISTING_SERVER) {
        clean_server(&leftover.path, registry)?;
    }
    ledger.clean(leftover).map_err(|error| error.to_string())
}

/// Removes what a trial has left on an existing server.
///
/// # Errors
/// As [`clean`].
pub fn clean_server(entry: &Path, registry: &Registry) -> Result<(), String> {
    let text = entry.to_string_lossy();
    let (engine, server) = text.split_once(' ').unwrap_or_default();
    let engine = registry.engine(engine).ok_or_else(|| format!("this rumba has no engine `{engine}`"))?;
    engine.clean_server(server).map_err(|error| error.to_string())
}

/// The entry of an existing server: the engine and the DSN, which has no password.
pub fn existing_server(config: &EngineConfig) -> Option<PathBuf> {
    let server = config.server.as_ref().filter(|_| config.is_existing())?;
    Some(Path::new(&format!("{} {server}", config.engine)).to_owned())
}

/// Ledger entries that this version cannot read, each with its remedy. The resources that they list are not cleaned.
///
/// # Errors
/// When the ledger cannot be read.
pub fn unreadable(ledger: &ResourceRegistry) -> Result<Vec<ProvisionError>, ProvisionError> {
    ledger.unreadable(&KINDS)
}
