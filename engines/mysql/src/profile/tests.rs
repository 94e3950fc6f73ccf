//! Tests of the profiles' values, and of the published experiments' comparisons.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table};

use super::*;

fn needs(kind: &Kind, brand: Brand, version: Version) -> For<'_> {
    For { kind, brand, version, cache: 1 << 30, durability: Durability::Sync }
}

/// A variable for `cache` or `durability` in a layer for some servers would not be recognized as an override.
#[test]
fn promised_variables_are_known_without_a_server() {
    let of = |kind: Kind| {
        let Promises { cache, durability } = promises(&kind);
        let known: Vec<String> = cache.into_iter().chain(durability.into_iter().map(|(name, _)| name)).collect();
        for (brand, version) in [(Brand::MariaDb, Version(11, 8, 6)), (Brand::MySql, Version(9, 7, 0))] {
            let promised =
                fill(&needs(&kind, brand, version)).unwrap().lines.into_iter().filter(|line| line.is_promise);
            let mut promised: Vec<String> = promised.map(|line| line.name).collect();
            promised.sort();
            assert_eq!(promised, known, "{kind:?}");
        }
        known
    };
    assert_eq!(of(Kind::InnoDb), ["innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit"]);
    let of_rocksdb = ["rocksdb_block_cache_size", "rocksdb_flush_log_at_trx_commit", "rocksdb_manual_wal_flush"];
    assert_eq!(of(Kind::RocksDb), of_rocksdb);
    assert_eq!(of(Kind::of("TokuDB")), ["tokudb_cache_size", "tokudb_commit_sync", "tokudb_fsync_log_period"]);
    assert_eq!(of(Kind::of("Aria")), ["aria_pagecache_buffer_size"]);
}

/// Memtables of up to `cache` came in addition to a block cache of `cache`, and InnoDB's idle pool of 24 MiB in
/// addition to both.
#[test]
fn blocks_and_memtables_of_myrocks_fit_into_the_cache() {
    for cache in (20..40).map(|power| 1u64 << power).flat_map(|cache| [cache, cache + 12_345]) {
        let filled = fill(&For { cache, ..needs(&Kind::RocksDb, Brand::MariaDb, Version(10, 11, 14)) }).unwrap();
        let value = |name: &str| filled.lines.iter().find(|line| line.name == name).map(|line| line.value.as_str());
        let bytes = |name: &str| value(name).and_then(|value| value.parse::<u64>().ok()).unwrap();
        let of_family = |name: &str| {
            let found = filled.families.iter().find(|(known, _)| known == name);
            found.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap()
        };
        let (blocks, memtables) = (bytes("rocksdb_block_cache_size"), bytes("rocksdb_db_write_buffer_size"));
        assert!(blocks >= cache / 2 && blocks + 2 * memtables <= cache, "{cache}");
        let most = of_family("write_buffer_size") * of_family("max_write_buffer_number");
        assert!(blocks + most <= cache, "{cache}");
        assert_eq!(value("innodb_buffer_pool_size"), Some("6M"));
    }
}

/// Every run had the adaptive hash index, so an experiment about it compared an engine with itself.
#[test]
fn variables_without_a_reason_keep_the_default() {
    for (kind, brand, version, name) in [
        (Kind::InnoDb, Brand::MariaDb, Version(10, 11, 14), "innodb_adaptive_hash_index"),
        (Kind::InnoDb, Brand::MySql, Version(9, 7, 0), "innodb_adaptive_hash_index"),
        (Kind::RocksDb, Brand::MariaDb, Version(11, 8, 6), "rocksdb_allow_concurrent_memtable_write"),
        (Kind::RocksDb, Brand::MariaDb, Version(11, 8, 6), "rocksdb_enable_write_thread_adaptive_yield"),
    ] {
        let filled = fill(&needs(&kind, brand, version)).unwrap();
        assert!(filled.lines.iter().all(|line| line.name != name), "{name}");
    }
}

/// Each variable has its reason in the comment above it, or is the cache.
#[test]
fn every_variable_of_a_profile_has_a_comment_above_it() {
    let profiles = [
        include_str!("../../profiles/common.toml"),
        include_str!("../../profiles/innodb.toml"),
        include_str!("../../profiles/myrocks.toml"),
        include_str!("../../profiles/other.toml"),
        include_str!("../../profiles/tokudb.toml"),
    ];
    let without: Vec<_> = profiles.iter().flat_map(|text| profile::without_reason(text)).collect();
    assert!(without.is_empty(), "they have no reason in a comment above them: {without:?}");
}

/// With a memory limit of four times its cache, MyRocks was killed during TPC-C's index builds after the load.
#[test]
fn sort_buffers_of_myrocks_follow_its_cache() {
    let small = For { cache: 64 << 20, ..needs(&Kind::RocksDb, Brand::MariaDb, Version(10, 11, 14)) };
    let filled = fill(&small).unwrap();
    let value = |name: &str| filled.lines.iter().find(|line| line.name == name).map(|line| line.value.as_str());
    assert_eq!(value("rocksdb_merge_buf_size"), Some("4194304"));
    assert_eq!(value("rocksdb_merge_combine_read_size"), Some("8388608"));
}

/// Everything that decides how an experiment's engine runs: its keys, and the server's variables from profile and
/// settings.
type Planned = BTreeMap<String, String>;

/// The MySQL-family engines of an experiment, by name.
fn planned(experiment: &DocumentMut) -> Vec<(String, Planned)> {
    let engines = experiment.get("engine").and_then(Item::as_array_of_tables).into_iter().flatten();
    engines.filter_map(|engine| planned_of(engine, experiment.get("common").and_then(Item::as_table))).collect()
}

fn planned_of(engine: &Table, common: Option<&Table>) -> Option<(String, Planned)> {
    let text = |key: &str| engine.get(key).and_then(Item::as_str);
    let name = text("name").or(text("use"))?;
    let kind = match text("use").unwrap_or(name) {
        "innodb" => Kind::InnoDb,
        "myrocks" => Kind::RocksDb,
        _ => return None,
    };
    let mut planned = Planned::new();
    for table in common.into_iter().chain([engine]) {
        let keys = table.iter().filter(|(key, _)| !["name", "optional", "settings"].contains(key));
        planned.extend(keys.map(|(key, value)| (key.to_owned(), plain(value))));
    }
    let (brand, version) = match planned.get("server").map(String::as_str) {
        Some("mysql@5.6") => (Brand::MySql, Version(5, 6, 24)),
        Some("mysql@9.7") => (Brand::MySql, Version(9, 7, 0)),
        Some("mariadb@11.8") => (Brand::MariaDb, Version(11, 8, 6)),
        _ => (Brand::MariaDb, Version(10, 11, 14)),
    };
    let filled = fill(&needs(&kind, brand, version)).unwrap();
    planned.extend(filled.lines.into_iter().map(|line| (line.name, on_or_off(&line.value))));
    let settings = engine.get("settings").and_then(Item::as_table_like);
    planned.extend(
        settings.into_iter().flat_map(|settings| settings.iter().map(|(key, value)| (key.to_owned(), plain(value)))),
    );
    Some((name.to_owned(), planned))
}

fn plain(value: &Item) -> String {
    on_or_off(value.to_string().trim().trim_matches('"'))
}

fn on_or_off(value: &str) -> String {
    match value {
        "ON" => "true".to_owned(),
        "OFF" => "false".to_owned(),
        value => value.to_owned(),
    }
}

fn published(name: &str) -> DocumentMut {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(name);
    std::fs::read_to_string(&file).unwrap().parse().unwrap()
}

/// Two experiments compared an engine with itself, because the profile already contained the other engine's setting.
#[test]
fn no_two_engines_of_a_published_experiment_are_planned_alike() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let names = std::fs::read_dir(files).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The experiments named `aa` compare an engine with itself on purpose, to measure the error rate of verdicts.
    for name in names.filter(|name| name.ends_with(".toml") && !name.starts_with("aa")) {
        let engines = planned(&published(&name));
        for (at, (one, settings)) in engines.iter().enumerate() {
            let alike = engines[..at].iter().find(|(_, other)| other == settings);
            assert!(alike.is_none(), "{name}: {one} is planned as {:?} is", alike.map(|(other, _)| other));
        }
    }
}

#[test]
fn compared_engines_differ_only_in_the_claimed_setting() {
    for (name, one, other, setting) in [
        ("tpcc-settings.toml", "base", "hash-index", "innodb_adaptive_hash_index"),
        ("tpcc-settings.toml", "base", "no-doublewrite", "innodb_doublewrite"),
        ("tpcc-settings.toml", "base", "4k", "innodb_page_size"),
        ("tpcc-settings.toml", "mysql-9.7", "mysql-9.7.no-checksums", "innodb_checksum_algorithm"),
        ("tpcc-settings.toml", "mysql-9.7", "mysql-9.7.concurrency-32", "innodb_thread_concurrency"),
        ("lsm-shape.toml", "merged", "concurrent", "rocksdb_allow_concurrent_memtable_write"),
        ("lsm-shape.toml", "merged", "level0", "rocksdb_override_cf_options"),
    ] {
        let engines: BTreeMap<String, Planned> = planned(&published(name)).into_iter().collect();
        let (one, other) = (&engines[one], &engines[other]);
        let differing: Vec<&String> =
            one.keys().chain(other.keys()).filter(|key| one.get(*key) != other.get(*key)).collect();
        assert!(differing.iter().all(|key| *key == setting) && !differing.is_empty(), "{name}: {differing:?}");
    }
}
