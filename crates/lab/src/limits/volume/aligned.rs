//! Memory that direct I/O accepts.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// A page, which every block device accepts.
const ALIGNMENT: usize = 4096;

/// Bytes that begin at a page boundary.
pub struct AlignedBuffer {
    start: *mut u8,
    layout: Layout,
}

impl AlignedBuffer {
    /// This number of zero bytes, at least one.
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).unwrap_or(Layout::new::<u8>());
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Self { start, layout }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the memory belongs to this value, is initialised, and has this length.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.start, self.layout) };
    }
}
