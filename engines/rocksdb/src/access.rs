//! Safe handles for reads: values, cursors, many keys at once.
//!
//! Every handle keeps the database alive. rumba's side allocates no memory per call; RocksDB allocates a pinned slice
//! per read and an iterator per scan.

use std::ffi::c_char;
use std::ptr::null_mut;
use std::sync::Arc;

use rumba_engine_api::error::Result;

use crate::db::{Database, check};
use crate::ffi::*;
use crate::transaction::Transaction;

/// A value that RocksDB keeps in place until this handle is dropped.
pub struct Pinned<'a> {
    api: &'a Api,
    raw: *mut rocksdb_pinnableslice_t,
}

impl<'a> Pinned<'a> {
    /// Takes over a slice; `None` if it is null, which means that the key is absent.
    ///
    /// # Safety
    /// `raw` must be null or a slice that RocksDB created for the caller.
    #[inline]
    pub(crate) unsafe fn take(api: &'a Api, raw: *mut rocksdb_pinnableslice_t) -> Option<Self> {
        (!raw.is_null()).then_some(Self { api, raw })
    }

    /// The value.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let mut length = 0;
        // SAFETY: the slice is valid until dropped; the pointer has `length` bytes.
        unsafe { slice(self.api.rocksdb_pinnableslice_value(self.raw, &mut length), length) }
    }
}

impl Drop for Pinned<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: taken over once, destroyed once.
        unsafe { self.api.rocksdb_pinnableslice_destroy(self.raw) }
    }
}

/// A C pointer and length as a slice; RocksDB may give null for an empty one.
///
/// # Safety
/// The pointer is null or has `length` bytes that live as long as `'a`.
#[inline]
unsafe fn slice<'a>(pointer: *const c_char, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(pointer.cast(), length) }
}

/// Options for reads.
pub struct ReadOptions {
    db: Arc<Database>,
    pub(crate) raw: *mut rocksdb_readoptions_t,
}

// SAFETY: a plain value behind a pointer that only this struct holds.
unsafe impl Send for ReadOptions {}

impl ReadOptions {
    /// Options for point reads.
    pub fn for_points(db: &Arc<Database>) -> Self {
        // SAFETY: a fresh handle, owned here.
        let raw = unsafe { db.library.api.rocksdb_readoptions_create() };
        Self { db: db.clone(), raw }
    }

    /// Options for scans within one prefix, which can use the bloom filters.
    pub fn for_prefix_scans(db: &Arc<Database>) -> Self {
        let options = Self::for_points(db);
        // SAFETY: the handle is valid.
        unsafe { db.library.api.rocksdb_readoptions_set_prefix_same_as_start(options.raw, 1) };
        options
    }

    /// Options for scans over any range.
    pub fn for_total_order_scans(db: &Arc<Database>) -> Self {
        let options = Self::for_points(db);
        // SAFETY: the handle is valid.
        unsafe { db.library.api.rocksdb_readoptions_set_total_order_seek(options.raw, 1) };
        options
    }

    /// Reads one committed value.
    #[inline]
    pub fn get(&self, space: usize, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        let api = &self.db.library.api;
        let mut error = null_mut();
        // SAFETY: valid handles; the key is `len` bytes; results are taken over.
        unsafe {
            let family = self.db.family(space);
            let key_pointer = key.as_ptr().cast();
            let value = api.rocksdb_get_pinned_cf(self.db.base, self.raw, family, key_pointer, key.len(), &mut error);
            check(api, "rocksdb_get_pinned_cf", error)?;
            Ok(Pinned::take(api, value))
        }
    }

    /// A cursor that ends before `to`, over committed data or with a transaction's own writes.
    #[inline]
    pub fn cursor<'a>(&'a mut self, within: Option<&'a Transaction>, space: usize, to: &'a [u8]) -> Cursor<'a> {
        let api = &self.db.library.api;
        // SAFETY: valid handles. The options keep a pointer to `to`, which only
        // iterators made from them read: this borrow of both outlives the one
        // made here, and the next call replaces the pointer.
        let raw = unsafe {
            let family = self.db.family(space);
            api.rocksdb_readoptions_set_iterate_upper_bound(self.raw, to.as_ptr().cast(), to.len());
            match within {
                Some(transaction) => api.rocksdb_transaction_create_iterator_cf(transaction.raw, self.raw, family),
                None => api.rocksdb_create_iterator_cf(self.db.base, self.raw, family),
            }
        };
        Cursor { api, raw, valid: false, _borrows: std::marker::PhantomData }
    }
}

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once; cursors borrow this and are gone.
        unsafe { self.db.library.api.rocksdb_readoptions_destroy(self.raw) }
    }
}

/// A position in a range.
pub struct Cursor<'a> {
    api: &'a Api,
    raw: *mut rocksdb_iterator_t,
    /// Whether the cursor is on an entry.
    valid: bool,
    _borrows: std::marker::PhantomData<&'a mut ()>,
}

impl Cursor<'_> {
    /// Moves to the first key at or after `from`.
    #[inline]
    pub fn seek(&mut self, from: &[u8]) {
        // SAFETY: a valid iterator; the key is `len` bytes.
        unsafe {
            self.api.rocksdb_iter_seek(self.raw, from.as_ptr().cast(), from.len());
            self.valid = self.api.rocksdb_iter_valid(self.raw) != 0;
        }
    }

    /// The current entry; `None` at the end or after an error.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        if !self.valid {
            return None;
        }
        let (mut key_length, mut value_length) = (0, 0);
        // SAFETY: the iterator is on an entry; key and value live until it moves, which needs `&mut self`.
        unsafe {
            let key = self.api.rocksdb_iter_key(self.raw, &mut key_length);
            let value = self.api.rocksdb_iter_value(self.raw, &mut value_length);
            Some((slice(key, key_length), slice(value, value_length)))
        }
    }

    /// Moves to the next key; stays at the end.
    #[inline]
    pub fn advance(&mut self) {
        if !self.valid {
            return;
        }
        // SAFETY: the iterator is on an entry, which is the only requirement for moving.
        unsafe {
            self.api.rocksdb_iter_next(self.raw);
            self.valid = self.api.rocksdb_iter_valid(self.raw) != 0;
        }
    }

    /// Returns the error that ended the iteration, if any.
    #[inline]
    pub fn status(&self) -> Result<()> {
        let mut error = null_mut();
        // SAFETY: a valid iterator; the error is taken over.
        unsafe {
            self.api.rocksdb_iter_get_error(self.raw, &mut error);
            check(self.api, "rocksdb_iter_get_error", error)
        }
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { self.api.rocksdb_iter_destroy(self.raw) }
    }
}

/// Arrays for reading many keys with one call, reused between calls.
#[derive(Default)]
pub struct ManyKeys {
    keys: Vec<*const c_char>,
    lengths: Vec<usize>,
    values: Vec<*mut rocksdb_pinnableslice_t>,
    errors: Vec<*mut c_char>,
}

// SAFETY: the pointers are unused between calls.
unsafe impl Send for ManyKeys {}

impl ManyKeys {
    /// Reads committed values of one family; `visit` receives those that exist, in the order of `keys`.
    ///
    /// # Errors
    /// RocksDB's error for the first key that failed.
    pub fn get(
        &mut self,
        options: &ReadOptions,
        space: usize,
        keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.keys.clear();
        self.lengths.clear();
        self.keys.extend(keys.iter().map(|key| key.as_ptr().cast::<c_char>()));
        self.lengths.extend(keys.iter().map(|key| key.len()));
        self.values.clear();
        self.values.resize(keys.len(), null_mut());
        self.errors.clear();
        self.errors.resize(keys.len(), null_mut());
        let db = &options.db;
        let api = &db.library.api;
        // SAFETY: valid handles; four arrays of `keys.len()` entries.
        unsafe {
            api.rocksdb_batched_multi_get_cf(
                db.base,
                options.raw,
                db.family(space),
                keys.len(),
                self.keys.as_ptr(),
                self.lengths.as_ptr(),
                self.values.as_mut_ptr(),
                self.errors.as_mut_ptr(),
                keys.is_sorted(),
            );
        }
        let mut outcome = Ok(());
        for (position, (&value, &error)) in self.values.iter().zip(&self.errors).enumerate() {
            // SAFETY: each slice and each error belongs to this function and is taken over once.
            let (value, failed) =
                unsafe { (Pinned::take(api, value), check(api, "rocksdb_batched_multi_get_cf", error)) };
            outcome = outcome.and(failed);
            if let (Some(value), Ok(())) = (value, &outcome) {
                visit(position, value.bytes());
            }
        }
        outcome
    }
}
