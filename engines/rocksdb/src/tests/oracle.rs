//! Random operations against an in-memory oracle.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Model = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Get(usize, Vec<u8>),
    GetForUpdate(usize, Vec<u8>),
    MultiGet(usize, Vec<Vec<u8>>),
    Scan(usize, Vec<u8>, Vec<u8>, usize),
    Put(usize, Vec<u8>, Vec<u8>),
    Delete(usize, Vec<u8>),
    Load(Vec<(usize, Vec<u8>, Vec<u8>)>),
    End(bool),
    Settle,
    Drain,
}

/// Few letters and lengths around the prefix length of 2, so that keys meet.
fn key() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', b'b', 0xfe, 0xff]), 1..5)
}

fn step() -> impl Strategy<Value = Step> {
    let space = 0..SPACES.len();
    let value = || prop::collection::vec(any::<u8>(), 0..40);
    let row = (space.clone(), key(), value());
    prop_oneof![
        6 => (space.clone(), key()).prop_map(|(space, key)| Step::Get(space, key)),
        2 => (space.clone(), key()).prop_map(|(space, key)| Step::GetForUpdate(space, key)),
        3 => (space.clone(), prop::collection::vec(key(), 0..6)).prop_map(|(space, keys)| Step::MultiGet(space, keys)),
        8 => (space.clone(), key(), key(), 0..12usize)
            .prop_map(|(space, from, to, limit)| Step::Scan(space, from, to, limit)),
        10 => row.clone().prop_map(|(space, key, value)| Step::Put(space, key, value)),
        5 => (space, key()).prop_map(|(space, key)| Step::Delete(space, key)),
        3 => prop::collection::vec(row, 0..20).prop_map(Step::Load),
        6 => any::<bool>().prop_map(Step::End),
        1 => Just(Step::Settle),
        1 => Just(Step::Drain),
    ]
}

/// A session beside the model of what is committed and what its transaction sees.
struct Pair {
    session: Box<dyn KvSession>,
    lab: Lab,
    committed: Model,
    open: Option<Model>,
}

impl Pair {
    fn model(&mut self) -> &mut Model {
        self.open.as_mut().unwrap_or(&mut self.committed)
    }

    fn begin(&mut self) {
        if self.open.is_none() {
            self.session.begin().unwrap();
            self.open = Some(self.committed.clone());
        }
    }

    fn end(&mut self, commit: bool) {
        let Some(open) = self.open.take() else { return };
        if commit {
            self.session.commit().unwrap();
            self.committed = open;
        } else {
            self.session.rollback().unwrap();
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Get(space, key) => {
                assert_eq!(get(&mut *self.session, space, &key), self.model().get(&(space, key)).cloned());
            }
            Step::GetForUpdate(space, key) => {
                self.begin();
                let mut value = Vec::new();
                let found = self.session.get_for_update(space, &key, &mut value).unwrap();
                assert_eq!(found.then_some(value), self.model().get(&(space, key)).cloned());
            }
            Step::MultiGet(space, keys) => {
                let asked: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut seen = Vec::new();
                let mut visit = |position, value: &[u8]| seen.push((position, value.to_vec()));
                self.session.multi_get(space, &asked, &mut Vec::new(), &mut visit).unwrap();
                let model = self.model();
                let expected: Vec<_> = (keys.into_iter().enumerate())
                    .filter_map(|(position, key)| Some((position, model.get(&(space, key))?.clone())))
                    .collect();
                assert_eq!(seen, expected);
            }
            Step::Scan(space, from, to, limit) => {
                let seen = scan(&mut *self.session, space, &from, &to, limit);
                let expected: Vec<_> = (self.model().iter())
                    .filter(|((of, key), _)| *of == space && *key >= from && *key < to)
                    .take(limit)
                    .map(|((_, key), value)| (key.clone(), value.clone()))
                    .collect();
                assert_eq!(seen, expected);
            }
            Step::Put(space, key, value) => {
                self.begin();
                self.session.put(space, &key, &value).unwrap();
                self.model().insert((space, key), value);
            }
            Step::Delete(space, key) => {
                self.begin();
                self.session.delete(space, &key).unwrap();
                self.model().remove(&(space, key));
            }
            Step::Load(rows) => {
                self.end(true);
                let mut batch = Batch::default();
                for (space, key, value) in rows {
                    batch.push(space, &key, &value);
                    self.committed.insert((space, key), value);
                }
                self.session.load(&batch).unwrap();
            }
            Step::End(commit) => self.end(commit),
            Step::Settle => self.lab.settle().unwrap(),
            Step::Drain => self.lab.drain().unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sessions_agree_with_a_sorted_map(steps in prop::collection::vec(step(), 1..120)) {
        let lab = Lab::open(&config());
        let mut pair = Pair { session: lab.session(), lab, committed: Model::new(), open: None };
        for step in steps {
            pair.run(step);
        }
        pair.end(true);
        for space in 0..SPACES.len() {
            let all = scan(&mut *pair.session, space, b"", &[0xff; 8], usize::MAX);
            let expected: Vec<_> = (pair.committed.iter())
                .filter(|((of, _), _)| *of == space)
                .map(|((_, key), value)| (key.clone(), value.clone()))
                .collect();
            prop_assert_eq!(all, expected);
        }
    }
}
