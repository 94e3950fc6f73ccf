//! Safe handles for writes: transactions and batches.
//!
//! Every handle keeps the database alive, and rumba's side allocates no memory per call.

use std::ptr::null_mut;
use std::sync::Arc;

use rumba_engine_api::engine::Durability;
use rumba_engine_api::error::{EngineError, Result};

use crate::access::{Pinned, ReadOptions};
use crate::db::{Database, Locking, check};
use crate::ffi::*;

/// The durability of a write.
pub struct WriteOptions {
    db: Arc<Database>,
    raw: *mut rocksdb_writeoptions_t,
}

// SAFETY: a plain value behind a pointer that only this struct holds.
unsafe impl Send for WriteOptions {}

impl WriteOptions {
    /// Options for writes with this durability.
    pub fn new(db: &Arc<Database>, durability: Durability) -> Self {
        let api = &db.library.api;
        // SAFETY: a fresh handle, owned here.
        let raw = unsafe {
            let raw = api.rocksdb_writeoptions_create();
            api.rocksdb_writeoptions_set_sync(raw, u8::from(durability == Durability::Sync));
            api.rocksdb_writeoptions_disable_WAL(raw, i32::from(durability == Durability::None));
            raw
        };
        Self { db: db.clone(), raw }
    }

    /// Whether a write waits until its log is on the device, as RocksDB reports it.
    pub fn sync(&self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { self.db.library.api.rocksdb_writeoptions_get_sync(self.raw) != 0 }
    }

    /// Whether a write bypasses the log, as RocksDB reports it.
    pub fn disable_wal(&self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { self.db.library.api.rocksdb_writeoptions_get_disable_WAL(self.raw) != 0 }
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { self.db.library.api.rocksdb_writeoptions_destroy(self.raw) }
    }
}

/// Rows to write in one batch to the base database, without row locks.
pub struct WriteBatch {
    options: WriteOptions,
    raw: *mut rocksdb_writebatch_t,
}

// SAFETY: a plain value behind a pointer that only this struct holds.
unsafe impl Send for WriteBatch {}

impl WriteBatch {
    pub fn new(db: &Arc<Database>, durability: Durability) -> Self {
        // SAFETY: a fresh handle, owned here.
        let raw = unsafe { db.library.api.rocksdb_writebatch_create() };
        Self { options: WriteOptions::new(db, durability), raw }
    }

    /// Adds a row.
    #[inline]
    pub fn put(&mut self, space: usize, key: &[u8], value: &[u8]) {
        let db = &self.options.db;
        let (key_pointer, value_pointer) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: valid handles; key and value are `len` bytes and are copied.
        unsafe {
            let family = db.family(space);
            let api = &db.library.api;
            api.rocksdb_writebatch_put_cf(self.raw, family, key_pointer, key.len(), value_pointer, value.len());
        }
    }

    /// Writes the added rows, and clears the batch whether or not that succeeds.
    pub fn write(&mut self) -> Result<()> {
        let db = &self.options.db;
        let api = &db.library.api;
        let mut error = null_mut();
        // SAFETY: valid handles; the error is taken over.
        let outcome = db.unless_full(|| unsafe {
            api.rocksdb_write(db.base, self.options.raw, self.raw, &mut error);
            check(api, "rocksdb_write", error)
        });
        // SAFETY: a valid handle.
        unsafe { api.rocksdb_writebatch_clear(self.raw) };
        outcome
    }
}

impl Drop for WriteBatch {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { self.options.db.library.api.rocksdb_writebatch_destroy(self.raw) }
    }
}

/// A pessimistic transaction, which is reused for every begin.
pub struct Transaction {
    write: WriteOptions,
    options: *mut rocksdb_transaction_options_t,
    /// Null until the first begin.
    pub(crate) raw: *mut rocksdb_transaction_t,
    /// The transaction's own indexed batch, null until the first begin. It is a member of the C++ object, which every
    /// begin reuses, so one handle is enough.
    unlocked: *mut rocksdb_writebatch_wi_t,
    active: bool,
}

// SAFETY: RocksDB's transactions may move between threads; only one thread uses it at a time.
unsafe impl Send for Transaction {}

impl Transaction {
    pub fn new(db: &Arc<Database>, durability: Durability, locking: &Locking) -> Self {
        let api = &db.library.api;
        // SAFETY: a fresh handle, owned here.
        let options = unsafe {
            let options = api.rocksdb_transaction_options_create();
            api.rocksdb_transaction_options_set_deadlock_detect(options, u8::from(locking.deadlock_detect));
            if let Some(depth) = locking.deadlock_detect_depth {
                api.rocksdb_transaction_options_set_deadlock_detect_depth(options, depth);
            }
            if let Some(timeout_ms) = locking.lock_timeout {
                api.rocksdb_transaction_options_set_lock_timeout(options, timeout_ms);
            }
            if let Some(after_ms) = locking.expiration {
                api.rocksdb_transaction_options_set_expiration(options, after_ms);
            }
            options
        };
        Self { write: WriteOptions::new(db, durability), options, raw: null_mut(), unlocked: null_mut(), active: false }
    }

    /// Whether a transaction is open.
    #[inline]
    pub fn active(&self) -> bool {
        self.active
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// A transaction is already open.
    #[inline]
    pub fn begin(&mut self) -> Result<()> {
        if self.active {
            return Err(misuse("rocksdb_transaction_begin", "this session's transaction is still open"));
        }
        let db = &self.write.db;
        let api = &db.library.api;
        // SAFETY: valid handles; an old transaction is finished and is reused, with its batch.
        unsafe {
            self.raw = api.rocksdb_transaction_begin(db.transactions, self.write.raw, self.options, self.raw);
            if self.unlocked.is_null() {
                self.unlocked = api.rocksdb_transaction_get_writebatch_wi(self.raw);
            }
        }
        self.active = true;
        Ok(())
    }

    /// Reads with this transaction's own writes; `lock` takes the row's exclusive lock first.
    ///
    /// # Errors
    /// A conflict with `lock`; RocksDB's error.
    #[inline]
    pub fn get(&self, options: &ReadOptions, space: usize, key: &[u8], lock: bool) -> Result<Option<Pinned<'_>>> {
        self.require_active("rocksdb_transaction_get_pinned_cf")?;
        let db = &self.write.db;
        let api = &db.library.api;
        let (pointer, length) = (key.as_ptr().cast(), key.len());
        let mut error = null_mut();
        // SAFETY: valid handles, an open transaction; the key is `len` bytes; results are taken over.
        unsafe {
            let family = db.family(space);
            let value = if lock {
                api.rocksdb_transaction_get_pinned_for_update_cf(
                    self.raw,
                    options.raw,
                    family,
                    pointer,
                    length,
                    1,
                    &mut error,
                )
            } else {
                api.rocksdb_transaction_get_pinned_cf(self.raw, options.raw, family, pointer, length, &mut error)
            };
            check(api, "rocksdb_transaction_get_pinned_cf", error)?;
            Ok(Pinned::take(api, value))
        }
    }

    /// Inserts or replaces.
    ///
    /// # Errors
    /// A conflict; RocksDB's error.
    #[inline]
    pub fn put(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.require_active("rocksdb_transaction_put_cf")?;
        let db = &self.write.db;
        let api = &db.library.api;
        let (key_pointer, value_pointer) = (key.as_ptr().cast(), value.as_ptr().cast());
        let mut error = null_mut();
        // SAFETY: valid handles, an open transaction; key and value are `len` bytes and are copied.
        unsafe {
            let family = db.family(space);
            api.rocksdb_transaction_put_cf(
                self.raw,
                family,
                key_pointer,
                key.len(),
                value_pointer,
                value.len(),
                &mut error,
            );
            check(api, "rocksdb_transaction_put_cf", error)
        }
    }

    /// Removes a key that may be absent.
    ///
    /// # Errors
    /// A conflict; RocksDB's error.
    #[inline]
    pub fn delete(&mut self, space: usize, key: &[u8]) -> Result<()> {
        self.require_active("rocksdb_transaction_delete_cf")?;
        let db = &self.write.db;
        let api = &db.library.api;
        let mut error = null_mut();
        // SAFETY: valid handles, an open transaction; the key is `len` bytes and is copied.
        unsafe {
            let family = db.family(space);
            api.rocksdb_transaction_delete_cf(self.raw, family, key.as_ptr().cast(), key.len(), &mut error);
            check(api, "rocksdb_transaction_delete_cf", error)
        }
    }

    /// Inserts or replaces without a lock, into the transaction's batch, which its reads include.
    ///
    /// # Errors
    /// No transaction is open. RocksDB's function reports no other errors.
    #[inline]
    pub fn put_unlocked(&mut self, space: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.require_active("rocksdb_writebatch_wi_put_cf")?;
        let db = &self.write.db;
        let (key_pointer, value_pointer) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: valid handles, an open transaction; key and value are `len` bytes and are copied.
        unsafe {
            let family = db.family(space);
            let api = &db.library.api;
            api.rocksdb_writebatch_wi_put_cf(self.unlocked, family, key_pointer, key.len(), value_pointer, value.len());
        }
        Ok(())
    }

    /// Removes a key that may be absent, without a lock.
    ///
    /// # Errors
    /// As for [`Transaction::put_unlocked`].
    #[inline]
    pub fn delete_unlocked(&mut self, space: usize, key: &[u8]) -> Result<()> {
        self.require_active("rocksdb_writebatch_wi_delete_cf")?;
        let db = &self.write.db;
        // SAFETY: valid handles, an open transaction; the key is `len` bytes and is copied.
        unsafe {
            let family = db.family(space);
            db.library.api.rocksdb_writebatch_wi_delete_cf(self.unlocked, family, key.as_ptr().cast(), key.len());
        }
        Ok(())
    }

    /// Commits; after an error the transaction is rolled back.
    ///
    /// # Errors
    /// A conflict; RocksDB's error.
    #[inline]
    pub fn commit(&mut self) -> Result<()> {
        self.require_active("rocksdb_transaction_commit")?;
        let db = &self.write.db;
        let api = &db.library.api;
        let mut error = null_mut();
        // SAFETY: an open transaction; the error is taken over.
        let outcome = db.unless_full(|| unsafe {
            api.rocksdb_transaction_commit(self.raw, &mut error);
            check(api, "rocksdb_transaction_commit", error)
        });
        match outcome {
            Ok(()) => self.active = false,
            // Return the commit's error; one from the rollback adds no information.
            Err(_) => drop(self.rollback()),
        }
        outcome
    }

    /// Rolls the open transaction back, if any.
    #[inline]
    pub fn rollback(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.active) {
            return Ok(());
        }
        let api = &self.write.db.library.api;
        let mut error = null_mut();
        // SAFETY: an open transaction; the error is taken over.
        unsafe {
            api.rocksdb_transaction_rollback(self.raw, &mut error);
            check(api, "rocksdb_transaction_rollback", error)
        }
    }

    #[inline]
    fn require_active(&self, call: &'static str) -> Result<()> {
        if self.active { Ok(()) } else { Err(misuse(call, "no transaction is open; begin one first")) }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let api = &self.write.db.library.api;
        // SAFETY: created once, destroyed once. Destroying an open transaction rolls it back. The batch's handle is
        // malloc'ed for the caller, the batch itself belongs to the transaction
        // (`rocksdb_transaction_get_writebatch_wi` in c.cc); freeing null does nothing.
        unsafe {
            api.rocksdb_free(self.unlocked.cast());
            if !self.raw.is_null() {
                api.rocksdb_transaction_destroy(self.raw);
            }
            api.rocksdb_transaction_options_destroy(self.options);
        }
    }
}

#[cold]
fn misuse(call: &'static str, message: &str) -> EngineError {
    EngineError::failed(call, message)
}
