//! Locks and conflicts of sessions.

use rumba_engine_api::setting::Value;

use super::*;

#[test]
fn a_row_lock_held_elsewhere_is_a_conflict_and_not_a_hang() {
    let lab = open(&config_with([("transaction_lock_timeout", Value::Int(10))]));
    let (mut first, mut second) = (lab.session(), lab.session());
    first.begin().unwrap();
    first.put(NODE, b"row", b"1").unwrap();
    second.begin().unwrap();
    let mut value = Vec::new();
    let mut conflicts = || {
        assert!(second.put(NODE, b"row", b"2").unwrap_err().is_conflict());
        assert!(second.delete(NODE, b"row").unwrap_err().is_conflict());
        assert!(second.get_for_update(NODE, b"row", &mut value).unwrap_err().is_conflict());
    };
    conflicts();
    assert_eq!(allocations::during(conflicts), 0);
    second.rollback().unwrap();
    first.commit().unwrap();
    put(&mut *second, NODE, b"row", b"2");
    assert_eq!(get(&mut *first, NODE, b"row"), Some(b"2".to_vec()));
}

/// The row of a derived index entry is already locked. A separate lock would be work that the engine's servers do not
/// do.
#[test]
fn derived_entries_are_transactional_but_take_no_locks() {
    let lab = open(&config_with([("transaction_lock_timeout", Value::Int(10))]));
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

#[test]
fn a_deadlock_is_found_and_ends_one_of_the_two() {
    let endless = config_with([("transaction_lock_timeout", Value::Int(-1))]);
    let error = contract::deadlock_ends_one_of_the_two(&RocksDb, &endless);
    assert_eq!(error, rumba_engine_api::error::EngineError::conflict("deadlock"));
}
