//! Requested settings take effect, or are refused before anything is created.

use rumba_engine_api::engine::{Durability, Engine, EngineConfig};
use rumba_engine_api::setting::{SettingError, Value};
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::{contract, process};

use crate::{config, open, settings, unlogged};

fn refused(list: &[(&str, Value)]) -> SettingError {
    WiredTiger.check(&EngineConfig { settings: settings(list), ..config() }).unwrap_err()
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_one() {
    contract::unknown_settings_are_refused(&WiredTiger, &config(), "evicton_target", "eviction_target");
    assert_eq!(refused(&[("log.filemax", text("1MiB"))]).remedy, "did you mean `log.file_max`?");
    assert!(refused(&[("cache_size", text("1GiB"))]).remedy.contains("`cache`"));
    assert!(refused(&[("block_compressor", text("zlib"))]).remedy.contains("`compression`"));
}

#[test]
fn a_wrong_value_is_refused_in_the_library_s_own_words() {
    let small = refused(&[("leaf_page_max", Value::Int(100))]);
    assert_eq!(small.key, "leaf_page_max");
    assert!(small.problem.contains("the minimum is 512B"), "{}", small.problem);
    assert!(refused(&[("verbose", text("[evictt]"))]).problem.contains("evictt"));
    assert!(refused(&[("eviction.threads_max", Value::Int(21))]).remedy.contains("1 to 20"));
    let tiny = WiredTiger.check(&EngineConfig { cache: 1000, ..config() }).unwrap_err();
    assert_eq!(tiny.key, "cache");
    assert!(tiny.problem.contains("1MB"), "{}", tiny.problem);
}

/// Each value is valid alone; only an open database refuses the combination.
#[test]
fn incompatible_settings_are_refused_before_creation() {
    let eviction = refused(&[("eviction_target", Value::Int(97))]);
    assert!(eviction.problem.contains("eviction target must be lower than the eviction trigger"), "{eviction}");
    let page = refused(&[("leaf_page_max", Value::Int(5000))]);
    assert!(page.problem.contains("multiple of the page allocation size"), "{page}");
}

#[test]
fn settings_that_contradict_the_durability_are_refused() {
    let check = |durability, list: &[(&str, Value)]| {
        WiredTiger.check(&EngineConfig { durability, settings: settings(list), ..config() })
    };
    let with = |durability, name: &str, value| check(durability, &[(name, value)]).unwrap_err().key;
    assert_eq!(with(Durability::None, "log.file_max", text("1MiB")), "log.file_max");
    assert_eq!(with(Durability::None, "checkpoint.log_size", text("1GiB")), "checkpoint.log_size");
    assert_eq!(with(Durability::NoSync, "transaction_sync.method", text("dsync")), "transaction_sync.method");
    assert_eq!(with(Durability::Sync, "transaction_sync.enabled", Value::Bool(false)), "transaction_sync.enabled");
    assert_eq!(with(Durability::Buffered, "transaction_sync.method", text("dsync")), "transaction_sync.method");
    assert_eq!(with(Durability::Buffered, "transaction_sync.enabled", Value::Bool(true)), "transaction_sync.enabled");
    check(Durability::Buffered, &[("log.file_max", text("1MiB"))]).unwrap();
    // A killed process would lose commits.
    assert_eq!(with(Durability::NoSync, "transaction_sync.enabled", Value::Bool(false)), "transaction_sync.enabled");
    for durability in [Durability::Buffered, Durability::NoSync, Durability::Sync] {
        assert_eq!(with(durability, "log.enabled", Value::Bool(false)), "log.enabled");
    }
    // The library would remove the log that covers data files not yet synced.
    assert_eq!(with(Durability::Sync, "checkpoint_sync", Value::Bool(false)), "checkpoint_sync");
    check(Durability::NoSync, &[("checkpoint_sync", Value::Bool(false))]).unwrap();
    // Settings that write commits out are a guarantee, which `none` does not give.
    for (name, value) in [("transaction_sync.enabled", Value::Bool(true)), ("transaction_sync.method", text("fsync"))] {
        let error = check(Durability::None, &[("log.enabled", Value::Bool(true)), (name, value)]).unwrap_err();
        assert_eq!(error.key, name);
    }
}

/// MongoDB's configuration: commits do not wait for their log records.
#[test]
fn durability_none_keeps_an_explicitly_requested_log() {
    let config = EngineConfig {
        durability: Durability::None,
        settings: settings(&[
            ("log.enabled", Value::Bool(true)),
            ("log.file_max", text("1MiB")),
            ("transaction_sync.enabled", Value::Bool(false)),
        ]),
        ..config()
    };
    let database = open(&config);
    crate::load(&mut *database.session(), 1000);
    assert!(database.counter("log: log bytes written") > 100_000.0);
    let in_force = database.instance.effective_settings();
    for (name, value) in [("log.enabled", "true"), ("transaction_sync.enabled", "false")] {
        assert!(in_force.contains(&(name.into(), value.into())), "{name}");
    }
}

/// An open fails if another setting is in force than the requested one, so these are examples.
#[test]
fn effective_settings_match_the_requested_ones() {
    let config = EngineConfig {
        cache: 32 << 20,
        compression: Some("zlib".into()),
        durability: Durability::Sync,
        settings: settings(&[
            ("log.file_max", text("2MiB")),
            ("log.compressor", text("snappy")),
            ("eviction_dirty_trigger", text("8MiB")),
            ("prefix_compression", Value::Bool(true)),
            ("zlib.compression_level", Value::Int(1)),
        ]),
        ..config()
    };
    let database = open(&config);
    let in_force = database.instance.effective_settings();
    for (name, value) in [
        ("cache_size", "33554432"),
        ("log.enabled", "true"),
        ("log.file_max", "2097152"),
        ("log.compressor", "snappy"),
        ("transaction_sync.method", "fsync"),
        ("checkpoint.wait", "60"),
        ("eviction_dirty_trigger", "8388608"),
        ("block_compressor", "zlib"),
        ("prefix_compression", "true"),
        // The library's defaults are reported as well.
        ("memory_page_max", "5MB"),
        ("allocation_size", "4KB"),
    ] {
        let found: Vec<&str> = in_force.iter().filter(|(n, _)| n == name).map(|(_, v)| v.as_str()).collect();
        assert_eq!(found, [value], "{name}");
    }
    let is_state = in_force.iter().any(|(name, _)| name == "checkpoint_lsn");
    assert!(!is_state, "where its last checkpoint lies in the log is no setting, and no two databases have it alike");
    assert_eq!(database.counter("cache: maximum bytes configured"), (32 << 20) as f64);
}

/// The library would let the environment variable override the experiment's settings.
#[test]
fn settings_from_the_environment_are_refused() {
    let output = process::with_test("settings::prints_the_check")
        .env("WIREDTIGER_CONFIG", "eviction_target=50")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("unset WIREDTIGER_CONFIG"), "{printed}");
}

#[test]
#[ignore = "run by the test above in a separate process"]
fn prints_the_check() {
    println!("{:?}", WiredTiger.check(&config()));
}

#[test]
fn the_compression_level_reaches_zlib() {
    let bytes_at = |level| {
        let config = EngineConfig {
            compression: Some("zlib".into()),
            settings: settings(&[("zlib.compression_level", Value::Int(level))]),
            ..unlogged()
        };
        let database = open(&config);
        crate::load(&mut *database.session(), 20_000);
        database.instance.drain().unwrap();
        database.counter("block-manager: bytes written")
    };
    assert!(bytes_at(9) < bytes_at(1));
}
