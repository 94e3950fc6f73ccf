//! Tests each call of a session separately.

use rumba_engine_api::kv::{Batch, Scan};
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::key_value;

use crate::{Database, config, get, load, put, unlogged};

#[test]
fn what_is_put_is_read_replaced_and_removed() {
    let database = Database::open(&config());
    let mut session = database.session();
    put(&mut *session, b"a", b"one");
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"one"[..]));
    put(&mut *session, b"a", b"");
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b""[..]));
    assert_eq!(get(&mut *session, b"absent"), None);

    session.begin().unwrap();
    session.delete(0, b"a").unwrap();
    session.delete(0, b"absent").unwrap();
    session.commit().unwrap();
    assert_eq!(get(&mut *session, b"a"), None);
    drop(session);
    database.instance.close().unwrap();
}

#[test]
fn uncommitted_writes_are_visible_only_to_their_owner() {
    let database = Database::open(&config());
    let (mut writer, mut reader) = (database.session(), database.session());
    put(&mut *writer, b"a", b"old");

    writer.begin().unwrap();
    writer.put(0, b"a", b"new").unwrap();
    writer.put(0, b"b", b"new").unwrap();
    assert_eq!(get(&mut *writer, b"a").as_deref(), Some(&b"new"[..]));
    let mut seen = Vec::new();
    let all = Scan { from: b"", to: b"z", limit: 9 };
    writer.scan(0, all, &mut |key, value| seen.push((key.to_vec(), value.to_vec()))).unwrap();
    assert_eq!(seen, [(b"a".to_vec(), b"new".to_vec()), (b"b".to_vec(), b"new".to_vec())]);
    assert_eq!(get(&mut *reader, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&mut *reader, b"b"), None);

    writer.commit().unwrap();
    assert_eq!(get(&mut *reader, b"a").as_deref(), Some(&b"new"[..]));
    assert_eq!(get(&mut *reader, b"b").as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_rollback_undoes_puts_and_deletes_and_needs_no_transaction() {
    let database = Database::open(&config());
    let mut session = database.session();
    put(&mut *session, b"a", b"old");
    session.begin().unwrap();
    session.put(0, b"a", b"new").unwrap();
    session.put(0, b"b", b"new").unwrap();
    session.delete(0, b"a").unwrap();
    session.rollback().unwrap();
    session.rollback().unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&mut *session, b"b"), None);
}

#[test]
fn a_dropped_session_takes_its_transaction_with_it() {
    let database = Database::open(&config());
    let mut session = database.session();
    session.begin().unwrap();
    session.put(0, b"a", b"never committed").unwrap();
    drop(session);
    let mut next = database.session();
    put(&mut *next, b"a", b"no conflict");
    assert_eq!(get(&mut *next, b"a").as_deref(), Some(&b"no conflict"[..]));
}

#[test]
fn a_write_outside_a_transaction_is_refused_not_committed_alone() {
    let database = Database::open(&config());
    let mut session = database.session();
    let mut value = Vec::new();
    for error in [
        session.put(0, b"a", b"1").unwrap_err(),
        session.delete(0, b"a").unwrap_err(),
        session.get_for_update(0, b"a", &mut value).unwrap_err(),
        session.commit().unwrap_err(),
    ] {
        assert!(error.to_string().contains("call begin first"), "{error}");
    }
    assert_eq!(get(&mut *session, b"a"), None);
}

#[test]
fn key_spaces_are_apart() {
    let database = Database::open(&config());
    let mut session = database.session();
    session.begin().unwrap();
    session.put(0, b"k", b"link").unwrap();
    session.put(1, b"k", b"count").unwrap();
    session.commit().unwrap();
    let mut value = Vec::new();
    assert!(session.get(1, b"k", &mut value).unwrap());
    assert_eq!(value, b"count");
    assert!(session.get(0, b"k", &mut value).unwrap());
    assert_eq!(value, b"link");
}

#[test]
fn a_scan_keeps_order_bounds_and_limit() {
    let database = Database::open(&config());
    let mut session = database.session();
    load(&mut *session, 2500);
    let mut scan = |from: &[u8], to: &[u8], limit| {
        let mut keys = Vec::new();
        let count = session
            .scan(0, Scan { from, to, limit }, &mut |key, _| keys.push(String::from_utf8_lossy(key).into_owned()))
            .unwrap();
        assert_eq!(count, keys.len());
        keys
    };
    // `from` is visited, `to` is not.
    assert_eq!(scan(b"key 00000007", b"key 00000009", 99), ["key 00000007", "key 00000008"]);
    // Bounds that are not keys themselves.
    assert_eq!(scan(b"key 00000007x", b"key 00000009x", 99), ["key 00000008", "key 00000009"]);
    assert_eq!(scan(b"key 00000100", b"z", 3), ["key 00000100", "key 00000101", "key 00000102"]);
    let all = scan(b"", b"z", usize::MAX);
    assert_eq!(all.len(), 2500);
    assert!(all.is_sorted());
    for empty in [scan(b"z", b"zz", 9), scan(b"", b"a", 9), scan(b"b", b"a", 9), scan(b"key", b"z", 0)] {
        assert!(empty.is_empty());
    }
}

#[test]
fn many_keys_are_read_with_their_positions() {
    let database = Database::open(&config());
    let mut session = database.session();
    load(&mut *session, 10);
    let keys: [&[u8]; 3] = [b"key 00000003", b"absent", b"key 00000001"];
    let (mut scratch, mut seen) = (Vec::new(), Vec::new());
    session.multi_get(0, &keys, &mut scratch, &mut |position, value| seen.push((position, value.to_vec()))).unwrap();
    assert_eq!(seen.iter().map(|(position, _)| *position).collect::<Vec<_>>(), [0, 2]);
    assert!(seen[1].1.starts_with(b"value 00000001"));
}

/// Another client's commit between two of the reads must not be visible. Otherwise the caller would see a state that
/// never existed.
#[test]
fn many_keys_are_read_from_one_state() {
    let database = Database::open(&config());
    let (mut session, mut other) = (database.session(), database.session());
    put(&mut *other, b"a", b"old");
    put(&mut *other, b"b", b"old");
    for inside in [false, true] {
        if inside {
            session.begin().unwrap();
        }
        let (mut scratch, mut seen) = (Vec::new(), Vec::new());
        session
            .multi_get(0, &[b"a", b"b"], &mut scratch, &mut |_, value| {
                seen.push(value.to_vec());
                put(&mut *other, b"b", b"new");
            })
            .unwrap();
        let expected: &[u8] = if inside { b"new" } else { b"old" };
        assert_eq!(seen[1], expected, "inside a transaction: {inside}");
        if inside {
            session.rollback().unwrap();
        }
    }
    // No transaction is left open, and the next read sees the latest state.
    assert_eq!(get(&mut *session, b"b").as_deref(), Some(&b"new"[..]));
    put(&mut *session, b"b", b"newer");
}

#[test]
fn a_load_that_conflicts_leaves_nothing_and_may_be_tried_again() {
    let database = Database::open(&config());
    let (mut session, mut other) = (database.session(), database.session());
    other.begin().unwrap();
    other.put(0, b"b", b"other").unwrap();
    let mut batch = Batch::default();
    batch.push(0, b"a", b"loaded");
    batch.push(0, b"b", b"loaded");
    assert!(session.load(&batch).unwrap_err().is_conflict());
    assert_eq!(database.gauge("transaction: transactions rolled back"), 1.0, "tried once: the caller counts and waits");
    assert_eq!(get(&mut *session, b"a"), None);
    other.commit().unwrap();
    session.load(&batch).unwrap();
    assert_eq!(get(&mut *session, b"b").as_deref(), Some(&b"loaded"[..]));
}

/// Long values are stored in overflow pages. They must be readable from storage and not only from memory.
#[test]
fn long_values_survive_a_checkpoint() {
    let database = Database::open(&config());
    let mut session = database.session();
    let long = vec![7u8; 300_000];
    put(&mut *session, b"long", &long);
    database.instance.drain().unwrap();
    assert_eq!(get(&mut *session, b"long"), Some(long));
}

#[test]
fn a_session_is_a_sorted_map_with_transactions() {
    key_value::agrees_with_a_map(&WiredTiger, &unlogged());
}
