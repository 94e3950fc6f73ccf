//! Counts as bytes: numbers of variable length (LEB128), and of each histogram the buckets that are not empty. The bytes
//! hold every count exactly.

use crate::run::buckets::BUCKETS;
use crate::run::cells::{Counts, KindCounts, Times};

/// The most bytes of a number of 64 bits.
const MOST_BYTES: u32 = 10;

/// The bytes of counts, without their conflicts.
pub fn encode(counts: &Counts) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4096);
    put(&mut bytes, counts.kinds.len() as u64);
    put(&mut bytes, counts.receive_late_ns);
    for kind in &counts.kinds {
        let KindCounts { count, errors, errors_within, retries, rows, late_ns, statements, service, response } = kind;
        [count, errors, errors_within, retries, rows, late_ns].into_iter().for_each(|number| put(&mut bytes, *number));
        statements.iter().for_each(|number| put(&mut bytes, *number));
        [service, response].into_iter().for_each(|times| put_times(&mut bytes, times));
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Sum, largest, the number of buckets that are not empty, and for each of them its distance from the one before and
/// its count.
fn put_times(bytes: &mut Vec<u8>, times: &Times) {
    put(bytes, times.sum_ns);
    put(bytes, times.max_ns);
    let used = || times.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    put(bytes, used().count() as u64);
    let mut before = 0;
    for (bucket, count) in used() {
        put(bytes, (bucket - before) as u64);
        put(bytes, *count);
        before = bucket;
    }
}

/// The counts of this many types of operations.
///
/// # Errors
/// Bytes that are no such counts.
pub fn decode(bytes: &[u8], kinds: usize) -> Result<Counts, String> {
    let mut rest = Rest(bytes);
    let found = rest.number()?;
    if found != kinds as u64 {
        return Err(format!("counts of {found} types of operations instead of {kinds}"));
    }
    let mut counts = Counts::new(kinds);
    counts.receive_late_ns = rest.number()?;
    for kind in &mut counts.kinds {
        let KindCounts { count, errors, errors_within, retries, rows, late_ns, statements, service, response } = kind;
        for number in [count, errors, errors_within, retries, rows, late_ns].into_iter().chain(statements) {
            *number = rest.number()?;
        }
        rest.times(service)?;
        rest.times(response)?;
    }
    if rest.0.is_empty() { Ok(counts) } else { Err(format!("{} bytes follow the counts", rest.0.len())) }
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for place in 0..MOST_BYTES {
            let (byte, rest) = self.0.split_first().ok_or("the counts are cut off")?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("a number in the counts is too long".to_owned())
    }

    fn times(&mut self, times: &mut Times) -> Result<(), String> {
        (times.sum_ns, times.max_ns) = (self.number()?, self.number()?);
        let (used, mut bucket) = (self.number()?, 0);
        for _ in 0..used {
            bucket += usize::try_from(self.number()?).ok().filter(|gap| *gap < BUCKETS).unwrap_or(BUCKETS);
            let count = self.number()?;
            *times.buckets.get_mut(bucket).ok_or("a time in the counts is too large")? = count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use proptest::prelude::*;
    use rumba_engine_api::worker::Op;

    use super::*;
    use crate::run::cells::{Cells, Collector};

    const KINDS: usize = 3;

    /// The counts of operations: their type, time, and whether they failed.
    fn counts(ops: &[(usize, u64, bool)]) -> Counts {
        let cells = Arc::new(Cells::new(KINDS));
        for (kind, ns, failed) in ops {
            cells.record(*kind, Op { rows: 1, retries: 1, failed: *failed }, *ns, ns.saturating_mul(2), *ns / 7);
        }
        Collector::new(vec![cells], KINDS).collect()
    }

    proptest! {
        /// A fleet's counts and histograms are those of one process that served all its operations.
        #[test]
        fn counts_of_three_hosts_add_up_to_those_of_one(
            ops in prop::collection::vec((0..KINDS, prop::num::u64::ANY.prop_map(|ns| ns >> 20), any::<bool>()), 0..300),
        ) {
            let mut merged = Counts::new(KINDS);
            for host in 0..3 {
                let of_host: Vec<_> = ops.iter().skip(host).step_by(3).copied().collect();
                merged.merge(&decode(&encode(&counts(&of_host)), KINDS).unwrap());
            }
            prop_assert_eq!(merged, counts(&ops));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, KINDS);
        }
    }

    /// The frames of a second of 200 hosts are small, and each is decoded in one pass.
    #[test]
    fn counts_of_200_hosts_are_small() {
        let spread = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 42;
        let ops: Vec<_> = (0..2_000).map(|number| (number as usize % KINDS, 100_000 + spread(number), false)).collect();
        let frame = encode(&counts(&ops));
        let mut merged = Counts::new(KINDS);
        (0..200).for_each(|_| merged.merge(&decode(&frame, KINDS).unwrap()));
        assert_eq!(merged.ops(), 200 * 2_000);
        assert!(frame.len() < 16 << 10, "{} bytes", frame.len());
    }

    #[test]
    fn damaged_counts_are_refused() {
        let whole = encode(&counts(&[(0, 5_000, false), (2, 1 << 50, true)]));
        assert!(decode(&whole[..whole.len() - 1], KINDS).unwrap_err().contains("cut off"));
        assert!(decode(&[whole.clone(), vec![0]].concat(), KINDS).unwrap_err().contains("1 bytes follow"));
        assert!(decode(&whole, KINDS + 1).unwrap_err().contains("3 types of operations instead of 4"));
        assert!(decode(&[0xff; 11], KINDS).unwrap_err().contains("too long"));
    }
}
