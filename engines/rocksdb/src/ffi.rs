//! The C API of RocksDB (`rocksdb/c.h`), resolved when a library is loaded.
//!
//! It is a table of typed function pointers, named as in the header; the types were checked against the headers of 7.8.
//! There is no link-time dependency, so one experiment can compare two versions.
#![allow(non_camel_case_types, non_snake_case, reason = "the names of rocksdb/c.h can be searched for")]
#![allow(clippy::missing_safety_doc, reason = "the contract of every function is the one in rocksdb/c.h")]
#![allow(clippy::too_many_arguments, reason = "the arguments are the C API's")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libloading::os::unix;
use rumba_engine_api::error::with_sources;

/// Declares opaque types.
macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _opaque: [u8; 0],
        }
    )* };
}

opaque! {
    rocksdb_block_based_table_options_t rocksdb_cache_t rocksdb_column_family_handle_t
    rocksdb_column_family_metadata_t rocksdb_flushoptions_t rocksdb_iterator_t rocksdb_level_metadata_t
    rocksdb_options_t rocksdb_pinnableslice_t rocksdb_readoptions_t rocksdb_transaction_options_t
    rocksdb_transaction_t rocksdb_transactiondb_options_t rocksdb_writebatch_t rocksdb_writebatch_wi_t
    rocksdb_writeoptions_t
}

/// The C API's handle of a database: one pointer to the C++ object, in every version.
#[repr(C)]
pub struct rocksdb_t {
    pub rep: *mut c_void,
}

/// The C API's handle of a `TransactionDB`: likewise one pointer.
#[repr(C)]
pub struct rocksdb_transactiondb_t {
    pub rep: *mut c_void,
}

/// An error while loading a library.
#[derive(Debug)]
pub enum LoadError {
    /// The loader did not find the library, or refused it.
    NotLoaded { tried: Vec<PathBuf>, words: String },
    /// This process has already loaded another library; see [`crate::library`].
    Another { loaded: PathBuf },
    /// A release that is not installed, or not in the catalogue.
    NotInstalled { words: String, install: String },
    /// The library is not a RocksDB that rumba can use.
    NoSymbol { library: PathBuf, symbol: &'static str },
}

/// Declares the table: a struct of function pointers, a constructor that
/// resolves them, and a method per function so that calls read like C.
macro_rules! table {
    (
        required { $(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $ret:ty)?;)* }
        optional { $(fn $oname:ident = $symbol:literal ($($oarg:ident: $otype:ty),* $(,)?) $(-> $oret:ty)?;)* }
    ) => {
        /// The functions of one loaded library.
        pub struct Api {
            $($name: unsafe extern "C" fn($($type),*) $(-> $ret)?,)*
            $(pub $oname: Option<unsafe extern "C" fn($($otype),*) $(-> $oret)?>,)*
        }

        impl Api {
            /// Resolves every function; `Err` names the first that is missing.
            fn resolve(library: &unix::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the signature is that of this symbol in rocksdb/c.h.
                    $($name: unsafe { symbol(library, stringify!($name)) }.ok_or(stringify!($name))?,)*
                    // SAFETY: as above.
                    $($oname: unsafe { symbol(library, $symbol) },)*
                })
            }

            $(
                #[inline]
                pub unsafe fn $name(&self, $($arg: $type),*) $(-> $ret)? {
                    // SAFETY: the caller fulfills the contract of rocksdb/c.h.
                    unsafe { (self.$name)($($arg),*) }
                }
            )*
        }
    };
}

/// Resolves a symbol as a value of `T`, a function pointer type.
///
/// # Safety
/// `T` must be the type of the function of this name.
unsafe fn symbol<T: Copy>(library: &unix::Library, name: &str) -> Option<T> {
    // SAFETY: the caller guarantees the type.
    unsafe { library.get::<T>(name).ok().map(|symbol| *symbol) }
}

table! {
    required {
        fn rocksdb_free(pointer: *mut c_void);

        fn rocksdb_options_create() -> *mut rocksdb_options_t;
        fn rocksdb_options_destroy(options: *mut rocksdb_options_t);
        fn rocksdb_options_get_info_log_level(options: *mut rocksdb_options_t) -> c_int;
        fn rocksdb_options_enable_statistics(options: *mut rocksdb_options_t);
        fn rocksdb_options_statistics_get_string(options: *mut rocksdb_options_t) -> *mut c_char;
        fn rocksdb_options_set_block_based_table_factory(
            options: *mut rocksdb_options_t, table: *mut rocksdb_block_based_table_options_t);
        fn rocksdb_get_options_from_string(
            base: *const rocksdb_options_t, text: *const c_char, new: *mut rocksdb_options_t, error: *mut *mut c_char);
        fn rocksdb_block_based_options_create() -> *mut rocksdb_block_based_table_options_t;
        fn rocksdb_block_based_options_destroy(table: *mut rocksdb_block_based_table_options_t);
        fn rocksdb_block_based_options_set_block_cache(
            table: *mut rocksdb_block_based_table_options_t, cache: *mut rocksdb_cache_t);
        fn rocksdb_cache_create_lru(capacity: usize) -> *mut rocksdb_cache_t;
        fn rocksdb_cache_destroy(cache: *mut rocksdb_cache_t);

        fn rocksdb_transactiondb_options_create() -> *mut rocksdb_transactiondb_options_t;
        fn rocksdb_transactiondb_options_destroy(options: *mut rocksdb_transactiondb_options_t);
        fn rocksdb_transactiondb_options_set_max_num_locks(options: *mut rocksdb_transactiondb_options_t, locks: i64);
        fn rocksdb_transactiondb_options_set_num_stripes(
            options: *mut rocksdb_transactiondb_options_t, stripes: usize);
        fn rocksdb_transactiondb_options_set_transaction_lock_timeout(
            options: *mut rocksdb_transactiondb_options_t, timeout_ms: i64);

        fn rocksdb_transaction_options_create() -> *mut rocksdb_transaction_options_t;
        fn rocksdb_transaction_options_destroy(options: *mut rocksdb_transaction_options_t);
        fn rocksdb_transaction_options_set_deadlock_detect(options: *mut rocksdb_transaction_options_t, on: c_uchar);
        fn rocksdb_transaction_options_set_deadlock_detect_depth(
            options: *mut rocksdb_transaction_options_t, depth: i64);
        fn rocksdb_transaction_options_set_lock_timeout(
            options: *mut rocksdb_transaction_options_t, timeout_ms: i64);
        fn rocksdb_transaction_options_set_expiration(options: *mut rocksdb_transaction_options_t, after_ms: i64);

        fn rocksdb_transactiondb_open_column_families(
            options: *const rocksdb_options_t, locks: *const rocksdb_transactiondb_options_t, path: *const c_char,
            families: c_int, names: *const *const c_char, family_options: *const *const rocksdb_options_t,
            handles: *mut *mut rocksdb_column_family_handle_t, error: *mut *mut c_char,
        ) -> *mut rocksdb_transactiondb_t;
        fn rocksdb_transactiondb_close(db: *mut rocksdb_transactiondb_t);
        fn rocksdb_column_family_handle_destroy(family: *mut rocksdb_column_family_handle_t);
        fn rocksdb_cancel_all_background_work(db: *mut rocksdb_t, wait: c_uchar);
        fn rocksdb_property_int_cf(
            db: *mut rocksdb_t, family: *mut rocksdb_column_family_handle_t, name: *const c_char, value: *mut u64,
        ) -> c_int;
        fn rocksdb_property_value_cf(
            db: *mut rocksdb_t, family: *mut rocksdb_column_family_handle_t, name: *const c_char,
        ) -> *mut c_char;
        fn rocksdb_set_options_cf(
            db: *mut rocksdb_t, family: *mut rocksdb_column_family_handle_t, count: c_int,
            names: *const *const c_char, values: *const *const c_char, error: *mut *mut c_char);
        fn rocksdb_flushoptions_create() -> *mut rocksdb_flushoptions_t;
        fn rocksdb_flushoptions_destroy(options: *mut rocksdb_flushoptions_t);
        fn rocksdb_flushoptions_set_wait(options: *mut rocksdb_flushoptions_t, wait: c_uchar);
        fn rocksdb_flush_cf(
            db: *mut rocksdb_t, options: *const rocksdb_flushoptions_t,
            family: *mut rocksdb_column_family_handle_t, error: *mut *mut c_char);
        fn rocksdb_get_column_family_metadata_cf(
            db: *mut rocksdb_t, family: *mut rocksdb_column_family_handle_t,
        ) -> *mut rocksdb_column_family_metadata_t;
        fn rocksdb_column_family_metadata_destroy(metadata: *mut rocksdb_column_family_metadata_t);
        fn rocksdb_column_family_metadata_get_level_count(metadata: *mut rocksdb_column_family_metadata_t) -> usize;
        fn rocksdb_column_family_metadata_get_level_metadata(
            metadata: *mut rocksdb_column_family_metadata_t, level: usize) -> *mut rocksdb_level_metadata_t;
        fn rocksdb_level_metadata_destroy(level: *mut rocksdb_level_metadata_t);
        fn rocksdb_level_metadata_get_size(level: *mut rocksdb_level_metadata_t) -> u64;
        fn rocksdb_level_metadata_get_file_count(level: *mut rocksdb_level_metadata_t) -> usize;

        fn rocksdb_readoptions_create() -> *mut rocksdb_readoptions_t;
        fn rocksdb_readoptions_destroy(options: *mut rocksdb_readoptions_t);
        fn rocksdb_readoptions_set_iterate_upper_bound(
            options: *mut rocksdb_readoptions_t, key: *const c_char, length: usize);
        fn rocksdb_readoptions_set_prefix_same_as_start(options: *mut rocksdb_readoptions_t, on: c_uchar);
        fn rocksdb_readoptions_set_total_order_seek(options: *mut rocksdb_readoptions_t, on: c_uchar);
        fn rocksdb_writeoptions_create() -> *mut rocksdb_writeoptions_t;
        fn rocksdb_writeoptions_destroy(options: *mut rocksdb_writeoptions_t);
        fn rocksdb_writeoptions_set_sync(options: *mut rocksdb_writeoptions_t, on: c_uchar);
        fn rocksdb_writeoptions_get_sync(options: *mut rocksdb_writeoptions_t) -> c_uchar;
        fn rocksdb_writeoptions_disable_WAL(options: *mut rocksdb_writeoptions_t, disable: c_int);
        fn rocksdb_writeoptions_get_disable_WAL(options: *mut rocksdb_writeoptions_t) -> c_uchar;

        fn rocksdb_get_pinned_cf(
            db: *mut rocksdb_t, options: *const rocksdb_readoptions_t,
            family: *mut rocksdb_column_family_handle_t, key: *const c_char, length: usize, error: *mut *mut c_char,
        ) -> *mut rocksdb_pinnableslice_t;
        fn rocksdb_batched_multi_get_cf(
            db: *mut rocksdb_t, options: *const rocksdb_readoptions_t,
            family: *mut rocksdb_column_family_handle_t, count: usize, keys: *const *const c_char,
            lengths: *const usize, values: *mut *mut rocksdb_pinnableslice_t, errors: *mut *mut c_char, sorted: bool);
        fn rocksdb_pinnableslice_value(slice: *const rocksdb_pinnableslice_t, length: *mut usize) -> *const c_char;
        fn rocksdb_pinnableslice_destroy(slice: *mut rocksdb_pinnableslice_t);

        fn rocksdb_create_iterator_cf(
            db: *mut rocksdb_t, options: *const rocksdb_readoptions_t, family: *mut rocksdb_column_family_handle_t,
        ) -> *mut rocksdb_iterator_t;
        fn rocksdb_iter_destroy(iterator: *mut rocksdb_iterator_t);
        fn rocksdb_iter_valid(iterator: *const rocksdb_iterator_t) -> c_uchar;
        fn rocksdb_iter_seek(iterator: *mut rocksdb_iterator_t, key: *const c_char, length: usize);
        fn rocksdb_iter_next(iterator: *mut rocksdb_iterator_t);
        fn rocksdb_iter_key(iterator: *const rocksdb_iterator_t, length: *mut usize) -> *const c_char;
        fn rocksdb_iter_value(iterator: *const rocksdb_iterator_t, length: *mut usize) -> *const c_char;
        fn rocksdb_iter_get_error(iterator: *const rocksdb_iterator_t, error: *mut *mut c_char);

        fn rocksdb_writebatch_create() -> *mut rocksdb_writebatch_t;
        fn rocksdb_writebatch_destroy(batch: *mut rocksdb_writebatch_t);
        fn rocksdb_writebatch_clear(batch: *mut rocksdb_writebatch_t);
        fn rocksdb_writebatch_put_cf(
            batch: *mut rocksdb_writebatch_t, family: *mut rocksdb_column_family_handle_t,
            key: *const c_char, key_length: usize, value: *const c_char, value_length: usize);
        fn rocksdb_write(
            db: *mut rocksdb_t, options: *const rocksdb_writeoptions_t, batch: *mut rocksdb_writebatch_t,
            error: *mut *mut c_char);

        fn rocksdb_transaction_begin(
            db: *mut rocksdb_transactiondb_t, write: *const rocksdb_writeoptions_t,
            options: *const rocksdb_transaction_options_t, old: *mut rocksdb_transaction_t,
        ) -> *mut rocksdb_transaction_t;
        fn rocksdb_transaction_commit(transaction: *mut rocksdb_transaction_t, error: *mut *mut c_char);
        fn rocksdb_transaction_rollback(transaction: *mut rocksdb_transaction_t, error: *mut *mut c_char);
        fn rocksdb_transaction_destroy(transaction: *mut rocksdb_transaction_t);
        fn rocksdb_transaction_get_pinned_cf(
            transaction: *mut rocksdb_transaction_t, options: *const rocksdb_readoptions_t,
            family: *mut rocksdb_column_family_handle_t, key: *const c_char, length: usize, error: *mut *mut c_char,
        ) -> *mut rocksdb_pinnableslice_t;
        fn rocksdb_transaction_get_pinned_for_update_cf(
            transaction: *mut rocksdb_transaction_t, options: *const rocksdb_readoptions_t,
            family: *mut rocksdb_column_family_handle_t, key: *const c_char, length: usize, exclusive: c_uchar,
            error: *mut *mut c_char,
        ) -> *mut rocksdb_pinnableslice_t;
        fn rocksdb_transaction_put_cf(
            transaction: *mut rocksdb_transaction_t, family: *mut rocksdb_column_family_handle_t,
            key: *const c_char, key_length: usize, value: *const c_char, value_length: usize,
            error: *mut *mut c_char);
        fn rocksdb_transaction_delete_cf(
            transaction: *mut rocksdb_transaction_t, family: *mut rocksdb_column_family_handle_t,
            key: *const c_char, length: usize, error: *mut *mut c_char);
        fn rocksdb_transaction_get_writebatch_wi(transaction: *mut rocksdb_transaction_t)
            -> *mut rocksdb_writebatch_wi_t;
        fn rocksdb_writebatch_wi_put_cf(
            batch: *mut rocksdb_writebatch_wi_t, family: *mut rocksdb_column_family_handle_t,
            key: *const c_char, key_length: usize, value: *const c_char, value_length: usize);
        fn rocksdb_writebatch_wi_delete_cf(
            batch: *mut rocksdb_writebatch_wi_t, family: *mut rocksdb_column_family_handle_t,
            key: *const c_char, length: usize);
        fn rocksdb_transaction_create_iterator_cf(
            transaction: *mut rocksdb_transaction_t, options: *const rocksdb_readoptions_t,
            family: *mut rocksdb_column_family_handle_t) -> *mut rocksdb_iterator_t;
    }
    // The first two came after 7.8. The third is what the first calls: the C++
    // method `StackableDB::GetBaseDB()`, by its Itanium ABI name (x86-64 and
    // AArch64 alike), which takes and returns one pointer.
    optional {
        fn get_base_db = "rocksdb_transactiondb_get_base_db"(db: *mut rocksdb_transactiondb_t) -> *mut rocksdb_t;
        fn close_base_db = "rocksdb_transactiondb_close_base_db"(db: *mut rocksdb_t);
        fn cxx_get_base_db = "_ZN7rocksdb11StackableDB9GetBaseDBEv"(transaction_db: *mut c_void) -> *mut c_void;
    }
}

/// Loads the first of `names` that the dynamic loader finds.
///
/// The library is never unloaded (`RTLD_NODELETE`), because RocksDB's background threads and static objects outlive
/// every database.
///
/// # Errors
/// No library, or one that lacks a function.
pub fn load(names: &[PathBuf]) -> Result<(Api, PathBuf), LoadError> {
    let mut words = String::new();
    for name in names {
        let flags = unix::RTLD_LOCAL | unix::RTLD_NOW | libc::RTLD_NODELETE;
        // SAFETY: loading runs the initializers of a RocksDB library, which have no requirements.
        match unsafe { unix::Library::open(Some(name), flags) } {
            Ok(library) => return resolve(&library, name),
            // Keep the first name's message, because the other names are only alternative spellings.
            Err(error) if words.is_empty() => words = with_sources(&error),
            Err(_) => {}
        }
    }
    Err(LoadError::NotLoaded { tried: names.to_vec(), words })
}

/// Whether the dynamic loader has already loaded the library with this file name or soname.
pub fn is_loaded(name: &Path) -> bool {
    // SAFETY: RTLD_NOLOAD only looks the library up; a returned handle is for a library that is never unloaded.
    unsafe { unix::Library::open(Some(name), unix::RTLD_NOW | libc::RTLD_NOLOAD) }.is_ok()
}

/// The functions of a loaded library, and the file that it came from.
fn resolve(library: &unix::Library, name: &Path) -> Result<(Api, PathBuf), LoadError> {
    let no_symbol = |path: &Path, symbol| LoadError::NoSymbol { library: path.to_owned(), symbol };
    let api = Api::resolve(library).map_err(|symbol| no_symbol(name, symbol))?;
    let path = origin(api.rocksdb_free as *const c_void).unwrap_or_else(|| name.to_owned());
    let base = api.get_base_db.is_some() && api.close_base_db.is_some() || api.cxx_get_base_db.is_some();
    if !base {
        return Err(no_symbol(&path, "rocksdb_transactiondb_get_base_db"));
    }
    Ok((api, path))
}

/// The file of a loaded function, with symbolic links resolved.
fn origin(function: *const c_void) -> Option<PathBuf> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `info` is a valid pointer to write to; dladdr only looks the address up.
    if unsafe { libc::dladdr(function, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr has set the name to a C string that lives as long as the library, which is never unloaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}
