//! Two sessions write the same row: one gets a conflict. It never hangs and no update is lost.

use rumba_engine_api::error::EngineError;
use rumba_engine_api::kv::KvSession;

use crate::{Database, config, get, put, unlogged};

fn is_conflict<T>(result: Result<T, EngineError>) -> bool {
    result.is_err_and(|error| error.is_conflict())
}

#[test]
fn a_second_writer_of_a_row_gets_a_conflict() {
    let database = Database::open(&config());
    let (mut one, mut two) = (database.session(), database.session());
    put(&mut *one, b"a", b"0");
    one.begin().unwrap();
    two.begin().unwrap();
    one.put(0, b"a", b"1").unwrap();
    assert!(is_conflict(two.put(0, b"a", b"2")));
    two.rollback().unwrap();
    two.begin().unwrap();
    assert!(is_conflict(two.delete(0, b"a")));
    two.rollback().unwrap();
    one.commit().unwrap();
    assert_eq!(get(&mut *two, b"a").as_deref(), Some(&b"1"[..]));
}

/// Both sessions read the row for update and go on to write it, as the contract requires. One must fail, whether or not
/// the other has committed by then.
#[test]
fn of_two_that_read_a_row_for_update_one_fails() {
    type Write = fn(&mut dyn KvSession) -> Result<(), EngineError>;
    let writes: [Write; 2] = [|session| session.put(0, b"a", b"written"), |session| session.delete(0, b"a")];
    for (first_commits_before, write) in
        [false, true].into_iter().flat_map(|before| writes.map(|write| (before, write)))
    {
        let database = Database::open(&config());
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

/// A write must be based on the row's latest version, not on the snapshot's.
#[test]
fn write_after_a_stale_read_for_update_conflicts() {
    let database = Database::open(&config());
    let (mut one, mut two) = (database.session(), database.session());
    put(&mut *one, b"a", b"0");
    let mut value = Vec::new();
    one.begin().unwrap();
    put(&mut *two, b"a", b"1");
    assert!(one.get_for_update(0, b"a", &mut value).unwrap());
    assert_eq!(value, b"0", "the snapshot's");
    assert!(is_conflict(one.put(0, b"a", b"2")));
    one.rollback().unwrap();
    one.begin().unwrap();
    assert!(one.get_for_update(0, b"a", &mut value).unwrap());
    assert_eq!(value, b"1");
    one.put(0, b"a", b"2").unwrap();
    one.commit().unwrap();
    assert_eq!(get(&mut *two, b"a").as_deref(), Some(&b"2"[..]));
}

/// Both sessions see that the key is absent, and both insert it. One must fail, whether or not the other has committed
/// by then.
#[test]
fn of_two_inserts_of_an_absent_key_one_fails() {
    for first_commits_before in [false, true] {
        let database = Database::open(&config());
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
    let database = Database::open(&config());
    let (mut one, mut two) = (database.session(), database.session());
    put(&mut *one, b"a", b"0");
    one.begin().unwrap();
    put(&mut *two, b"a", b"1");
    put(&mut *two, b"new", b"1");
    database.instance.settle().unwrap();
    assert!(is_conflict(one.put(0, b"new", b"2")));
    one.rollback().unwrap();
}

fn retried(session: &mut dyn KvSession, mut work: impl FnMut(&mut dyn KvSession) -> Result<(), EngineError>) {
    loop {
        session.begin().unwrap();
        match work(session).and_then(|()| session.commit()) {
            Ok(()) => return,
            Err(error) => {
                assert!(error.is_conflict(), "{error}");
                session.rollback().unwrap();
            }
        }
    }
}

/// The first increments of each key race to insert it.
#[test]
fn two_clients_that_count_to_n_reach_2n() {
    const N: u64 = 5_000;
    let database = Database::open(&unlogged());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let mut session = database.session();
            scope.spawn(move || {
                let mut value = Vec::new();
                for turn in 0..N {
                    let key = [(turn % 50) as u8];
                    retried(&mut *session, |session| {
                        let found = session.get_for_update(0, &key, &mut value)?;
                        let count = if found { u64::from_le_bytes(value[..].try_into().unwrap()) } else { 0 };
                        session.put(0, &key, &(count + 1).to_le_bytes())
                    });
                }
            });
        }
    });
    let mut session = database.session();
    let counts = (0..50u8).map(|key| u64::from_le_bytes(get(&mut *session, &[key]).unwrap().try_into().unwrap()));
    assert_eq!(counts.sum::<u64>(), 2 * N);
}
