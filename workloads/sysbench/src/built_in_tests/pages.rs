//! Memory that begins with a page.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// The unit in which sysbench requests huge pages: at least one of them, on most machines.
const HUGE_PAGE_BYTES: usize = 4 << 20;

/// Zeroed pages that already exist, so that no first access creates one.
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to this value alone; the user of the pointer decides how threads share their content.
unsafe impl Send for Pages {}
// SAFETY: the same.
unsafe impl Sync for Pages {}

impl Pages {
    /// This many bytes or more, on request from the pool of huge pages.
    pub(crate) fn new(bytes: usize, is_huge: bool) -> io::Result<Self> {
        let (bytes, flags) = match is_huge {
            true => (bytes.next_multiple_of(HUGE_PAGE_BYTES), MapFlags::PRIVATE | MapFlags::HUGETLB),
            false => (bytes, MapFlags::PRIVATE),
        };
        // SAFETY: new memory, at an address that the system chooses.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // Until it is written, all of it is one and the same page of zeros, which is read from the nearest cache.
        // SAFETY: it is as long, and has no other user yet.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, bytes })
    }

    /// The start address.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The first bytes, for exclusive use.
    pub(crate) fn first(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.bytes);
        // SAFETY: it is as long, has been written, and the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start(), bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing borrows it any more. An error of the unmapping is ignored, because there is no remedy.
        let _ = unsafe { munmap(self.start().cast(), self.bytes) };
    }
}
