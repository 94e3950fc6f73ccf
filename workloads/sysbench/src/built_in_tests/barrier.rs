//! Prevents the compiler from optimising away or unrolling the measured work.

/// Keeps the compiler from moving memory accesses across it, and from removing or unrolling the loop around it. An
/// unrolled loop would pass through memory faster than sysbench's, which gcc compiles.
#[inline(always)]
pub(crate) fn barrier() {
    // SAFETY: no instruction at all.
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
}
