//! Key-value sessions over maps in memory, with row locks.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};

type Key = (SpaceId, Vec<u8>);

#[derive(Debug, Default)]
pub struct Store {
    pub rows: BTreeMap<Key, Vec<u8>>,
    locks: HashMap<Key, usize>,
    sessions: usize,
}

#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<Store>>);

impl Memory {
    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub fn session(&self) -> Session {
        Session::Kv(Box::new(self.kv()))
    }

    pub fn kv(&self) -> MemorySession {
        let mut store = self.store();
        store.sessions += 1;
        MemorySession {
            store: self.0.clone(),
            own: store.sessions,
            writes: BTreeMap::new(),
            loses_deletes: false,
            forgets_every: None,
            fails_commit: None,
            conflicts: 0,
            commits: 0,
            puts: 0,
        }
    }
}

pub struct MemorySession {
    store: Arc<Mutex<Store>>,
    own: usize,
    writes: BTreeMap<Key, Option<Vec<u8>>>,
    /// A planted bug: deletes do nothing.
    pub loses_deletes: bool,
    /// A planted bug: one in this many transactions is acknowledged and forgotten.
    pub forgets_every: Option<u64>,
    /// The commit of this number ends in an error, with or without having been applied.
    pub fails_commit: Option<(u64, bool)>,
    /// The number of coming writes that conflict, each after some that do not.
    pub conflicts: u64,
    commits: u64,
    puts: u64,
}

impl MemorySession {
    fn lock(&self, key: &Key) -> Result<()> {
        let mut store = self.store.lock().unwrap();
        match store.locks.get(key) {
            Some(owner) if *owner != self.own => Err(EngineError::conflict("locked by another session")),
            Some(_) => Ok(()),
            None => {
                store.locks.insert(key.clone(), self.own);
                Ok(())
            }
        }
    }

    fn end(&mut self, apply: bool) {
        let mut store = self.store.lock().unwrap();
        for (key, value) in std::mem::take(&mut self.writes) {
            match value {
                Some(value) if apply => drop(store.rows.insert(key, value)),
                None if apply => drop(store.rows.remove(&key)),
                _ => {}
            }
        }
        store.locks.retain(|_, owner| *owner != self.own);
    }
}

impl KvSession for MemorySession {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let key = (space, key.to_vec());
        let store = self.store.lock().unwrap();
        let found = self.writes.get(&key).map_or_else(|| store.rows.get(&key), |written| written.as_ref());
        value.clear();
        value.extend(found.into_iter().flatten());
        Ok(found.is_some())
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        let store = self.store.lock().unwrap();
        let range = (Bound::Included((space, scan.from.to_vec())), Bound::Excluded((space, scan.to.to_vec())));
        Ok(store.rows.range(range).take(scan.limit).map(|(key, value)| visit(&key.1, value)).count())
    }

    fn begin(&mut self) -> Result<()> {
        assert!(self.writes.is_empty(), "a transaction within a transaction");
        Ok(())
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.lock(&(space, key.to_vec()))?;
        self.get(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.puts += 1;
        if self.conflicts > 0 && self.puts.is_multiple_of(3) {
            self.conflicts -= 1;
            return Err(EngineError::conflict("planted"));
        }
        let key = (space, key.to_vec());
        self.lock(&key)?;
        self.writes.insert(key, Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        let key = (space, key.to_vec());
        self.lock(&key)?;
        if !self.loses_deletes {
            self.writes.insert(key, None);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.commits += 1;
        match self.fails_commit {
            Some((number, applied)) if number == self.commits => {
                self.end(applied);
                return Err(EngineError::failed("commit", "the device is gone"));
            }
            _ => self.end(!self.forgets_every.is_some_and(|every| self.commits.is_multiple_of(every))),
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        self.end(false);
        Ok(())
    }
}
