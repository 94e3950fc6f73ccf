//! The histogram's layout: HdrHistogram's own, two significant digits, in nanoseconds. The counts are therefore written
//! to standard logs without loss.
//!
//! Values below 256 ns have a bucket each. Above, every power of two is cut into 128 buckets, so that a value is known
//! to better than 0.8%.

use hdrhistogram::Histogram;
use rumba_engine_api::workload::ResponseLimit;

/// log2 of the buckets per power of two.
const HALF_BITS: u32 = 7;
/// Values above this are counted in the last bucket: 2^40 ns, about 18 minutes.
pub const LARGEST_NS: u64 = (1 << 40) - 1;
pub const BUCKETS: usize = index(LARGEST_NS) + 1;

/// The bucket of a value in nanoseconds.
#[inline]
pub const fn index(ns: u64) -> usize {
    let ns = if ns > LARGEST_NS { LARGEST_NS } else { ns };
    // The power of two above the linear part; `| 255` keeps small values in it.
    let exponent = (63 - HALF_BITS) - (ns | 255).leading_zeros();
    ((exponent as usize) << HALF_BITS) + (ns >> exponent) as usize
}

/// The smallest value of a bucket, nanoseconds.
pub const fn lowest(index: usize) -> u64 {
    let (octave, rest) = (index >> HALF_BITS, index & ((1 << HALF_BITS) - 1));
    if octave < 2 {
        return index as u64;
    }
    ((rest + (1 << HALF_BITS)) as u64) << (octave - 1)
}

/// The longest time within a limit, nanoseconds, capped at the last bucket.
pub fn limit_ns(limit: &ResponseLimit) -> u64 {
    ((limit.seconds * 1e9) as u64).min(LARGEST_NS)
}

/// An empty standard histogram of the same layout.
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LARGEST_NS, 2).expect("the bounds and digits are constants that the crate accepts")
}

pub fn to_histogram(counts: &[u64]) -> Histogram<u64> {
    let mut histogram = empty();
    for (index, &count) in counts.iter().enumerate() {
        if count > 0 {
            // In range by construction; the saturating call has no error to handle.
            histogram.saturating_record_n(lowest(index), count);
        }
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap_or_overlap() {
        for bucket in 0..BUCKETS {
            assert_eq!(index(lowest(bucket)), bucket);
            if bucket > 0 {
                assert_eq!(index(lowest(bucket) - 1), bucket - 1);
            }
        }
    }

    #[test]
    fn the_layout_is_that_of_the_standard_histogram() {
        let histogram = empty();
        for bucket in 0..BUCKETS {
            let low = lowest(bucket);
            assert_eq!(histogram.lowest_equivalent(low), low, "bucket {bucket}");
        }
        let mut counts = vec![0; BUCKETS];
        counts[index(1_234_567)] = 3;
        assert_eq!(to_histogram(&counts).count_between(1_220_000, 1_240_000), 3);
    }
}
