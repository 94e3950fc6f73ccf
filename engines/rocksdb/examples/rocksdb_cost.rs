//! What a call through a session costs in CPU: `cargo run --release -p rumba-engine-rocksdb --example rocksdb_cost`.
//!
//! The data fits the cache and the memtables, so that the figures are calls
//! and not I/O. CPU is this thread's own; background threads are not in it.

use std::error::Error;

use rumba_core::engine::{Engine, EngineConfig, Schema, Session};
use rumba_core::kv::{Batch, KeySpace, KvSession, Scan};
use rumba_core::setting::Value;
use rumba_engine_rocksdb::RocksDb;
use rustix::time::{ClockId, clock_gettime};

const ROWS: u64 = 200_000;
const CALLS: u64 = 200_000;

fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Prints the CPU of `calls` calls of `what`, per call.
fn measure(
    name: &str,
    calls: u64,
    mut what: impl FnMut(u64) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let start = cpu_ns();
    let mut row = 1;
    for _ in 0..calls {
        row = (row * 7919 + 1) % ROWS;
        what(row)?;
    }
    println!("{name:>30} {:>7} ns", (cpu_ns() - start) / calls as i64);
    Ok(())
}

fn key(row: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&(row / 10).to_be_bytes());
    key[8..].copy_from_slice(&row.to_be_bytes());
    key
}

fn run(statistics: bool) -> Result<(), Box<dyn Error>> {
    println!("statistics = {statistics}");
    let dir = tempfile::tempdir()?;
    let config = EngineConfig {
        cache: 512 << 20,
        compression: Some("none".into()),
        library: std::env::args_os().nth(1).map(Into::into),
        settings: [("statistics", Value::Bool(statistics))].into(),
        ..EngineConfig::new("rocksdb")
    };
    let spaces = [("link", false), ("index", true)].map(|(name, derived)| KeySpace { name, scan_prefix: 8, derived });
    let instance = RocksDb.open(dir.path(), &config, Schema::KeyValue(&spaces))?;
    let Session::Kv(mut session) = instance.session()? else { return Err("not a key-value session".into()) };
    let session: &mut dyn KvSession = &mut *session;
    let mut batch = Batch::default();
    let mut next = 0;
    measure("load, per batch of 100 rows", ROWS / 100, |_| {
        batch.clear();
        for _ in 0..100 {
            batch.push(0, &key(next), &[7; 100]);
            next += 1;
        }
        Ok(session.load(&batch)?)
    })?;
    let mut value = Vec::new();
    for place in ["memtable", "table file"] {
        measure(&format!("get, {place}"), CALLS, |row| Ok(session.get(0, &key(row), &mut value).map(drop)?))?;
        measure(&format!("get of nothing, {place}"), CALLS, |row| {
            Ok(session.get(0, &key(row + ROWS), &mut value).map(drop)?)
        })?;
        measure(&format!("multi_get of 10, {place}"), CALLS / 10, |row| {
            let keys: [[u8; 16]; 10] = std::array::from_fn(|offset| key(row + offset as u64));
            let keys: [&[u8]; 10] = std::array::from_fn(|offset| keys[offset].as_slice());
            Ok(session.multi_get(0, &keys, &mut value, &mut |_, _| {})?)
        })?;
        measure(&format!("scan of 10, {place}"), CALLS / 10, |row| {
            let (from, to) = ((row / 10).to_be_bytes(), (row / 10 + 1).to_be_bytes());
            Ok(session.scan(0, Scan { from: &from, to: &to, limit: 100 }, &mut |_, _| {}).map(drop)?)
        })?;
        instance.settle()?;
    }
    measure("begin, rollback", CALLS, |_| {
        session.begin()?;
        Ok(session.rollback()?)
    })?;
    measure("begin, put, commit", CALLS, |row| {
        session.begin()?;
        session.put(0, &key(row), &[8; 100])?;
        Ok(session.commit()?)
    })?;
    for (name, space) in [("begin, 10 puts, commit", 0), ("begin, 10 derived, commit", 1)] {
        measure(name, CALLS / 10, |row| {
            session.begin()?;
            for offset in 0..10 {
                session.put(space, &key(row + offset), &[8; 100])?;
            }
            Ok(session.commit()?)
        })?;
    }
    measure("begin, lock, put, commit", CALLS, |row| {
        session.begin()?;
        session.get_for_update(0, &key(row), &mut value)?;
        session.put(0, &key(row), &[8; 100])?;
        Ok(session.commit()?)
    })?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    run(false)?;
    run(true)
}
