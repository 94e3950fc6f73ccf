//! Stores that break the promises, to check that each broken promise is found.

use std::collections::BTreeMap;
use std::io::Seek;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use rumba_engine_api::acid::{Outcome, Promise};
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{Client, block_on};
use rumba_engine_api::workload::Bound;
use rumba_testkit::turns::{ALONE, Turns};
use rumba_workload_kit::ledger::{Entries, Write};

use crate::bound::TpcCBound;
use crate::tables::Table;

type Space = BTreeMap<Vec<u8>, Vec<u8>>;

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
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        Ok(self.read(|spaces| spaces[space].get(key).map(|found| value.extend_from_slice(found)).is_some()))
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        let range = scan.from.to_vec()..scan.to.to_vec();
        let found: Vec<(Vec<u8>, Vec<u8>)> = self.read(|spaces| {
            spaces[space].range(range).take(scan.limit).map(|(key, value)| (key.clone(), value.clone())).collect()
        });
        found.iter().for_each(|(key, value)| visit(key, value));
        Ok(found.len())
    }

    fn begin(&mut self) -> Result<()> {
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

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(space, key, Some(value));
        Ok(())
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.write(space, key, None);
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.end(|_| true);
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        let how = self.store.how;
        self.end(|space| how == Careless::Keeps(space));
        Ok(())
    }
}

fn bound() -> TpcCBound {
    let small = [("warehouses", 1), ("customers", 20), ("items", 200)];
    TpcCBound::new(&Settings(small.map(|(name, number)| (name.to_owned(), Value::Int(number))).into())).unwrap()
}

fn run(mut client: Box<dyn Client>, turns: usize) {
    block_on(client.run(&mut Turns::of(turns))).unwrap();
}

/// A loaded database in such a store.
fn loaded(how: Careless) -> (TpcCBound, impl Fn() -> Result<Session> + Sync) {
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
fn store_without_rollback_is_detected() {
    // A rolled-back order is visible and keeps its number, and so do deliveries and payments.
    assert_eq!(broken(Careless::AtOnce), ["a2", "i1", "i2", "i4", "i6"]);
}

#[test]
fn store_that_loses_updates_is_detected() {
    assert_eq!(broken(Careless::LastWins), ["i3", "i5"]);
}

/// Each case forgets to undo the writes to one table: first the rows of an order with a missing item, then the other
/// rows of rolled-back transactions.
/// If the second of two orders writes the same rows, the other test shows the remains of the first.
#[test]
fn store_that_does_not_roll_back_a_table_is_detected() {
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

/// The ledger of a client after 300 transactions.
fn recorded(before: &TpcCBound, sessions: &(impl Fn() -> Result<Session> + Sync)) -> Entries {
    let ledger = Arc::new(tempfile::tempfile().unwrap());
    run(before.acid().unwrap().recorded(sessions().unwrap(), ALONE, 7, &ledger).unwrap(), 300);
    (&*ledger).rewind().unwrap();
    Entries::read(&ledger).unwrap()
}

#[test]
fn acknowledged_entries_are_found_and_missing_ones_counted() {
    let (before, sessions) = loaded(Careless::LastWins);
    let entries = recorded(&before, &sessions);
    assert!(entries.acknowledged.len() > 200, "{}", entries.acknowledged.len());
    assert_eq!(entries.in_doubt, []);
    let look = |entries: &Entries| bound().look_for(&sessions, entries).unwrap();
    let found = look(&entries);
    assert_eq!((found.acknowledged, found.lost), (entries.acknowledged.len() as u64, 0), "{:?}", found.examples);
    assert!(found.checks.iter().all(|check| check.wrong == 0), "{:?}", found.checks);
    // Another payment, another order and another delivery than the actual ones.
    let mut lied = entries.clone();
    for kind in 0..3 {
        let write = lied.acknowledged.iter_mut().find(|write| write.kind == kind).unwrap();
        // An order's customer, a payment's cents, a delivery's carrier.
        write.entry[[3, 5, 1][kind as usize]] += 1;
    }
    let missed = look(&lied);
    assert_eq!((missed.lost, missed.examples.len()), (3, 3), "{missed:?}");
    // An unacknowledged payment is one too many, unless it may have been begun.
    let mut less = entries;
    let last = less.acknowledged.iter().rposition(|write| write.kind == 1).unwrap();
    let payment = less.acknowledged.remove(last);
    let wrong = |found: &rumba_engine_api::acid::Found| found.checks.iter().filter(|check| check.wrong > 0).count();
    assert_eq!(wrong(&look(&less)), 1, "a payment without an acknowledgement");
    less.in_doubt.push(Write { ended_ns: None, ..payment });
    assert_eq!(wrong(&look(&less)), 0, "one that was in doubt");
}

#[test]
fn partially_present_delivery_is_not_counted_as_lost() {
    let (before, sessions) = loaded(Careless::LastWins);
    let mut entries = recorded(&before, &sessions);
    // One of its ten orders differs from the delivered ones, and another client may have delivered this one.
    let at = entries.acknowledged.iter().position(|write| write.kind == 2).unwrap();
    let delivery = entries.acknowledged[at];
    assert!(delivery.entry[2..12].iter().all(|order| *order > 0), "{delivery:?}");
    entries.acknowledged[at].entry[2 + 3] += 1_000_000;
    entries.in_doubt.push(Write { ended_ns: None, ..delivery });
    let found = bound().look_for(&sessions, &entries).unwrap();
    assert_eq!(found.lost, 0, "{found:?}");
    let wrong: Vec<_> = found.checks.iter().filter(|check| check.wrong > 0).collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].name.starts_with("a delivery that was acknowledged"), "{wrong:?}");
    assert!(wrong[0].wrong == 1 && wrong[0].examined > 1 && wrong[0].examples[0].contains("a delivery of warehouse 1"));
    // All ten are gone: the delivery is lost.
    entries.acknowledged[at].entry[2..12].iter_mut().for_each(|order| *order += 2_000_000);
    let found = bound().look_for(&sessions, &entries).unwrap();
    assert_eq!((found.lost, found.checks.iter().filter(|check| check.wrong > 0).count()), (1, 0), "{found:?}");
}
