//! Hand-written declarations for the part of PerconaFT's C interface that rumba uses.
//!
//! Environments, databases, transactions and cursors are structs of function pointers that the library allocates. The
//! order of members is that of `db.h` in version 4.6.119. Unused members are declared as opaque pointers. Other member
//! orders report the same version, so [`super::probe`] checks the layout.

use std::ffi::{c_char, c_int, c_void};

type Unused = *const c_void;

/// The wait for a row lock timed out.
pub const DB_LOCK_NOTGRANTED: c_int = -30994;
/// Waiting for the row lock would be a deadlock.
pub const DB_LOCK_DEADLOCK: c_int = -30995;
/// The key does not exist, or the scan is at its end.
pub const DB_NOTFOUND: c_int = -30989;
/// A visitor's return value that requests the next row.
pub const TOKUDB_CURSOR_CONTINUE: c_int = -100_014;
/// Out of memory for row locks.
pub const TOKUDB_OUT_OF_LOCKS: c_int = -100_000;

pub const DB_CREATE: u32 = 1;
pub const DB_RECOVER: u32 = 64;
pub const DB_THREAD: u32 = 128;
pub const DB_INIT_LOCK: u32 = 1 << 17;
pub const DB_INIT_LOG: u32 = 1 << 18;
pub const DB_INIT_MPOOL: u32 = 1 << 19;
pub const DB_INIT_TXN: u32 = 1 << 21;
pub const DB_PRIVATE: u32 = 1 << 23;
/// The type of all databases.
pub const DB_BTREE: c_int = 1;

/// Transaction flag: the commit does not wait for a log write.
pub const DB_TXN_NOSYNC: u32 = 512;
pub const DB_TXN_READ_ONLY: u32 = 4;
/// Transaction flag: reads see the data committed at the transaction's begin, and take no locks.
pub const DB_TXN_SNAPSHOT: u32 = 1 << 28;
/// Read flag: reads the latest value and locks it; with [`DB_RMW`], for writing.
pub const DB_SERIALIZABLE: u32 = 2;
pub const DB_RMW: u32 = 1 << 30;
/// Write flag: the caller excludes other writers, so the library takes no row lock.
pub const DB_PRELOCKED_WRITE: u32 = 0x0040_0000;
/// Delete flag: the key may be absent and is not checked.
pub const DB_DELETE_ANY: u32 = 1 << 16;

/// A byte string, owned by its creator.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dbt {
    pub data: *mut c_void,
    pub size: u32,
    ulen: u32,
    flags: u32,
}

impl Dbt {
    /// Borrows `bytes`, which the caller keeps alive while the library uses them. Longer than 4 GiB they are truncated;
    /// no workload has such a key or value.
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast_mut().cast(), size: bytes.len() as u32, ulen: 0, flags: 0 }
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// The bytes must be alive and unchanged while the slice is used.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size as usize) }
    }
}

/// Callback for each row found; its last argument is the caller's.
pub type Visit = unsafe extern "C" fn(*const Dbt, *const Dbt, *mut c_void) -> c_int;
/// Callback through which an update function sets the new value; its last argument is passed through.
pub type SetValue = unsafe extern "C" fn(*const Dbt, *mut c_void);
/// The update function: key, old value or null, message, setter, and the setter's argument.
pub type Update = unsafe extern "C" fn(*mut Db, *const Dbt, *const Dbt, *const Dbt, SetValue, *mut c_void) -> c_int;
/// Error callback: environment, prefix, message.
pub type ErrorCallback = unsafe extern "C" fn(*const DbEnv, *const c_char, *const c_char);

type EnvPeriod = unsafe extern "C" fn(*mut DbEnv, u32) -> c_int;
type EnvGetPeriod = unsafe extern "C" fn(*mut DbEnv, *mut u32) -> c_int;

/// `DB_ENV`.
#[repr(C)]
pub struct DbEnv {
    internal: *mut c_void,
    pub checkpointing_set_period: EnvPeriod,
    pub checkpointing_get_period: EnvGetPeriod,
    pub cleaner_set_period: EnvPeriod,
    pub cleaner_get_period: EnvGetPeriod,
    pub cleaner_set_iterations: EnvPeriod,
    pub cleaner_get_iterations: EnvGetPeriod,
    pub evictor_set_enable_partial_eviction: unsafe extern "C" fn(*mut DbEnv, bool) -> c_int,
    pub evictor_get_enable_partial_eviction: unsafe extern "C" fn(*mut DbEnv, *mut bool) -> c_int,
    checkpointing_postpone: Unused,
    checkpointing_resume: Unused,
    checkpointing_begin_atomic_operation: Unused,
    checkpointing_end_atomic_operation: Unused,
    set_default_bt_compare: Unused,
    get_engine_status_num_rows: Unused,
    get_engine_status: Unused,
    pub get_engine_status_text: unsafe extern "C" fn(*mut DbEnv, *mut c_char, c_int) -> c_int,
    crash: Unused,
    get_iname: Unused,
    create_loader: Unused,
    create_indexer: Unused,
    put_multiple: Unused,
    set_generate_row_callback_for_put: Unused,
    del_multiple: Unused,
    set_generate_row_callback_for_del: Unused,
    update_multiple: Unused,
    /// Null in the library.
    pub get_redzone: Unused,
    pub set_redzone: unsafe extern "C" fn(*mut DbEnv, c_int) -> c_int,
    pub set_lk_max_memory: unsafe extern "C" fn(*mut DbEnv, u64) -> c_int,
    pub get_lk_max_memory: unsafe extern "C" fn(*mut DbEnv, *mut u64) -> c_int,
    pub set_update: unsafe extern "C" fn(*mut DbEnv, Update),
    pub set_lock_timeout: unsafe extern "C" fn(*mut DbEnv, u64, Option<unsafe extern "C" fn(u64) -> u64>) -> c_int,
    pub get_lock_timeout: unsafe extern "C" fn(*mut DbEnv, *mut u64) -> c_int,
    set_lock_timeout_callback: Unused,
    txn_xa_recover: Unused,
    get_txn_from_xid: Unused,
    get_db_for_directory: Unused,
    get_cursor_for_directory: Unused,
    get_cursor_for_persistent_environment: Unused,
    change_fsync_log_period: Unused,
    iterate_live_transactions: Unused,
    iterate_pending_lock_requests: Unused,
    set_loader_memory_size: Unused,
    get_loader_memory_size: Unused,
    set_killed_callback: Unused,
    do_backtrace: Unused,
    set_client_pool_threads: Unused,
    set_cachetable_pool_threads: Unused,
    set_checkpoint_pool_threads: Unused,
    pub set_check_thp: unsafe extern "C" fn(*mut DbEnv, bool),
    pub get_check_thp: unsafe extern "C" fn(*mut DbEnv) -> bool,
    set_dir_per_db: Unused,
    get_dir_per_db: Unused,
    get_data_dir: Unused,
    dirtool_attach: Unused,
    dirtool_detach: Unused,
    dirtool_move: Unused,
    kill_waiter: Unused,
    /// Null; for the program's use.
    pub app_private: Unused,
    /// Null.
    pub api1_internal: Unused,
    pub close: unsafe extern "C" fn(*mut DbEnv, u32) -> c_int,
    dbremove: Unused,
    dbrename: Unused,
    err: Unused,
    pub get_cachesize: unsafe extern "C" fn(*mut DbEnv, *mut u32, *mut u32, *mut c_int) -> c_int,
    /// Null in the library.
    pub get_flags: Unused,
    pub get_lg_max: unsafe extern "C" fn(*mut DbEnv, *mut u32) -> c_int,
    log_archive: Unused,
    pub log_flush: unsafe extern "C" fn(*mut DbEnv, *const c_void) -> c_int,
    pub open: unsafe extern "C" fn(*mut DbEnv, *const c_char, u32, c_int) -> c_int,
    pub set_cachesize: unsafe extern "C" fn(*mut DbEnv, u32, u32, c_int) -> c_int,
    set_data_dir: Unused,
    pub set_errcall: unsafe extern "C" fn(*mut DbEnv, ErrorCallback),
    set_errfile: Unused,
    set_errpfx: Unused,
    set_flags: Unused,
    set_lg_bsize: Unused,
    set_lg_dir: Unused,
    pub set_lg_max: unsafe extern "C" fn(*mut DbEnv, u32) -> c_int,
    set_lk_detect: Unused,
    set_tmp_dir: Unused,
    set_verbose: Unused,
    pub txn_begin: unsafe extern "C" fn(*mut DbEnv, *mut DbTxn, *mut *mut DbTxn, u32) -> c_int,
    pub txn_checkpoint: unsafe extern "C" fn(*mut DbEnv, u32, u32, u32) -> c_int,
    txn_recover: Unused,
    txn_stat: Unused,
}

type DbSet = unsafe extern "C" fn(*mut Db, u32) -> c_int;
type DbGet = unsafe extern "C" fn(*mut Db, *mut u32) -> c_int;
/// Progress callback of an optimization.
pub type Progress = unsafe extern "C" fn(*mut c_void, f32) -> c_int;

/// `DB`.
#[repr(C)]
pub struct Db {
    internal: *mut c_void,
    key_range64: Unused,
    get_key_after_bytes: Unused,
    keys_range64: Unused,
    stat64: Unused,
    pre_acquire_table_lock: Unused,
    pre_acquire_fileops_lock: Unused,
    dbt_pos_infty: Unused,
    dbt_neg_infty: Unused,
    get_max_row_size: Unused,
    descriptor: Unused,
    cmp_descriptor: Unused,
    change_descriptor: Unused,
    pub getf_set: unsafe extern "C" fn(*mut Db, *mut DbTxn, u32, *mut Dbt, Visit, *mut c_void) -> c_int,
    optimize: Unused,
    pub hot_optimize: unsafe extern "C" fn(*mut Db, *mut Dbt, *mut Dbt, Progress, *mut c_void, *mut u64) -> c_int,
    get_fragmentation: Unused,
    change_pagesize: Unused,
    change_readpagesize: Unused,
    pub get_readpagesize: DbGet,
    pub set_readpagesize: DbSet,
    change_compression_method: Unused,
    pub get_compression_method: unsafe extern "C" fn(*mut Db, *mut c_int) -> c_int,
    pub set_compression_method: unsafe extern "C" fn(*mut Db, c_int) -> c_int,
    change_fanout: Unused,
    pub get_fanout: DbGet,
    pub set_fanout: DbSet,
    set_memcmp_magic: Unused,
    set_indexer: Unused,
    get_indexer: Unused,
    verify_with_progress: Unused,
    pub update: unsafe extern "C" fn(*mut Db, *mut DbTxn, *const Dbt, *const Dbt, u32) -> c_int,
    update_broadcast: Unused,
    get_fractal_tree_info64: Unused,
    iterate_fractal_tree_block_map: Unused,
    get_dname: Unused,
    get_last_key: Unused,
    recount_rows: Unused,
    app_private: Unused,
    pub dbenv: *mut DbEnv,
    api_internal: Unused,
    pub close: unsafe extern "C" fn(*mut Db, u32) -> c_int,
    pub cursor: unsafe extern "C" fn(*mut Db, *mut DbTxn, *mut *mut Dbc, u32) -> c_int,
    pub del: unsafe extern "C" fn(*mut Db, *mut DbTxn, *mut Dbt, u32) -> c_int,
    fd: Unused,
    get: Unused,
    get_flags: Unused,
    pub get_pagesize: DbGet,
    key_range: Unused,
    pub open: unsafe extern "C" fn(*mut Db, *mut DbTxn, *const c_char, *const c_char, c_int, u32, c_int) -> c_int,
    pub put: unsafe extern "C" fn(*mut Db, *mut DbTxn, *mut Dbt, *mut Dbt, u32) -> c_int,
    set_errfile: Unused,
    set_flags: Unused,
    pub set_pagesize: DbSet,
    stat: Unused,
    verify: Unused,
}

/// `DB_TXN`.
#[repr(C)]
pub struct DbTxn {
    txn_stat: Unused,
    commit_with_progress: Unused,
    abort_with_progress: Unused,
    xa_prepare: Unused,
    id64: Unused,
    set_client_id: Unused,
    get_client_id: Unused,
    is_prepared: Unused,
    get_child: Unused,
    get_start_time: Unused,
    /// The transaction's environment.
    pub mgrp: *mut DbEnv,
    parent: Unused,
    api_internal: Unused,
    pub abort: unsafe extern "C" fn(*mut DbTxn) -> c_int,
    pub commit: unsafe extern "C" fn(*mut DbTxn, u32) -> c_int,
    discard: Unused,
    id: Unused,
    prepare: Unused,
}

/// `DBC`.
#[repr(C)]
pub struct Dbc {
    c_getf_first: Unused,
    c_getf_last: Unused,
    pub c_getf_next: unsafe extern "C" fn(*mut Dbc, u32, Visit, *mut c_void) -> c_int,
    c_getf_prev: Unused,
    c_getf_current: Unused,
    c_getf_set: Unused,
    pub c_getf_set_range: unsafe extern "C" fn(*mut Dbc, u32, *mut Dbt, Visit, *mut c_void) -> c_int,
    c_getf_set_range_reverse: Unused,
    c_getf_set_range_with_bound: Unused,
    c_set_bounds: Unused,
    c_set_check_interrupt_callback: Unused,
    c_remove_restriction: Unused,
    /// Sets the transaction whose snapshot the cursor reads.
    pub c_set_txn: unsafe extern "C" fn(*mut Dbc, *mut DbTxn),
    _internal: [u8; 512],
    /// The cursor's database.
    pub dbp: *mut Db,
    pub c_close: unsafe extern "C" fn(*mut Dbc) -> c_int,
    c_get: Unused,
}

/// `db_version`.
pub type Version = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
/// `db_env_create`.
pub type EnvCreate = unsafe extern "C" fn(*mut *mut DbEnv, u32) -> c_int;
/// `db_create`.
pub type DbCreate = unsafe extern "C" fn(*mut *mut Db, *mut DbEnv, u32) -> c_int;
/// `db_strerror`.
pub type Strerror = unsafe extern "C" fn(c_int) -> *const c_char;
/// `db_env_set_direct_io`.
pub type SetDirectIo = unsafe extern "C" fn(bool);
/// `db_env_set_func_fsync`.
pub type SetFsync = unsafe extern "C" fn(unsafe extern "C" fn(c_int) -> c_int);
/// `db_env_set_func_full_write`.
pub type SetFullWrite = unsafe extern "C" fn(unsafe extern "C" fn(c_int, *const c_void, usize) -> isize);
/// `db_env_set_func_full_pwrite`.
pub type SetFullPwrite = unsafe extern "C" fn(unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize);
