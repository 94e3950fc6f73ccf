//! CPU time per call on one thread, by the thread's own clock:
//! `cargo run --release -p rumba-engine-lmdb --example lmdb_cost`
//!
//! It prints what it measures and decides nothing.
#![allow(clippy::unwrap_used)]

use rumba_core::engine::{Durability, Engine, EngineConfig, Schema, Session};
use rumba_core::kv::{Batch, KeySpace, KvSession, Scan};
use rumba_core::setting::Value;
use rumba_engine_lmdb::Lmdb;
use rustix::time::{ClockId, clock_gettime};

const ROWS: u64 = 1_000_000;
const CALLS: u64 = 1_000_000;

fn main() {
    for (durability, writemap) in [(Durability::NoSync, false), (Durability::None, true)] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig {
            cache: 0,
            durability,
            settings: [("writemap", Value::Bool(writemap))].into(),
            ..EngineConfig::new("lmdb")
        };
        let instance = Lmdb
            .open(dir.path(), &config, Schema::KeyValue(&[KeySpace { name: "rows", scan_prefix: 0, derived: false }]))
            .unwrap();
        let Ok(Session::Kv(mut session)) = instance.session() else { panic!("no key-value session") };
        println!("durability {}, writemap {writemap}", durability.name());
        measure(&mut *session);
    }
}

fn measure(session: &mut dyn KvSession) {
    let mut batch = Batch::default();
    report("load, per row", ROWS, || {
        for id in 0..ROWS {
            batch.push(0, &id.to_be_bytes(), &[7; 128]);
            if batch.len() == 1024 || id + 1 == ROWS {
                session.load(&batch).unwrap();
                batch.clear();
            }
        }
    });
    let mut value = Vec::new();
    let mut random = 1u64;
    let mut key = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 32) % ROWS).to_be_bytes()
    };
    report("get", CALLS, || (0..CALLS).for_each(|_| assert!(session.get(0, &key(), &mut value).unwrap())));
    report("scan of 10", CALLS / 10, || {
        for _ in 0..CALLS / 10 {
            session.scan(0, Scan { from: &key(), to: &[0xff; 9], limit: 10 }, &mut |_, _| {}).unwrap();
        }
    });
    report("begin, get_for_update, put, commit", CALLS / 10, || {
        for _ in 0..CALLS / 10 {
            let key = key();
            session.begin().unwrap();
            session.get_for_update(0, &key, &mut value).unwrap();
            session.put(0, &key, &[9; 128]).unwrap();
            session.commit().unwrap();
        }
    });
}

fn report(what: &str, calls: u64, work: impl FnOnce()) {
    let cpu_ns = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let before = cpu_ns();
    work();
    println!("  {what}: {} ns of CPU", (cpu_ns() - before) / calls);
}
