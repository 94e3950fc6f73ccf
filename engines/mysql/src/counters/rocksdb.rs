//! MyRocks' counters and deferred work.

use std::collections::BTreeMap;

use rumba_engine_api::engine::DEFERRED_BYTES;

use super::fetch::cell;
use super::{Levels, Reading, Request, Status};

/// Status variables by their own names; micros are microseconds.
#[rustfmt::skip]
const STATUS: [&str; 58] = [
    "Rocksdb_rows_read", "Rocksdb_rows_inserted", "Rocksdb_rows_updated", "Rocksdb_rows_deleted",
    "Rocksdb_queries_point", "Rocksdb_queries_range", "Rocksdb_covered_secondary_key_lookups",
    "Rocksdb_block_cache_hit", "Rocksdb_block_cache_miss", "Rocksdb_block_cache_data_hit",
    "Rocksdb_block_cache_data_miss", "Rocksdb_block_cache_index_hit", "Rocksdb_block_cache_index_miss",
    "Rocksdb_block_cache_filter_hit", "Rocksdb_block_cache_filter_miss", "Rocksdb_block_cache_add",
    "Rocksdb_block_cache_bytes_read", "Rocksdb_block_cache_bytes_write",
    "Rocksdb_bloom_filter_useful", "Rocksdb_bloom_filter_full_positive", "Rocksdb_bloom_filter_full_true_positive",
    "Rocksdb_bloom_filter_prefix_checked", "Rocksdb_bloom_filter_prefix_useful",
    "Rocksdb_memtable_hit", "Rocksdb_memtable_miss", "Rocksdb_get_hit_l0", "Rocksdb_get_hit_l1",
    "Rocksdb_get_hit_l2_and_up", "Rocksdb_number_keys_read", "Rocksdb_number_keys_written",
    "Rocksdb_number_db_seek", "Rocksdb_number_db_next", "Rocksdb_number_db_prev",
    "Rocksdb_bytes_read", "Rocksdb_bytes_written", "Rocksdb_iter_bytes_read",
    "Rocksdb_compact_read_bytes", "Rocksdb_compact_write_bytes", "Rocksdb_flush_write_bytes",
    "Rocksdb_compaction_key_drop_new", "Rocksdb_compaction_key_drop_obsolete",
    "Rocksdb_wal_bytes", "Rocksdb_wal_synced", "Rocksdb_wal_group_syncs", "Rocksdb_write_self", "Rocksdb_write_other",
    "Rocksdb_write_wal", "Rocksdb_stall_micros", "Rocksdb_stall_total_stops", "Rocksdb_stall_total_slowdowns",
    "Rocksdb_stall_l0_file_count_limit_slowdowns", "Rocksdb_stall_l0_file_count_limit_stops",
    "Rocksdb_stall_memtable_limit_slowdowns", "Rocksdb_stall_memtable_limit_stops",
    "Rocksdb_stall_pending_compaction_limit_slowdowns", "Rocksdb_stall_pending_compaction_limit_stops",
    "Rocksdb_row_lock_wait_timeouts", "Rocksdb_snapshot_conflict_errors",
];

/// Sums over the column families of `information_schema.ROCKSDB_CFSTATS`.
pub(crate) fn family_sums(admin: &mut dyn Request) -> Result<BTreeMap<String, f64>, String> {
    const SQL: &str = "SELECT CF_NAME, STAT_TYPE, VALUE FROM information_schema.ROCKSDB_CFSTATS";
    let rows = admin.fetch(SQL).map_err(|error| format!("information_schema.ROCKSDB_CFSTATS: {error}"))?;
    Ok(sums(&rows.rows))
}

/// Sums rows of family, name, value. The memtables of a family without rows in memory take a few KiB, which are not
/// deferred work.
pub(super) fn sums(rows: &[Vec<Option<String>>]) -> BTreeMap<String, f64> {
    let mut by_family: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for row in rows {
        if let Ok(value) = cell(row, 2).parse() {
            by_family.entry(cell(row, 0)).or_default().insert(cell(row, 1), value);
        }
    }
    let mut sums = BTreeMap::new();
    for family in by_family.values() {
        for (name, value) in family {
            *sums.entry((*name).to_owned()).or_insert(0.0) += value;
        }
        let of = |name| family.get(name).copied().unwrap_or(0.0);
        let rows = of("NUM_ENTRIES_ACTIVE_MEM_TABLE") + of("NUM_ENTRIES_IMM_MEM_TABLES");
        *sums.entry(UNFLUSHED.to_owned()).or_insert(0.0) +=
            if rows > 0.0 { of("CUR_SIZE_ALL_MEM_TABLES") } else { 0.0 };
    }
    sums
}

/// Name of the memtables' bytes in [`sums`], for memtables with rows.
pub(crate) const UNFLUSHED: &str = "unflushed";

/// Deferred work: unflushed memtables, files in level 0, levels above their targets, and families with a pending
/// compaction.
pub(super) fn debt(admin: &mut dyn Request) -> Reading {
    let mut reading = Reading::default();
    if let Ok(families) = family_sums(admin) {
        reading.put_any("memtable_bytes", families.get(UNFLUSHED).copied());
        reading.put_any("compaction_pending", families.get("COMPACTION_PENDING").copied());
    }
    if let Ok(levels) = Levels::read(admin) {
        reading.put("l0_files", levels.l0().files);
        reading.put("l0_bytes", levels.l0().bytes);
        reading.put(DEFERRED_BYTES, levels.l0().deferred_bytes);
        reading.put("levels_excess_bytes", levels.sum(1, |level| level.excess_bytes));
        reading.put("compacting_files", levels.sum(0, |level| level.compacting_files));
    }
    reading
}

/// All counters except deferred work and bytes written.
pub(super) fn counters(admin: &mut dyn Request, status: &Status, reading: &mut Reading) {
    status.copy(&STATUS, reading);
    for (ratio, hits, misses) in [
        ("block_cache_hit_ratio", "Rocksdb_block_cache_hit", "Rocksdb_block_cache_miss"),
        ("block_cache_data_hit_ratio", "Rocksdb_block_cache_data_hit", "Rocksdb_block_cache_data_miss"),
    ] {
        reading.put_any(ratio, share(status, hits, misses));
    }
    if let Ok(sums) = family_sums(admin) {
        reading.put_any("memtables_bytes", sums.get("CUR_SIZE_ALL_MEM_TABLES").copied());
        reading.put_any("immutable_memtables", sums.get("NUM_IMMUTABLE_MEM_TABLE").copied());
        reading.put_any("table_readers_bytes", sums.get("NON_BLOCK_CACHE_SST_MEM_USAGE").copied());
    }
    if let Ok(values) = Status::read(admin, "SELECT STAT_TYPE, VALUE FROM information_schema.ROCKSDB_DBSTATS") {
        reading.put_any("block_cache_usage_bytes", values.get("DB_BLOCK_CACHE_USAGE"));
        reading.put_any("background_errors", values.get("DB_BACKGROUND_ERRORS"));
        reading.put_any("snapshots", values.get("DB_NUM_SNAPSHOTS"));
    }
    if let Ok(levels) = Levels::read(admin) {
        levels.notify(reading);
    }
}

/// Bytes written, by purpose, and the total time that writers were stalled.
pub(super) fn written(admin: &mut dyn Request, status: &Status, reading: &mut Reading) {
    reading.put_any("written_wal_bytes", status.get("Rocksdb_wal_bytes"));
    reading.put_any("written_flush_bytes", status.get("Rocksdb_flush_write_bytes"));
    reading.put_any("written_compaction_bytes", status.get("Rocksdb_compact_write_bytes"));
    reading.put_any("waited_stalls_us", status.get("Rocksdb_stall_micros"));
    if let Ok(levels) = Levels::read(admin) {
        for (number, level) in levels.0.range(1..) {
            reading.put(format!("written_compaction_level{number}_bytes"), level.written_bytes);
        }
    }
}

/// Hits among hits and misses.
fn share(status: &Status, hits: &str, misses: &str) -> Option<f64> {
    let (hits, misses) = (status.get(hits)?, status.get(misses)?);
    (hits + misses > 0.0).then(|| hits / (hits + misses))
}
