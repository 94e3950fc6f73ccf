//! What keeps a compiler from doing less, or more at once, than is written.

/// Keeps the compiler from moving accesses to memory across it, from dropping the loop that it is in, and from unrolling
/// that loop: an unrolled one would pass through memory faster than sysbench's, compiled by gcc, does.
#[inline(always)]
pub(crate) fn barrier() {
    // SAFETY: no instruction at all.
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
}
