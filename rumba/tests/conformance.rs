//! Every engine answers LinkBench's operations as the in-memory oracle does.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

use rumba_core::engine::{Asked, Durability, Engine, EngineConfig, Session};
use rumba_core::setting::Settings;
use rumba_workload_linkbench::{conformance, spaces};

const STEPS: usize = 4_000;

fn conforms(engine: &dyn Engine, compression: Option<&str>, durability: Durability) {
    let availability = engine.availability(Asked::default());
    assert!(availability.missing.is_none(), "{}: {:?}", engine.name(), availability.missing);
    for seed in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig {
            name: engine.name().to_owned(),
            engine: engine.name().to_owned(),
            cache: 4 << 20,
            durability,
            compression: compression.map(str::to_owned),
            library: None,
            server: None,
            limits: Default::default(),
            settings: Settings::default(),
        };
        engine.check(&config).unwrap();
        let instance = engine.open(dir.path(), &config, &spaces()).unwrap();
        let mut open = || -> Session { instance.session().unwrap() };
        conformance(&mut open, seed, STEPS).unwrap_or_else(|why| panic!("{}, seed {seed}: {why}", engine.name()));
        instance.close().unwrap();
    }
}

#[test]
fn rocksdb_conforms() {
    conforms(&rumba_engine_rocksdb::RocksDb, Some("none"), Durability::NoSync);
    conforms(&rumba_engine_rocksdb::RocksDb, Some("zstd"), Durability::None);
}

#[cfg(feature = "wiredtiger")]
#[test]
fn wiredtiger_conforms() {
    conforms(&rumba_engine_wiredtiger::WiredTiger, Some("none"), Durability::None);
    conforms(&rumba_engine_wiredtiger::WiredTiger, Some("snappy"), Durability::NoSync);
}

#[test]
fn lmdb_conforms() {
    conforms(&rumba_engine_lmdb::Lmdb, None, Durability::NoSync);
}

#[test]
fn sqlite_conforms() {
    conforms(&rumba_engine_sqlite::Sqlite, None, Durability::NoSync);
}
