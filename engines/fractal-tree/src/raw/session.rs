//! One session's transactions on an environment.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Scan, SpaceId};

use super::environment::{Commit, Environment};
use super::ffi::{self, DbTxn, Dbc, Dbt};
use super::{files, probe};

/// The open write transaction, if any, and a cursor for each key space. Each read outside it runs in a transaction of
/// its call, because a snapshot excludes later commits.
pub struct Transactions {
    env: Arc<Environment>,
    /// Null outside of a transaction.
    writer: *mut DbTxn,
    cursors: Vec<*mut Dbc>,
}

// SAFETY: a transaction and its cursors may move between threads as long as one uses them at a time, which `&mut self`
// and the lack of Sync ensure.
unsafe impl Send for Transactions {}

/// Who protects a key from other writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The library, with a row lock.
    Row,
    /// No lock is needed: another lock excludes other writers, or there are none.
    Needless,
}

impl Lock {
    fn flags(self) -> u32 {
        match self {
            Lock::Row => 0,
            Lock::Needless => ffi::DB_PRELOCKED_WRITE,
        }
    }
}

impl Transactions {
    /// Opens the cursors of a session.
    pub fn open(env: &Arc<Environment>) -> Result<Self> {
        let mut own = Self { env: env.clone(), writer: null_mut(), cursors: Vec::new() };
        let cursors = &mut own.cursors;
        reading(env, null_mut(), |reader| {
            env.dbs.iter().try_for_each(|&db| {
                let mut cursor = null_mut();
                // SAFETY: database and transaction are open. The cursor is moved to another transaction before it is
                // used.
                let code = unsafe { ((*db).cursor)(db, reader, &mut cursor, 0) };
                env.check("DB->cursor", code)?;
                // SAFETY: the cursor was just created.
                unsafe { probe::cursor(cursor, db) }.map_err(|what| EngineError::failed("DB->cursor", what))?;
                cursors.push(cursor);
                Ok(())
            })
        })?;
        Ok(own)
    }

    /// Whether a write transaction is open.
    #[inline]
    pub fn is_writing(&self) -> bool {
        !self.writer.is_null()
    }

    /// Begins a write transaction.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn begin(&mut self) -> Result<()> {
        self.env.refuse_if_full()?;
        self.writer = begun(&self.env, 0)?;
        Ok(())
    }

    /// Commits. Afterwards no transaction is open, even after an error.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn commit(&mut self) -> Result<()> {
        let writer = std::mem::replace(&mut self.writer, null_mut());
        let flags = if self.env.commit == Commit::Nothing { ffi::DB_TXN_NOSYNC } else { 0 };
        // SAFETY: the transaction is open and is not used afterwards.
        let commit = || unsafe { ((*writer).commit)(writer, flags) };
        let code = if self.env.commit == Commit::Written { files::without_sync(commit) } else { commit() };
        self.env.check("DB_TXN->commit", code)?;
        // If the device is full, the transaction may not have been written.
        self.env.refuse_if_full()
    }

    /// Rolls the transaction back, if there is one.
    pub fn abort(&mut self) -> Result<()> {
        let writer = std::mem::replace(&mut self.writer, null_mut());
        if writer.is_null() {
            return Ok(());
        }
        // SAFETY: the transaction is open and is not used afterwards.
        let code = unsafe { ((*writer).abort)(writer) };
        self.env.check("DB_TXN->abort", code)
    }

    /// Reads a value into `value`.
    ///
    /// # Errors
    /// The library's error message; device full.
    #[inline]
    pub fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.env.refuse_if_full()?;
        reading(&self.env, self.writer, |txn| read(&self.env, txn, space, key, 0, value))
    }

    /// Reads many values from one snapshot.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.env.refuse_if_full()?;
        reading(&self.env, self.writer, |txn| {
            for (position, key) in keys.iter().enumerate() {
                if read(&self.env, txn, space, key, 0, scratch)? {
                    visit(position, scratch);
                }
            }
            Ok(())
        })
    }

    /// Reads the latest value and locks it, within a transaction.
    ///
    /// # Errors
    /// A conflict; the library's error message; device full.
    pub fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.env.refuse_if_full()?;
        read(&self.env, self.writer, space, key, ffi::DB_SERIALIZABLE | ffi::DB_RMW, value)
    }

    /// Visits the rows of a range.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        self.env.refuse_if_full()?;
        if scan.from >= scan.to || scan.limit == 0 {
            return Ok(0);
        }
        let (cursor, mut from) = (self.cursors[space], Dbt::of(scan.from));
        let mut visiting = Visiting { to: scan.to, limit: scan.limit, visited: 0, is_done: false, visit };
        let extra: *mut c_void = (&raw mut visiting).cast();
        reading(&self.env, self.writer, |txn| {
            // SAFETY: cursor and transaction are open; bounds and visitor live through the calls, in which `visit_row`
            // is called, and nothing else uses them meanwhile.
            let code = unsafe {
                ((*cursor).c_set_txn)(cursor, txn);
                let mut code = ((*cursor).c_getf_set_range)(cursor, 0, &mut from, visit_row, extra);
                while code == 0 && !(*extra.cast::<Visiting<'_>>()).is_done {
                    code = ((*cursor).c_getf_next)(cursor, 0, visit_row, extra);
                }
                code
            };
            match code {
                0 | ffi::DB_NOTFOUND => Ok(()),
                code => Err(self.env.failure("DBC->c_getf_next", code)),
            }
        })?;
        Ok(visiting.visited)
    }

    /// Inserts or replaces, within a transaction, without reading the old value.
    ///
    /// # Errors
    /// A conflict; the library's error message; device full.
    pub fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8], lock: Lock) -> Result<()> {
        self.env.refuse_if_full()?;
        let (db, mut key, mut value) = (self.env.dbs[space], Dbt::of(key), Dbt::of(value));
        // SAFETY: database and transaction are open; key and value live through the call.
        let code = unsafe { ((*db).put)(db, self.writer, &mut key, &mut value, lock.flags()) };
        self.env.check("DB->put", code)
    }

    /// Removes a key that may be absent, within a transaction, without reading it.
    ///
    /// # Errors
    /// A conflict; the library's error message; device full.
    pub fn delete(&mut self, space: SpaceId, key: &[u8], lock: Lock) -> Result<()> {
        self.env.refuse_if_full()?;
        let (db, mut key) = (self.env.dbs[space], Dbt::of(key));
        // SAFETY: database and transaction are open; the key lives through the call.
        let code = unsafe { ((*db).del)(db, self.writer, &mut key, ffi::DB_DELETE_ANY | lock.flags()) };
        self.env.check("DB->del", code)
    }

    /// Sends a message to a key, within a transaction.
    ///
    /// # Errors
    /// A conflict; the library's error message; device full.
    pub fn update(&mut self, space: SpaceId, key: &[u8], delta: &Delta) -> Result<()> {
        self.env.refuse_if_full()?;
        let (db, key, message) = (self.env.dbs[space], Dbt::of(key), Dbt::of(delta.as_bytes()));
        // SAFETY: database and transaction are open; key and message live through the call.
        let code = unsafe { ((*db).update)(db, self.writer, &key, &message, 0) };
        self.env.check("DB->update", code)
    }
}

/// Begins a transaction that reads the data committed now.
fn begun(env: &Environment, flags: u32) -> Result<*mut DbTxn> {
    let mut txn = null_mut();
    // SAFETY: the environment is open as long as its handle lives.
    let code = unsafe { ((*env.raw).txn_begin)(env.raw, null_mut(), &mut txn, ffi::DB_TXN_SNAPSHOT | flags) };
    env.check("DB_ENV->txn_begin", code).map(|()| txn)
}

/// Reads in the open transaction, or in a temporary one.
#[inline]
fn reading<T>(env: &Environment, open: *mut DbTxn, does: impl FnOnce(*mut DbTxn) -> Result<T>) -> Result<T> {
    if !open.is_null() {
        return does(open);
    }
    let txn = begun(env, ffi::DB_TXN_READ_ONLY)?;
    let done = does(txn);
    // SAFETY: the transaction is open and is not used afterwards.
    let code = unsafe { ((*txn).commit)(txn, ffi::DB_TXN_NOSYNC) };
    env.check("DB_TXN->commit", code)?;
    done
}

fn read(
    env: &Environment,
    txn: *mut DbTxn,
    space: SpaceId,
    key: &[u8],
    flags: u32,
    value: &mut Vec<u8>,
) -> Result<bool> {
    value.clear();
    let (db, mut key) = (env.dbs[space], Dbt::of(key));
    // SAFETY: database and transaction are open; key and value live through the call, in which `take` is called.
    let code = unsafe { ((*db).getf_set)(db, txn, flags, &mut key, take, (&raw mut *value).cast()) };
    match code {
        0 => Ok(true),
        ffi::DB_NOTFOUND => Ok(false),
        code => Err(env.failure("DB->getf_set", code)),
    }
}

/// Copies a found value.
unsafe extern "C" fn take(_key: *const Dbt, found: *const Dbt, value: *mut c_void) -> c_int {
    // SAFETY: `read` passes a vector, and the library the value, both alive through this call.
    let (value, found) = unsafe { (&mut *value.cast::<Vec<u8>>(), (*found).bytes()) };
    value.clear();
    value.extend_from_slice(found);
    0
}

/// State of a running scan.
struct Visiting<'a> {
    to: &'a [u8],
    limit: usize,
    visited: usize,
    is_done: bool,
    visit: &'a mut dyn FnMut(&[u8], &[u8]),
}

/// Visits a row and returns whether to continue. The next row of the same basement node then needs no search.
unsafe extern "C" fn visit_row(key: *const Dbt, value: *const Dbt, extra: *mut c_void) -> c_int {
    // SAFETY: `scan` passes a `Visiting`, and the library the row, all alive through this call.
    let (visiting, key, value) = unsafe { (&mut *extra.cast::<Visiting<'_>>(), (*key).bytes(), (*value).bytes()) };
    if visiting.is_done || key >= visiting.to {
        visiting.is_done = true;
        return 0;
    }
    (visiting.visit)(key, value);
    visiting.visited += 1;
    visiting.is_done = visiting.visited == visiting.limit;
    if visiting.is_done { 0 } else { ffi::TOKUDB_CURSOR_CONTINUE }
}

/// Rolls back an open transaction, which releases its row locks.
impl Drop for Transactions {
    fn drop(&mut self) {
        if files::are_full() {
            return;
        }
        // `drop` cannot return an error.
        let _ = self.abort();
        for cursor in self.cursors.drain(..) {
            // SAFETY: the cursor is open and is not used afterwards.
            unsafe { ((*cursor).c_close)(cursor) };
        }
    }
}
