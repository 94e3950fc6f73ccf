//! Detects files that share blocks with another file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP` (linux/fiemap.h): _IOWR('f', 11, struct fiemap).
const FIEMAP: libc::c_ulong = 0xC020_660B;
const FLAG_SYNC: u32 = 1;
const EXTENT_LAST: u32 = 1;
const EXTENT_SHARED: u32 = 0x2000;
/// Extents per request.
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

/// Whether any block of a file is shared with another file (a reflink, a snapshot, deduplication). A filesystem without
/// this request does not share blocks.
///
/// # Errors
/// When the request to the filesystem fails.
pub fn is_shared(file: &File) -> io::Result<bool> {
    has_shared(|map| {
        // SAFETY: the structure is laid out as fiemap.h has it, with room for `count` extents; it outlives the call.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as _, std::ptr::from_mut(map)) };
        if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}

/// Repeats the request until the filesystem has no more extents.
fn has_shared(mut fetch: impl FnMut(&mut Map) -> io::Result<()>) -> io::Result<bool> {
    let mut start = 0;
    loop {
        let count = EXTENTS as u32;
        let extents = [Extent::default(); EXTENTS];
        let mut map = Map { start, length: u64::MAX - start, flags: FLAG_SYNC, mapped: 0, count, reserved: 0, extents };
        if let Err(error) = fetch(&mut map) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(extents: u64, flags: impl Fn(u64) -> u32) -> io::Result<bool> {
        has_shared(|map| {
            let first = map.start / 4096;
            for (place, number) in (first..extents).take(EXTENTS).enumerate() {
                let last = if number + 1 == extents { EXTENT_LAST } else { 0 };
                let flags = flags(number) | last;
                map.extents[place] = Extent { logical: number * 4096, length: 4096, flags, ..Extent::default() };
                map.mapped += 1;
            }
            Ok(())
        })
    }

    #[test]
    fn shared_extent_is_found_at_any_position() {
        let encoded = 8; // FIEMAP_EXTENT_ENCODED, which is no sharing.
        assert!(!reported(200, |_| encoded).unwrap());
        for shared in [0, 63, 64, 130, 199] {
            assert!(
                reported(200, |number| if number == shared { EXTENT_SHARED | encoded } else { 0 }).unwrap(),
                "{shared}"
            );
        }
        assert!(!reported(0, |_| EXTENT_SHARED).unwrap(), "an empty file has no extents");
    }

    #[test]
    fn unsupported_extent_query_means_unshared_and_io_error_fails() {
        let failing = |code| has_shared(|_| Err(io::Error::from_raw_os_error(code)));
        assert!(!failing(libc::EOPNOTSUPP).unwrap() && !failing(libc::ENOTTY).unwrap());
        assert_eq!(failing(libc::EIO).unwrap_err().raw_os_error(), Some(libc::EIO));
    }
}
