//! `cpu`: an event looks for primes by trial division in 64 bits.

use std::hint::black_box;

use crate::built_in_tests::failure::Failure;
use crate::built_in_tests::task::Task;

/// Looks for primes.
pub(crate) struct Cpu {
    pub(crate) max_prime: u32,
}

impl Task for Cpu {
    type Event = ();

    fn next(&mut self) -> Option<()> {
        Some(())
    }

    fn execute(&mut self, (): ()) -> Result<(), Failure> {
        black_box(primes(black_box(self.max_prime)));
        Ok(())
    }
}

/// The number of odd primes below a number. As in sysbench, even numbers are tried too; only 2 is left out.
fn primes(below: u32) -> u64 {
    let mut primes = 0;
    for candidate in 3..u64::from(below) {
        let root = (candidate as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root {
            if remainder(candidate, divisor) == 0 {
                break;
            }
            divisor += 1;
        }
        primes += u64::from(divisor as f64 > root);
    }
    primes
}

/// The remainder by a division of 64 bits. LLVM divides in 32 bits if both numbers are small; gcc, which compiles
/// sysbench, does not. On processors with slow 64-bit division, that alone would make this test several times faster.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    debug_assert_ne!(divisor, 0);
    let remainder;
    // SAFETY: the divisor is 2 or more, and with 0 above it the quotient fits: nothing traps.
    unsafe {
        std::arch::asm!(
            "div {divisor}",
            divisor = in(reg) divisor,
            inout("rax") number => _,
            inout("rdx") 0_u64 => remainder,
            options(pure, nomem, nostack)
        );
    }
    remainder
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn remainder(number: u64, divisor: u64) -> u64 {
    number % divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    /// π(1000) = 168 and π(10000) = 1229, including 2.
    #[test]
    fn all_odd_primes_are_found() {
        for (below, odd) in [(1, 0), (3, 0), (4, 1), (10, 3), (1000, 167), (10_000, 1228)] {
            assert_eq!(primes(below), odd, "below {below}");
        }
        assert_eq!(remainder(u64::MAX, 10), 5);
    }
}
