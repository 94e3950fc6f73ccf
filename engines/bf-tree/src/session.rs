//! A client's session on the tree.

use std::sync::Arc;

use bf_tree::{LeafReadResult, ScanReturnField};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};

use crate::instance::Shared;
use crate::locks::Locks;

/// The pending change of the one key that a session may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Nothing,
    Put,
    Delete,
}

pub(crate) struct BfTreeSession {
    shared: Arc<Shared>,
    /// Key of the current request, prefixed with its space's number.
    key: Vec<u8>,
    /// Scratch buffer for a key and a value that the library returns.
    room: Vec<u8>,
    /// Whether a transaction is open.
    is_writing: bool,
    /// Key that the transaction writes, if any; the session holds its lock.
    own: Vec<u8>,
    change: Change,
    value: Vec<u8>,
}

/// Encodes a key as the tree stores it.
fn put_key(out: &mut Vec<u8>, space: SpaceId, key: &[u8]) {
    out.clear();
    out.push(space as u8);
    out.extend_from_slice(key);
}

#[cold]
fn second_key() -> EngineError {
    EngineError::failed(
        "put",
        "bf-tree has no transactions: one key is written between begin and commit, and this is another",
    )
}

impl BfTreeSession {
    /// A session of an instance.
    pub fn new(shared: Arc<Shared>) -> Self {
        let (key, record) = (shared.options.max_key, shared.options.max_record);
        let buffer = |length| Vec::with_capacity(length);
        Self {
            key: buffer(key + 1),
            room: vec![0; key + record + 1],
            is_writing: false,
            own: buffer(key + 1),
            change: Change::Nothing,
            value: buffer(record),
            shared,
        }
    }

    fn read(&mut self, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        match self.shared.tree.read(&self.key, &mut self.room) {
            LeafReadResult::Found(length) => {
                value.extend_from_slice(&self.room[..length as usize]);
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => Err(EngineError::failed(
                "read",
                format!("a key of {} bytes: cb_max_key_len bounds them", self.key.len()),
            )),
        }
    }

    /// Makes the current key the transaction's key and locks it.
    fn own(&mut self) -> Result<()> {
        if !self.is_writing {
            return Err(EngineError::failed("put", "no transaction is open; begin first"));
        }
        if self.own.is_empty() {
            self.own.extend_from_slice(&self.key);
            self.shared.locks.lock(Locks::place(&self.own));
            return Ok(());
        }
        if self.own == self.key { Ok(()) } else { Err(second_key()) }
    }

    /// Ends the transaction and unlocks its key.
    fn end(&mut self) {
        if !self.own.is_empty() {
            self.shared.locks.unlock(Locks::place(&self.own));
            self.own.clear();
        }
        self.change = Change::Nothing;
        self.is_writing = false;
    }
}

impl KvSession for BfTreeSession {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        put_key(&mut self.key, space, key);
        if self.change != Change::Nothing && self.own == self.key {
            value.clear();
            value.extend_from_slice(&self.value);
            return Ok(self.change == Change::Put);
        }
        self.read(value)
    }

    /// Visits the latest version of each entry. There is no range snapshot, because the library locks one leaf at a
    /// time.
    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        if scan.limit == 0 {
            return Ok(0);
        }
        put_key(&mut self.key, space, scan.from);
        let found = self.shared.tree.scan_with_count(&self.key, scan.limit, ScanReturnField::KeyAndValue);
        let mut entries =
            found.map_err(|error| EngineError::failed("scan", format!("{error:?}: cb_max_key_len bounds keys")))?;
        let mut visited = 0;
        while visited < scan.limit
            && let Some((key, value)) = entries.next(&mut self.room)
        {
            let (key, value) = (&self.room[..key], &self.room[key..key + value]);
            if key.first() != Some(&(space as u8)) || key[1..] >= *scan.to {
                break;
            }
            visit(&key[1..], value);
            visited += 1;
        }
        Ok(visited)
    }

    fn begin(&mut self) -> Result<()> {
        if self.is_writing {
            return Err(EngineError::failed("begin", "this session has begun already; end it first"));
        }
        self.is_writing = true;
        Ok(())
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        put_key(&mut self.key, space, key);
        self.own()?;
        self.get(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        put_key(&mut self.key, space, key);
        self.own()?;
        self.value.clear();
        self.value.extend_from_slice(value);
        self.change = Change::Put;
        Ok(())
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        put_key(&mut self.key, space, key);
        self.own()?;
        self.value.clear();
        self.change = Change::Delete;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let written = match self.change {
            Change::Nothing => Ok(()),
            Change::Put => self.shared.insert(&self.own, &self.value),
            Change::Delete => {
                self.shared.delete(&self.own);
                Ok(())
            }
        };
        self.end();
        written
    }

    fn rollback(&mut self) -> Result<()> {
        self.end();
        Ok(())
    }

    /// Inserts entry by entry, because the library has no bulk load.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        for (space, key, value) in batch.iter() {
            put_key(&mut self.key, space, key);
            self.shared.insert(&self.key, value)?;
        }
        Ok(())
    }
}

/// Releases the lock when a client is dropped in the middle of a write.
impl Drop for BfTreeSession {
    fn drop(&mut self) {
        self.end();
    }
}
