//! Divides `cache` between the memtables and the block cache.

use rumba_engine_api::setting::SettingError;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// RocksDB's smallest memtable (`SanitizeOptions` in db/column_family.cc).
const SMALLEST_MEMTABLE: u64 = 64 * KIB;

/// RocksDB's default. Larger memtables make flushes rarer and longer, but do not reduce bytes written.
const LARGEST_MEMTABLE: u64 = 64 * MIB;

/// The number of full-size memtables within the total limit. With fewer key spaces it is theirs, because a key space has
/// one memtable at a time.
const MEMTABLES: u64 = 4;

/// The limit decides when to flush. Memtables in flush stay in memory while new ones are written. With two memtables
/// per key space (`max_write_buffer_number`) and up to four key spaces, memory stays within this factor.
const WITH_THOSE_FLUSHED: u64 = 2;

/// The smallest cache for which a quarter is the limit over the smallest memtables.
const SMALLEST_CACHE: u64 = 2 * WITH_THOSE_FLUSHED * MEMTABLES * SMALLEST_MEMTABLE;

/// The sizes that the experiment sets, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// `block_cache`.
    pub block_cache: Option<u64>,
    /// `db_write_buffer_size`; 0 for no limit.
    pub memtables: Option<u64>,
    /// `write_buffer_size`.
    pub memtable: Option<u64>,
}

/// The parts, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    /// Capacity of the block cache.
    pub block_cache: u64,
    /// Limit over all memtables, `db_write_buffer_size`; 0 for none.
    pub memtables: u64,
    /// Size of one memtable, `write_buffer_size`.
    pub memtable: u64,
}

/// Divides `cache` for so many key spaces: half for the memtables, half for the block cache. Sizes that the experiment
/// sets come first.
///
/// # Errors
/// Parts that do not fit into `cache`, or that would have no effect.
pub fn divide(cache: u64, spaces: usize, given: Given) -> Result<Split, SettingError> {
    if cache < SMALLEST_CACHE {
        let why = format!("{cache} bytes are too few: half is for memtables, and RocksDB makes none below 64 KiB");
        return Err(SettingError::new("cache", why, "give it 1MiB or more"));
    }
    let number = MEMTABLES.min(spaces.max(1) as u64);
    let quarter = (cache / 2 / WITH_THOSE_FLUSHED).min(number * LARGEST_MEMTABLE);
    let memtables = match given {
        Given { memtables: Some(memtables), .. } => memtables,
        Given { block_cache: Some(block_cache), .. } => cache.saturating_sub(block_cache) / WITH_THOSE_FLUSHED,
        // Two key spaces can then fill one memtable each.
        Given { memtable: Some(memtable), .. } => quarter.max(memtable.saturating_mul(2)),
        _ => quarter,
    };
    let unlimited = memtables == 0 && given.memtables.is_some();
    let usual = if unlimited { quarter } else { memtables } / number;
    let split = Split {
        block_cache: given.block_cache.unwrap_or(cache.saturating_sub(room(memtables))),
        memtables,
        memtable: given.memtable.unwrap_or(usual.clamp(SMALLEST_MEMTABLE, LARGEST_MEMTABLE)),
    };
    if unlimited { Ok(split) } else { split.fits(cache, given) }
}

/// The part of `cache` that memtables with this limit need.
fn room(memtables: u64) -> u64 {
    memtables.saturating_mul(WITH_THOSE_FLUSHED)
}

impl Split {
    /// The sum of the parts in bytes; `None` if the memtables have no limit.
    pub fn total(&self) -> Option<u64> {
        (self.memtables > 0).then(|| self.block_cache.saturating_add(room(self.memtables)))
    }

    /// Returns the split if its parts fit into `cache` and each has an effect.
    fn fits(self, cache: u64, given: Given) -> Result<Self, SettingError> {
        // Name the setting that the user wrote in the experiment.
        let name = match given {
            Given { memtables: Some(_), .. } => "db_write_buffer_size",
            Given { block_cache: Some(_), .. } => "block_cache",
            _ => "write_buffer_size",
        };
        let Self { block_cache, memtables, memtable } = self;
        let room = room(memtables);
        if room.saturating_add(block_cache) > cache || block_cache == 0 && given.block_cache.is_none() {
            let other = given.block_cache.map_or("the block cache".to_owned(), |own| format!("a block cache of {own}"));
            let why = format!(
                "memtables of {memtables} bytes and those being flushed ({room} together) and {other} do not fit into `cache` = {cache}"
            );
            return Err(SettingError::new(name, why, "raise `cache`, which holds them all, or lower this"));
        }
        if memtables < MEMTABLES * SMALLEST_MEMTABLE {
            let why = format!("{memtables} bytes are too few for memtables");
            return Err(SettingError::new(
                name,
                why,
                "leave 512KiB of `cache` or more: 256KiB, and as much being flushed",
            ));
        }
        if memtable > memtables {
            let why = format!("no memtable reaches {memtable} bytes: all together are flushed at {memtables}");
            return Err(SettingError::new("write_buffer_size", why, "raise `db_write_buffer_size`, or lower this"));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(block_cache: Option<u64>, memtables: Option<u64>, memtable: Option<u64>) -> Given {
        Given { block_cache, memtables, memtable }
    }

    #[test]
    fn all_parts_lie_inside_the_cache_at_every_size() {
        assert_eq!(SMALLEST_CACHE, MIB, "as the error says");
        for cache in (20..45).map(|power| 1u64 << power).flat_map(|cache| [cache, cache + 12_345]) {
            for spaces in [1, 2, 4, 13] {
                let Split { block_cache, memtables, memtable } = divide(cache, spaces, Given::default()).unwrap();
                assert!(block_cache >= cache / 2, "{cache}");
                assert_eq!(block_cache + room(memtables), cache);
                // Up to four key spaces with two memtables each use the whole cache, except for a rest of the division.
                let used = block_cache + spaces.min(4) as u64 * 2 * memtable;
                assert!((cache - 8..=cache).contains(&used), "{cache} for {spaces}: {memtable}");
                assert!((SMALLEST_MEMTABLE..=LARGEST_MEMTABLE).contains(&memtable), "{cache}: {memtable}");
            }
        }
        assert_eq!(divide(MIB - 1, 4, Given::default()).unwrap_err().key, "cache");
    }

    #[test]
    fn given_parts_of_memory_are_kept_and_others_derived() {
        let of = |given| divide(16 * MIB, 4, given).unwrap();
        let split = |block_cache, memtables, memtable| Split { block_cache, memtables, memtable };
        assert_eq!(of(Given::default()), split(8 * MIB, 4 * MIB, MIB));
        assert_eq!(of(given(None, Some(2 * MIB), None)), split(12 * MIB, 2 * MIB, MIB / 2));
        assert_eq!(of(given(Some(6 * MIB), None, None)), split(6 * MIB, 5 * MIB, 5 * MIB / 4));
        assert_eq!(of(given(None, None, Some(MIB / 2))), split(8 * MIB, 4 * MIB, MIB / 2));
        assert_eq!(of(given(None, None, Some(3 * MIB))), split(4 * MIB, 6 * MIB, 3 * MIB));
        assert_eq!(of(given(Some(MIB), Some(2 * MIB), Some(MIB))), split(MIB, 2 * MIB, MIB));
        assert_eq!(of(given(Some(0), None, None)), split(0, 8 * MIB, 2 * MIB), "explicitly requested");
        assert_eq!(of(given(None, Some(0), None)), split(16 * MIB, 0, MIB), "no limit: outside the cache");
    }

    #[test]
    fn oversized_memory_split_names_the_given_setting() {
        let refused = |given| divide(16 * MIB, 4, given).unwrap_err().key;
        assert_eq!(refused(given(None, Some(8 * MIB), None)), "db_write_buffer_size");
        assert_eq!(refused(given(Some(8 * MIB), Some(5 * MIB), None)), "db_write_buffer_size");
        assert_eq!(refused(given(None, Some(100 * KIB), None)), "db_write_buffer_size");
        assert_eq!(refused(given(Some(16 * MIB), None, None)), "block_cache");
        assert_eq!(refused(given(Some(99 * MIB), None, None)), "block_cache");
        assert_eq!(refused(given(None, None, Some(4 * MIB))), "write_buffer_size");
        assert_eq!(refused(given(None, None, Some(u64::MAX))), "write_buffer_size");
        assert_eq!(refused(given(None, Some(4 * MIB), Some(5 * MIB))), "write_buffer_size");
    }
}
