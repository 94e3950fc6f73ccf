//! Files, deferred work, counters, closing.

use std::path::Path;

use rumba_engine_api::engine::{Durability, EngineConfig};

use crate::{config, load, open, put};

#[test]
fn log_files_are_distinguished_from_data() {
    let database = open(&config());
    for (file, log) in [
        ("WiredTigerLog.0000000001", true),
        ("WiredTigerPreplog.0000000002", true),
        ("WiredTiger.wt", false),
        ("link.wt", false),
    ] {
        assert_eq!(database.instance.is_log(Path::new(file)), log, "{file}");
    }
}

/// Each level must cost what it guarantees: a sync at every commit, or none.
#[test]
fn only_durability_sync_syncs_at_commit() {
    let syncs = |durability| {
        let database = open(&EngineConfig { durability, ..config() });
        let mut session = database.session();
        let before = database.counter("log: log sync operations");
        for turn in 0..100u8 {
            put(&mut *session, &[turn], b"value");
        }
        database.counter("log: log sync operations") - before
    };
    assert!(syncs(Durability::Sync) >= 100.0);
    assert!(syncs(Durability::NoSync) < 10.0);
}

#[test]
fn drain_leaves_next_to_nothing_dirty() {
    let database = open(&config());
    load(&mut *database.session(), 20_000);
    let debt = || database.instance.debt().iter().map(|gauge| gauge.value).sum::<f64>();
    let before = debt();
    assert!(before > 1e6, "{before}");
    database.instance.drain().unwrap();
    let after = debt();
    assert!(after < 64.0 * 1024.0, "{after} of {before} left");
}

#[test]
fn every_counter_has_the_librarys_name_and_moves() {
    let database = open(&config());
    load(&mut *database.session(), 20_000);
    database.instance.settle().unwrap();
    // Every name in the list must be reported, because a statistic renamed by the library would be dropped silently.
    let counters = database.instance.counters();
    let (waited, counted): (Vec<_>, Vec<_>) = counters.iter().partition(|gauge| gauge.name.starts_with("waited_"));
    assert_eq!(counted.len(), 42);
    let waited: Vec<&str> = waited.iter().map(|gauge| gauge.name.as_str()).collect();
    assert_eq!(waited, ["waited_page_reads_us", "waited_evicting_us", "waited_cache_us"]);
    for name in [
        "cache: bytes written from cache",
        "block-manager: bytes written",
        "block-manager: bytes written for checkpoint",
        "log: log bytes written",
        "transaction: transaction checkpoints",
        "transaction: transactions committed",
        "connection: total write I/Os",
    ] {
        assert!(database.counter(name) > 0.0, "{name}");
    }
}
