//! Guarantees of the engine to its clients.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::*;
use rumba_engine_api::engine::{Durability, EngineConfig, Instance};
use rumba_engine_api::kv::Batch;
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
use rumba_testkit::allocations::Counting;
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::crash;
use rumba_testkit::key_value::get;
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROWS: usize = 0;

/// A configuration whose map is small enough for valgrind (32 GiB at most).
fn small(durability: Durability) -> EngineConfig {
    config(durability, &[("map_size", Value::Text("1GiB".into()))])
}

fn open() -> (TempDir, Box<dyn Instance>) {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &small(Durability::NoSync));
    (dir, instance)
}

fn counter(instance: &dyn Instance, name: &str) -> f64 {
    instance.counters().into_iter().find(|gauge| gauge.name == name).unwrap().value
}

#[test]
#[each(contract::cases)]
fn key_value_contract(case: &'static str) {
    Contract { engine: &Lmdb, config: small, writer: "commit_until_killed" }.holds(case);
}

#[test]
#[ignore = "run by the contract in a separate process"]
fn commit_until_killed() {
    crash::commit_until_killed(&Lmdb);
}

#[test]
fn empty_value_is_stored_and_empty_key_is_refused() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.begin().unwrap();
    session.put(ROWS, b"k", b"").unwrap();
    let error = session.put(ROWS, b"", b"v").unwrap_err();
    assert!(error.to_string().contains("1 to 511 bytes"), "{error}");
    assert!(session.put(ROWS, &[1; 512], b"v").is_err());
    session.put(ROWS, &[1; 511], b"v").unwrap();
    session.commit().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"k").unwrap(), b"");
}

#[test]
fn sorted_load_fills_pages_and_unsorted_keeps_all_rows() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let mut batch = Batch::default();
    for id in 0..20_000u32 {
        batch.push(ROWS, &id.to_be_bytes(), &[7; 100]);
        batch.push(INDEX, &id.wrapping_mul(2_654_435_761).to_be_bytes(), b"");
        if batch.len() == 2000 {
            session.load(&batch).unwrap();
            batch.clear();
        }
    }
    assert_eq!(counter(&*instance, "rows.entries"), 20_000.0);
    assert_eq!(counter(&*instance, "index.entries"), 20_000.0);
    // 20,000 rows of 4 + 100 bytes, 8 bytes of node header and 2 of its pointer, in
    // pages of 4096 - 16: at least 559 leaves. Half-empty pages would take twice as many.
    let leaves = counter(&*instance, "rows.leaf_pages");
    assert!(leaves < 600.0, "{leaves} leaf pages");
}

#[test]
fn failed_load_leaves_no_rows_and_frees_the_writer_lock() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let mut batch = Batch::default();
    batch.push(ROWS, b"k", b"v");
    batch.push(ROWS, b"", b"an empty key is refused");
    session.load(&batch).unwrap_err();
    assert_eq!(get(&mut *session, ROWS, b"k"), None);
    session.begin().unwrap();
    session.rollback().unwrap();
}

#[test]
fn a_wait_for_the_writer_is_counted() {
    let (_dir, instance) = open();
    let (mut holder, mut waiter) = (session(&*instance), session(&*instance));
    holder.begin().unwrap();
    let wait = || waiter.begin().and_then(|()| waiter.rollback()).unwrap();
    contract::waits_for_the_writer_are_counted(&*instance, wait, || holder.rollback().unwrap());
}

#[test]
fn session_may_change_threads_but_a_transaction_may_not() {
    let (_dir, instance) = open();
    let mut moved = session(&*instance);
    moved.begin().unwrap();
    moved.put(ROWS, b"k", b"v").unwrap();
    let mut moved = std::thread::spawn(move || {
        // Without this refusal the writer lock would stay locked, and the next begin would wait forever.
        let error = moved.commit().unwrap_err();
        assert!(error.to_string().contains("thread that began it"), "{error}");
        assert!(moved.rollback().is_err());
        moved
    })
    .join()
    .unwrap();
    moved.commit().unwrap();
    let value = std::thread::spawn(move || get(&mut *moved, ROWS, b"k")).join().unwrap();
    assert_eq!(value.unwrap(), b"v");
}

#[test]
fn sessions_beyond_reader_slots_are_refused_with_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, &[("max_readers", Value::Int(2))]));
    let _open = [session(&*instance), session(&*instance)];
    let Err(error) = instance.session() else { panic!("a third session got a slot of two") };
    assert!(error.to_string().contains("max_readers"), "{error}");
    assert!(instance.counters().is_empty(), "no slot is left to read them: absent, not zero");
}

#[test]
fn unknown_settings_are_refused() {
    let config = config(Durability::NoSync, &[]);
    contract::unknown_settings_are_refused(&Lmdb, &config, "mapsize", "map_size");
}

#[test]
fn the_flags_in_force_are_those_of_the_durability() {
    for (durability, nosync) in [(Durability::Sync, "false"), (Durability::NoSync, "true"), (Durability::None, "true")]
    {
        let dir = tempfile::tempdir().unwrap();
        let instance = open_in(dir.path(), &config(durability, &[("map_size", Value::Text("1GiB".into()))]));
        let settings = instance.effective_settings();
        let in_force = |name: &str| settings.iter().find(|(n, _)| n == name).unwrap().1.as_str();
        assert_eq!(in_force("nosync"), nosync);
        assert_eq!(in_force("nometasync"), "false");
        assert_eq!(in_force("map_size"), (1u64 << 30).to_string());
        assert!(in_force("cache").contains("page cache"));
    }
}

#[test]
fn pages_freed_by_deletes_are_counted_and_used_again() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let mut replace_all = |value: u8| {
        for id in 0..2000u32 {
            session.begin().unwrap();
            session.put(ROWS, &id.to_be_bytes(), &[value; 500]).unwrap();
            session.commit().unwrap();
        }
    };
    replace_all(1);
    let (used, free) = (counter(&*instance, "used_pages"), counter(&*instance, "free_pages"));
    assert!(free > 0.0, "copy on write frees the old copies");
    replace_all(2);
    let grown = counter(&*instance, "used_pages");
    assert!(grown < used * 1.5, "{used} pages grew to {grown}: freed pages were not used again");
}
