//! Accepted settings take effect; others are refused by name.

use std::collections::BTreeSet;

use rumba_engine_api::common::Own;
use rumba_engine_api::setting::{SettingError, Value};

use super::*;
use crate::names::{self, Group};

fn refusal<const N: usize>(settings: [(&str, Value); N]) -> SettingError {
    RocksDb.check(&config_with(settings)).unwrap_err()
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_known_one() {
    contract::unknown_settings_are_refused(&RocksDb, &config(), "write_bufer_size", "write_buffer_size");
    let error = refusal([("blok_size", text("8KiB"))]);
    assert_eq!(error.remedy, "did you mean `block_size`?");
    assert!(refusal([("x=1;write_buffer_size", Value::Int(1))]).is_unknown);
}

#[test]
fn a_wrong_value_is_refused_with_rocksdbs_own_words() {
    let error = refusal([("wal_recovery_mode", text("kMaybe"))]);
    assert_eq!(error.key, "wal_recovery_mode");
    assert!(error.problem.contains("No mapping for enum"), "{error}");
    let error = refusal([("compression_per_level", text("kNoCompression:kFoo"))]);
    assert!(error.problem.contains("Error parsing"), "{error}");
    let error = refusal([("index_type", text("kFoo"))]);
    assert!(error.problem.contains("Invalid argument"), "{error}");
}

/// RocksDB's parser would accept all of these with another meaning.
#[test]
fn values_that_rocksdb_would_misread_are_refused() {
    for (name, value) in [
        ("write_buffer_size", text("8apples")),
        ("write_buffer_size", Value::Float(1.5)),
        ("max_open_files", text("1x")),
        ("use_direct_reads", text("yes")),
        ("compaction_pri", text("kOldestLargestSeqFirst;max_open_files=1")),
        ("comparator", text("leveldb.BytewiseComparator")),
        ("wal_dir", text("/elsewhere")),
        ("bloom_bits", Value::Int(-1)),
        ("statistics", Value::Int(1)),
        ("num_stripes", Value::Int(0)),
        ("transaction_lock_timeout", Value::Int(-2)),
    ] {
        assert_eq!(refusal([(name, value)]).key, name);
    }
    assert_eq!(refusal([("bloom_bits", Value::Int(5)), ("filter_policy", text("ribbonfilter:10"))]).key, "bloom_bits");
    let error = RocksDb.check(&EngineConfig { compression: Some("zstdd".into()), ..config() }).unwrap_err();
    assert_eq!(error.remedy, "did you mean `zstd`?");
}

#[test]
fn settings_of_every_group_are_in_force_and_read_back() {
    let config = config_with([
        ("max_total_wal_size", text("24MiB")),
        ("use_direct_reads", Value::Bool(true)),
        ("write_buffer_size", text("1.25MiB")),
        ("block_cache", text("3MiB")),
        ("compression_opts", text("{level=5;strategy=1}")),
        ("max_bytes_for_level_multiplier", Value::Int(8)),
        ("block_size", text("8KiB")),
        ("format_version", Value::Int(4)),
        ("bloom_bits", Value::Float(9.9)),
        ("transaction_lock_timeout", Value::Int(250)),
    ]);
    RocksDb.check(&config).unwrap();
    let lab = open(&config);
    let effective: BTreeMap<String, String> = lab.instance.effective_settings().into_iter().collect();
    for (name, value) in [
        ("max_total_wal_size", "25165824"),
        ("use_direct_reads", "true"),
        ("write_buffer_size", "1310720"),
        ("max_bytes_for_level_multiplier", "8.000000"),
        ("block_size", "8192"),
        ("format_version", "4"),
        ("filter_policy", "bloomfilter:9.9:false"),
        // Half of what the block cache leaves of the 8 MiB; memtables that are flushed have the rest.
        ("db_write_buffer_size", "2621440"),
        ("block_cache", "3145728"),
        ("WriteOptions.disableWAL", "false"),
        ("transaction_lock_timeout", "250"),
        ("deadlock_detect", "true"),
        ("level_compaction_dynamic_level_bytes", "true"),
        ("prefix_extractor[links]", "rocksdb.FixedPrefix.2"),
    ] {
        assert_eq!(effective.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(effective["compression_opts"].contains("level=5;"));
    assert!(effective["rocksdb_version"].contains('.'));
}

/// The sum was less than `cache`, or had no limit, but the common cache size was reported.
#[test]
fn the_cache_is_what_its_parts_come_to_where_both_are_set() {
    let cache = |settings: [(&str, Value); 2]| RocksDb.overruled(&config_with(settings)).cache;
    let (block_cache, limit) = (|size| ("block_cache", text(size)), |size| ("db_write_buffer_size", text(size)));
    assert_eq!(cache([block_cache("1MiB"), limit("2MiB")]), Some(Own::new("block_cache", Some(5 << 20))));
    assert_eq!(cache([block_cache("1GiB"), limit("0")]), Some(Own::new("db_write_buffer_size", None)));
    let bloom = || ("bloom_bits", Value::Int(5));
    assert_eq!(cache([block_cache("1MiB"), bloom()]), None, "the memtables have the rest");
    assert_eq!(cache([limit("1MiB"), bloom()]), None, "the block cache has the rest");
    assert_eq!(cache([("no_block_cache", Value::Bool(true)), bloom()]), Some(Own::new("no_block_cache", None)));
}

/// A setting without effect must be refused, because the table would show a comparison that was not made.
#[test]
fn settings_that_would_have_no_effect_are_refused_or_given_one() {
    let error = refusal([("default_lock_timeout", Value::Int(5))]);
    assert!(error.problem.contains("outside transactions"), "{error}");
    let (number, size) = ("max_write_buffer_number_to_maintain", "max_write_buffer_size_to_maintain");
    let error = refusal([(number, Value::Int(2)), (size, Value::Int(1 << 20))]);
    assert!(error.key == number && error.problem.contains("ignores it"), "{error}");

    let in_force = |config: &EngineConfig| {
        let effective: BTreeMap<String, String> = open(config).instance.effective_settings().into_iter().collect();
        [number, size].map(|name| effective.get(name).cloned())
    };
    let [number_in_force, size_in_force] = in_force(&config());
    assert_eq!(size_in_force.as_deref(), Some("1"));
    if number_in_force.is_none() {
        // Release 10 still accepts the number but ignores it.
        let dir = tempfile::tempdir().unwrap();
        let requested = config_with([(number, Value::Int(3))]);
        let error = RocksDb.open(dir.path(), &requested, Schema::KeyValue(&SPACES)).err().unwrap().to_string();
        assert!(error.contains(number), "{error}");
        return;
    }
    let is = |settings: EngineConfig| in_force(&settings).map(Option::unwrap_or_default);
    assert_eq!(is(config()), ["0", "1"]);
    assert_eq!(is(config_with([(number, Value::Int(3))])), ["3", "0"]);
    assert_eq!(is(config_with([(number, Value::Int(0))])), ["0", "1"], "nothing, as requested");
    assert_eq!(is(config_with([(size, Value::Int(4096))])), ["0", "4096"]);
}

#[test]
fn a_setting_that_rocksdb_changes_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    // RocksDB raises values below 64 KiB (SanitizeOptions).
    let config = config_with([("write_buffer_size", Value::Int(1000)), ("arena_block_size", Value::Int(512))]);
    let error = RocksDb.open(dir.path(), &config, Schema::KeyValue(&SPACES)).err().unwrap();
    assert!(error.to_string().contains("write_buffer_size: requested 1000, but RocksDB runs with 65536"), "{error}");
}

#[test]
fn the_table_of_names_is_what_the_library_writes() {
    let lab = open(&config());
    let written: BTreeSet<String> = (lab.instance.effective_settings().into_iter())
        .map(|(name, _)| name.split('[').next().unwrap().to_owned())
        .filter(|name| !matches!(name.as_str(), "rocksdb_version" | "built_with_assertions" | "block_cache"))
        .filter(|name| !name.starts_with("WriteOptions.") && name != "deadlock_detect")
        .collect();
    let known: BTreeSet<String> = (names::KNOWN.iter())
        .filter(|(group, _, _)| matches!(group, Group::Database | Group::Family | Group::Table))
        .flat_map(|(_, _, names)| names.iter().map(|name| name.to_string()))
        // RocksDB writes it only if it is not empty.
        .filter(|name| name != "compression_per_level")
        .collect();
    assert!(written.len() > 150, "{written:?}");
    if lab.instance.version().unwrap().starts_with("7.8.") {
        assert_eq!(written, known);
    } else {
        // Later releases add some names, which are checked with the library, and drop a few.
        assert!(written.intersection(&known).count() > 150, "{written:?}");
    }
}

#[test]
fn every_listed_setting_is_known_and_its_default_is_accepted() {
    for info in RocksDb.info().settings {
        assert!(names::find(info.name).is_some(), "{}", info.name);
    }
}

#[test]
fn a_workload_without_key_spaces_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    let instance = RocksDb.open(dir.path(), &config(), Schema::KeyValue(&[])).unwrap();
    instance.settle().unwrap();
    instance.close().unwrap();
}
