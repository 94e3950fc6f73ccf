//! Two sessions write the same row: one waits or gets a conflict, and no update is lost.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::error::Result;
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::contract;

use crate::{Database, config, get, open, put};

fn impatient() -> Database {
    open(&config(Durability::None, &[("lock_timeout", Value::Int(20))]))
}

fn is_conflict<T>(result: Result<T>) -> bool {
    result.is_err_and(|error| error.is_conflict())
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn write_or_update_read_lock_conflicts_after_timeout() {
    let database = impatient();
    let (mut one, mut two) = (database.session(), database.session());
    let mut value = Vec::new();
    put(&mut *one, b"a", b"0");
    one.begin().unwrap();
    one.put(0, b"a", b"1").unwrap();
    assert!(one.get_for_update(0, b"b", &mut value).is_ok_and(|found| !found));
    for key in [b"a", b"b"] {
        two.begin().unwrap();
        assert!(is_conflict(two.put(0, key, b"2")));
        two.rollback().unwrap();
        two.begin().unwrap();
        assert!(is_conflict(two.delete(0, key)));
        two.rollback().unwrap();
        two.begin().unwrap();
        assert!(is_conflict(two.get_for_update(0, key, &mut value)));
        two.rollback().unwrap();
    }
    // Another row is not locked.
    put(&mut *two, b"c", b"2");
    one.commit().unwrap();
    put(&mut *two, b"a", b"2");
    assert_eq!(get(&mut *one, b"a").as_deref(), Some(&b"2"[..]));
    assert!(database.counter("locktree: number of lock timeouts") >= 6.0);
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_deadlock_is_a_conflict_at_once() {
    let patient = config(Durability::None, &[("lock_timeout", Value::Int(3_600_000))]);
    assert!(contract::deadlock_ends_one_of_the_two(&FractalTree, &patient).is_conflict());
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn reads_do_not_block_and_see_their_begin_snapshot() {
    let database = impatient();
    let (mut writer, mut reader) = (database.session(), database.session());
    put(&mut *writer, b"a", b"old");
    writer.begin().unwrap();
    writer.put(0, b"a", b"new").unwrap();
    writer.put(0, b"b", b"new").unwrap();
    assert_eq!(get(&mut *writer, b"a").as_deref(), Some(&b"new"[..]));
    assert_eq!(get(&mut *reader, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&mut *reader, b"b"), None);
    reader.begin().unwrap();
    writer.commit().unwrap();
    assert_eq!(get(&mut *reader, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&mut *reader, b"b"), None);
    // A read for update returns the latest value.
    let mut value = Vec::new();
    assert!(reader.get_for_update(0, b"a", &mut value).unwrap());
    assert_eq!(value, b"new");
    reader.rollback().unwrap();
    assert_eq!(get(&mut *reader, b"b").as_deref(), Some(&b"new"[..]));
}
