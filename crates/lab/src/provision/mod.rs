//! Managed things: whatever a run makes on the host carries its owner's name,
//! so that nothing foreign is ever touched and nothing is left behind, even
//! after a kill -9.
//!
//! A data directory carries a marker file; the [`Ledger`] of the user lists
//! everything that is managed. Both name the owning process. Servers that a trial
//! has started carry its mark in their environment.
//!
//! Other users may have written all of that, where they may write: so it counts
//! only where this user or root alone can have (`trust`), and is reached and undone
//! by descriptors (`checked_dir`).

mod checked_dir;
mod control_group;
mod data_dir;
mod error;
mod ledger;
mod loop_device;
mod marker;
mod owner;
mod tenants;
#[cfg(test)]
mod tests;
mod trust;
mod volume;

pub use control_group::ControlGroup;
pub use data_dir::DataDir;
pub use error::ProvisionError;
pub use ledger::{Ledger, Leftover, Registration, Thing};
pub use loop_device::{CONTROL as LOOP_CONTROL, LoopDevice};
pub use owner::{Life, Owner, ProcessId};
pub use tenants::VARIABLE as MARK_VARIABLE;
pub use volume::{Layout, THROTTLES, Throttled, VolumeDir};

use std::path::Path;

pub(crate) use error::Doing;

/// The bytes that this user may still fill on the filesystem of a path, which
/// need not exist yet.
///
/// # Errors
/// When no ancestor of the path can be asked.
pub fn free_bytes(path: &Path) -> Result<u64, ProvisionError> {
    let absolute = std::path::absolute(path).doing("find", path)?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let space = rustix::fs::statvfs(existing).map_err(Into::into).doing("ask for the free space of", existing)?;
    Ok(space.f_bavail * space.f_frsize)
}
