//! Any sequence of calls gives what an ordered map in memory gives.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::*;
use proptest::prelude::*;
use rumba_core::kv::{Batch, KvSession, Scan};

type Map = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

#[derive(Clone, Debug)]
enum Call {
    Begin,
    Commit,
    Rollback,
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    Get(usize, Vec<u8>),
    Scan(usize, Vec<u8>, Vec<u8>, usize),
    Load(Vec<(usize, Vec<u8>, Vec<u8>)>),
}

/// Few keys, so that calls meet; lengths that share prefixes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..4, 1..4)
}

/// Empty, small, and larger than a page.
fn value() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), prop_oneof![Just(0usize), 1usize..40, Just(9000usize)]).prop_map(|(byte, len)| vec![byte; len])
}

fn call() -> impl Strategy<Value = Call> {
    let space = 0usize..2;
    prop_oneof![
        2 => Just(Call::Begin),
        2 => Just(Call::Commit),
        1 => Just(Call::Rollback),
        6 => (space.clone(), key(), value()).prop_map(|(s, k, v)| Call::Put(s, k, v)),
        3 => (space.clone(), key()).prop_map(|(s, k)| Call::Delete(s, k)),
        3 => (space.clone(), key()).prop_map(|(s, k)| Call::Get(s, k)),
        3 => (space.clone(), prop::collection::vec(0u8..4, 0..4), key(), 0usize..20)
            .prop_map(|(s, from, to, limit)| Call::Scan(s, from, to, limit)),
        1 => prop::collection::vec((space, key(), value()), 0..8).prop_map(Call::Load),
    ]
}

fn range(map: &Map, space: usize, scan: Scan<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    map.iter()
        .filter(|((s, key), _)| *s == space && key.as_slice() >= scan.from && key.as_slice() < scan.to)
        .take(scan.limit)
        .map(|((_, key), value)| (key.clone(), value.clone()))
        .collect()
}

/// Makes one call on both. `open` is the state of the transaction, if one is open.
fn both(session: &mut dyn KvSession, committed: &mut Map, open: &mut Option<Map>, call: Call) {
    match (call, open.is_some()) {
        (Call::Begin, false) => {
            session.begin().unwrap();
            *open = Some(committed.clone());
        }
        (Call::Commit, true) => {
            session.commit().unwrap();
            *committed = open.take().unwrap();
        }
        (Call::Rollback, _) => {
            session.rollback().unwrap();
            *open = None;
        }
        (Call::Put(space, key, value), true) => {
            session.put(space, &key, &value).unwrap();
            open.as_mut().unwrap().insert((space, key), value);
        }
        (Call::Delete(space, key), true) => {
            session.delete(space, &key).unwrap();
            open.as_mut().unwrap().remove(&(space, key));
        }
        (Call::Get(space, key), _) => {
            let seen = get(session, space, &key);
            assert_eq!(seen.as_ref(), open.as_ref().unwrap_or(committed).get(&(space, key)));
        }
        (Call::Scan(space, from, to, limit), _) => {
            let scan = Scan { from: &from, to: &to, limit };
            let mut seen = Vec::new();
            session.scan(space, scan, &mut |key, value| seen.push((key.to_vec(), value.to_vec()))).unwrap();
            assert_eq!(seen, range(open.as_ref().unwrap_or(committed), space, scan));
        }
        (Call::Load(rows), false) => {
            let mut batch = Batch::default();
            rows.iter().for_each(|(space, key, value)| batch.push(*space, key, value));
            session.load(&batch).unwrap();
            committed.extend(rows.into_iter().map(|(space, key, value)| ((space, key), value)));
        }
        // Refused calls are tested by name elsewhere.
        (Call::Begin | Call::Load(_), true) | (Call::Commit | Call::Put(..) | Call::Delete(..), false) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sequence_of_calls_agrees_with_a_map(calls in prop::collection::vec(call(), 1..200)) {
        let (_dir, instance) = open();
        let (mut session, mut other) = (session(&*instance), session(&*instance));
        let (mut committed, mut open) = (Map::new(), None);
        for call in calls {
            both(&mut *session, &mut committed, &mut open, call);
        }
        // Another session sees what is committed, and only that.
        for space in [ROWS, INDEX] {
            let scan = Scan { from: b"", to: &[0xff], limit: usize::MAX };
            let mut seen = Vec::new();
            other.scan(space, scan, &mut |key, value| seen.push((key.to_vec(), value.to_vec()))).unwrap();
            prop_assert_eq!(seen, range(&committed, space, scan));
        }
    }
}
