//! The levels of MyRocks' trees, from `information_schema.ROCKSDB_COMPACTION_STATS`.

use std::collections::BTreeMap;

use super::fetch::cell;
use super::{Reading, Request};

/// `…GB` columns count 2^30 bytes, to six decimals.
const GIB: f64 = 1_073_741_824.0;

/// One level, with bytes and files of all column families.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Level {
    /// Table files.
    pub files: f64,
    /// Files that a compaction is reading.
    pub compacting_files: f64,
    /// The size of the table files in bytes.
    pub bytes: f64,
    /// Bytes above the level's target size.
    pub excess_bytes: f64,
    /// Bytes written into it by flush (level 0) and compaction (the others).
    pub written_bytes: f64,
    /// Bytes read by compactions into it.
    pub read_bytes: f64,
    /// The part of these bytes that came from the level above.
    pub read_above_bytes: f64,
    /// Bytes moved into it without being rewritten.
    pub moved_bytes: f64,
    /// For level 0: bytes that its next compaction will write, in proportion to how close its trigger is.
    pub deferred_bytes: f64,
}

/// All levels that have ever held data.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Levels(pub BTreeMap<u32, Level>);

impl Levels {
    /// Reads the levels from the server.
    pub(crate) fn read(admin: &mut dyn Request) -> Result<Self, String> {
        const SQL: &str = "SELECT CF_NAME, LEVEL, TYPE, VALUE FROM information_schema.ROCKSDB_COMPACTION_STATS";
        let rows = admin.fetch(SQL).map_err(|error| format!("information_schema.ROCKSDB_COMPACTION_STATS: {error}"))?;
        Ok(Self::of(&rows.rows))
    }

    /// Parses rows of family, level, name, value.
    pub(crate) fn of(rows: &[Vec<Option<String>>]) -> Self {
        let mut by_family: BTreeMap<(&str, u32), BTreeMap<&str, f64>> = BTreeMap::new();
        for row in rows {
            let level = cell(row, 1).strip_prefix('L').and_then(|level| level.parse().ok());
            if let (Some(level), Ok(value)) = (level, cell(row, 3).parse()) {
                by_family.entry((cell(row, 0), level)).or_default().insert(cell(row, 2), value);
            }
        }
        let mut levels = BTreeMap::new();
        for ((family, level), values) in &by_family {
            let sum: &mut Level = levels.entry(*level).or_default();
            sum.add(*level, values);
            if *level == 0 {
                let mut below = by_family.range((*family, 1)..=(*family, u32::MAX)).map(|(_, level)| level);
                sum.deferred_bytes += deferred_bytes(values, below.find(|level| part(level, "SizeBytes") > 0.0));
            }
        }
        Self(levels)
    }

    /// The sum of `part` over all levels from `first` on.
    pub(crate) fn sum(&self, first: u32, part: impl Fn(&Level) -> f64) -> f64 {
        self.0.range(first..).map(|(_, level)| part(level)).sum()
    }

    pub(crate) fn l0(&self) -> Level {
        self.0.get(&0).copied().unwrap_or_default()
    }

    /// Reports every figure of every level, and write amplification. For level n that is bytes written into it per byte
    /// from above. For the tree it is bytes written by flush and compaction per byte flushed.
    pub(super) fn notify(&self, reading: &mut Reading) {
        for (number, level) in &self.0 {
            let mut put = |what: &str, value| reading.put(format!("level{number}_{what}"), value);
            put("files", level.files);
            put("bytes", level.bytes);
            put("written_bytes", level.written_bytes);
            put("compaction_read_bytes", level.read_bytes);
            put("moved_bytes", level.moved_bytes);
            if *number > 0 && level.read_above_bytes > 0.0 {
                put("write_amp", level.written_bytes / level.read_above_bytes);
            }
        }
        let flushed = self.l0().written_bytes;
        if flushed > 0.0 {
            reading.put("tree_write_amp", self.sum(0, |level| level.written_bytes) / flushed);
        }
    }
}

/// A figure of a level of one column family.
fn part(values: &BTreeMap<&str, f64>, what: &str) -> f64 {
    values.get(what).copied().unwrap_or(0.0)
}

/// All of level 0, plus a share of the level below in proportion to the score. A compaction starts at score 1. With
/// random keys, level 0 overlaps the level below completely.
fn deferred_bytes(l0: &BTreeMap<&str, f64>, base: Option<&BTreeMap<&str, f64>>) -> f64 {
    let share = part(l0, "Score").clamp(0.0, 1.0);
    part(l0, "SizeBytes") + share * base.map_or(0.0, |level| part(level, "SizeBytes"))
}

impl Level {
    fn add(&mut self, level: u32, values: &BTreeMap<&str, f64>) {
        let value = |what| part(values, what);
        self.files += value("NumFiles");
        self.compacting_files += value("CompactedFiles");
        self.bytes += value("SizeBytes");
        // Below level 0 the score is size divided by target size. Level 0's score may be the number of files divided by
        // the trigger, so it is not a size.
        let score = value("Score");
        if level > 0 && score > 1.0 {
            self.excess_bytes += value("SizeBytes") * (1.0 - 1.0 / score);
        }
        self.written_bytes += value("WriteGB") * GIB;
        self.read_bytes += value("ReadGB") * GIB;
        self.read_above_bytes += value("RnGB") * GIB;
        self.moved_bytes += value("MovedGB") * GIB;
    }
}
