//! Memory that begins with a page.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// As much as sysbench takes of huge pages at once: no less than one of them, on most machines.
const HUGE_PAGE_BYTES: usize = 4 << 20;

/// Pages that are zero, and there: none is made at its first access.
pub(crate) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages belong to this value alone; how threads share what is in them is up to who uses the pointer.
unsafe impl Send for Pages {}
// SAFETY: the same.
unsafe impl Sync for Pages {}

impl Pages {
    /// So many bytes or more, from the pool of huge pages if asked for.
    pub(crate) fn new(bytes: usize, is_huge: bool) -> io::Result<Self> {
        let (bytes, flags) = match is_huge {
            true => (bytes.next_multiple_of(HUGE_PAGE_BYTES), MapFlags::PRIVATE | MapFlags::HUGETLB),
            false => (bytes, MapFlags::PRIVATE),
        };
        // SAFETY: new memory, wherever the system finds room for it.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // Until it is written, all of it is one and the same page of zeros, which is read from the nearest cache.
        // SAFETY: it is as long, and nobody else knows it yet.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self { start, bytes })
    }

    /// Where it begins.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its first bytes, of one who shares it with nobody.
    pub(crate) fn first(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.bytes);
        // SAFETY: it is as long, has been written, and the borrow is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start(), bytes) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing borrows it any more. That it cannot be given back is nothing to be done about.
        let _ = unsafe { munmap(self.start().cast(), self.bytes) };
    }
}
