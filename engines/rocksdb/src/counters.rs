//! RocksDB's counters and gauges.

use std::ffi::CStr;

use rumba_engine_api::engine::{DEFERRED_BYTES, Gauge};

use crate::db::{Database, Level};
use crate::quiet::l0_files;

/// Properties summed over the key spaces, with the names for reports.
const SUMS: [(&str, &CStr); 6] = [
    ("estimate_num_keys", c"rocksdb.estimate-num-keys"),
    ("estimate_table_readers_mem_bytes", c"rocksdb.estimate-table-readers-mem"),
    ("live_sst_files_bytes", c"rocksdb.live-sst-files-size"),
    ("total_sst_files_bytes", c"rocksdb.total-sst-files-size"),
    ("size_all_mem_tables_bytes", c"rocksdb.size-all-mem-tables"),
    ("num_immutable_mem_tables", c"rocksdb.num-immutable-mem-table"),
];

/// Properties of the whole database.
const WHOLE: [(&str, &CStr); 8] = [
    ("block_cache_capacity_bytes", c"rocksdb.block-cache-capacity"),
    ("block_cache_usage_bytes", c"rocksdb.block-cache-usage"),
    ("block_cache_pinned_usage_bytes", c"rocksdb.block-cache-pinned-usage"),
    ("num_running_flushes", c"rocksdb.num-running-flushes"),
    ("num_running_compactions", c"rocksdb.num-running-compactions"),
    ("background_errors", c"rocksdb.background-errors"),
    ("actual_delayed_write_rate_bytes_per_s", c"rocksdb.actual-delayed-write-rate"),
    ("is_write_stopped", c"rocksdb.is-write-stopped"),
];

/// Tickers reported when statistics are on, by RocksDB's names.
#[rustfmt::skip]
const TICKERS: [&str; 33] = [
    "block.cache.hit", "block.cache.miss", "block.cache.data.hit", "block.cache.data.miss",
    "block.cache.index.hit", "block.cache.index.miss", "block.cache.filter.hit", "block.cache.filter.miss",
    "block.cache.bytes.read", "block.cache.bytes.write", "bloom.filter.useful", "bloom.filter.full.positive",
    "bloom.filter.full.true.positive", "bloom.filter.prefix.checked", "bloom.filter.prefix.useful",
    "memtable.hit", "memtable.miss", "l0.hit", "l1.hit", "l2andup.hit", "number.keys.read",
    "number.keys.written", "number.db.seek", "number.db.next", "bytes.written", "wal.bytes", "wal.synced",
    "write.self", "write.other", "flush.write.bytes", "compact.read.bytes", "compact.write.bytes",
    "stall.micros",
];

/// Bytes written by purpose, and the time that writers were stalled. The first names are those that rumba turns into
/// metrics (`crates/results/src/counted.rs`), the second are the tickers.
const COUNTED: [(&str, &str); 4] = [
    ("written_wal_bytes", "wal.bytes"),
    ("written_flush_bytes", "flush.write.bytes"),
    ("written_compaction_bytes", "compact.write.bytes"),
    ("waited_stalls_us", "stall.micros"),
];

/// Deferred work: unflushed memtables, pending compaction, L0 files. `trigger` is the number of L0 files that starts a
/// compaction, or `None` if a compaction rewrites no level.
pub fn debt(db: &Database, trigger: Option<u64>) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    if let Some(bytes) = memtable_bytes(db) {
        gauges.push(Gauge::new("memtable_bytes", bytes as f64));
    }
    if let Some(bytes) = db.sum(c"rocksdb.estimate-pending-compaction-bytes") {
        gauges.push(Gauge::new("pending_compaction_bytes", bytes as f64));
    }
    gauges.push(Gauge::new("l0_files", l0_files(db) as f64));
    if let Some(trigger) = trigger {
        let deferred = (0..db.names().len()).map(|space| deferred_bytes(&db.levels(space), trigger)).sum();
        gauges.push(Gauge::new(DEFERRED_BYTES, deferred));
    }
    gauges
}

/// Bytes that the next compaction of L0 will write, in proportion to how close its trigger is. That is all of L0, plus
/// a share of the level below, which L0 overlaps completely with random keys.
fn deferred_bytes(levels: &[Level], trigger: u64) -> f64 {
    let Some((l0, below)) = levels.split_first().filter(|(l0, _)| l0.files > 0) else { return 0.0 };
    let base = below.iter().find(|level| level.files > 0).map_or(0, |level| level.bytes);
    let share = (l0.files as f64 / trigger.max(1) as f64).min(1.0);
    l0.bytes as f64 + share * base as f64
}

/// Bytes of memtables with rows not yet in a table file. An empty memtable takes a few KiB, which are not deferred
/// work.
fn memtable_bytes(db: &Database) -> Option<u64> {
    (0..db.names().len())
        .map(|space| {
            let rows = db.int(space, c"rocksdb.num-entries-active-mem-table")?
                + db.int(space, c"rocksdb.num-entries-imm-mem-tables")?;
            if rows == 0 { Some(0) } else { db.int(space, c"rocksdb.cur-size-all-mem-tables") }
        })
        .sum()
}

/// All counters and gauges; those that this version or these settings do not provide are left out.
pub fn all(db: &Database) -> Vec<Gauge> {
    let mut gauges = Vec::new();
    let number = |name: &str, value: u64| Gauge::new(name, value as f64);
    gauges.extend(WHOLE.iter().filter_map(|(name, property)| Some(number(name, db.int_of_all(property)?))));
    gauges.extend(SUMS.iter().filter_map(|(name, property)| Some(number(name, db.sum(property)?))));
    levels(db, &mut gauges);
    stalls(db, &mut gauges);
    if let Some(text) = db.statistics() {
        let tickers: Vec<Gauge> = tickers(&text).collect();
        gauges.extend(written(&tickers));
        gauges.extend(tickers);
    }
    gauges
}

/// Files and bytes of every level over all key spaces, and bytes of every key space.
fn levels(db: &Database, gauges: &mut Vec<Gauge>) {
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for (space, name) in db.names().iter().enumerate() {
        let levels = db.levels(space);
        gauges
            .push(Gauge::new(format!("sst_bytes[{name}]"), levels.iter().map(|level| level.bytes).sum::<u64>() as f64));
        sums.resize(sums.len().max(levels.len()), (0, 0));
        for (sum, level) in sums.iter_mut().zip(levels) {
            *sum = (sum.0 + level.files, sum.1 + level.bytes);
        }
    }
    for (level, (files, bytes)) in sums.into_iter().enumerate() {
        gauges.push(Gauge::new(format!("level{level}_files"), files as f64));
        gauges.push(Gauge::new(format!("level{level}_bytes"), bytes as f64));
    }
}

/// Write stalls by cause, over all key spaces.
fn stalls(db: &Database, gauges: &mut Vec<Gauge>) {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for space in 0..db.names().len() {
        let Some(text) = db.text(space, c"rocksdb.cfstats-no-file-histogram") else { return };
        for (cause, count) in stall_counts(&text) {
            match sums.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, sum)) => *sum += count,
                None => sums.push((cause, count)),
            }
        }
    }
    gauges.extend(sums.into_iter().map(|(cause, count)| Gauge::new(format!("stalls_{cause}"), count)));
}

/// Parses the causes and counts of `Stalls(count): 3 level0_slowdown, …` (up to 8.2) or `Write Stall (count):
/// cf-l0-file-count-limit-delays: 3, …` (later).
fn stall_counts(text: &str) -> Vec<(String, f64)> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Stalls(count): ").or_else(|| line.strip_prefix("Write Stall (count): ")));
    line.unwrap_or_default()
        .split(", ")
        .filter(|part| !part.starts_with("interval"))
        .filter_map(|part| {
            let (left, right) = part.rsplit_once(": ").or_else(|| part.split_once(' '))?;
            let (count, cause) = match left.parse::<f64>() {
                Ok(count) => (count, right),
                Err(_) => (right.parse().ok()?, left),
            };
            Some((cause.replace([' ', '-'], "_"), count))
        })
        .collect()
}

fn written(tickers: &[Gauge]) -> impl Iterator<Item = Gauge> {
    COUNTED.iter().filter_map(|(name, ticker)| {
        let found = tickers.iter().find(|found| found.name == *ticker)?;
        Some(Gauge::new(*name, found.value))
    })
}

/// The listed tickers in a statistics text; stall times are in microseconds.
fn tickers(text: &str) -> impl Iterator<Item = Gauge> {
    text.lines().filter_map(|line| {
        let (name, count) = line.strip_prefix("rocksdb.")?.split_once(" COUNT : ")?;
        let wanted = TICKERS.contains(&name);
        Some(Gauge::new(name, count.trim().parse().ok()?)).filter(|_| wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_read_in_both_spellings() {
        let old = "x\nStalls(count): 2 level0_slowdown, 0 stop for pending_compaction_bytes, interval 1 total count\n";
        assert_eq!(
            stall_counts(old),
            [("level0_slowdown".into(), 2.0), ("stop_for_pending_compaction_bytes".into(), 0.0)]
        );
        let new = "Write Stall (count): cf-l0-file-count-limit-delays: 3, total-stops: 4\n";
        assert_eq!(stall_counts(new), [("cf_l0_file_count_limit_delays".into(), 3.0), ("total_stops".into(), 4.0)]);
    }

    #[test]
    fn two_of_four_l0_files_defer_half_a_compaction() {
        let level = |files, bytes| Level { files, bytes };
        let levels = [level(2, 100), level(0, 0), level(3, 1000), level(9, 9000)];
        assert_eq!(deferred_bytes(&levels, 4), 100.0 + 500.0);
        assert_eq!(deferred_bytes(&[level(0, 0), level(3, 1000)], 4), 0.0);
        assert_eq!(deferred_bytes(&[level(8, 100), level(3, 1000)], 4), 1100.0, "one compaction, no more");
    }

    #[test]
    fn histograms_are_not_taken_for_tickers() {
        let text = "rocksdb.block.cache.hit COUNT : 7\nrocksdb.db.get.micros P50 : 1.0 COUNT : 3 SUM : 9\nrocksdb.stall.micros COUNT : 5";
        let found: Vec<Gauge> = tickers(text).collect();
        assert_eq!(found, [Gauge::new("block.cache.hit", 7.0), Gauge::new("stall.micros", 5.0)]);
    }

    #[test]
    fn written_bytes_have_names_that_make_metrics() {
        let tickers = [Gauge::new("wal.bytes", 3.0), Gauge::new("compact.write.bytes", 9.0)];
        let found: Vec<Gauge> = written(&tickers).collect();
        assert_eq!(found, [Gauge::new("written_wal_bytes", 3.0), Gauge::new("written_compaction_bytes", 9.0)]);
        assert!(COUNTED.iter().all(|(name, ticker)| {
            let makes_metric = |prefix, suffix| name.starts_with(prefix) && name.ends_with(suffix);
            (makes_metric("written_", "_bytes") || makes_metric("waited_", "_us")) && TICKERS.contains(ticker)
        }));
    }
}
