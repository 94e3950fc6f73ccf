//! Two sessions write the same row: one gets a conflict. It never hangs and no update is lost.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession};

use crate::{config, get, open, put};

fn is_conflict<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.is_conflict())
}

/// Both sessions read the row for update and go on to write it, as the contract requires. One must fail, whether or not
/// the other has committed by then.
#[test]
fn one_of_two_concurrent_updates_of_a_row_fails() {
    type Write = fn(&mut dyn KvSession) -> Result<()>;
    let writes: [Write; 2] = [|session| session.put(0, b"a", b"written"), |session| session.delete(0, b"a")];
    for (first_commits_before, write) in
        [false, true].into_iter().flat_map(|before| writes.map(|write| (before, write)))
    {
        let database = open(&config());
        let (mut one, mut two) = (database.session(), database.session());
        put(&mut *one, b"a", b"0");
        let mut value = Vec::new();
        one.begin().unwrap();
        two.begin().unwrap();
        assert!(one.get_for_update(0, b"a", &mut value).unwrap());
        assert!(two.get_for_update(0, b"a", &mut value).unwrap());
        assert_eq!(value, b"0");
        write(&mut *one).unwrap();
        if first_commits_before {
            one.commit().unwrap();
        }
        assert!(is_conflict(write(&mut *two)), "committed before: {first_commits_before}");
        two.rollback().unwrap();
        one.rollback().unwrap();
        put(&mut *two, b"a", b"2");
    }
}

/// Both sessions see that the key is absent, and both insert it. One must fail, whether or not the other has committed
/// by then.
#[test]
fn one_of_two_concurrent_inserts_of_a_key_fails() {
    for first_commits_before in [false, true] {
        let database = open(&config());
        let (mut one, mut two) = (database.session(), database.session());
        let mut value = Vec::new();
        one.begin().unwrap();
        two.begin().unwrap();
        assert!(!one.get_for_update(0, b"new", &mut value).unwrap());
        assert!(!two.get_for_update(0, b"new", &mut value).unwrap());
        one.put(0, b"new", b"1").unwrap();
        if first_commits_before {
            one.commit().unwrap();
        }
        assert!(is_conflict(two.put(0, b"new", b"2")), "committed before: {first_commits_before}");
        two.rollback().unwrap();
        if !first_commits_before {
            one.commit().unwrap();
        }
        assert_eq!(get(&mut *two, b"new").as_deref(), Some(&b"1"[..]));
    }
}

/// The same after the page has left the cache and come back, when the newer version is known only from storage.
#[test]
fn a_snapshot_older_than_a_checkpoint_still_conflicts() {
    let database = open(&config());
    let (mut one, mut two) = (database.session(), database.session());
    put(&mut *one, b"a", b"0");
    one.begin().unwrap();
    put(&mut *two, b"a", b"1");
    put(&mut *two, b"new", b"1");
    database.instance.settle().unwrap();
    assert!(is_conflict(one.put(0, b"new", b"2")));
    one.rollback().unwrap();
}

/// Another client's commit between two of the reads must not be visible. Otherwise the caller would see a state that
/// never existed.
#[test]
fn many_keys_are_read_from_one_state() {
    let database = open(&config());
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
fn conflicting_load_leaves_nothing_and_can_be_retried() {
    let database = open(&config());
    let (mut session, mut other) = (database.session(), database.session());
    other.begin().unwrap();
    other.put(0, b"b", b"other").unwrap();
    let mut batch = Batch::default();
    batch.push(0, b"a", b"loaded");
    batch.push(0, b"b", b"loaded");
    assert!(session.load(&batch).unwrap_err().is_conflict());
    assert_eq!(
        database.counter("transaction: transactions rolled back"),
        1.0,
        "tried once: the caller counts and waits"
    );
    assert_eq!(get(&mut *session, b"a"), None);
    other.commit().unwrap();
    session.load(&batch).unwrap();
    assert_eq!(get(&mut *session, b"b").as_deref(), Some(&b"loaded"[..]));
}
