//! Finds the cause of LMDB's "Input/output error", which LMDB returns for every short write.

use std::path::Path;

use rumba_engine_api::units::show_bytes;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// More than LMDB writes at once (64 pages, `MDB_COMMIT_PAGES` in mdb.c), except for values on overflow pages. A device
/// with less free space may have cut a write short.
const AT_ONCE_BYTES: u64 = 1 << 20;

/// The cause of a short write.
pub(crate) enum Cause {
    /// The device is full.
    NoRoom,
    /// Another cause, with advice on what to check.
    Other(String),
}

/// Finds what may have cut a write short in a directory.
pub(crate) fn behind_short_write(dir: &Path) -> Cause {
    if !has_room(dir) {
        return Cause::NoRoom;
    }
    Cause::Other(match getrlimit(Resource::Fsize).current {
        Some(limit) => format!("a file may have {} here: raise `ulimit -f`", show_bytes(limit as f64)),
        None => "the device failed, or has less space than it reports; see the kernel's log (dmesg)".to_owned(),
    })
}

/// Whether the device has space for one of LMDB's writes. Less than one write counts as full, because other processes
/// may have freed space since LMDB's write failed.
fn has_room(dir: &Path) -> bool {
    if statvfs(dir).is_ok_and(|volume| volume.f_bavail * volume.f_frsize < AT_ONCE_BYTES) {
        return false;
    }
    // A quota shows only when a reservation exceeds it.
    !matches!(reserve(dir), Err(Errno::NOSPC | Errno::DQUOT))
}

/// Reserves space with an unnamed file, which disappears when it is closed.
fn reserve(dir: &Path) -> Result<(), Errno> {
    let file = open(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    fallocate(&file, FallocateFlags::empty(), 0, AT_ONCE_BYTES)
}
