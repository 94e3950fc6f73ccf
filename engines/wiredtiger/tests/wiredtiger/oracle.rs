//! Random operations against a map that is trusted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use rumba_core::kv::{KvSession, Scan};

use crate::{Database, unlogged};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Get(Vec<u8>),
    GetForUpdate(Vec<u8>),
    Scan(Vec<u8>, Vec<u8>, usize),
    Commit,
    Rollback,
    Checkpoint,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', b'b', 255]), 1..5)
}

fn bound() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', b'b', 255]), 0..4)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (key(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(key, value)| Step::Put(key, value)),
        3 => key().prop_map(Step::Delete),
        4 => key().prop_map(Step::Get),
        4 => key().prop_map(Step::GetForUpdate),
        4 => (bound(), bound(), 0usize..20).prop_map(|(from, to, limit)| Step::Scan(from, to, limit)),
        3 => Just(Step::Commit),
        2 => Just(Step::Rollback),
        1 => Just(Step::Checkpoint),
    ]
}

fn expected(map: &Map, from: &[u8], to: &[u8], limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let within = map.iter().filter(|(key, _)| key.as_slice() >= from && key.as_slice() < to);
    within.take(limit).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn read(session: &mut dyn KvSession, step: &Step, map: &Map) {
    let mut value = b"left over".to_vec();
    match step {
        Step::Get(key) => {
            let found = session.get(0, key, &mut value).unwrap();
            assert_eq!(found.then_some(&value), map.get(key));
        }
        Step::GetForUpdate(key) => {
            let found = session.get_for_update(0, key, &mut value).unwrap();
            assert_eq!(found.then_some(&value), map.get(key));
        }
        Step::Scan(from, to, limit) => {
            let mut seen = Vec::new();
            let scan = Scan { from, to, limit: *limit };
            session.scan(0, scan, &mut |key, value| seen.push((key.to_vec(), value.to_vec()))).unwrap();
            assert_eq!(seen, expected(map, from, to, *limit));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_is_a_sorted_map_with_transactions(steps in prop::collection::vec(step(), 1..120)) {
        let database = Database::open(&unlogged());
        let mut session = database.session();
        let (mut committed, mut current) = (Map::new(), Map::new());
        session.begin().unwrap();
        for step in &steps {
            match step {
                Step::Put(key, value) => {
                    session.put(0, key, value).unwrap();
                    current.insert(key.clone(), value.clone());
                }
                Step::Delete(key) => {
                    session.delete(0, key).unwrap();
                    current.remove(key);
                }
                Step::Commit | Step::Checkpoint => {
                    session.commit().unwrap();
                    committed = current.clone();
                    if matches!(step, Step::Checkpoint) {
                        database.instance.settle().unwrap();
                    }
                    session.begin().unwrap();
                }
                Step::Rollback => {
                    session.rollback().unwrap();
                    current = committed.clone();
                    session.begin().unwrap();
                }
                reading => read(&mut *session, reading, &current),
            }
        }
        session.rollback().unwrap();
        let whole = Step::Scan(Vec::new(), vec![255; 9], usize::MAX);
        read(&mut *session, &whole, &committed);
        read(&mut *database.session(), &whole, &committed);
        drop(session);
        database.instance.close().unwrap();
    }
}
