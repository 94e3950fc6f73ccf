//! The key-value session family: ordered byte strings in key spaces, with
//! transactions. The calls block; they are meant for embedded engines.

use crate::delta::Delta;
use crate::error::EngineError;

/// A table or index of a workload, as an engine sees it: a column family, a
/// table, a named database. Sessions address it by its position in the list
/// that the engine was opened with.
#[derive(Clone, Copy, Debug)]
pub struct KeySpace {
    /// The name of the table or index.
    pub name: &'static str,
    /// Length in bytes of the key prefix that every scan shares; 0 when it is never scanned.
    pub scan_prefix: usize,
    /// Whether its entries follow from rows of another space that a transaction
    /// has locked before it writes them, as an index's do: they need no locks of their own.
    pub derived: bool,
}

/// The index of a key space in the list given at open.
pub type SpaceId = usize;

/// A forward range over keys, `from` inclusive, `to` exclusive.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// The first key that may be visited.
    pub from: &'a [u8],
    /// The first key that may not be visited any more.
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

    /// Forgets the entries and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

/// One client's session.
///
/// Outside a transaction, reads see the latest committed state. Between
/// [`KvSession::begin`] and [`KvSession::commit`] or [`KvSession::rollback`],
/// writes and locked reads belong to one atomic transaction, which sees its
/// own writes. A call that returns [`EngineError::Conflict`] leaves the
/// transaction to be rolled back by the caller. Nothing here allocates per
/// call once buffers have grown.
pub trait KvSession: Send {
    /// Reads one value into `value` (cleared first); false when the key is absent.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError>;

    /// Reads many keys; `visit` is called with the position of each key that exists, in order.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), EngineError> {
        for (position, key) in keys.iter().enumerate() {
            if self.get(space, key, scratch)? {
                visit(position, scratch);
            }
        }
        Ok(())
    }

    /// Visits the entries of a range in key order; returns how many were visited.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn scan(
        &mut self,
        space: SpaceId,
        scan: Scan<'_>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, EngineError>;

    /// Begins a transaction that may write; of an engine that has none, the write of one key. An engine with one writer
    /// may wait here until the transaction of another session has ended.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when it waited for too long; whatever else the engine said.
    fn begin(&mut self) -> Result<(), EngineError>;

    /// Within a transaction, reads one value that this transaction goes on to write, and keeps others
    /// from changing it until the end: by a row lock, or by a conflict at the latest at commit.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when another transaction stands in the way.
    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError>;

    /// Within a transaction, inserts or replaces.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when another transaction stands in the way.
    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<(), EngineError>;

    /// Within a transaction, removes a key that may be absent.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when another transaction stands in the way.
    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<(), EngineError>;

    /// Within a transaction, changes a value without reading it: a write that an engine may put off until somebody
    /// reads. False if the engine does not put writes off, and nothing was done: the caller reads and writes then, and
    /// need not ask again, for a session always says the same.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when another transaction stands in the way.
    fn update(&mut self, _space: SpaceId, _key: &[u8], _delta: &Delta) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Commits with the instance's durability.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] when another transaction stood in the way; the
    /// transaction is then rolled back already, and another rollback does nothing.
    fn commit(&mut self) -> Result<(), EngineError>;

    /// Undoes the transaction; does nothing when there is none.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn rollback(&mut self) -> Result<(), EngineError>;

    /// Loads new rows that nobody else touches, the fastest way that keeps the
    /// instance's durability.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn load(&mut self, batch: &Batch) -> Result<(), EngineError> {
        self.begin()?;
        for (space, key, value) in batch.iter() {
            self.put(space, key, value)?;
        }
        self.commit()
    }
}
