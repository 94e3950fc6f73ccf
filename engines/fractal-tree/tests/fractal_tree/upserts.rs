//! Messages: writes without a preceding read.

use rumba_engine_api::delta::Delta;
use rumba_engine_api::engine::Durability;
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::LIBRARY;
use rumba_testkit::{allocations, key_value};

use crate::{config, open, usual};

fn adds_one() -> Delta {
    let mut delta = Delta::default();
    delta.begin(Some(&1u64.to_le_bytes()));
    delta.add(0, 1);
    delta
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn upsert_is_applied_on_read_and_rolled_back() {
    let database = usual();
    let mut session = database.session();
    let delta = adds_one();
    let mut send = |commits: bool| {
        session.begin().unwrap();
        assert!(session.update(1, b"count", &delta).unwrap());
        if commits {
            session.commit().unwrap()
        } else {
            session.rollback().unwrap()
        }
        key_value::get(&mut *session, 1, b"count").map(|value| u64::from_le_bytes(value.try_into().unwrap()))
    };
    assert_eq!(send(false), None);
    assert_eq!(send(true), Some(1));
    assert_eq!(send(true), Some(2));
    assert_eq!(send(false), Some(2));
    assert_eq!(send(true), Some(3));
    let mut update = || {
        session.begin().unwrap();
        session.update(1, b"count", &delta).unwrap();
        session.commit().unwrap();
    };
    assert_eq!(allocations::during(|| (0..1000).for_each(|_| update())), 0);
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn upsert_without_default_ignores_an_absent_row() {
    let database = usual();
    let mut session = database.session();
    let mut delta = Delta::default();
    delta.begin(None);
    delta.add(0, 1);
    session.begin().unwrap();
    assert!(session.update(1, b"absent", &delta).unwrap());
    session.commit().unwrap();
    assert_eq!(key_value::get(&mut *session, 1, b"absent"), None);
    assert!(key_value::scan(&mut *session, 1, b"", b"z", 9).is_empty());
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_setting_turns_them_off() {
    let database = open(&config(Durability::NoSync, &[("upserts", Value::Bool(false))]));
    let mut session = database.session();
    session.begin().unwrap();
    assert!(!session.update(1, b"count", &adds_one()).unwrap());
    session.commit().unwrap();
    assert_eq!(key_value::get(&mut *session, 1, b"count"), None);
}
