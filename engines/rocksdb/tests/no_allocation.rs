//! The load path must not allocate memory on rumba's side once buffers have grown, because that client cost would be
//! counted for the engine.
#![allow(clippy::unwrap_used)]

use rumba_testkit::allocations::{self, Counting};
use std::cell::Cell;

use rumba_engine_api::engine::{Engine, EngineConfig, Schema, Session};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::kv::{Batch, KeySpace, KvSession, Scan};
use rumba_engine_api::setting::Value;
use rumba_engine_rocksdb::RocksDb;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts this thread's Rust allocations. RocksDB's own go directly to malloc.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every kind of session call once.
fn everything(session: &mut dyn KvSession, other: &mut dyn KvSession, value: &mut Vec<u8>, batch: &Batch) {
    session.load(batch).unwrap();
    assert!(session.get(0, b"ab1", value).unwrap());
    assert!(!session.get(0, b"absent", value).unwrap());
    let mut seen = 0;
    session.multi_get(0, &[b"ab2", b"absent", b"ab1"], value, &mut |_, _| seen += 1).unwrap();
    let range = Scan { from: b"ab", to: b"ac", limit: 10 };
    seen += session.scan(0, range, &mut |_, _| {}).unwrap();
    session.begin().unwrap();
    session.get_for_update(0, b"ab1", value).unwrap();
    session.put(0, b"ab3", b"three").unwrap();
    session.delete(0, b"ab3").unwrap();
    session.put(1, b"ab3", b"entry").unwrap();
    session.delete(1, b"ab3").unwrap();
    session.multi_get(0, &[b"ab2", b"ab1"], value, &mut |_, _| seen += 1).unwrap();
    seen += session.scan(0, range, &mut |_, _| {}).unwrap();
    assert_eq!(seen, 8);
    other.begin().unwrap();
    assert!(matches!(other.put(0, b"ab1", b""), Err(EngineError::Conflict { .. })));
    other.rollback().unwrap();
    session.commit().unwrap();
}

#[test]
fn nothing_on_the_load_path_allocates() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig {
        cache: 8 << 20,
        settings: [("transaction_lock_timeout", Value::Int(1))].into(),
        ..EngineConfig::new("rocksdb")
    };
    let spaces = [("link", false), ("index", true)].map(|(name, derived)| KeySpace { name, scan_prefix: 2, derived });
    let instance = RocksDb.open(dir.path(), &config, Schema::KeyValue(&spaces)).unwrap();
    let (Session::Kv(mut session), Session::Kv(mut other)) = (instance.session().unwrap(), instance.session().unwrap())
    else {
        unreachable!("rocksdb is a key-value engine");
    };
    let mut batch = Batch::default();
    for key in [b"ab1", b"ab2"] {
        batch.push(0, key, b"value");
    }
    let mut value = Vec::new();
    everything(&mut *session, &mut *other, &mut value, &batch);
    let before = allocations::count();
    for _ in 0..50 {
        everything(&mut *session, &mut *other, &mut value, &batch);
    }
    assert_eq!(allocations::count() - before, 0);
    drop((session, other));
    instance.close().unwrap();
}
