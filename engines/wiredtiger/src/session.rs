//! The key-value session over one WiredTiger session.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};

use crate::raw::{CursorId, Session};

/// One client's session: cursors on all tables, kept open.
pub struct WiredTigerSession {
    session: Session,
    cursors: Vec<CursorId>,
    in_transaction: bool,
}

impl WiredTigerSession {
    /// Opens a cursor on each of the tables, in the order of the key spaces.
    pub fn new(mut session: Session, tables: &[String]) -> Result<Self> {
        let cursors = tables.iter().map(|uri| session.open_cursor(uri)).collect::<Result<_, _>>()?;
        Ok(Self { session, cursors, in_transaction: false })
    }

    /// Refuses writes outside a transaction, because the library would commit each one separately.
    fn in_transaction(&self, call: &'static str) -> Result<()> {
        if self.in_transaction { Ok(()) } else { Err(outside(call)) }
    }

    fn visit_found(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        for (position, key) in keys.iter().enumerate() {
            if self.session.search(self.cursors[space], key, scratch)? {
                visit(position, scratch);
            }
        }
        Ok(())
    }
}

#[cold]
fn outside(call: &'static str) -> EngineError {
    EngineError::failed(call, "only within a transaction; call begin first")
}

impl KvSession for WiredTigerSession {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.session.search(self.cursors[space], key, value)
    }

    /// Reads all keys from one snapshot. Outside a transaction each search would use a separate snapshot, so this opens
    /// a read transaction around them.
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        if self.in_transaction {
            return self.visit_found(space, keys, scratch, visit);
        }
        self.begin()?;
        let visited = self.visit_found(space, keys, scratch, visit);
        let ended = self.rollback();
        visited.and(ended)
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        self.session.scan(self.cursors[space], scan, visit)
    }

    fn begin(&mut self) -> Result<()> {
        self.session.begin()?;
        self.in_transaction = true;
        Ok(())
    }

    /// A plain read of the snapshot. The write that follows enforces the lock. It conflicts with every change of the
    /// row since the snapshot, committed or not, and with a second insert of an absent row.
    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.in_transaction("WT_CURSOR.search")?;
        self.session.search(self.cursors[space], key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.in_transaction("WT_CURSOR.insert")?;
        self.session.insert(self.cursors[space], key, value)
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.in_transaction("WT_CURSOR.remove")?;
        self.session.remove(self.cursors[space], key)
    }

    fn commit(&mut self) -> Result<()> {
        self.in_transaction("WT_SESSION.commit_transaction")?;
        // Even after an error no transaction is open.
        self.in_transaction = false;
        self.session.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        if !self.in_transaction {
            return Ok(());
        }
        self.in_transaction = false;
        self.session.rollback()
    }

    /// Loads in one transaction per batch: one log record and one access to the transaction table for many rows. The
    /// library's bulk cursor is not used, because it needs exclusive access to a table and sorted rows, and writes no
    /// log.
    ///
    /// Each loader writes its own rows, but conflicts are possible: when dirty pages fill the cache, the library rolls
    /// back the transaction that pins the most.
    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.begin()?;
        let mut rows = batch.iter();
        let inserted = rows.try_for_each(|(space, key, value)| self.session.insert(self.cursors[space], key, value));
        let loaded = inserted.and_then(|()| self.commit());
        if loaded.is_err() {
            // Return the first error, which is more specific than one from the rollback.
            let _ = self.rollback();
        }
        loaded
    }
}
