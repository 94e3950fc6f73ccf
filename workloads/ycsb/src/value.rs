//! The content of fields: printable bytes of six random bits each, as in YCSB, which identify their author.
//!
//! A value of [`LONG`] bytes or more begins with a header: the number of its record, its field, its writer, and the
//! number of the writer's writes. Its length and all later bytes are drawn from the header, so a reader can generate
//! the value again and compare. The header is scattered by the key and the field, so that it looks and compresses like
//! the rest.
//!
//! A shorter value has no room for a header, and follows from its key and field alone.

use rumba_workload_kit::stream_seed;

use crate::keys::scattered;
use crate::lengths::Lengths;

/// The bytes of a header, of six bits each, for the record, the field, the writer and the version.
const PARTS: [usize; 4] = [8, 2, 4, 7];
/// The bytes that identify a value's author.
const HEADER: usize = 8 + 2 + 4 + 7;
/// The minimum length of a value with a header: some bytes must follow, to prove it.
pub const LONG: usize = HEADER + 4;
/// The lowest of the 64 printable bytes.
const LOWEST: u64 = 0x20;
const SIX_BITS: u64 = 0x3F;

/// The place in a value's stream that its length is drawn from.
const LENGTH: u64 = u64::MAX;
/// Separates the streams of headers from those of values.
const MASK: u64 = 0x6D61_736B;

/// The author of a value: the writer, and the position in the order of that writer's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Author {
    /// The number of the writer; 0 for all loaders.
    pub writer: u32,
    /// The number of the write; 0 for loaded values.
    pub version: u64,
}

impl Author {
    /// Any loader: loaded values depend on the record and the field alone.
    pub const LOADER: Author = Author { writer: 0, version: 0 };
}

/// The record that a value is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its number.
    pub record: u64,
    /// The scattered number, which its key shows in any form.
    scatter: u64,
}

impl Owner {
    #[inline]
    pub fn of(record: u64) -> Self {
        Self { record, scatter: scattered(record) }
    }
}

fn mask(scatter: u64, field: usize) -> u64 {
    stream_seed(scatter ^ MASK, field as u64)
}

/// The seed of a value without room for a header.
fn short_seed(scatter: u64, field: usize) -> u64 {
    stream_seed(!mask(scatter, field), 0)
}

fn seed(scatter: u64, field: usize, author: Author) -> u64 {
    stream_seed(stream_seed(stream_seed(scatter, field as u64), u64::from(author.writer)), author.version)
}

/// Appends the value that this writer writes to a field of a record.
#[inline]
pub fn put_value(out: &mut Vec<u8>, lengths: &Lengths, owner: Owner, field: usize, author: Author) {
    let seed = seed(owner.scatter, field, author);
    let length = lengths.draw(stream_seed(seed, LENGTH));
    let start = out.len();
    if length < LONG {
        fill(out, short_seed(owner.scatter, field), length);
        return;
    }
    fill(out, seed, length);
    let header = header(owner, field, author);
    out[start..start + HEADER].copy_from_slice(&header);
}

/// Appends this many bytes of a stream.
#[inline]
fn fill(out: &mut Vec<u8>, seed: u64, length: usize) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let start = out.len();
    out.resize(start + length, 0);
    for (chunk, word) in out[start..].chunks_mut(8).zip(0..) {
        let bytes = (stream_seed(seed, word) & (EACH * SIX_BITS)) + EACH * LOWEST;
        chunk.copy_from_slice(&bytes.to_le_bytes()[..chunk.len()]);
    }
}

#[inline]
fn header(owner: Owner, field: usize, author: Author) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let mask = mask(owner.scatter, field);
    let parts = [owner.record, field as u64, u64::from(author.writer), author.version];
    let mut at = 0;
    for (mut rest, length) in parts.into_iter().zip(PARTS) {
        for _ in 0..length {
            header[at] = ((rest & SIX_BITS ^ mask_at(mask, at)) + LOWEST) as u8;
            rest >>= 6;
            at += 1;
        }
    }
    header
}

/// Six bits of a mask for a byte of the header.
#[inline]
fn mask_at(mask: u64, byte: usize) -> u64 {
    mask.rotate_right(byte as u32 * 11) & SIX_BITS
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The exact value that this writer wrote to this field of the record with this number.
    By(u64, Author),
    /// A value that is too short for an author, and valid for this field.
    Short,
    /// A value that no client wrote to this field.
    Foreign,
}

/// Compares a value with the one that its author must have written there; `scatter` is the record's scattered number,
/// from its key.
pub fn reported(value: &[u8], lengths: &Lengths, scatter: u64, field: usize, scratch: &mut Vec<u8>) -> ValueOrigin {
    scratch.clear();
    if value.len() < LONG {
        fill(scratch, short_seed(scatter, field), value.len());
        let (least, most) = lengths.bounds();
        let fits = (least..=most).contains(&value.len()) && scratch == value;
        return if fits { ValueOrigin::Short } else { ValueOrigin::Foreign };
    }
    let [record, _, writer, version] = read_header(value, mask(scatter, field));
    let (owner, author) = (Owner::of(record), Author { writer: writer as u32, version });
    if owner.scatter != scatter {
        return ValueOrigin::Foreign;
    }
    put_value(scratch, lengths, owner, field, author);
    if scratch == value { ValueOrigin::By(record, author) } else { ValueOrigin::Foreign }
}

fn read_header(value: &[u8], mask: u64) -> [u64; 4] {
    let mut end = 0;
    PARTS.map(|length| {
        let start = end;
        end += length;
        (start..end).rev().fold(0, |number, at| {
            let byte = value.get(at).copied().unwrap_or_default();
            number << 6 | (u64::from(byte).wrapping_sub(LOWEST) & SIX_BITS) ^ mask_at(mask, at)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lengths::Histogram;
    use crate::zipf::Zipf;

    const RECORD: u64 = 123_456_789;
    const FIELD: usize = 7;
    const AUTHOR: Author = Author { writer: 4711, version: 987_654_321 };

    fn value(lengths: &Lengths, record: u64, field: usize, author: Author) -> Vec<u8> {
        let mut value = Vec::new();
        put_value(&mut value, lengths, Owner::of(record), field, author);
        value
    }

    fn lengths() -> [Lengths; 4] {
        let given = Histogram::parse("10:1,30:2,90:3", 100).expect("it is one");
        let zipfian = Lengths::Zipfian(1, 100, Zipf::new(100));
        [Lengths::Constant(100), Lengths::Uniform(1, 100), zipfian, Lengths::Histogram(std::sync::Arc::new(given))]
    }

    #[test]
    fn value_identifies_its_writer_and_key_and_others_are_rejected() {
        let mut scratch = Vec::new();
        let mut reported = |value: &[u8], lengths: &Lengths, record, field| {
            super::reported(value, lengths, scattered(record), field, &mut scratch)
        };
        for lengths in lengths() {
            for version in 0..200 {
                let author = Author { version, ..AUTHOR };
                let mut value = value(&lengths, RECORD, FIELD, author);
                let expected = if value.len() < LONG { ValueOrigin::Short } else { ValueOrigin::By(RECORD, author) };
                assert_eq!(reported(&value, &lengths, RECORD, FIELD), expected);
                // In another record, in another field, with a byte less, with a changed byte.
                if value.len() > 4 {
                    assert_eq!(reported(&value, &lengths, 5, FIELD), ValueOrigin::Foreign);
                    assert_eq!(reported(&value, &lengths, RECORD, FIELD + 1), ValueOrigin::Foreign);
                }
                if value.len() > LONG {
                    assert_eq!(reported(&value[..value.len() - 1], &lengths, RECORD, FIELD), ValueOrigin::Foreign);
                }
                for at in 0..value.len() {
                    value[at] ^= 1;
                    assert_eq!(reported(&value, &lengths, RECORD, FIELD), ValueOrigin::Foreign, "byte {at}");
                    value[at] ^= 1;
                }
            }
        }
    }

    #[test]
    fn bytes_are_printable_and_all_64_as_often() {
        let mut counts = [0.0_f64; 64];
        let values = (0..2000).flat_map(|record| value(&lengths()[0], record, 0, AUTHOR));
        let mut all = 0.0;
        for byte in values {
            counts[usize::from(byte - 0x20)] += 1.0;
            all += 1.0;
        }
        let expected = all / 64.0;
        let statistic: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // With 63 degrees of freedom, the statistic exceeds 104 once in a thousand times.
        assert!(statistic < 104.0, "{statistic}");
    }

    #[test]
    fn lengths_follow_their_distribution() {
        const DRAWS: u64 = 200_000;
        let drawn = |lengths: &Lengths| -> Vec<usize> {
            let seeds = (0..DRAWS).map(|version| seed(RECORD, FIELD, Author { version, ..AUTHOR }));
            seeds.map(|seed| lengths.draw(stream_seed(seed, LENGTH))).collect()
        };
        for lengths in lengths() {
            let all = drawn(&lengths);
            let (least, most) = lengths.bounds();
            assert!(all.iter().all(|length| (least..=most).contains(length)));
            let mean = all.iter().sum::<usize>() as f64 / DRAWS as f64;
            // The deviation of a mean is at most 50 / sqrt(200000) = 0.11; four of them.
            assert!((mean - lengths.mean()).abs() < 0.45, "{lengths:?}: {mean}");
        }
        let mut counts = [0.0_f64; 100];
        drawn(&lengths()[1]).into_iter().for_each(|length| counts[length - 1] += 1.0);
        let expected = DRAWS as f64 / 100.0;
        let statistic: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        // With 99 degrees of freedom, the statistic exceeds 149 once in a thousand times.
        assert!(statistic < 149.0, "{statistic}");
    }

    #[test]
    fn loaded_values_depend_only_on_record_and_field() {
        let [constant, ..] = lengths();
        let of = |author| value(&constant, RECORD, FIELD, author);
        assert_eq!(of(Author::LOADER), of(Author::LOADER));
        assert_ne!(of(Author::LOADER), of(AUTHOR));
    }
}
