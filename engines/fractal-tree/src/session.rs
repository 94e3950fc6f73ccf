//! The key-value session over one pair of transactions.

use std::sync::Arc;

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};

use crate::raw::{Lock, Transactions};

/// One client's session.
pub struct FractalTreeSession {
    transactions: Transactions,
    /// For each key space, who protects its keys.
    locks: Arc<[Lock]>,
    upserts: bool,
}

impl FractalTreeSession {
    /// Creates a session.
    pub fn new(transactions: Transactions, locks: &Arc<[Lock]>, upserts: bool) -> Self {
        Self { transactions, locks: locks.clone(), upserts }
    }

    /// Refuses writes outside a transaction, because the library would commit each one separately.
    #[inline]
    fn within(&self, call: &'static str) -> Result<()> {
        if self.transactions.is_writing() { Ok(()) } else { Err(outside(call)) }
    }
}

#[cold]
fn outside(call: &'static str) -> EngineError {
    EngineError::failed(call, "only within a transaction; call begin first")
}

impl KvSession for FractalTreeSession {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.transactions.get(space, key, value)
    }

    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.transactions.multi_get(space, keys, scratch, visit)
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        self.transactions.scan(space, scan, visit)
    }

    fn begin(&mut self) -> Result<()> {
        if self.transactions.is_writing() {
            return Err(EngineError::failed("DB_ENV->txn_begin", "this session has a transaction open; end it first"));
        }
        self.transactions.begin()
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.within("DB->getf_set")?;
        self.transactions.get_for_update(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.within("DB->put")?;
        self.transactions.put(space, key, value, self.locks[space])
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.within("DB->del")?;
        self.transactions.delete(space, key, self.locks[space])
    }

    /// Sends a message to the key. It is applied when the row is read or when the message reaches its leaf.
    fn update(&mut self, space: SpaceId, key: &[u8], delta: &Delta) -> Result<bool> {
        if !self.upserts {
            return Ok(false);
        }
        self.within("DB->update")?;
        self.transactions.update(space, key, delta).map(|()| true)
    }

    fn commit(&mut self) -> Result<()> {
        self.within("DB_TXN->commit")?;
        self.transactions.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.transactions.abort()
    }

    /// Loads in one transaction without row locks, because each loader writes its own rows. The library's bulk loader
    /// is not used, because it needs exclusive access to a tree.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        let mut rows = batch.iter();
        let put = rows.try_for_each(|(space, key, value)| self.transactions.put(space, key, value, Lock::Needless));
        let loaded = put.and_then(|()| self.transactions.commit());
        if loaded.is_err() {
            // Return the first error, which is more specific than one from the rollback.
            let _ = self.transactions.abort();
        }
        loaded
    }
}
