//! Whether a file has blocks that are also another file's.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP` (linux/fiemap.h): _IOWR('f', 11, struct fiemap).
const FIEMAP: libc::c_ulong = 0xC020_660B;
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 1;
const EXTENT_SHARED: u32 = 0x2000;
/// Extents asked for at once.
const EXTENTS: usize = 64;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// Whether any block of a file is shared with another file (a reflink, a
/// snapshot, deduplication). A filesystem that cannot tell has nothing to share.
///
/// # Errors
/// When the filesystem cannot be asked.
pub fn is_shared(file: &File) -> io::Result<bool> {
    let mut start = 0;
    loop {
        let count = EXTENTS as u32;
        let extents = [Extent::default(); EXTENTS];
        let mut map = Map { start, length: u64::MAX - start, flags: FLAG_SYNC, mapped: 0, count, reserved: 0, extents };
        // SAFETY: the structure is laid out as fiemap.h has it, with room for `count` extents; it outlives the call.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, &raw mut map) };
        if answer != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOTTY) => Ok(false),
                _ => Err(error),
            };
        }
        let extents = &map.extents[..map.mapped.min(count) as usize];
        if extents.iter().any(|extent| extent.flags & EXTENT_SHARED != 0) {
            return Ok(true);
        }
        match extents.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => start = last.logical + last.length,
            _ => return Ok(false),
        }
    }
}
