//! Sessions: writes can be read, transactions are atomic, and conflicts are reported.

use std::sync::Barrier;
use std::thread;

use rumba_engine_api::kv::Batch;
use rumba_engine_api::setting::Value;

use super::*;

#[test]
fn what_is_committed_is_read_and_what_is_deleted_is_not() {
    let lab = Lab::open(&config());
    let mut session = lab.session();
    put(&mut *session, NODE, b"a", b"1");
    put(&mut *session, NODE, b"empty", b"");
    put(&mut *session, LINK, b"a", b"other space");
    assert_eq!(get(&mut *session, NODE, b"a"), Some(b"1".to_vec()));
    assert_eq!(get(&mut *session, NODE, b"empty"), Some(vec![]));
    assert_eq!(get(&mut *session, NODE, b"b"), None);
    put(&mut *session, NODE, b"a", b"2");
    assert_eq!(get(&mut *session, NODE, b"a"), Some(b"2".to_vec()));
    session.begin().unwrap();
    session.delete(NODE, b"a").unwrap();
    session.delete(NODE, b"never there").unwrap();
    session.commit().unwrap();
    assert_eq!(get(&mut *session, NODE, b"a"), None);
    assert_eq!(get(&mut *session, LINK, b"a"), Some(b"other space".to_vec()));
    drop(session);
    lab.close();
}

#[test]
fn a_transaction_sees_its_own_writes_and_others_do_not() {
    let lab = Lab::open(&config());
    let (mut ours, mut theirs) = (lab.session(), lab.session());
    put(&mut *ours, LINK, b"aa1", b"old");
    put(&mut *ours, LINK, b"aa3", b"gone");
    ours.begin().unwrap();
    ours.put(LINK, b"aa1", b"new").unwrap();
    ours.put(LINK, b"aa2", b"added").unwrap();
    ours.delete(LINK, b"aa3").unwrap();
    assert_eq!(get(&mut *ours, LINK, b"aa1"), Some(b"new".to_vec()));
    assert_eq!(get(&mut *ours, LINK, b"aa3"), None);
    let seen = [(b"aa1".to_vec(), b"new".to_vec()), (b"aa2".to_vec(), b"added".to_vec())];
    assert_eq!(scan(&mut *ours, LINK, b"aa", b"ab", 9), seen);
    let mut many = Vec::new();
    let keys: [&[u8]; 3] = [b"aa3", b"aa2", b"aa1"];
    ours.multi_get(LINK, &keys, &mut Vec::new(), &mut |position, value| many.push((position, value.to_vec()))).unwrap();
    assert_eq!(many, [(1, b"added".to_vec()), (2, b"new".to_vec())]);
    assert_eq!(get(&mut *theirs, LINK, b"aa1"), Some(b"old".to_vec()));
    assert_eq!(scan(&mut *theirs, LINK, b"aa", b"ab", 9).len(), 2);
    ours.rollback().unwrap();
    assert_eq!(get(&mut *ours, LINK, b"aa1"), Some(b"old".to_vec()));
    assert_eq!(get(&mut *ours, LINK, b"aa2"), None);
    ours.rollback().unwrap();
}

#[test]
fn a_call_outside_its_transaction_is_an_error_and_not_a_crash() {
    let lab = Lab::open(&config());
    let mut session = lab.session();
    assert!(session.put(NODE, b"a", b"1").unwrap_err().to_string().contains("begin one first"));
    assert!(session.commit().is_err());
    session.begin().unwrap();
    assert!(session.begin().unwrap_err().to_string().contains("still open"));
    session.put(NODE, b"a", b"1").unwrap();
    session.commit().unwrap();
}

#[test]
fn many_keys_are_visited_in_the_requested_order() {
    let lab = Lab::open(&config());
    let mut session = lab.session();
    load(&mut *session, NODE, 0..5000);
    lab.settle().unwrap();
    put(&mut *session, NODE, &7u64.to_be_bytes(), b"seven");
    let keys: Vec<[u8; 8]> = [4999u64, 7, 90_000, 0, 7].iter().map(|key| key.to_be_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_slice()).collect();
    for _ in 0..2 {
        let mut positions = Vec::new();
        let mut visit = |position, value: &[u8]| {
            positions.push(position);
            assert_eq!(value == b"seven", keys[position] == 7u64.to_be_bytes());
        };
        session.multi_get(NODE, &keys, &mut Vec::new(), &mut visit).unwrap();
        assert_eq!(positions, [0, 1, 3, 4]);
    }
    session.multi_get(NODE, &[], &mut Vec::new(), &mut |_, _| panic!("nothing was asked for")).unwrap();
}

#[test]
fn scans_keep_to_their_range_order_and_limit() {
    let lab = Lab::open(&config());
    let mut session = lab.session();
    for key in ["aa1", "aa2", "aa3", "ab1", "b", "ba1"] {
        put(&mut *session, LINK, key.as_bytes(), key.as_bytes());
    }
    let mut keys = |from: &str, to: &str, limit| -> Vec<String> {
        let rows = scan(&mut *session, LINK, from.as_bytes(), to.as_bytes(), limit);
        rows.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
    };
    for round in 0..2 {
        assert_eq!(keys("aa2", "aa3", 9), ["aa2"], "round {round}");
        assert_eq!(keys("aa", "ab", 9), ["aa1", "aa2", "aa3"]);
        assert_eq!(keys("aa", "ab", 2), ["aa1", "aa2"]);
        assert_eq!(keys("aa", "c", 9), ["aa1", "aa2", "aa3", "ab1", "b", "ba1"], "across prefixes");
        assert_eq!(keys("a", "b\0", 9).len(), 5, "from a key shorter than the prefix");
        assert!(keys("ac", "b", 9).is_empty());
        assert!(keys("b", "a", 9).is_empty());
        assert!(keys("aa", "ab", 0).is_empty());
        lab.settle().unwrap();
    }
}

#[test]
fn loaded_rows_are_present_and_unlocked() {
    let lab = Lab::open(&config());
    let (mut loader, mut other) = (lab.session(), lab.session());
    other.begin().unwrap();
    other.put(NODE, b"row", b"locked").unwrap();
    let mut batch = Batch::default();
    batch.push(NODE, b"row", b"loaded");
    batch.push(LINK, b"row", b"loaded too");
    loader.load(&batch).unwrap();
    assert_eq!(get(&mut *loader, NODE, b"row"), Some(b"loaded".to_vec()));
    assert_eq!(get(&mut *loader, LINK, b"row"), Some(b"loaded too".to_vec()));
    other.rollback().unwrap();
    loader.load(&Batch::default()).unwrap();
    assert_eq!(get(&mut *other, NODE, b"row"), Some(b"loaded".to_vec()));
}

#[test]
fn a_row_lock_held_elsewhere_is_a_conflict_and_not_a_hang() {
    let lab = Lab::open(&config_with([("transaction_lock_timeout", Value::Int(10))]));
    let (mut first, mut second) = (lab.session(), lab.session());
    first.begin().unwrap();
    first.put(NODE, b"row", b"1").unwrap();
    second.begin().unwrap();
    for _ in 0..2 {
        let mut value = Vec::new();
        assert!(second.put(NODE, b"row", b"2").unwrap_err().is_conflict());
        assert!(second.delete(NODE, b"row").unwrap_err().is_conflict());
        assert!(second.get_for_update(NODE, b"row", &mut value).unwrap_err().is_conflict());
    }
    second.rollback().unwrap();
    first.commit().unwrap();
    put(&mut *second, NODE, b"row", b"2");
    assert_eq!(get(&mut *first, NODE, b"row"), Some(b"2".to_vec()));
}

/// The row of a derived index entry is already locked. A separate lock would be work that the engine's servers do not
/// do.
#[test]
fn derived_entries_are_transactional_but_take_no_locks() {
    let lab = Lab::open(&config_with([("transaction_lock_timeout", Value::Int(10))]));
    let (mut first, mut second) = (lab.session(), lab.session());
    put(&mut *first, INDEX, b"aa0", b"old");
    first.begin().unwrap();
    second.begin().unwrap();
    first.put(INDEX, b"aa1", b"first").unwrap();
    first.delete(INDEX, b"aa0").unwrap();
    first.put(LINK, b"aa1", b"first").unwrap();
    second.put(INDEX, b"aa1", b"second").unwrap();
    second.delete(INDEX, b"aa0").unwrap();
    assert!(second.put(LINK, b"aa1", b"second").unwrap_err().is_conflict(), "a row is locked");

    // Each sees its own entries in reads and in scans, and no other session sees them.
    assert_eq!(get(&mut *first, INDEX, b"aa1"), Some(b"first".to_vec()));
    assert_eq!(get(&mut *first, INDEX, b"aa0"), None);
    assert_eq!(scan(&mut *second, INDEX, b"aa", b"ab", 9), [(b"aa1".to_vec(), b"second".to_vec())]);
    let mut third = lab.session();
    assert_eq!(scan(&mut *third, INDEX, b"aa", b"ab", 9), [(b"aa0".to_vec(), b"old".to_vec())]);

    second.rollback().unwrap();
    assert_eq!(scan(&mut *second, INDEX, b"aa", b"ab", 9).len(), 1, "the old entry, and nothing of the rollback's");
    second.begin().unwrap();
    assert_eq!(get(&mut *second, INDEX, b"aa1"), None, "nor does the next transaction see it");
    first.commit().unwrap();
    second.put(INDEX, b"aa2", b"alone").unwrap();
    second.commit().unwrap();
    let committed = [(b"aa1".to_vec(), b"first".to_vec()), (b"aa2".to_vec(), b"alone".to_vec())];
    assert_eq!(scan(&mut *third, INDEX, b"aa", b"ab", 9), committed);
    assert_eq!(get(&mut *third, LINK, b"aa1"), Some(b"first".to_vec()));
    assert!(third.put(INDEX, b"aa3", b"").unwrap_err().to_string().contains("begin one first"));
    assert!(third.delete(INDEX, b"aa3").unwrap_err().to_string().contains("begin one first"));
}

/// Two transactions wait for each other's row. With an infinite lock timeout only deadlock detection ends the wait, so
/// a failure is a hanging test.
#[test]
fn a_deadlock_is_found_and_ends_one_of_the_two() {
    let lab = Lab::open(&config_with([("transaction_lock_timeout", Value::Int(-1))]));
    let both_hold = Barrier::new(2);
    let one = |mine: &[u8], other: &[u8]| {
        let mut session = lab.session();
        session.begin().unwrap();
        session.put(NODE, mine, b"x").unwrap();
        both_hold.wait();
        let outcome = session.put(NODE, other, b"x");
        session.rollback().unwrap();
        outcome
    };
    let outcomes = thread::scope(|scope| {
        let first = scope.spawn(|| one(b"a", b"b"));
        let second = scope.spawn(|| one(b"b", b"a"));
        [first.join().unwrap(), second.join().unwrap()]
    });
    let conflicts: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(conflicts, [rumba_engine_api::error::EngineError::conflict("deadlock")]);
}

#[test]
fn locked_reads_lose_no_update() {
    const TIMES: u64 = 500;
    let lab = Lab::open(&config());
    put(&mut *lab.session(), NODE, b"counter", &0u64.to_be_bytes());
    let increment = || {
        let mut session = lab.session();
        let mut value = Vec::new();
        let mut done = 0;
        while done < TIMES {
            session.begin().unwrap();
            let tried = session.get_for_update(NODE, b"counter", &mut value).and_then(|found| {
                assert!(found);
                let count = u64::from_be_bytes(value[..].try_into().unwrap());
                session.put(NODE, b"counter", &(count + 1).to_be_bytes())
            });
            match tried.and_then(|()| session.commit()) {
                Ok(()) => done += 1,
                Err(error) if error.is_conflict() => session.rollback().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(increment);
        scope.spawn(increment);
    });
    assert_eq!(get(&mut *lab.session(), NODE, b"counter"), Some((2 * TIMES).to_be_bytes().to_vec()));
}

#[test]
fn close_is_refused_while_a_session_is_open() {
    let mut lab = Lab::open(&config());
    let mut session = lab.session();
    put(&mut *session, NODE, b"a", b"1");
    let error = lab.instance.take().unwrap().close().unwrap_err();
    assert!(error.to_string().contains("a session is still open"), "{error}");
    assert_eq!(get(&mut *session, NODE, b"a"), Some(b"1".to_vec()));
}

#[test]
fn sessions_agree_with_a_sorted_map() {
    key_value::agrees_with_a_map(&RocksDb, &config());
}
