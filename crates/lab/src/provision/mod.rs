//! Managed resources: everything that a run makes on the host names its owner. Foreign data is therefore never touched,
//! and nothing is left behind, even after a kill -9.
//!
//! A data directory has a marker file, and the user's [`ResourceRegistry`] lists all managed resources. Both name the owning
//! process. Servers that a trial has started carry its mark in their environment.
//!
//! Other users may have forged this wherever they can write. A marker or entry therefore counts only where no user but
//! this one and root can have written it (`trust`). It is reached and undone by descriptors (`checked_dir`).

mod checked_dir;
mod data_dir;
mod error;
mod ledger;
mod marker;
mod owner;
mod stray_processes;
#[cfg(test)]
pub(crate) mod tests;
mod trust;

pub use data_dir::{DataDir, KIND as DATA_DIRECTORY};
pub use error::ProvisionError;
pub use ledger::{Kind, Leftover, Registration, ResourceRegistry};
pub use owner::{Life, NO_TRIAL, Owner, ProcessId};
pub use stray_processes::VARIABLE as MARK_VARIABLE;

use std::path::Path;

use rumba_engine_api::printable::fits_on_a_line;

pub(crate) use checked_dir::{CheckedDir, PASSABLE, remove_empty};
pub(crate) use data_dir::{lock, take};
pub(crate) use error::Doing;
pub(crate) use marker::{NAME as MARKER, OwnerTag};
pub(crate) use trust::Objection;

/// Refuses a path with control characters: it would appear in errors, tables and the ledger.
///
/// # Errors
/// [`ProvisionError::Unshowable`].
pub fn refuse_unshowable(path: &Path) -> Result<(), ProvisionError> {
    match fits_on_a_line(&path.to_string_lossy()) {
        true => Ok(()),
        false => Err(ProvisionError::Unshowable { path: path.to_owned() }),
    }
}

/// The bytes that this user may still fill on the filesystem of a path, which need not exist yet.
///
/// # Errors
/// When the filesystem of its nearest ancestor cannot be queried.
pub fn free_bytes(path: &Path) -> Result<u64, ProvisionError> {
    let absolute = std::path::absolute(path).doing("find", path)?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let space = rustix::fs::statvfs(existing).map_err(Into::into).doing("ask for the free space of", existing)?;
    Ok(space.f_bavail * space.f_frsize)
}
