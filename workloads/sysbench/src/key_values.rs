//! A client's keys and values, as scripts use them through `rumba.kv()`.
//!
//! A session over keys and values is used as it is, and an SQL session through a table of two columns. Outside of
//! transactions each write is one, and `prepare` loads rows in batches.

mod table;

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KeySpace, KvSession, Scan, SpaceId};

use crate::context::ClientContext;
use crate::counters::Counter;
use crate::failure::FAILED;

use table::Table;
pub(crate) use table::create;

/// The only space. Scans have no common key prefix.
pub(crate) const SPACES: [KeySpace; 1] = [KeySpace { name: NAME, scan_prefix: 0, derived: false }];
const SPACE: SpaceId = 0;

/// The name of the space, and of the table of SQL engines.
const NAME: &str = "rumba_kv";

/// The end of every scan: it sorts after all keys that scripts use.
const END: [u8; 64] = [0xFF; 64];

/// The size of a batch of a load.
const BATCH_ROWS: usize = 1000;
const BATCH_BYTES: usize = 1 << 20;

enum Store {
    Kv(Box<dyn KvSession>),
    Sql(Table),
}

/// A client's session over keys and values, with the result of its last call.
pub(crate) struct KeyValues {
    store: Store,
    is_in_transaction: bool,
    value: Vec<u8>,
    found: Entries,
    /// Rows of a load that are not sent yet.
    batch: Batch,
    batch_bytes: usize,
}

/// Entries that a scan found, in one buffer.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    /// The ends of each key and of its value.
    ends: Vec<(usize, usize)>,
}

impl Entries {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((middle, self.bytes.len()));
    }

    fn get(&self, place: usize) -> Option<(&[u8], &[u8])> {
        let &(middle, end) = self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before].1);
        Some((&self.bytes[start..middle], &self.bytes[middle..end]))
    }
}

impl KeyValues {
    /// Keys and values in a client's session, whose table exists.
    ///
    /// # Errors
    /// A session of another kind, or a statement that the engine refuses.
    pub(crate) fn new(session: Session) -> Result<Self> {
        let store = match session {
            Session::Kv(session) => Store::Kv(session),
            Session::Sql(session) => Store::Sql(Table::new(session)?),
            Session::Document(_) => return Err(EngineError::failed(FAILED, "documents are not keys and values")),
        };
        let (found, batch) = (Entries::default(), Batch::default());
        Ok(Self { store, is_in_transaction: false, value: Vec::new(), found, batch, batch_bytes: 0 })
    }

    /// The value that was read last.
    pub(crate) fn value(&self) -> &[u8] {
        &self.value
    }

    /// An entry of the last scan.
    pub(crate) fn entry(&self, place: usize) -> Option<(&[u8], &[u8])> {
        self.found.get(place)
    }

    /// Reads a value; false if the key is absent. A transaction may read for update.
    pub(crate) fn get(&mut self, client: &ClientContext, key: &[u8], for_update: bool) -> Result<bool> {
        self.flush(client)?;
        client.count(Counter::Read);
        let for_update = for_update && self.is_in_transaction;
        match &mut self.store {
            Store::Kv(session) if for_update => session.get_for_update(SPACE, key, &mut self.value),
            Store::Kv(session) => session.get(SPACE, key, &mut self.value),
            Store::Sql(table) => table.get(client, key, for_update, &mut self.value),
        }
    }

    /// Finds at most `limit` entries from a key on; returns their number.
    pub(crate) fn scan(&mut self, client: &ClientContext, from: &[u8], limit: usize) -> Result<usize> {
        self.flush(client)?;
        client.count(Counter::Read);
        self.found.clear();
        let (store, found) = (&mut self.store, &mut self.found);
        let visit = &mut |key: &[u8], value: &[u8]| found.push(key, value);
        match store {
            Store::Kv(session) => session.scan(SPACE, Scan { from, to: &END, limit }, visit),
            Store::Sql(table) => table.scan(client, from, limit, visit),
        }
    }

    /// Inserts or replaces. A load collects its rows.
    pub(crate) fn put(&mut self, client: &ClientContext, key: &[u8], value: &[u8]) -> Result<()> {
        if client.is_load() {
            self.batch.push(SPACE, key, value);
            self.batch_bytes += key.len() + value.len();
            let is_full = self.batch.len() >= BATCH_ROWS || self.batch_bytes >= BATCH_BYTES;
            return if is_full { self.flush(client) } else { Ok(()) };
        }
        client.count(Counter::Write);
        self.write(client, |store| match store {
            Store::Kv(session) => session.put(SPACE, key, value),
            Store::Sql(table) => table.put(client, key, value),
        })
    }

    /// Removes a key that may be absent.
    pub(crate) fn delete(&mut self, client: &ClientContext, key: &[u8]) -> Result<()> {
        self.flush(client)?;
        client.count(Counter::Write);
        self.write(client, |store| match store {
            Store::Kv(session) => session.delete(SPACE, key),
            Store::Sql(table) => table.delete(client, key),
        })
    }

    /// A write, in the transaction under way or in its own. Without a transaction, an SQL statement is one itself.
    fn write(&mut self, client: &ClientContext, write: impl FnOnce(&mut Store) -> Result<()>) -> Result<()> {
        if self.is_in_transaction || matches!(self.store, Store::Sql(_)) {
            return write(&mut self.store);
        }
        self.begin(client)?;
        write(&mut self.store)?;
        self.commit(client)
    }

    pub(crate) fn begin(&mut self, client: &ClientContext) -> Result<()> {
        if client.is_load() {
            let words = "`prepare` loads rows in batches, without transactions: call kv:put alone there";
            return Err(EngineError::failed(FAILED, words));
        }
        client.count(Counter::Other);
        let begun = match &mut self.store {
            Store::Kv(session) => session.begin(),
            Store::Sql(table) => table.begin(client),
        };
        self.is_in_transaction = begun.is_ok();
        begun
    }

    pub(crate) fn commit(&mut self, client: &ClientContext) -> Result<()> {
        client.count(Counter::Other);
        let committed = match &mut self.store {
            Store::Kv(session) => session.commit(),
            Store::Sql(table) => table.commit(client),
        };
        self.is_in_transaction = committed.is_err();
        committed
    }

    /// Undoes the transaction, if there is one.
    pub(crate) fn rollback(&mut self, client: &ClientContext) -> Result<()> {
        if !std::mem::take(&mut self.is_in_transaction) {
            return Ok(());
        }
        client.count(Counter::Other);
        match &mut self.store {
            Store::Kv(session) => session.rollback(),
            Store::Sql(table) => table.rollback(client),
        }
    }

    /// Loads the collected rows, as one operation of the load.
    pub(crate) fn flush(&mut self, client: &ClientContext) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        client.statement_begins()?;
        let loaded = match &mut self.store {
            Store::Kv(session) => session.load(&self.batch),
            Store::Sql(table) => table.load(client, &self.batch),
        };
        let rows = self.batch.len() as u64;
        client.count_by(Counter::Write, rows);
        client.loaded(std::mem::take(&mut self.batch_bytes) as u64);
        self.batch.clear();
        client.statement_done(rows, true);
        loaded
    }
}
