//! Files, deferred work, counters, closing.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::kv::{Batch, KvSession, Scan};
use rumba_testkit::key_value::Database;

use crate::{config, files, load, open, put, unlogged};

fn allocated(database: &Database) -> u64 {
    files(database.dir.path()).iter().map(|file| file.metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn each_compression_stores_less_than_none() {
    let stored = |compression: &str| {
        let database = open(&EngineConfig { compression: Some(compression.into()), ..unlogged() });
        load(&mut *database.session(), 20_000);
        database.instance.settle().unwrap();
        allocated(&database)
    };
    let (none, snappy, zlib) = (stored("none"), stored("snappy"), stored("zlib"));
    assert!(snappy < none / 2 && zlib < snappy, "none {none}, snappy {snappy}, zlib {zlib}");
}

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

/// Loads as a workload does, and retries a batch that conflicts.
fn load_in_the_end(session: &mut dyn KvSession, batch: &Batch) {
    while let Err(error) = session.load(batch) {
        assert!(error.is_conflict(), "{error}");
        std::thread::yield_now();
    }
}

/// Loaders share the tables and their rows interleave. The cache is small, so the library rolls batches back when dirty
/// pages fill it.
#[test]
fn two_loaders_lose_no_row() {
    const ROWS: u32 = 20_000;
    let database = open(&EngineConfig { cache: 8 << 20, ..unlogged() });
    std::thread::scope(|scope| {
        for odd in 0..2 {
            let mut session = database.session();
            scope.spawn(move || {
                let mut batch = Batch::default();
                for row in (odd..ROWS).step_by(2) {
                    batch.push(0, &row.to_be_bytes(), &[b'v'; 500]);
                    if batch.len() == 500 {
                        load_in_the_end(&mut *session, &batch);
                        batch.clear();
                    }
                }
                load_in_the_end(&mut *session, &batch);
            });
        }
    });
    let mut next = 0u32;
    let all = Scan { from: b"", to: &[255], limit: usize::MAX };
    let visit = &mut |key: &[u8], _: &[u8]| {
        assert_eq!(key, next.to_be_bytes());
        next += 1;
    };
    assert_eq!(database.session().scan(0, all, visit).unwrap(), ROWS as usize);
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
fn every_counter_is_there_under_the_library_s_name_and_moves() {
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
