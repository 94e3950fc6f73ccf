//! Stores that break the promises, to check that each broken promise is found.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll};

use rumba_engine_api::acid::{Entry, Journal, Journaled, Note, Outcome, Promise};
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{Client, ClientAddress, Op, OpKind, Pace, block_on};
use rumba_engine_api::workload::Bound;

use crate::bound::TpcCBound;
use crate::tables::Table;

type Space = BTreeMap<Vec<u8>, Vec<u8>>;

/// How a store is careless.
#[derive(Clone, Copy, PartialEq)]
enum Careless {
    /// A transaction's writes are visible at once, and no write is ever undone.
    AtOnce,
    /// A transaction works on a copy, and the last to commit overwrites.
    LastWins,
    /// One transaction at a time works on a copy; after a rollback, its writes to this space remain.
    Keeps(SpaceId),
}

#[derive(Clone)]
struct Store {
    spaces: Arc<Mutex<Vec<Space>>>,
    how: Careless,
    /// Whether a transaction is open that excludes all others, and the signal of its end.
    writer: Arc<(Mutex<bool>, Condvar)>,
}

struct Open {
    store: Store,
    /// The copy that a transaction works on.
    copy: Option<Vec<Space>>,
    writes: Vec<(SpaceId, Vec<u8>, Option<Vec<u8>>)>,
    /// Whether it is the writer.
    writes_alone: bool,
}

fn put(spaces: &mut [Space], (space, key, value): (SpaceId, Vec<u8>, Option<Vec<u8>>)) {
    match value {
        Some(value) => drop(spaces[space].insert(key, value)),
        None => drop(spaces[space].remove(&key)),
    }
}

impl Open {
    fn shared(&self) -> MutexGuard<'_, Vec<Space>> {
        self.store.spaces.lock().unwrap()
    }

    fn read<T>(&self, read: impl FnOnce(&[Space]) -> T) -> T {
        match &self.copy {
            Some(copy) => read(copy),
            None => read(&self.shared()),
        }
    }

    /// Ends a transaction; only its writes to the spaces that `stays` accepts remain.
    fn end(&mut self, stays: impl Fn(SpaceId) -> bool) {
        self.copy = None;
        let writes = std::mem::take(&mut self.writes);
        let mut shared = self.shared();
        writes.into_iter().filter(|(space, ..)| stays(*space)).for_each(|write| put(&mut shared, write));
        drop(shared);
        if std::mem::take(&mut self.writes_alone) {
            let (is_open, ended) = &*self.store.writer;
            *is_open.lock().unwrap() = false;
            ended.notify_one();
        }
    }

    fn write(&mut self, space: SpaceId, key: &[u8], value: Option<&[u8]>) {
        let write = (space, key.to_vec(), value.map(<[u8]>::to_vec));
        match &mut self.copy {
            Some(copy) => {
                put(copy, write.clone());
                self.writes.push(write);
            }
            None => put(&mut self.shared(), write),
        }
    }
}

impl KvSession for Open {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError> {
        value.clear();
        Ok(self.read(|spaces| spaces[space].get(key).map(|found| value.extend_from_slice(found)).is_some()))
    }

    fn scan(
        &mut self,
        space: SpaceId,
        scan: Scan<'_>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, EngineError> {
        let range = scan.from.to_vec()..scan.to.to_vec();
        let found: Vec<(Vec<u8>, Vec<u8>)> = self.read(|spaces| {
            spaces[space].range(range).take(scan.limit).map(|(key, value)| (key.clone(), value.clone())).collect()
        });
        found.iter().for_each(|(key, value)| visit(key, value));
        Ok(found.len())
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        if matches!(self.store.how, Careless::Keeps(_)) {
            let (is_open, ended) = &*self.store.writer;
            *ended.wait_while(is_open.lock().unwrap(), |is_open| *is_open).unwrap() = true;
            self.writes_alone = true;
        }
        if self.store.how != Careless::AtOnce {
            let copy = self.shared().clone();
            self.copy = Some(copy);
        }
        Ok(())
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError> {
        self.get(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<(), EngineError> {
        self.write(space, key, Some(value));
        Ok(())
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<(), EngineError> {
        self.write(space, key, None);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        self.end(|_| true);
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), EngineError> {
        let how = self.store.how;
        self.end(|space| how == Careless::Keeps(space));
        Ok(())
    }
}

/// A pace of this many turns.
struct Turns(usize);

impl Pace for Turns {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        Poll::Ready(is_left)
    }

    fn start(&mut self, _: OpKind) {}

    fn done(&mut self, _: OpKind, _: Op) -> u64 {
        0
    }
}

const ALONE: ClientAddress = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };

fn bound() -> TpcCBound {
    let small = [("warehouses", 1), ("customers", 20), ("items", 200)];
    TpcCBound::new(&Settings(small.map(|(name, number)| (name.to_owned(), Value::Int(number))).into())).unwrap()
}

fn run(mut client: Box<dyn Client>, turns: usize) {
    block_on(client.run(&mut Turns(turns))).unwrap();
}

/// A loaded database in such a store.
fn loaded(how: Careless) -> (TpcCBound, impl Fn() -> Result<Session, EngineError> + Sync) {
    let bound = bound();
    let spaces = crate::kv::spaces(1).len();
    let store = Store { spaces: Arc::new(Mutex::new(vec![Space::new(); spaces])), how, writer: Arc::default() };
    let sessions = move || {
        let open = Open { store: store.clone(), copy: None, writes: Vec::new(), writes_alone: false };
        Ok::<_, EngineError>(Session::Kv(Box::new(open)))
    };
    for stage in 0..bound.load_stages().len() {
        run(bound.loader(stage, sessions().unwrap(), ALONE, 1).unwrap(), usize::MAX);
    }
    (bound, sessions)
}

fn broken(how: Careless) -> Vec<String> {
    let (bound, sessions) = loaded(how);
    let promises = bound.acid().unwrap().isolation(&sessions).unwrap();
    assert_eq!(promises.len(), 11);
    assert!(promises.iter().all(|promise| !promise.seen.is_empty() && !promise.how.is_empty()));
    let broken = promises.into_iter().filter(|promise| promise.outcome == Outcome::Broken);
    broken.map(|Promise { short, .. }| short).collect()
}

#[test]
fn a_store_that_undoes_nothing_is_found_out() {
    // A rolled-back order is visible and keeps its number, and so do deliveries and payments.
    assert_eq!(broken(Careless::AtOnce), ["a2", "i1", "i2", "i4", "i6"]);
}

#[test]
fn a_store_that_loses_updates_is_found_out() {
    assert_eq!(broken(Careless::LastWins), ["i3", "i5"]);
}

/// Each case forgets to undo the writes to one table: first the rows of an order with a missing item, then the other
/// rows of rolled-back transactions.
/// If the second of two orders writes the same rows, the other test shows the remains of the first.
#[test]
fn a_store_that_forgets_to_undo_writes_to_a_table_is_found_out() {
    let by_customer = Table::ALL.len() + 1;
    let forgotten: [(SpaceId, &[&str]); 9] = [
        (Table::Item as SpaceId, &[]),
        (Table::Warehouse as SpaceId, &["a2"]),
        (Table::District as SpaceId, &["a2", "i2", "i4"]),
        (Table::Customer as SpaceId, &["a2", "i6"]),
        (Table::NewOrder as SpaceId, &["i2"]),
        (Table::Orders as SpaceId, &["i2"]),
        (by_customer, &["i2"]),
        (Table::OrderLine as SpaceId, &["i2"]),
        (Table::Stock as SpaceId, &["i2", "i4"]),
    ];
    // They mostly wait for each other.
    std::thread::scope(|scope| {
        let all = forgotten.map(|(space, found)| (space, found, scope.spawn(move || broken(Careless::Keeps(space)))));
        for (space, expected, found) in all {
            assert_eq!(found.join().unwrap(), expected, "space {space}");
        }
    });
}

/// A journal in memory.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Journaled>>);

impl Journal for Notes {
    fn note(&mut self, note: &Note) -> Result<(), EngineError> {
        self.0.lock().unwrap().take(0, *note);
        Ok(())
    }
}

#[test]
fn what_was_acknowledged_is_found_and_what_is_gone_is_missed() {
    let (before, sessions) = loaded(Careless::LastWins);
    let notes = Notes::default();
    let acid = before.acid().unwrap();
    run(acid.journaled(sessions().unwrap(), ALONE, 7, Box::new(notes.clone())).unwrap(), 300);
    let journaled = notes.0.lock().unwrap().clone();
    assert!(journaled.acknowledged.len() > 200, "{}", journaled.acknowledged.len());
    assert_eq!(journaled.in_doubt().next(), None);
    let look = |journaled: &Journaled| bound().acid().unwrap().recovered(&sessions, journaled).unwrap();
    let found = look(&journaled);
    assert_eq!((found.acknowledged, found.lost), (journaled.acknowledged.len() as u64, 0), "{:?}", found.examples);
    assert!(found.checks.iter().all(|check| check.wrong == 0), "{:?}", found.checks);
    // Another payment, another order and another delivery than the actual ones.
    let mut lied = journaled.clone();
    for kind in 0..3 {
        let (_, entry) = lied.acknowledged.iter_mut().find(|(of, _)| *of == kind).unwrap();
        let entry: &mut Entry = entry;
        // An order's customer, a payment's cents, a delivery's carrier.
        entry[[3, 5, 1][kind as usize]] += 1;
    }
    let missed = look(&lied);
    assert_eq!((missed.lost, missed.examples.len()), (3, 3), "{missed:?}");
    // An unacknowledged payment is one too many, unless it may have been begun.
    let mut less = journaled;
    let last = less.acknowledged.iter().rposition(|(kind, _)| *kind == 1).unwrap();
    less.acknowledged.remove(last);
    let wrong = |found: &rumba_engine_api::acid::Found| found.checks.iter().filter(|check| check.wrong > 0).count();
    assert_eq!(wrong(&look(&less)), 1, "a payment that nobody was told of");
    less.take(0, Note::Begun(1, Entry::default()));
    assert_eq!(wrong(&look(&less)), 0, "one that was in doubt");
}

#[test]
fn partially_present_delivery_is_not_counted_as_lost() {
    let (before, sessions) = loaded(Careless::LastWins);
    let notes = Notes::default();
    run(before.acid().unwrap().journaled(sessions().unwrap(), ALONE, 7, Box::new(notes.clone())).unwrap(), 300);
    let mut journaled = notes.0.lock().unwrap().clone();
    // One of its ten orders differs from the delivered ones, and another client may have delivered this one.
    let (_, entry) = journaled.acknowledged.iter_mut().find(|(kind, _)| *kind == 2).unwrap();
    assert!(entry[2..12].iter().all(|order| *order > 0), "{entry:?}");
    entry[2 + 3] += 1_000_000;
    journaled.take(0, Note::Begun(2, Entry::default()));
    let found = bound().acid().unwrap().recovered(&sessions, &journaled).unwrap();
    assert_eq!(found.lost, 0, "{found:?}");
    let wrong: Vec<_> = found.checks.iter().filter(|check| check.wrong > 0).collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].name.starts_with("a delivery that was acknowledged"), "{wrong:?}");
    assert!(wrong[0].wrong == 1 && wrong[0].examined > 1 && wrong[0].examples[0].contains("a delivery of warehouse 1"));
    // All ten are gone: the delivery is lost.
    let (_, entry) = journaled.acknowledged.iter_mut().find(|(kind, _)| *kind == 2).unwrap();
    entry[2..12].iter_mut().for_each(|order| *order += 2_000_000);
    let found = bound().acid().unwrap().recovered(&sessions, &journaled).unwrap();
    assert_eq!((found.lost, found.checks.iter().filter(|check| check.wrong > 0).count()), (1, 0), "{found:?}");
}
