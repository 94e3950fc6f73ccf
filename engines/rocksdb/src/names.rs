//! The settings by RocksDB's own names, with their group and value type.
//!
//! The names are those that RocksDB 7.8 writes into its OPTIONS file (a test compares), plus those it writes only when
//! they are set. An unlisted name is offered to the loaded library before it is refused, so that the settings of later
//! versions work as well.

/// The group of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// `DBOptions`.
    Database,
    /// `ColumnFamilyOptions`, the same for every key space.
    Family,
    /// The fields of `block_based_table_factory`.
    Table,
    /// `TransactionDBOptions` and `TransactionOptions`.
    Locking,
    /// This engine's own.
    Own,
}

/// The value type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `true` or `false`.
    Switch,
    /// A whole number; a size with a unit becomes bytes.
    Whole,
    /// A number that may have a fraction.
    Fraction,
    /// Any other text: names, lists, `{a=b;c=d}`.
    Text,
}

use Group::{Database, Family, Locking, Own, Table};
use Shape::{Fraction, Switch, Text, Whole};

type Names = &'static [&'static str];

/// Every known setting.
pub const KNOWN: [(Group, Shape, Names); 15] = [
    (Database, Switch, DATABASE_SWITCHES),
    (Database, Whole, DATABASE_NUMBERS),
    (Database, Text, DATABASE_TEXTS),
    (Family, Switch, FAMILY_SWITCHES),
    (Family, Whole, FAMILY_NUMBERS),
    (Family, Fraction, FAMILY_FRACTIONS),
    (Family, Text, FAMILY_TEXTS),
    (Table, Switch, TABLE_SWITCHES),
    (Table, Whole, TABLE_NUMBERS),
    (Table, Fraction, &["data_block_hash_table_util_ratio"]),
    (Table, Text, TABLE_TEXTS),
    (Locking, Switch, &["deadlock_detect"]),
    (Locking, Whole, LOCKING_NUMBERS),
    (Own, Whole, &["block_cache"]),
    (Own, Text, &["bloom_bits", "statistics"]),
];

/// Settings that would break the engine's guarantees, each with the reason.
pub const RESERVED: [(&str, &str); 19] = [
    ("allow_2pc", "a TransactionDB always runs with it"),
    ("avoid_flush_during_shutdown", "rumba flushes memtables before it closes an instance without a log"),
    ("block_based_table_factory", "its fields are settings of their own: write `block_size = \"8KiB\"`"),
    ("cf_paths", "all files stay in the managed data directory"),
    ("comparator", "keys are ordered bytewise"),
    ("compaction_filter", "it would drop the workload's rows"),
    ("compaction_filter_factory", "it would drop the workload's rows"),
    ("create_if_missing", "an instance is always new"),
    ("create_missing_column_families", "an instance is always new"),
    (
        "default_lock_timeout",
        "it is for writes outside transactions, which no session does: see `transaction_lock_timeout`",
    ),
    ("db_log_dir", "all files stay in the managed data directory"),
    ("db_paths", "all files stay in the managed data directory"),
    ("env", "files are read and written through the operating system"),
    ("error_if_exists", "an instance is always new"),
    ("manual_wal_flush", "it would break what `durability` promises"),
    ("merge_operator", "sessions put, get and delete"),
    ("table_factory", "tables are block-based"),
    ("wal_dir", "all files stay in the managed data directory"),
    ("wal_filter", "an instance is never recovered"),
];

/// The group and shape of a known name.
pub fn find(name: &str) -> Option<(Group, Shape)> {
    KNOWN.iter().find(|(_, _, names)| names.contains(&name)).map(|&(group, shape, _)| (group, shape))
}

/// All known names that may be set.
pub fn all() -> impl Iterator<Item = &'static str> + Clone {
    KNOWN.iter().flat_map(|(_, _, names)| names.iter().copied()).filter(|name| reserved(name).is_none())
}

/// Why a name must not be set, or `None` if it may be set.
pub fn reserved(name: &str) -> Option<&'static str> {
    RESERVED.iter().find(|(reserved, _)| *reserved == name).map(|(_, reason)| *reason)
}

#[rustfmt::skip]
const DATABASE_SWITCHES: Names = &[
    "advise_random_on_open", "allow_2pc", "allow_concurrent_memtable_write", "allow_data_in_errors",
    "allow_fallocate", "allow_ingest_behind", "allow_mmap_reads", "allow_mmap_writes", "atomic_flush",
    "avoid_flush_during_recovery", "avoid_flush_during_shutdown", "avoid_unnecessary_blocking_io",
    "best_efforts_recovery", "create_if_missing", "create_missing_column_families", "dump_malloc_stats",
    "enable_pipelined_write", "enable_thread_tracking", "enable_write_thread_adaptive_yield",
    "enforce_single_del_contracts", "error_if_exists", "fail_if_options_file_error",
    "flush_verify_memtable_count", "is_fd_close_on_exec", "manual_wal_flush", "paranoid_checks",
    "persist_stats_to_disk", "skip_checking_sst_file_sizes_on_db_open", "skip_stats_update_on_db_open",
    "strict_bytes_per_sync", "track_and_verify_wals_in_manifest", "two_write_queues", "unordered_write",
    "use_adaptive_mutex", "use_direct_io_for_flush_and_compaction", "use_direct_reads", "use_fsync",
    "verify_sst_unique_id_in_manifest", "write_dbid_to_manifest",
];

#[rustfmt::skip]
const DATABASE_NUMBERS: Names = &[
    "bgerror_resume_retry_interval", "bytes_per_sync", "compaction_readahead_size", "db_write_buffer_size",
    "delayed_write_rate", "delete_obsolete_files_period_micros", "keep_log_file_num", "log_file_time_to_roll",
    "log_readahead_size", "manifest_preallocation_size", "max_background_compactions", "max_background_flushes",
    "max_background_jobs", "max_bgerror_resume_count", "max_file_opening_threads", "max_log_file_size",
    "max_manifest_file_size", "max_open_files", "max_subcompactions", "max_total_wal_size",
    "max_write_batch_group_size_bytes", "random_access_max_buffer_size", "recycle_log_file_num",
    "stats_dump_period_sec", "stats_history_buffer_size", "stats_persist_period_sec",
    "table_cache_numshardbits", "wal_bytes_per_sync", "WAL_size_limit_MB", "WAL_ttl_seconds",
    "writable_file_max_buffer_size", "write_thread_max_yield_usec", "write_thread_slow_yield_usec",
];

#[rustfmt::skip]
const DATABASE_TEXTS: Names = &[
    "access_hint_on_compaction_start", "db_host_id", "file_checksum_gen_factory", "info_log_level",
    "lowest_used_cache_tier", "wal_compression", "wal_filter", "wal_recovery_mode",
];

#[rustfmt::skip]
const FAMILY_SWITCHES: Names = &[
    "check_flush_compaction_key_order", "disable_auto_compactions", "enable_blob_files",
    "enable_blob_garbage_collection", "force_consistency_checks", "ignore_max_compaction_bytes_for_input",
    "inplace_update_support", "level_compaction_dynamic_file_size", "level_compaction_dynamic_level_bytes",
    "memtable_whole_key_filtering", "optimize_filters_for_hits", "paranoid_file_checks", "report_bg_io_stats",
];

#[rustfmt::skip]
const FAMILY_NUMBERS: Names = &[
    "arena_block_size", "blob_compaction_readahead_size", "blob_file_size", "blob_file_starting_level",
    "bloom_locality", "hard_pending_compaction_bytes_limit", "inplace_update_num_locks",
    "level0_file_num_compaction_trigger", "level0_slowdown_writes_trigger", "level0_stop_writes_trigger",
    "max_bytes_for_level_base", "max_compaction_bytes", "max_sequential_skip_in_iterations",
    "max_successive_merges", "max_write_buffer_number", "max_write_buffer_number_to_maintain",
    "max_write_buffer_size_to_maintain", "memtable_huge_page_size", "memtable_protection_bytes_per_key",
    "min_blob_size", "min_write_buffer_number_to_merge", "num_levels", "periodic_compaction_seconds",
    "preclude_last_level_data_seconds", "preserve_internal_time_seconds", "sample_for_compression",
    "soft_pending_compaction_bytes_limit", "target_file_size_base", "target_file_size_multiplier", "ttl",
    "write_buffer_size",
];

#[rustfmt::skip]
const FAMILY_FRACTIONS: Names = &[
    "blob_garbage_collection_age_cutoff", "blob_garbage_collection_force_threshold",
    "experimental_mempurge_threshold", "max_bytes_for_level_multiplier", "memtable_prefix_bloom_size_ratio",
];

#[rustfmt::skip]
const FAMILY_TEXTS: Names = &[
    "blob_compression_type", "bottommost_compression", "bottommost_compression_opts", "compaction_filter",
    "compaction_filter_factory", "compaction_options_fifo", "compaction_options_universal", "compaction_pri",
    "compaction_style", "comparator", "compression", "compression_opts", "compression_per_level",
    "last_level_temperature", "max_bytes_for_level_multiplier_additional", "memtable_factory",
    "memtable_insert_with_hint_prefix_extractor", "merge_operator", "prefix_extractor",
    "prepopulate_blob_cache", "sst_partitioner_factory", "table_factory",
];

#[rustfmt::skip]
const TABLE_SWITCHES: Names = &[
    "block_align", "cache_index_and_filter_blocks", "cache_index_and_filter_blocks_with_high_priority",
    "detect_filter_construct_corruption", "enable_index_compression", "no_block_cache",
    "optimize_filters_for_memory", "partition_filters", "pin_l0_filter_and_index_blocks_in_cache",
    "pin_top_level_index_and_filter", "verify_compression", "whole_key_filtering",
];

#[rustfmt::skip]
const TABLE_NUMBERS: Names = &[
    "block_restart_interval", "block_size", "block_size_deviation", "format_version",
    "index_block_restart_interval", "initial_auto_readahead_size", "max_auto_readahead_size",
    "metadata_block_size", "num_file_reads_for_auto_readahead", "read_amp_bytes_per_bit",
];

#[rustfmt::skip]
const TABLE_TEXTS: Names = &[
    "checksum", "data_block_index_type", "filter_policy", "flush_block_policy_factory", "index_shortening",
    "index_type", "metadata_cache_options", "prepopulate_block_cache",
];

#[rustfmt::skip]
const LOCKING_NUMBERS: Names = &[
    "deadlock_detect_depth", "expiration", "lock_timeout", "max_num_locks", "num_stripes",
    "transaction_lock_timeout",
];
