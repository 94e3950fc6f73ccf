//! Safe handles for options and the database, which live as long as an instance.
//!
//! Only this file, `access.rs` and `transaction.rs` (handles of a session) and `ffi.rs` (the table of functions)
//! contain unsafe code.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rumba_engine_api::error::{EngineError, Result};

use crate::ffi::*;
use crate::library::Library;

/// Options of a database and of one column family.
pub struct Options {
    library: Arc<Library>,
    raw: *mut rocksdb_options_t,
}

// SAFETY: RocksDB's options are plain values behind a pointer that only this
// struct holds; shared references only read them, which RocksDB allows from any thread.
unsafe impl Send for Options {}
// SAFETY: as above.
unsafe impl Sync for Options {}

impl Options {
    /// RocksDB's own defaults.
    pub fn new(library: &Arc<Library>) -> Self {
        // SAFETY: the constructor has no precondition; the result is owned here.
        let raw = unsafe { library.api.rocksdb_options_create() };
        Self { library: library.clone(), raw }
    }

    /// Gives the block-based tables their own LRU cache, which copies of these options share.
    pub fn set_block_cache(&mut self, capacity: usize) {
        let api = &self.library.api;
        // SAFETY: all handles are created here and destroyed once; the factory keeps its own reference to the cache,
        // and the options theirs to the factory.
        unsafe {
            let cache = api.rocksdb_cache_create_lru(capacity);
            let table = api.rocksdb_block_based_options_create();
            api.rocksdb_block_based_options_set_block_cache(table, cache);
            api.rocksdb_options_set_block_based_table_factory(self.raw, table);
            api.rocksdb_block_based_options_destroy(table);
            api.rocksdb_cache_destroy(cache);
        }
    }

    /// Enables RocksDB's statistics, which copies of these options share.
    pub fn enable_statistics(&mut self) {
        // SAFETY: the handle is valid and held exclusively.
        unsafe { self.library.api.rocksdb_options_enable_statistics(self.raw) }
    }

    /// A copy with the `name=value;` pairs of `text` applied.
    ///
    /// # Errors
    /// RocksDB's error for the first pair that it refuses.
    pub fn with(&self, text: &str) -> Result<Self, String> {
        let text = CString::new(text).map_err(|_| "a value may not contain a zero byte".to_owned())?;
        let new = Self::new(&self.library);
        let mut error = null_mut();
        // SAFETY: both handles are valid, the text is a C string that outlives the call.
        unsafe {
            self.library.api.rocksdb_get_options_from_string(self.raw, text.as_ptr(), new.raw, &mut error);
            match take_words(&self.library.api, error) {
                Some(words) => Err(words),
                None => Ok(new),
            }
        }
    }

    /// Whether the library was built without `NDEBUG`: such a build logs at
    /// debug level by default (`DBOptions::info_log_level` in options.h).
    pub fn built_with_assertions(&self) -> bool {
        // SAFETY: the handle is valid. The value is the default if the caller created the options with `new`.
        unsafe { self.library.api.rocksdb_options_get_info_log_level(self.raw) == 0 }
    }

    /// The statistics as text, one counter a line; `None` if they are off.
    fn statistics(&self) -> Option<String> {
        // SAFETY: the handle is valid; the text is malloc'ed for the caller.
        unsafe { take_words(&self.library.api, self.library.api.rocksdb_options_statistics_get_string(self.raw)) }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: created by `rocksdb_options_create` and destroyed once; databases keep copies.
        unsafe { self.library.api.rocksdb_options_destroy(self.raw) }
    }
}

/// Locking options of transactions, in RocksDB's terms (`TransactionDBOptions`, `TransactionOptions`); `None` keeps
/// RocksDB's default. Times in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locking {
    pub max_num_locks: Option<i64>,
    pub num_stripes: Option<usize>,
    pub transaction_lock_timeout: Option<i64>,
    pub deadlock_detect: bool,
    pub deadlock_detect_depth: Option<i64>,
    pub lock_timeout: Option<i64>,
    pub expiration: Option<i64>,
}

impl Locking {
    /// The options that were set, by RocksDB's names; RocksDB has no way to read the others.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, String)> {
        let stripes = self.num_stripes.and_then(|stripes| i64::try_from(stripes).ok());
        [
            ("deadlock_detect_depth", self.deadlock_detect_depth),
            ("expiration", self.expiration),
            ("lock_timeout", self.lock_timeout),
            ("max_num_locks", self.max_num_locks),
            ("num_stripes", stripes),
            ("transaction_lock_timeout", self.transaction_lock_timeout),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.to_string())))
        .chain([("deadlock_detect", self.deadlock_detect.to_string())])
    }
}

/// A column family to create.
pub struct Family {
    pub name: String,
    pub options: Options,
}

/// One level of one column family.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub files: u64,
    pub bytes: u64,
}

/// An open `TransactionDB` with its column families.
pub struct Database {
    pub(crate) library: Arc<Library>,
    pub(crate) transactions: *mut rocksdb_transactiondb_t,
    /// The database below the transactions; see [`base_of`].
    pub(crate) base: *mut rocksdb_t,
    /// All families; the first is RocksDB's `default`, which stays empty.
    pub(crate) families: Vec<*mut rocksdb_column_family_handle_t>,
    names: Vec<String>,
    options: Options,
    flush: *mut rocksdb_flushoptions_t,
    /// The error of the write that found the device full.
    full: OnceLock<String>,
    /// Whether [`Database::release_writers`] has ended the waits of writers.
    released: AtomicBool,
}

// SAFETY: RocksDB databases and family handles may be used from any thread at once; the flush options are only read
// after creation.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Runs a write unless the device was found full before. RocksDB resumes automatically when there is space again,
    /// and then writes to the log whose write failed. A build of 7.8 with assertions aborts the process in that case.
    ///
    /// # Errors
    /// The error of the first write that found the device full; the write's own error.
    #[inline]
    pub(crate) fn unless_full(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        if let Some(words) = self.full.get() {
            return Err(EngineError::DiskFull(words.clone()));
        }
        let outcome = write().map_err(|error| self.cause_of(error));
        if let Err(EngineError::DiskFull(words)) = &outcome {
            self.full.get_or_init(|| words.clone());
        }
        outcome
    }

    /// Ends the waits of stopped writers. No write succeeds afterwards.
    pub(crate) fn release_writers(&self) {
        self.released.store(true, Ordering::Relaxed);
        // SAFETY: the handle is valid.
        unsafe { self.library.api.rocksdb_cancel_all_background_work(self.base, 0) }
    }

    /// The error of the background work that stopped a released writer, whose own error mentions only a shutdown.
    #[cold]
    fn cause_of(&self, error: EngineError) -> EngineError {
        if !self.released.load(Ordering::Relaxed) {
            return error;
        }
        let api = &self.library.api;
        let mut cause = null_mut();
        // SAFETY: fresh handles, destroyed here; the error is taken over. The batch is empty, so nothing is written.
        let outcome = unsafe {
            let (options, batch) = (api.rocksdb_writeoptions_create(), api.rocksdb_writebatch_create());
            api.rocksdb_write(self.base, options, batch, &mut cause);
            api.rocksdb_writebatch_destroy(batch);
            api.rocksdb_writeoptions_destroy(options);
            check(api, "rocksdb_write", cause)
        };
        outcome.err().unwrap_or(error)
    }

    /// Creates or opens the database at `path`.
    pub fn open(path: &Path, options: Options, locking: &Locking, families: &[Family]) -> Result<Self> {
        let call = "rocksdb_transactiondb_open_column_families";
        let library = options.library.clone();
        let text = |text: &str| CString::new(text).map_err(|_| EngineError::failed(call, "a zero byte in a name"));
        let path = text(&path.to_string_lossy())?;
        let names = families.iter().map(|family| text(&family.name)).collect::<Result<Vec<_>, _>>()?;
        let name_pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let option_pointers: Vec<_> = families.iter().map(|family| family.options.raw.cast_const()).collect();
        let mut handles = vec![null_mut(); families.len()];
        let api = &library.api;
        let mut error = null_mut();
        // SAFETY: the arrays have one entry per family and outlive the call, as do the handles they hold.
        let transactions = unsafe {
            let locks = lock_options(api, locking);
            let db = api.rocksdb_transactiondb_open_column_families(
                options.raw,
                locks,
                path.as_ptr(),
                families.len() as i32,
                name_pointers.as_ptr(),
                option_pointers.as_ptr(),
                handles.as_mut_ptr(),
                &mut error,
            );
            api.rocksdb_transactiondb_options_destroy(locks);
            check(api, call, error)?;
            db
        };
        // SAFETY: the database is open and owned here.
        let (base, flush) = unsafe {
            let flush = api.rocksdb_flushoptions_create();
            api.rocksdb_flushoptions_set_wait(flush, 1);
            (base_of(api, transactions), flush)
        };
        let names = families[1..].iter().map(|family| family.name.clone()).collect();
        Ok(Self {
            transactions,
            base,
            families: handles,
            names,
            options,
            flush,
            library,
            full: OnceLock::new(),
            released: AtomicBool::new(false),
        })
    }

    /// The names of the key spaces' families, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// An integer property of a key space's family; `None` if this version has no such property.
    pub fn int(&self, space: usize, property: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: valid handles, a C string, and a pointer to write to.
        let status = unsafe {
            self.library.api.rocksdb_property_int_cf(self.base, self.family(space), property.as_ptr(), &mut value)
        };
        (status == 0).then_some(value)
    }

    /// A property of the whole database, read through the default family.
    pub fn int_of_all(&self, property: &CStr) -> Option<u64> {
        let mut value = 0;
        // SAFETY: as in `int`.
        let status = unsafe {
            self.library.api.rocksdb_property_int_cf(self.base, self.families[0], property.as_ptr(), &mut value)
        };
        (status == 0).then_some(value)
    }

    /// The sum of an integer property over all key spaces' families.
    pub fn sum(&self, property: &CStr) -> Option<u64> {
        (0..self.names.len()).map(|space| self.int(space, property)).sum()
    }

    /// A text property of a key space's family.
    pub fn text(&self, space: usize, property: &CStr) -> Option<String> {
        let api = &self.library.api;
        // SAFETY: valid handles and a C string; the value is malloc'ed for the caller.
        unsafe { take_words(api, api.rocksdb_property_value_cf(self.base, self.family(space), property.as_ptr())) }
    }

    /// Whether the library was built with assertions, which cost CPU.
    pub fn built_with_assertions(&self) -> bool {
        Options::new(&self.library).built_with_assertions()
    }

    /// RocksDB's statistics as text; `None` if they are off.
    pub fn statistics(&self) -> Option<String> {
        self.options.statistics()
    }

    /// The levels of a key space's family, from L0.
    pub fn levels(&self, space: usize) -> Vec<Level> {
        let api = &self.library.api;
        // SAFETY: the metadata is a copy for the caller; each level is released before it, and it once.
        unsafe {
            let metadata = api.rocksdb_get_column_family_metadata_cf(self.base, self.family(space));
            let count = api.rocksdb_column_family_metadata_get_level_count(metadata);
            let levels = (0..count)
                .map(|number| {
                    let level = api.rocksdb_column_family_metadata_get_level_metadata(metadata, number);
                    let read = Level {
                        files: api.rocksdb_level_metadata_get_file_count(level) as u64,
                        bytes: api.rocksdb_level_metadata_get_size(level),
                    };
                    api.rocksdb_level_metadata_destroy(level);
                    read
                })
                .collect();
            api.rocksdb_column_family_metadata_destroy(metadata);
            levels
        }
    }

    /// Flushes a family's memtable to an L0 file and waits for it.
    ///
    /// # Errors
    /// RocksDB's error, or that of an earlier failure in the background.
    pub fn flush(&self, space: usize) -> Result<()> {
        let api = &self.library.api;
        let mut error = null_mut();
        // SAFETY: valid handles; the error is taken over by `check`.
        self.unless_full(|| unsafe {
            api.rocksdb_flush_cf(self.base, self.flush, self.family(space), &mut error);
            check(api, "rocksdb_flush_cf", error)
        })
    }

    /// Changes one option of an open family.
    pub fn set_option(&self, space: usize, name: &CStr, value: &CStr) -> Result<()> {
        let api = &self.library.api;
        let mut error = null_mut();
        // SAFETY: arrays of one C string each, which outlive the call.
        unsafe {
            let family = self.family(space);
            api.rocksdb_set_options_cf(self.base, family, 1, &name.as_ptr(), &value.as_ptr(), &mut error);
            check(api, "rocksdb_set_options_cf", error)
        }
    }

    /// Stops flushes and compactions after the running ones.
    pub fn cancel_background_work(&self) {
        // SAFETY: the handle is valid.
        unsafe { self.library.api.rocksdb_cancel_all_background_work(self.base, 1) }
    }

    /// The handle of a key space's family.
    ///
    /// # Panics
    /// If the space does not exist; a workload addresses only spaces that it requested.
    #[inline]
    pub(crate) fn family(&self, space: usize) -> *mut rocksdb_column_family_handle_t {
        self.families[space + 1]
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let api = &self.library.api;
        // SAFETY: sessions hold an `Arc` of this, so the handles are no longer in use. The order is the one RocksDB
        // requires: families, base handle, database.
        unsafe {
            for &family in &self.families {
                api.rocksdb_column_family_handle_destroy(family);
            }
            match api.close_base_db {
                Some(close) if api.get_base_db.is_some() => close(self.base),
                _ => drop(Box::from_raw(self.base)),
            }
            api.rocksdb_transactiondb_close(self.transactions);
            api.rocksdb_flushoptions_destroy(self.flush);
        }
    }
}

/// The database below a `TransactionDB`, for reads, properties and unlocked writes. Later versions have a function for
/// it. For the others this calls the same C++ method that the function calls.
///
/// # Safety
/// `transactions` must be open. The result is released as [`Database::drop`] does.
unsafe fn base_of(api: &Api, transactions: *mut rocksdb_transactiondb_t) -> *mut rocksdb_t {
    // SAFETY: `rep` is a `TransactionDB*`, whose primary and only base is `StackableDB`: the pointer is the same, and
    // the method takes no other argument.
    unsafe {
        match (api.get_base_db, api.close_base_db, api.cxx_get_base_db) {
            (Some(get), Some(_), _) => get(transactions),
            (_, _, Some(get)) => Box::into_raw(Box::new(rocksdb_t { rep: get((*transactions).rep) })),
            _ => unreachable!("a library with neither is refused when it is loaded"),
        }
    }
}

/// Creates options for the lock manager.
///
/// # Safety
/// Only the API's own requirements; the caller destroys the result.
unsafe fn lock_options(api: &Api, locking: &Locking) -> *mut rocksdb_transactiondb_options_t {
    // SAFETY: a fresh handle, held only here.
    unsafe {
        let locks = api.rocksdb_transactiondb_options_create();
        if let Some(value) = locking.max_num_locks {
            api.rocksdb_transactiondb_options_set_max_num_locks(locks, value);
        }
        if let Some(value) = locking.num_stripes {
            api.rocksdb_transactiondb_options_set_num_stripes(locks, value);
        }
        if let Some(value) = locking.transaction_lock_timeout {
            api.rocksdb_transactiondb_options_set_transaction_lock_timeout(locks, value);
        }
        locks
    }
}

/// Takes over a malloc'ed C string, which may be null.
///
/// # Safety
/// `words` must be null or a C string that RocksDB malloc'ed for the caller.
unsafe fn take_words(api: &Api, words: *mut c_char) -> Option<String> {
    if words.is_null() {
        return None;
    }
    // SAFETY: not null, so a C string as guaranteed by the caller; freed once.
    unsafe {
        let text = CStr::from_ptr(words).to_string_lossy().into_owned();
        api.rocksdb_free(words.cast());
        Some(text)
    }
}

/// Turns a call's error, which is taken over and may be null, into a result. A conflict allocates no memory.
///
/// # Safety
/// As for [`take_words`].
#[inline]
pub(crate) unsafe fn check(api: &Api, call: &'static str, error: *mut c_char) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    Err(unsafe { failure(api, call, error) })
}

/// The cold half of [`check`].
///
/// # Safety
/// `error` must be a C string that RocksDB malloc'ed for the caller.
#[cold]
unsafe fn failure(api: &Api, call: &'static str, error: *mut c_char) -> EngineError {
    // SAFETY: a C string as guaranteed by the caller; freed once, after its last use.
    unsafe {
        let words = CStr::from_ptr(error);
        let failure = match conflict(words.to_bytes()) {
            Some(why) => EngineError::conflict(why),
            None => EngineError::failed(call, words.to_string_lossy()),
        };
        api.rocksdb_free(error.cast());
        failure
    }
}

/// The conflict that RocksDB's message means, if any. The prefixes are those of `Status::ToString` in util/status.cc.
fn conflict(words: &[u8]) -> Option<&'static str> {
    const CONFLICTS: [(&[u8], &str); 5] = [
        (b"Resource busy: Deadlock", "deadlock"),
        (b"Resource busy", "busy: another transaction wrote the row"),
        (b"Operation timed out", "the wait for a row lock timed out"),
        (b"Operation failed. Try again", "try again"),
        (b"Operation expired", "the transaction expired"),
    ];
    // The status is Busy as well, but a retry does not help, because the limit is a setting.
    if words.windows(13).any(|part| part == b"max_num_locks") {
        return None;
    }
    CONFLICTS.iter().find(|(prefix, _)| words.starts_with(prefix)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_retryable_errors_are_conflicts() {
        assert_eq!(conflict(b"Resource busy: Deadlock"), Some("deadlock"));
        assert!(conflict(b"Operation timed out: Timeout waiting to lock key").is_some());
        assert!(conflict(b"Operation failed. Try again.: ").is_some());
        assert_eq!(conflict(b"Resource busy: Failed to acquire lock due to max_num_locks limit"), None);
        assert_eq!(conflict(b"IO error: No space left on device"), None);
    }
}
