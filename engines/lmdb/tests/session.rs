//! Guarantees of the engine to its clients.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::*;
use rumba_engine_api::engine::{Durability, Engine, Schema};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::kv::{Batch, KvSession, Scan};
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
use rumba_testkit::key_value;

fn all(session: &mut dyn KvSession, scan: Scan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    let count = session.scan(ROWS, scan, &mut |key, value| seen.push((key.to_vec(), value.to_vec()))).unwrap();
    assert_eq!(count, seen.len());
    seen
}

fn keys(session: &mut dyn KvSession, from: &[u8], to: &[u8], limit: usize) -> Vec<Vec<u8>> {
    all(session, Scan { from, to, limit }).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn own_writes_are_visible_at_once_and_to_others_on_commit() {
    let (_dir, instance) = open();
    let (mut writer, mut other) = (session(&*instance), session(&*instance));
    writer.begin().unwrap();
    writer.put(ROWS, b"k", b"one").unwrap();
    assert_eq!(get(&mut *writer, ROWS, b"k").unwrap(), b"one");
    assert_eq!(get(&mut *other, ROWS, b"k"), None);
    assert_eq!(keys(&mut *writer, b"", b"z", 10), [b"k"]);
    assert!(keys(&mut *other, b"", b"z", 10).is_empty());
    writer.commit().unwrap();
    assert_eq!(get(&mut *other, ROWS, b"k").unwrap(), b"one");
    assert_eq!(get(&mut *other, INDEX, b"k"), None, "key spaces are apart");
    writer.begin().unwrap();
    let mut value = Vec::new();
    assert!(writer.get_for_update(ROWS, b"k", &mut value).unwrap());
    assert_eq!(value, b"one");
    writer.delete(ROWS, b"k").unwrap();
    writer.delete(ROWS, b"never there").unwrap();
    assert_eq!(get(&mut *writer, ROWS, b"k"), None);
    writer.commit().unwrap();
    assert_eq!(get(&mut *other, ROWS, b"k"), None);
}

#[test]
fn a_rollback_leaves_nothing_and_may_come_twice() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.rollback().unwrap();
    session.begin().unwrap();
    session.put(ROWS, b"k", b"v").unwrap();
    session.rollback().unwrap();
    session.rollback().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"k"), None);
    session.begin().unwrap();
    session.put(ROWS, b"k", b"v").unwrap();
    session.commit().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"k").unwrap(), b"v");
}

#[test]
fn dropped_session_rolls_back_and_frees_the_writer_lock() {
    let (_dir, instance) = open();
    let mut dropped = session(&*instance);
    dropped.begin().unwrap();
    dropped.put(ROWS, b"k", b"v").unwrap();
    drop(dropped);
    let mut session = session(&*instance);
    session.begin().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"k"), None);
    session.commit().unwrap();
}

#[test]
fn writes_and_locked_reads_outside_a_transaction_are_refused() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    for refused in [
        session.put(ROWS, b"k", b"v"),
        session.delete(ROWS, b"k"),
        session.get_for_update(ROWS, b"k", &mut Vec::new()).map(drop),
        session.commit(),
    ] {
        assert!(refused.unwrap_err().to_string().contains("begin one first"));
    }
    session.begin().unwrap();
    assert!(session.begin().unwrap_err().to_string().contains("end it first"), "not a wait for oneself");
}

#[test]
fn a_scan_visits_in_key_order_within_its_bounds_and_limit() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.begin().unwrap();
    for key in [&b"d"[..], b"a", b"c", b"b", b"\xff\xff"] {
        session.put(ROWS, key, b"v").unwrap();
    }
    session.put(INDEX, b"bb", b"another space").unwrap();
    // The same answers inside the transaction, and twice outside it. The second time uses the cursor that the session
    // keeps.
    for round in 0..3 {
        if round == 1 {
            session.commit().unwrap();
        }
        assert_eq!(keys(&mut *session, b"", b"\xff\xff\xff", 9).len(), 5);
        assert_eq!(keys(&mut *session, b"a", b"d", 9), [b"a", b"b", b"c"], "to is exclusive");
        assert_eq!(keys(&mut *session, b"aa", b"zz", 2), [b"b", b"c"], "the limit ends it");
        assert!(keys(&mut *session, b"a", b"z", 0).is_empty());
        assert!(keys(&mut *session, b"d", b"a", 9).is_empty(), "an inverted range is empty");
        assert!(keys(&mut *session, b"e", b"f", 9).is_empty());
    }
}

#[test]
fn a_kept_cursor_sees_what_was_committed_since() {
    let (_dir, instance) = open();
    let (mut reader, mut writer) = (session(&*instance), session(&*instance));
    assert!(keys(&mut *reader, b"a", b"z", 9).is_empty());
    for (count, key) in [(1, b"a"), (2, b"b"), (3, b"c")] {
        writer.begin().unwrap();
        writer.put(ROWS, key, b"v").unwrap();
        writer.commit().unwrap();
        assert_eq!(keys(&mut *reader, b"a", b"z", 9).len(), count);
    }
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
    assert_eq!(all(&mut *session, Scan { from: b"k", to: b"l", limit: 9 }), [(b"k".to_vec(), Vec::new())]);
}

#[test]
fn multi_get_names_the_positions_of_the_keys_that_exist() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.begin().unwrap();
    session.put(ROWS, b"a", b"1").unwrap();
    session.put(ROWS, b"c", b"3").unwrap();
    for inside in [true, false] {
        let mut seen = Vec::new();
        let keys: [&[u8]; 3] = [b"c", b"b", b"a"];
        session.multi_get(ROWS, &keys, &mut Vec::new(), &mut |at, value| seen.push((at, value.to_vec()))).unwrap();
        assert_eq!(seen, [(0, b"3".to_vec()), (2, b"1".to_vec())]);
        if inside {
            session.commit().unwrap();
        }
    }
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
    // Rows that sort before the last one, and one that exists already.
    batch.clear();
    batch.push(ROWS, &[0], b"first");
    batch.push(ROWS, &5u32.to_be_bytes(), b"replaced");
    batch.push(ROWS, &[9], b"last");
    session.load(&batch).unwrap();
    assert_eq!(get(&mut *session, ROWS, &[0]).unwrap(), b"first");
    assert_eq!(get(&mut *session, ROWS, &5u32.to_be_bytes()).unwrap(), b"replaced");
    assert_eq!(counter(&*instance, "rows.entries"), 20_002.0);
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
fn two_clients_that_increment_one_counter_lose_no_update() {
    const EACH: u64 = 2000;
    let (_dir, instance) = open();
    std::thread::scope(|scope| {
        for mut session in [session(&*instance), session(&*instance)] {
            scope.spawn(move || {
                let mut value = Vec::new();
                let mut done = 0;
                while done < EACH {
                    session.begin().unwrap();
                    session.get_for_update(ROWS, b"counter", &mut value).unwrap();
                    let count = value.as_slice().try_into().map_or(0, u64::from_be_bytes);
                    session.put(ROWS, b"counter", &(count + 1).to_be_bytes()).unwrap();
                    match session.commit() {
                        Ok(()) => done += 1,
                        Err(error) if error.is_conflict() => session.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let value = get(&mut *session(&*instance), ROWS, b"counter").unwrap();
    assert_eq!(value, (2 * EACH).to_be_bytes());
}

/// Users of an engine with a single writer need to know how long sessions wait for it.
#[test]
fn a_wait_for_the_writer_is_counted() {
    const HELD: Duration = Duration::from_millis(200);
    let (_dir, instance) = open();
    let waited_us = || {
        let counters = instance.counters();
        counters.iter().find(|counter| counter.name == "waited_writer_us").unwrap().value
    };
    let (mut holder, mut waiter) = (session(&*instance), session(&*instance));
    for _ in 0..100 {
        holder.begin().unwrap();
        holder.rollback().unwrap();
    }
    let alone_us = waited_us();
    holder.begin().unwrap();
    let begun = Instant::now();
    let (begins, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || {
            begins.send(()).unwrap();
            waiter.begin().unwrap();
            let waited = begun.elapsed();
            waiter.rollback().unwrap();
            waited
        });
        seen.recv().unwrap();
        std::thread::sleep(HELD);
        holder.rollback().unwrap();
        let waited = waits.join().unwrap();
        let counted_us = waited_us() - alone_us;
        assert!(counted_us > 0.0 && counted_us <= waited.as_micros() as f64, "{counted_us} of {waited:?}");
    });
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
fn committed_data_survives_close_at_every_durability() {
    let offered = Durability::NAMES.into_iter().filter(|(_, level)| *level != Durability::Buffered);
    for (name, durability) in offered {
        for writemap in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let config = config(durability, &[("writemap", Value::Bool(writemap))]);
            let instance = open_in(dir.path(), &config);
            let mut first = session(&*instance);
            first.begin().unwrap();
            first.put(ROWS, b"k", b"v").unwrap();
            first.commit().unwrap();
            instance.drain().unwrap();
            drop(first);
            instance.close().unwrap();
            let instance = open_in(dir.path(), &config);
            assert_eq!(get(&mut *session(&*instance), ROWS, b"k").unwrap(), b"v", "{name}, writemap {writemap}");
        }
    }
}

#[test]
fn closing_under_open_sessions_is_an_error_that_counts_them() {
    let (_dir, instance) = open();
    let _open = [session(&*instance), session(&*instance)];
    let error = instance.close().unwrap_err();
    assert!(error.to_string().contains("2 sessions are still open"), "{error}");
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

/// Otherwise readers would assume that `cache` limited LMDB's memory.
#[test]
fn it_says_that_it_has_no_cache_of_its_own() {
    assert!(!Lmdb.info().has_cache);
}

#[test]
fn unknown_settings_are_refused_with_the_nearest_match() {
    let error = Lmdb.check(&config(Durability::NoSync, &[("mapsize", Value::Text("1GiB".into()))])).unwrap_err();
    assert_eq!((error.key.as_str(), error.remedy.as_str()), ("mapsize", "did you mean `map_size`?"));
}

#[test]
fn what_lmdb_cannot_do_is_refused_with_what_it_can() {
    let mut zstd = config(Durability::NoSync, &[]);
    zstd.compression = Some("zstd".into());
    let error = Lmdb.check(&zstd).unwrap_err();
    assert!(error.problem.contains("zstd") && error.remedy.contains("it has: none"), "{error:?}");
    assert!(matches!(
        Lmdb.open(std::path::Path::new("."), &zstd, Schema::KeyValue(&SPACES)),
        Err(EngineError::Failed { .. })
    ));
    zstd.compression = Some("none".into());
    Lmdb.check(&zstd).unwrap();
    zstd.library = Some("liblmdb.so".into());
    assert_eq!(Lmdb.check(&zstd).unwrap_err().key, "library");
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

#[test]
fn every_sequence_of_calls_agrees_with_a_map() {
    key_value::agrees_with_a_map(&Lmdb, &small(Durability::NoSync));
}
