//! Compares key-value engines with an ordered map in memory: both must give the same answer to every call.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rumba_engine_api::engine::{Engine, EngineConfig, Instance, Schema, Session};
use rumba_engine_api::kv::{Batch, KeySpace, KvSession, Scan, SpaceId};
use tempfile::TempDir;

/// The key spaces of these tests: one without scans, one with a prefix that scans share, and one derived from the
/// others.
pub const SPACES: [KeySpace; 3] = [
    KeySpace { name: "rows", scan_prefix: 0, derived: false },
    KeySpace { name: "links", scan_prefix: 2, derived: false },
    KeySpace { name: "index", scan_prefix: 2, derived: true },
];

/// The number of call sequences for each engine.
const SEQUENCES: u32 = 48;
/// The most calls of a sequence.
const CALLS: usize = 160;

type Rows = Vec<(Vec<u8>, Vec<u8>)>;
type Map = BTreeMap<(SpaceId, Vec<u8>), Vec<u8>>;

/// A session of an instance.
pub fn session(instance: &dyn Instance) -> Box<dyn KvSession> {
    match instance.session().expect("a session") {
        Session::Kv(session) => session,
        other => panic!("{}, and not one of keys and values", other.reported()),
    }
}

/// Commits one row.
pub fn put(session: &mut dyn KvSession, space: SpaceId, key: &[u8], value: &[u8]) {
    session.begin().expect("to begin");
    session.put(space, key, value).expect("to put");
    session.commit().expect("to commit");
}

/// A row's value.
pub fn get(session: &mut dyn KvSession, space: SpaceId, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"left over".to_vec();
    let found = session.get(space, key, &mut value).expect("to get");
    assert!(found || value.is_empty(), "an absent key must leave no value behind");
    found.then_some(value)
}

/// The rows of a range.
pub fn scan(session: &mut dyn KvSession, space: SpaceId, from: &[u8], to: &[u8], limit: usize) -> Rows {
    let mut rows = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| rows.push((key.to_vec(), value.to_vec()));
    let visited = session.scan(space, Scan { from, to, limit }, visit).expect("to scan");
    assert_eq!(visited, rows.len(), "rows that were visited");
    rows
}

/// An instance in its own directory, with [`SPACES`].
pub struct Database {
    /// The instance.
    pub instance: Box<dyn Instance>,
    /// Its directory.
    pub dir: TempDir,
}

impl Database {
    /// Opens a new one.
    pub fn open(engine: &dyn Engine, config: &EngineConfig) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        engine.check(config).expect("a valid configuration");
        let instance = engine.open(dir.path(), config, Schema::KeyValue(&SPACES)).expect("to open");
        Self { instance, dir }
    }

    /// A session.
    pub fn session(&self) -> Box<dyn KvSession> {
        session(&*self.instance)
    }

    /// The value of a counter.
    pub fn counter(&self, name: &str) -> f64 {
        let counters = self.instance.counters();
        counters.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no {name} in {counters:?}")).value
    }
}

/// Loads rows `key 00000000`, … in batches, with values that compress well.
pub fn load(session: &mut dyn KvSession, rows: usize) {
    let mut batch = Batch::default();
    for row in 0..rows {
        batch.push(0, format!("key {row:08}").as_bytes(), format!("value {row:08} ").repeat(16).as_bytes());
        if batch.len() == 1000 || row + 1 == rows {
            session.load(&batch).expect("to load");
            batch.clear();
        }
    }
}

#[derive(Clone, Debug)]
enum Call {
    Get(SpaceId, Vec<u8>),
    GetForUpdate(SpaceId, Vec<u8>),
    MultiGet(SpaceId, Vec<Vec<u8>>),
    Scan(SpaceId, Vec<u8>, Vec<u8>, usize),
    Put(SpaceId, Vec<u8>, Vec<u8>),
    Delete(SpaceId, Vec<u8>),
    Load(Vec<(SpaceId, Vec<u8>, Vec<u8>)>),
    Commit,
    Rollback,
    Settle,
    Drain,
}

/// Few letters, and lengths around the prefix of scans, so that keys collide. They include the least and the greatest
/// byte.
fn letters(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> + Clone {
    prop::collection::vec(prop::sample::select(vec![0u8, 1, b'a', b'b', 0xfe, 0xff]), lengths)
}

fn key() -> impl Strategy<Value = Vec<u8>> + Clone {
    letters(1..5)
}

/// Empty, small, and larger than a page.
fn value() -> impl Strategy<Value = Vec<u8>> + Clone {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..200),
        1 => any::<u8>().prop_map(|byte| vec![byte; 9000]),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let space = 0..SPACES.len();
    let row = (space.clone(), key(), value());
    prop_oneof![
        6 => (space.clone(), key()).prop_map(|(space, key)| Call::Get(space, key)),
        3 => (space.clone(), key()).prop_map(|(space, key)| Call::GetForUpdate(space, key)),
        3 => (space.clone(), prop::collection::vec(key(), 0..6)).prop_map(|(space, keys)| Call::MultiGet(space, keys)),
        8 => (space.clone(), letters(0..5), letters(0..5), 0..20usize)
            .prop_map(|(space, from, to, limit)| Call::Scan(space, from, to, limit)),
        10 => row.clone().prop_map(|(space, key, value)| Call::Put(space, key, value)),
        5 => (space, key()).prop_map(|(space, key)| Call::Delete(space, key)),
        3 => prop::collection::vec(row, 0..20).prop_map(Call::Load),
        4 => Just(Call::Commit),
        3 => Just(Call::Rollback),
        1 => Just(Call::Settle),
        1 => Just(Call::Drain),
    ]
}

/// A session, with maps of the committed rows and of the rows that its transaction sees.
struct Both {
    session: Box<dyn KvSession>,
    /// Another session, which sees only committed rows.
    other: Box<dyn KvSession>,
    database: Database,
    committed: Map,
    open: Option<Map>,
}

impl Both {
    fn open(engine: &dyn Engine, config: &EngineConfig) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let instance = engine.open(dir.path(), config, Schema::KeyValue(&SPACES)).expect("to open");
        let database = Database { instance, dir };
        Self { session: database.session(), other: database.session(), database, committed: Map::new(), open: None }
    }

    /// The rows that the session must see.
    fn map(&mut self) -> &mut Map {
        self.open.as_mut().unwrap_or(&mut self.committed)
    }

    fn begin(&mut self) {
        if self.open.is_none() {
            self.session.begin().expect("to begin");
            self.open = Some(self.committed.clone());
        }
    }

    fn commit(&mut self) {
        if let Some(open) = self.open.take() {
            self.session.commit().expect("to commit");
            self.committed = open;
        }
    }

    fn make(&mut self, call: Call) {
        match call {
            Call::Get(space, key) => {
                let seen = get(&mut *self.session, space, &key);
                assert_eq!(seen.as_ref(), self.map().get(&(space, key)));
            }
            Call::GetForUpdate(space, key) => {
                self.begin();
                let mut value = b"left over".to_vec();
                let found = self.session.get_for_update(space, &key, &mut value).expect("to get for update");
                assert_eq!(found.then_some(&value), self.map().get(&(space, key)));
            }
            Call::MultiGet(space, keys) => self.multi_get(space, &keys),
            Call::Scan(space, from, to, limit) => {
                let seen = scan(&mut *self.session, space, &from, &to, limit);
                assert_eq!(seen, range(self.map(), space, &from, &to, limit));
            }
            Call::Put(space, key, value) => {
                self.begin();
                self.session.put(space, &key, &value).expect("to put");
                self.map().insert((space, key), value);
            }
            Call::Delete(space, key) => {
                self.begin();
                self.session.delete(space, &key).expect("to delete");
                self.map().remove(&(space, key));
            }
            Call::Load(rows) => {
                self.commit();
                let mut batch = Batch::default();
                rows.iter().for_each(|(space, key, value)| batch.push(*space, key, value));
                self.session.load(&batch).expect("to load");
                self.committed.extend(rows.into_iter().map(|(space, key, value)| ((space, key), value)));
            }
            Call::Commit => self.commit(),
            // Without a transaction it has no effect.
            Call::Rollback => {
                self.session.rollback().expect("to roll back");
                self.open = None;
            }
            Call::Settle => {
                self.commit();
                self.database.instance.settle().expect("to settle");
            }
            Call::Drain => {
                self.commit();
                self.database.instance.drain().expect("to drain");
            }
        }
    }

    fn multi_get(&mut self, space: SpaceId, keys: &[Vec<u8>]) {
        let requested: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let mut seen = Vec::new();
        let mut visit = |position, value: &[u8]| seen.push((position, value.to_vec()));
        self.session.multi_get(space, &requested, &mut Vec::new(), &mut visit).expect("to get many");
        let map = self.map();
        let found = keys.iter().enumerate();
        let found = found.filter_map(|(position, key)| Some((position, map.get(&(space, key.clone()))?.clone())));
        assert_eq!(seen, found.collect::<Vec<_>>());
    }

    /// Rolls back the open transaction, and checks everything, through another session too.
    fn end(mut self) {
        self.make(Call::Rollback);
        for space in 0..SPACES.len() {
            let (from, to, limit) = (&[][..], &[0xff; 8][..], usize::MAX);
            let expected = range(&self.committed, space, from, to, limit);
            assert_eq!(scan(&mut *self.session, space, from, to, limit), expected);
            assert_eq!(scan(&mut *self.other, space, from, to, limit), expected, "of another session");
        }
        let Self { session, other, database, .. } = self;
        drop((session, other));
        database.instance.close().expect("to close");
    }
}

fn range(map: &Map, space: SpaceId, from: &[u8], to: &[u8], limit: usize) -> Rows {
    let within = map.iter().filter(|((of, key), _)| *of == space && key.as_slice() >= from && key.as_slice() < to);
    within.take(limit).map(|((_, key), value)| (key.clone(), value.clone())).collect()
}

/// Makes a key-value engine answer sequences of random calls.
///
/// # Panics
/// An answer differs from the map's. The panic has the shortest failing sequence of calls that was found.
pub fn agrees_with_a_map(engine: &dyn Engine, config: &EngineConfig) {
    let settings = Config { cases: SEQUENCES, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let sequences = prop::collection::vec(call(), 1..CALLS);
    let outcome = TestRunner::new(settings).run(&sequences, |calls| {
        let mut both = Both::open(engine, config);
        calls.into_iter().for_each(|call| both.make(call));
        both.end();
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{}: {failure}", config.name);
    }
}
