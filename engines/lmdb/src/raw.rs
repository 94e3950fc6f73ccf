//! The only file that calls LMDB. Its interface is safe: an environment outlives its transactions, values cannot
//! outlive their snapshot, and a writer's values cannot outlive its next write.

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use lmdb_master_sys as ffi;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KeySpace, Scan, SpaceId};
use rumba_engine_api::units::show_bytes;
use rustix::io::Errno;

use crate::options::Options;
use crate::room::{self, Cause};

/// The handle of LMDB's own table of free pages (`FREE_DBI` in mdb.c, as used by mdb_stat).
const FREE_DBI: ffi::MDB_dbi = 0;

pub(crate) fn version() -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: mdb_version fills three integers and returns a static string, which is not used.
    unsafe { ffi::mdb_version(&raw mut major, &raw mut minor, &raw mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// An open environment with one named database per key space.
#[derive(Debug)]
pub(crate) struct Env {
    raw: NonNull<ffi::MDB_env>,
    spaces: Vec<(&'static str, ffi::MDB_dbi)>,
    dir: PathBuf,
    /// Total time that sessions waited for the writer lock. Only the lock's holder adds to it.
    waited_us: AtomicU64,
}

/// Shorter waits are not counted. A thread that slept and was woken has waited longer than this.
const SHORTEST_WAIT: Duration = Duration::from_micros(10);

// SAFETY: an MDB_env may be used by many threads at once (lmdb.h, mdb_env_open);
// everything else in `Env` is not changed after opening.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: every transaction and cursor holds an Arc of this, so none is left.
        unsafe { ffi::mdb_env_close(self.raw.as_ptr()) };
    }
}

/// Figures of a database: entries, depth, and pages by kind.
pub(crate) type Stat = ffi::MDB_stat;

/// Zeroed statistics for LMDB to fill.
const NO_STAT: Stat =
    Stat { ms_psize: 0, ms_depth: 0, ms_branch_pages: 0, ms_leaf_pages: 0, ms_overflow_pages: 0, ms_entries: 0 };

impl Env {
    /// Creates an environment in an empty directory, and its databases.
    pub fn open(dir: &Path, options: &Options, spaces: &[KeySpace]) -> Result<Arc<Self>> {
        let path = CString::new(dir.as_os_str().as_bytes())
            .map_err(|_| EngineError::failed("mdb_env_open", format!("{} holds a zero byte", dir.display())))?;
        let mut raw = null_mut();
        // SAFETY: `raw` takes the new environment; it is closed by `Env`'s drop.
        let code = unsafe { ffi::mdb_env_create(&raw mut raw) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(EngineError::failed("mdb_env_create", describe(code)));
        };
        let spaces_at = Vec::with_capacity(spaces.len());
        let mut env = Env { raw, spaces: spaces_at, dir: dir.to_owned(), waited_us: AtomicU64::new(0) };
        let map_size = options.map_size_in(dir)?;
        let databases = u32::try_from(spaces.len()).unwrap_or(u32::MAX);
        // SAFETY: the environment is created and not yet open, as these setters require;
        // the path is a C string that outlives the call; a failed open is closed by drop.
        unsafe {
            let raw = raw.as_ptr();
            env.check("mdb_env_set_mapsize", ffi::mdb_env_set_mapsize(raw, map_size))?;
            env.check("mdb_env_set_maxreaders", ffi::mdb_env_set_maxreaders(raw, options.max_readers))?;
            env.check("mdb_env_set_maxdbs", ffi::mdb_env_set_maxdbs(raw, databases))?;
            env.check("mdb_env_open", ffi::mdb_env_open(raw, path.as_ptr(), options.flags, 0o600))?;
        }
        env.create_databases(spaces)?;
        Ok(Arc::new(env))
    }

    /// Total time that sessions waited for the writer lock, in microseconds.
    pub fn waited_us(&self) -> u64 {
        self.waited_us.load(Relaxed)
    }

    fn create_databases(&mut self, spaces: &[KeySpace]) -> Result<()> {
        let mut txn = null_mut();
        // SAFETY: the environment is open; the transaction ends below in every case.
        self.check("mdb_txn_begin", unsafe { ffi::mdb_txn_begin(self.raw.as_ptr(), null_mut(), 0, &raw mut txn) })?;
        for space in spaces {
            let created = CString::new(space.name)
                .map_err(|_| EngineError::failed("mdb_dbi_open", format!("`{}` holds a zero byte", space.name)))
                .and_then(|name| {
                    let mut dbi = 0;
                    // SAFETY: the transaction is open and the only one; the name outlives the call.
                    let code = unsafe { ffi::mdb_dbi_open(txn, name.as_ptr(), ffi::MDB_CREATE, &raw mut dbi) };
                    self.check("mdb_dbi_open", code).map(|()| dbi)
                });
            match created {
                Ok(dbi) => self.spaces.push((space.name, dbi)),
                Err(error) => {
                    // SAFETY: the transaction is open and is not used again.
                    unsafe { ffi::mdb_txn_abort(txn) };
                    return Err(error);
                }
            }
        }
        // SAFETY: the transaction is open; a commit ends it, whether or not it succeeds.
        self.check("mdb_txn_commit", unsafe { ffi::mdb_txn_commit(txn) })
    }

    fn dbi(&self, space: SpaceId) -> ffi::MDB_dbi {
        self.spaces[space].1
    }

    /// How many databases there are.
    pub fn spaces(&self) -> usize {
        self.spaces.len()
    }

    /// Writes and syncs everything committed so far, regardless of the flags.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: the environment is open.
        self.check("mdb_env_sync", unsafe { ffi::mdb_env_sync(self.raw.as_ptr(), 1) })
    }

    /// The map's and the reader table's figures.
    pub fn info(&self) -> Result<ffi::MDB_envinfo> {
        let mut info = ffi::MDB_envinfo {
            me_mapaddr: null_mut(),
            me_mapsize: 0,
            me_last_pgno: 0,
            me_last_txnid: 0,
            me_maxreaders: 0,
            me_numreaders: 0,
        };
        // SAFETY: the environment exists; `info` is written before the call returns.
        self.check("mdb_env_info", unsafe { ffi::mdb_env_info(self.raw.as_ptr(), &raw mut info) })?;
        Ok(info)
    }

    /// The flags in force.
    pub fn flags(&self) -> Result<u32> {
        let mut flags = 0;
        // SAFETY: the environment exists; `flags` is written before the call returns.
        self.check("mdb_env_get_flags", unsafe { ffi::mdb_env_get_flags(self.raw.as_ptr(), &raw mut flags) })?;
        Ok(flags)
    }

    /// Bytes in a page.
    pub fn page_size(&self) -> Result<u32> {
        let mut stat = NO_STAT;
        // SAFETY: the environment is open; `stat` is written before the call returns.
        self.check("mdb_env_stat", unsafe { ffi::mdb_env_stat(self.raw.as_ptr(), &raw mut stat) })?;
        Ok(stat.ms_psize)
    }

    /// The longest key in bytes.
    pub fn max_key_size(&self) -> i32 {
        // SAFETY: the environment exists.
        unsafe { ffi::mdb_env_get_maxkeysize(self.raw.as_ptr()) }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == ffi::MDB_SUCCESS { Ok(()) } else { Err(self.failure(call, code)) }
    }

    #[cold]
    fn failure(&self, call: &'static str, code: c_int) -> EngineError {
        let said = describe(code);
        let message = match code {
            ffi::MDB_MAP_FULL => {
                let size = self
                    .info()
                    .map_or_else(|_| String::new(), |i| format!(" (now {})", show_bytes(i.me_mapsize as f64)));
                format!("{said}; raise the setting map_size{size}")
            }
            _ if call == "mdb_env_open" && [Errno::NOMEM, Errno::INVAL].contains(&Errno::from_raw_os_error(code)) => {
                format!("{said}; if address space is short here (ulimit -v, valgrind), lower the setting map_size")
            }
            ffi::MDB_READERS_FULL => format!("{said}; raise the setting max_readers: every session holds a slot"),
            ffi::MDB_BAD_VALSIZE => format!("{said}; a key has 1 to {} bytes", self.max_key_size()),
            _ => match Errno::from_raw_os_error(code) {
                Errno::NOSPC | Errno::DQUOT => {
                    return EngineError::DiskFull(format!("{call}: {said}, in {}", self.dir.display()));
                }
                // LMDB also reports EIO for a short write ("filesystem full?" says mdb_page_flush).
                Errno::IO => match room::behind_short_write(&self.dir) {
                    Cause::NoRoom => {
                        let words = format!("{call}: a write fell short, in {}", self.dir.display());
                        return EngineError::DiskFull(words);
                    }
                    Cause::Other(words) => format!("{said}; {words}"),
                },
                _ => said,
            },
        };
        EngineError::Failed { call, message }
    }
}

/// LMDB's message for a code, with its number.
fn describe(code: c_int) -> String {
    // SAFETY: mdb_strerror returns a string that is static, or strerror's.
    let words = unsafe { CStr::from_ptr(ffi::mdb_strerror(code)) };
    format!("{} ({code})", words.to_string_lossy())
}

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

const EMPTY: ffi::MDB_val = ffi::MDB_val { mv_size: 0, mv_data: null_mut() };

/// # Safety
/// `value` was filled by LMDB under a transaction that outlives `'t`, and the
/// page is not written during `'t`.
unsafe fn bytes<'t>(value: &ffi::MDB_val) -> &'t [u8] {
    if value.mv_size == 0 {
        return &[];
    }
    // SAFETY: LMDB's values are contiguous in the map; the caller guarantees the lifetime.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast_const().cast(), value.mv_size) }
}

/// # Safety
/// `txn` is open on `env`, and stays so and unchanged during `'t`.
unsafe fn get<'t>(env: &Env, txn: NonNull<ffi::MDB_txn>, space: SpaceId, key: &[u8]) -> Result<Option<&'t [u8]>> {
    let (mut key, mut value) = (val(key), EMPTY);
    // SAFETY: the transaction is open; LMDB reads the key and does not keep it.
    match unsafe { ffi::mdb_get(txn.as_ptr(), env.dbi(space), &raw mut key, &raw mut value) } {
        // SAFETY: guaranteed by the caller.
        ffi::MDB_SUCCESS => Ok(Some(unsafe { bytes(&value) })),
        ffi::MDB_NOTFOUND => Ok(None),
        code => Err(env.failure("mdb_get", code)),
    }
}

/// # Safety
/// `cursor` is open under a transaction of `env` that is not written to during the call.
unsafe fn walk(
    env: &Env,
    cursor: *mut ffi::MDB_cursor,
    scan: Scan<'_>,
    visit: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<usize> {
    let (mut key, mut value) = (val(scan.from), EMPTY);
    // LMDB refuses a search for the empty key, which sorts before all others.
    let mut step = if scan.from.is_empty() { ffi::MDB_FIRST } else { ffi::MDB_SET_RANGE };
    let mut visited = 0;
    while visited < scan.limit {
        // SAFETY: the cursor is open, as guaranteed by the caller.
        match unsafe { ffi::mdb_cursor_get(cursor, &raw mut key, &raw mut value, step) } {
            ffi::MDB_SUCCESS => {}
            ffi::MDB_NOTFOUND => break,
            code => return Err(env.failure("mdb_cursor_get", code)),
        }
        // SAFETY: both were filled just now and are used before the cursor moves.
        let (key, value) = unsafe { (bytes(&key), bytes(&value)) };
        if key >= scan.to {
            break;
        }
        visit(key, value);
        visited += 1;
        step = ffi::MDB_NEXT;
    }
    Ok(visited)
}

/// One session's read transaction, kept for its life: it holds one slot of the
/// reader table, and is renewed and reset around every read.
#[derive(Debug)]
pub(crate) struct Reader {
    env: Arc<Env>,
    txn: NonNull<ffi::MDB_txn>,
    /// A cursor per key space, opened when it is first scanned.
    cursors: Vec<*mut ffi::MDB_cursor>,
}

// SAFETY: with MDB_NOTLS a read transaction belongs to no thread, and may be used by one thread at a time (lmdb.h);
// `&mut` ensures that.
unsafe impl Send for Reader {}

impl Reader {
    /// Takes a slot of the reader table.
    pub fn new(env: &Arc<Env>) -> Result<Self> {
        let mut txn = null_mut();
        // SAFETY: the environment is open; the transaction is ended by drop.
        let code = unsafe { ffi::mdb_txn_begin(env.raw.as_ptr(), null_mut(), ffi::MDB_RDONLY, &raw mut txn) };
        let Some(txn) = NonNull::new(txn) else { return Err(env.failure("mdb_txn_begin", code)) };
        // SAFETY: the transaction has just been begun for reading.
        unsafe { ffi::mdb_txn_reset(txn.as_ptr()) };
        Ok(Self { env: Arc::clone(env), txn, cursors: vec![null_mut(); env.spaces()] })
    }

    /// The latest committed state, until the snapshot is dropped. Takes no lock and allocates nothing.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>> {
        // SAFETY: the transaction is reset: `new` and the drop of every snapshot left it so.
        self.env.check("mdb_txn_renew", unsafe { ffi::mdb_txn_renew(self.txn.as_ptr()) })?;
        Ok(Snapshot { reader: self })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: cursors of a read transaction are closed by their owner, before or after it (lmdb.h,
        // mdb_cursor_open); neither is used afterwards.
        unsafe {
            for cursor in self.cursors.drain(..).filter(|cursor| !cursor.is_null()) {
                ffi::mdb_cursor_close(cursor);
            }
            ffi::mdb_txn_abort(self.txn.as_ptr());
        }
    }
}

/// A committed state.
pub(crate) struct Snapshot<'r> {
    reader: &'r mut Reader,
}

impl Drop for Snapshot<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction was renewed when the snapshot was made; values read from it borrowed the snapshot and
        // are gone.
        unsafe { ffi::mdb_txn_reset(self.reader.txn.as_ptr()) };
    }
}

impl Snapshot<'_> {
    /// The value of a key.
    pub fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        // SAFETY: the transaction is open while the snapshot lives, and only reads.
        unsafe { get(&self.reader.env, self.reader.txn, space, key) }
    }

    /// Visits a range in key order.
    pub fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        let Reader { env, txn, cursors } = &mut *self.reader;
        let cursor = &mut cursors[space];
        // SAFETY: the transaction is open. A cursor that exists was opened under this same
        // read transaction, which was reset since, as mdb_cursor_renew requires.
        unsafe {
            if cursor.is_null() {
                env.check("mdb_cursor_open", ffi::mdb_cursor_open(txn.as_ptr(), env.dbi(space), cursor))?;
            } else {
                env.check("mdb_cursor_renew", ffi::mdb_cursor_renew(txn.as_ptr(), *cursor))?;
            }
            walk(env, *cursor, scan, visit)
        }
    }

    /// The figures of a database.
    pub fn stat(&self, space: SpaceId) -> Result<(&'static str, Stat)> {
        let env = &self.reader.env;
        let mut stat = NO_STAT;
        // SAFETY: the transaction is open; `stat` is written before the call returns.
        let code = unsafe { ffi::mdb_stat(self.reader.txn.as_ptr(), env.dbi(space), &raw mut stat) };
        env.check("mdb_stat", code)?;
        Ok((env.spaces[space].0, stat))
    }

    /// Pages that are free, or will be once no reader needs them. This is the sum over the free lists, each of which
    /// starts with its length (as `mdb_stat -f` counts them).
    pub fn free_pages(&self) -> Result<u64> {
        let env = &self.reader.env;
        let mut cursor = null_mut();
        // SAFETY: the transaction is open and reads only, as a cursor on FREE_DBI requires.
        let code = unsafe { ffi::mdb_cursor_open(self.reader.txn.as_ptr(), FREE_DBI, &raw mut cursor) };
        env.check("mdb_cursor_open", code)?;
        let mut pages = 0;
        let everything = Scan { from: &[], to: &[0xff; 16], limit: usize::MAX };
        // SAFETY: the cursor is open; it is closed below and not used again.
        let walked = unsafe {
            walk(env, cursor, everything, &mut |_, list| {
                pages += list.first_chunk().map_or(0, |length| u64::from_ne_bytes(*length));
            })
        };
        // SAFETY: as above.
        unsafe { ffi::mdb_cursor_close(cursor) };
        walked.map(|_| pages)
    }
}

/// One session's writer: the whole environment has at most one write transaction at a time.
#[derive(Debug)]
pub(crate) struct Writer {
    env: Arc<Env>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    txn: NonNull<ffi::MDB_txn>,
    /// The thread that holds LMDB's writer lock, a mutex that only its owner may unlock.
    thread: ThreadId,
}

// SAFETY: a write transaction may be used by one thread at a time, which `&mut` ensures. `end` ensures that it ends on
// the thread that began it.
unsafe impl Send for Writer {}

impl Writer {
    /// A writer without a transaction.
    pub fn new(env: &Arc<Env>) -> Self {
        Self { env: Arc::clone(env), open: None }
    }

    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Waits for the writer lock and begins.
    pub fn begin(&mut self) -> Result<()> {
        if self.is_open() {
            return Err(EngineError::failed("mdb_txn_begin", "this session has a transaction open; end it first"));
        }
        let (mut txn, begun) = (null_mut(), Instant::now());
        // SAFETY: the environment is open; the transaction is ended by `commit`, `abort` or drop.
        let code = unsafe { ffi::mdb_txn_begin(self.env.raw.as_ptr(), null_mut(), 0, &raw mut txn) };
        self.env.check("mdb_txn_begin", code)?;
        let waited = begun.elapsed();
        if waited >= SHORTEST_WAIT {
            self.env.waited_us.store(self.env.waited_us() + waited.as_micros() as u64, Relaxed);
        }
        self.open = NonNull::new(txn).map(|txn| Open { txn, thread: std::thread::current().id() });
        Ok(())
    }

    fn txn(&self, call: &'static str) -> Result<NonNull<ffi::MDB_txn>> {
        match &self.open {
            Some(open) => Ok(open.txn),
            None => Err(EngineError::failed(call, "no transaction is open; begin one first")),
        }
    }

    /// The value of a key, own writes included.
    pub fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        // SAFETY: the transaction is open; the value borrows `self`, and every write takes `&mut self`.
        unsafe { get(&self.env, self.txn("mdb_get")?, space, key) }
    }

    /// Visits a range in key order, own writes included. LMDB cannot reuse a cursor of a write transaction, so each
    /// scan opens a new one (one malloc in C).
    pub fn scan(&self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        let txn = self.txn("mdb_cursor_open")?;
        let mut cursor = null_mut();
        // SAFETY: the transaction is open; the cursor is closed below, before it ends.
        let code = unsafe { ffi::mdb_cursor_open(txn.as_ptr(), self.env.dbi(space), &raw mut cursor) };
        self.env.check("mdb_cursor_open", code)?;
        // SAFETY: the cursor is open, and the shared borrow of `self` prevents writes.
        let visited = unsafe { walk(&self.env, cursor, scan, visit) };
        // SAFETY: it is not used again.
        unsafe { ffi::mdb_cursor_close(cursor) };
        visited
    }

    /// Inserts or replaces.
    pub fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        let txn = self.txn("mdb_put")?;
        let (mut key, mut value) = (val(key), val(value));
        // SAFETY: the transaction is open; LMDB copies the key and value and, without
        // MDB_RESERVE, writes to neither.
        let code = unsafe { ffi::mdb_put(txn.as_ptr(), self.env.dbi(space), &raw mut key, &raw mut value, 0) };
        self.env.check("mdb_put", code)
    }

    /// Removes a key that may be absent.
    pub fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        let txn = self.txn("mdb_del")?;
        let mut key = val(key);
        // SAFETY: the transaction is open; LMDB reads the key and does not keep it.
        match unsafe { ffi::mdb_del(txn.as_ptr(), self.env.dbi(space), &raw mut key, null_mut()) } {
            ffi::MDB_NOTFOUND => Ok(()),
            code => self.env.check("mdb_del", code),
        }
    }

    /// Commits. Afterwards the transaction is over, even after an error, unless it was begun on another thread.
    pub fn commit(&mut self) -> Result<()> {
        let Some(txn) = self.end("mdb_txn_commit")? else {
            return Err(EngineError::failed("mdb_txn_commit", "no transaction is open; begin one first"));
        };
        // SAFETY: the transaction was open, and `self` no longer refers to it.
        self.env.check("mdb_txn_commit", unsafe { ffi::mdb_txn_commit(txn.as_ptr()) })
    }

    /// Rolls the transaction back, if there is one.
    pub fn abort(&mut self) -> Result<()> {
        if let Some(txn) = self.end("mdb_txn_abort")? {
            // SAFETY: the transaction was open, and `self` no longer refers to it.
            unsafe { ffi::mdb_txn_abort(txn.as_ptr()) };
        }
        Ok(())
    }

    /// Takes the transaction out in order to end it, if this thread began it. On another thread the writer lock would
    /// stay locked, and the next `begin` would wait forever.
    fn end(&mut self, call: &'static str) -> Result<Option<NonNull<ffi::MDB_txn>>> {
        if self.open.as_ref().is_some_and(|open| open.thread != std::thread::current().id()) {
            return Err(EngineError::failed(call, "a transaction must end on the thread that began it"));
        }
        Ok(self.open.take().map(|open| open.txn))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // SAFETY: the transaction is open and is not used again. If this thread did not begin it, the lock stays
            // locked, which is the caller's mistake.
            unsafe { ffi::mdb_txn_abort(open.txn.as_ptr()) };
        }
    }
}
