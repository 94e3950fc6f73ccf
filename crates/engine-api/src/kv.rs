//! The key-value session family: ordered byte strings in key spaces, with
//! transactions. The calls block; they are meant for embedded engines.

use crate::delta::Delta;
use crate::error::Result;

/// A table or index of a workload: a column family, a table, or a named database in the engine. Sessions address it by
/// its position in the list that the engine was opened with.
#[derive(Clone, Copy, Debug)]
pub struct KeySpace {
    /// The name of the table or index.
    pub name: &'static str,
    /// Length in bytes of the key prefix that every scan shares; 0 when it is never scanned.
    pub scan_prefix: usize,
    /// Whether its entries follow from rows of another space that a transaction locks before it writes them. An index
    /// is an example; such entries need no separate locks.
    pub derived: bool,
}

/// The index of a key space in the list given at open.
pub type SpaceId = usize;

/// A forward range over keys, `from` inclusive, `to` exclusive.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// The first key of the range.
    pub from: &'a [u8],
    /// The first key after the range.
    pub to: &'a [u8],
    /// At most this many entries.
    pub limit: usize,
}

/// Rows to load at once, in one flat buffer that is reused between batches.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    entries: Vec<(SpaceId, usize, usize, usize)>,
}

impl Batch {
    /// Adds an entry.
    pub fn push(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push((space, start, middle, self.bytes.len()));
    }

    /// The entries in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (SpaceId, &[u8], &[u8])> {
        self.entries
            .iter()
            .map(|&(space, start, middle, end)| (space, &self.bytes[start..middle], &self.bytes[middle..end]))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

/// One client's session.
///
/// Outside a transaction, reads see the latest committed state. Between [`KvSession::begin`] and [`KvSession::commit`]
/// or [`KvSession::rollback`], writes and locked reads belong to one atomic transaction, which sees its own writes.
/// After `EngineError::Conflict` the caller must roll back the transaction. The session allocates nothing per call
/// once its buffers have grown.
pub trait KvSession: Send {
    /// Reads one value into `value` (cleared first); false when the key is absent.
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Reads many keys; `visit` is called with the position of each key that exists, in order.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        for (position, key) in keys.iter().enumerate() {
            if self.get(space, key, scratch)? {
                visit(position, scratch);
            }
        }
        Ok(())
    }

    /// Visits the entries of a range in key order; returns how many were visited.
    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize>;

    /// Begins a transaction that may write; of an engine that has none, the write of one key. An engine with one writer
    /// may wait here until the transaction of another session has ended.
    ///
    /// # Errors
    /// `EngineError::Conflict` when it waited for too long; any other error from the engine.
    fn begin(&mut self) -> Result<()>;

    /// Within a transaction, reads one value that this transaction will write. No other transaction can change it until
    /// the end: a row lock prevents that, or a conflict, at the latest at commit.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction is in the way.
    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    /// Within a transaction, inserts or replaces.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction is in the way.
    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()>;

    /// Within a transaction, removes a key that may be absent.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction is in the way.
    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()>;

    /// Within a transaction, changes a value without reading it, so that an engine may defer the write until the next
    /// read. Returns false if the engine does not support this, and does nothing then. The caller then reads and writes
    /// instead, and need not try again, because a session always gives the same answer.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction is in the way.
    fn update(&mut self, _space: SpaceId, _key: &[u8], _delta: &Delta) -> Result<bool> {
        Ok(false)
    }

    /// Commits with the instance's durability.
    ///
    /// # Errors
    /// `EngineError::Conflict` when another transaction was in the way. The transaction is then already rolled back,
    /// and another rollback does nothing.
    fn commit(&mut self) -> Result<()>;

    /// Undoes the transaction; does nothing when there is none.
    fn rollback(&mut self) -> Result<()>;

    /// Loads new rows that no other session touches, the fastest way that keeps the instance's durability.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        for (space, key, value) in batch.iter() {
            self.put(space, key, value)?;
        }
        self.commit()
    }
}
