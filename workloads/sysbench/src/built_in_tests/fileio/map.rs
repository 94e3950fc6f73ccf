//! A file as memory.

use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// A file that is mapped in all its length.
pub(super) struct Map {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: threads copy to and from it as other processes may, too. Only `--validate` relies on its content, and keeps
// threads from one another's blocks.
unsafe impl Send for Map {}
// SAFETY: the same.
unsafe impl Sync for Map {}

impl Map {
    /// Maps this many bytes, which the file has.
    pub(super) fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let bytes = usize::try_from(bytes).map_err(io::Error::other)?;
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new memory, at an address that the system chooses.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, flags, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { start, bytes })
    }

    /// Copies out of it.
    pub(super) fn read(&self, to: &mut [u8], offset: u64) {
        let from = self.at(offset, to.len());
        // SAFETY: both are equally long, and a buffer is not a file.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    /// Copies into it.
    pub(super) fn write(&self, from: &[u8], offset: u64) {
        let to = self.at(offset, from.len());
        // SAFETY: the same.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// Writes changed pages to the device.
    pub(super) fn sync(&self) -> io::Result<()> {
        // SAFETY: the whole of the mapping.
        Ok(unsafe { msync(self.start.as_ptr().cast(), self.bytes, MsyncFlags::SYNC | MsyncFlags::INVALIDATE) }?)
    }

    fn at(&self, offset: u64, bytes: usize) -> *mut u8 {
        let offset = offset as usize;
        assert!(offset <= self.bytes && bytes <= self.bytes - offset);
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: nothing borrows it any more. An error of the unmapping is ignored, because there is no remedy.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
