//! What is behind LMDB's "Input/output error", which it makes of every write that fell short.

use std::path::Path;

use rumba_core::units::show_bytes;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, open, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// More than LMDB writes at once (64 pages, `MDB_COMMIT_PAGES` in mdb.c), a value of pages of its own apart: a device
/// with less may be what cut a write short.
const AT_ONCE_BYTES: u64 = 1 << 20;

/// What is behind it.
pub(crate) enum Cause {
    /// The device is full.
    NoRoom,
    /// Something else: what to look at.
    Other(String),
}

/// What may have cut a write short in a directory.
pub(crate) fn behind_short_write(dir: &Path) -> Cause {
    if !has_room(dir) {
        return Cause::NoRoom;
    }
    Cause::Other(match getrlimit(Resource::Fsize).current {
        Some(limit) => format!("a file may have {} here: raise `ulimit -f`", show_bytes(limit as f64)),
        None => "the device failed, or promises more than it has below: the kernel's log (dmesg) says which".to_owned(),
    })
}

/// Whether a write of LMDB's would find room beside its database. Less than a write is no room: others who use the
/// device may have given some of it back since LMDB found none.
fn has_room(dir: &Path) -> bool {
    if statvfs(dir).is_ok_and(|volume| volume.f_bavail * volume.f_frsize < AT_ONCE_BYTES) {
        return false;
    }
    // A quota shows only when it is asked for what it refuses.
    !matches!(reserve(dir), Err(Errno::NOSPC | Errno::DQUOT))
}

/// Room for a file without a name, which is gone when it is closed.
fn reserve(dir: &Path) -> Result<(), Errno> {
    let file = open(dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR)?;
    fallocate(&file, FallocateFlags::empty(), 0, AT_ONCE_BYTES)
}
