//! An open environment and its databases.

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::error::{EngineError, Result};

use super::ffi::{self, Db, DbEnv, DbTxn};
use super::library::Library;
use super::{files, probe, upsert};

/// How far a commit waits for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// The commit does not wait, because there is no log.
    Nothing,
    /// The log is written to its file.
    Written,
    /// The log is on the device.
    Synced,
}

/// Options for opening an environment; `None` keeps the library's default.
#[derive(Clone, Debug)]
pub struct EnvironmentOptions {
    pub cache: u64,
    pub commit: Commit,
    pub lock_timeout_ms: u64,
    pub lk_max_memory: Option<u64>,
    pub lg_max: Option<u32>,
    pub redzone_percent: u8,
    pub checkpointing_period_s: u32,
    pub cleaner_period_s: u32,
    pub cleaner_iterations: u32,
    pub partial_eviction: bool,
    pub direct_io: bool,
}

/// Options for a new tree; `None` keeps the library's default.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    pub pagesize: Option<u32>,
    pub readpagesize: Option<u32>,
    pub fanout: Option<u32>,
    pub compression: c_int,
}

/// An open environment with a database for each key space. Closed by [`Environment::close`], or when the last session
/// is dropped.
pub struct Environment {
    pub(super) raw: *mut DbEnv,
    pub(super) dbs: Vec<*mut Db>,
    pub(super) commit: Commit,
    library: Arc<Library>,
    is_open: bool,
}

// SAFETY: an environment and its databases may be used by many threads at once (DB_THREAD); the rest is Send and Sync
// itself.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

/// The library's last error message.
static WORDS: Mutex<String> = Mutex::new(String::new());

unsafe extern "C" fn reported(_env: *const DbEnv, _prefix: *const c_char, words: *const c_char) {
    if !words.is_null() {
        // SAFETY: the library's text lives through this call.
        let words = unsafe { CStr::from_ptr(words) }.to_string_lossy().trim().to_owned();
        *WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }
}

fn c_string(bytes: &[u8]) -> CString {
    // No path or table name contains a NUL; text after a NUL is dropped.
    CString::new(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).unwrap_or_default()
}

impl Environment {
    /// Opens an environment in a directory, with databases of these names, and creates them if it is new.
    pub fn open(
        library: &Arc<Library>,
        dir: &Path,
        options: &EnvironmentOptions,
        trees: &TreeOptions,
        names: &[&str],
        is_new: bool,
    ) -> Result<Self> {
        let mut raw = null_mut();
        // SAFETY: the function takes a pointer for the new environment and no flags.
        let code = unsafe { (library.env_create)(&mut raw, 0) };
        let mut env = Self { raw, dbs: Vec::new(), commit: options.commit, library: library.clone(), is_open: false };
        env.check("db_env_create", code)?;
        env.configure(options)?;
        env.is_open = true;
        env.start(dir, options)?;
        env.open_databases(trees, names, is_new)?;
        Ok(env)
    }

    /// Sets the options that must be set before opening.
    fn configure(&mut self, options: &EnvironmentOptions) -> Result<()> {
        let raw = self.raw;
        // SAFETY: the environment was just created, its layout is known, and it is not open.
        unsafe {
            let env = &*raw;
            (self.library.set_direct_io)(options.direct_io);
            (env.set_errcall)(raw, reported);
            (env.set_update)(raw, upsert::update);
            // The library refuses to run where transparent huge pages are enabled. That check exists for an allocator
            // that this process does not use.
            (env.set_check_thp)(raw, false);
            let (gigabytes, bytes) = ((options.cache >> 30) as u32, (options.cache & ((1 << 30) - 1)) as u32);
            self.check("DB_ENV->set_cachesize", (env.set_cachesize)(raw, gigabytes, bytes, 1))?;
            self.check("DB_ENV->set_lock_timeout", (env.set_lock_timeout)(raw, options.lock_timeout_ms, None))?;
            self.check("DB_ENV->set_redzone", (env.set_redzone)(raw, options.redzone_percent.into()))?;
            if let Some(bytes) = options.lk_max_memory {
                self.check("DB_ENV->set_lk_max_memory", (env.set_lk_max_memory)(raw, bytes))?;
            }
            if let Some(bytes) = options.lg_max {
                self.check("DB_ENV->set_lg_max", (env.set_lg_max)(raw, bytes))?;
            }
        }
        Ok(())
    }

    /// Opens the environment, recovers after a kill, and starts the background threads.
    fn start(&mut self, dir: &Path, options: &EnvironmentOptions) -> Result<()> {
        let common = ffi::DB_CREATE | ffi::DB_PRIVATE | ffi::DB_THREAD;
        let parts = ffi::DB_INIT_MPOOL | ffi::DB_INIT_TXN | ffi::DB_INIT_LOCK;
        let log = if options.commit == Commit::Nothing { 0 } else { ffi::DB_INIT_LOG | ffi::DB_RECOVER };
        let (raw, dir) = (self.raw, c_string(dir.as_os_str().as_bytes()));
        // SAFETY: the environment is configured, its layout is known, the path lives through the call.
        unsafe {
            let env = &*raw;
            self.check("DB_ENV->open", (env.open)(raw, dir.as_ptr(), common | parts | log, 0o644))?;
            let set = (env.checkpointing_set_period)(raw, options.checkpointing_period_s);
            self.check("DB_ENV->checkpointing_set_period", set)?;
            self.check("DB_ENV->cleaner_set_period", (env.cleaner_set_period)(raw, options.cleaner_period_s))?;
            let set = (env.cleaner_set_iterations)(raw, options.cleaner_iterations);
            self.check("DB_ENV->cleaner_set_iterations", set)?;
            let set = (env.evictor_set_enable_partial_eviction)(raw, options.partial_eviction);
            self.check("DB_ENV->evictor_set_enable_partial_eviction", set)
        }
    }

    fn open_databases(&mut self, trees: &TreeOptions, names: &[&str], is_new: bool) -> Result<()> {
        let mut txn = null_mut();
        // SAFETY: the environment is open.
        self.check("DB_ENV->txn_begin", unsafe { ((*self.raw).txn_begin)(self.raw, null_mut(), &mut txn, 0) })?;
        // SAFETY: the transaction was just created.
        unsafe { probe::transaction(txn, self.raw) }.map_err(unknown)?;
        let opened = names.iter().try_for_each(|name| self.open_database(txn, trees, name, is_new));
        // SAFETY: the transaction is open and is not used afterwards.
        let ended = unsafe { if opened.is_ok() { ((*txn).commit)(txn, 0) } else { ((*txn).abort)(txn) } };
        opened.and(self.check("DB_TXN->commit", ended))
    }

    fn open_database(&mut self, txn: *mut DbTxn, trees: &TreeOptions, name: &str, is_new: bool) -> Result<()> {
        let (mut db, name) = (null_mut(), c_string(name.as_bytes()));
        // SAFETY: the environment is open.
        self.check("db_create", unsafe { (self.library.db_create)(&mut db, self.raw, 0) })?;
        // SAFETY: the database was just created.
        unsafe { probe::database(db, self.raw) }.map_err(unknown)?;
        // From here on, closing the environment also closes this database.
        self.dbs.push(db);
        // SAFETY: the database is created and not open, its layout is known, the name lives through the call.
        unsafe {
            if is_new {
                self.make(&*db, db, trees)?;
            }
            let flags = ffi::DB_THREAD | if is_new { ffi::DB_CREATE } else { 0 };
            let code = ((*db).open)(db, txn, name.as_ptr(), null(), ffi::DB_BTREE, flags, 0o644);
            self.check("DB->open", code)
        }
    }

    /// Sets the options of a new tree.
    ///
    /// # Safety
    /// The database is created and not open.
    unsafe fn make(&self, db: &Db, raw: *mut Db, trees: &TreeOptions) -> Result<()> {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(bytes) = trees.pagesize {
                self.check("DB->set_pagesize", (db.set_pagesize)(raw, bytes))?;
            }
            if let Some(bytes) = trees.readpagesize {
                self.check("DB->set_readpagesize", (db.set_readpagesize)(raw, bytes))?;
            }
            if let Some(children) = trees.fanout {
                self.check("DB->set_fanout", (db.set_fanout)(raw, children))?;
            }
            self.check("DB->set_compression_method", (db.set_compression_method)(raw, trees.compression))?;
        }
        Ok(())
    }

    /// Writes a checkpoint, after waiting for a running one.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn checkpoint(&self) -> Result<()> {
        self.refuse_if_full()?;
        // SAFETY: the environment is open.
        let code = unsafe { ((*self.raw).txn_checkpoint)(self.raw, 0, 0, 0) };
        self.check("DB_ENV->txn_checkpoint", code)?;
        self.refuse_if_full()
    }

    /// Flushes every message to its leaf, in all trees.
    ///
    /// # Errors
    /// The library's error message; device full.
    pub fn optimize(&self) -> Result<()> {
        unsafe extern "C" fn goes_on(_extra: *mut std::ffi::c_void, _progress: f32) -> c_int {
            0
        }
        for &db in &self.dbs {
            self.refuse_if_full()?;
            let mut rounds = 0;
            // SAFETY: the database is open; null bounds mean the whole tree.
            let code = unsafe { ((*db).hot_optimize)(db, null_mut(), null_mut(), goes_on, null_mut(), &mut rounds) };
            self.check("DB->hot_optimize", code)?;
        }
        self.refuse_if_full()
    }

    /// Returns the engine status, one number a line.
    pub fn status(&self) -> String {
        // The text takes about 40 KB.
        let mut text = vec![0u8; 256 << 10];
        // SAFETY: the environment is open, and the buffer has the given length.
        let code =
            unsafe { ((*self.raw).get_engine_status_text)(self.raw, text.as_mut_ptr().cast(), text.len() as c_int) };
        let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| code == 0);
        text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The effective settings of the environment and of its trees, which are all created alike, by the library's names.
    pub fn in_force(&self) -> Vec<(&'static str, u64)> {
        let (mut gigabytes, mut bytes, mut caches) = (0u32, 0u32, 0);
        let mut numbers = [0u32; 7];
        let [checkpoint, cleaner, iterations, log, page, read_page, fanout] = &mut numbers;
        let (mut timeout, mut lock_memory, mut compression, mut partial) = (0u64, 0u64, 0, false);
        // SAFETY: environment and databases are open, their layouts known.
        unsafe {
            let (raw, env) = (self.raw, &*self.raw);
            (env.get_cachesize)(raw, &mut gigabytes, &mut bytes, &mut caches);
            (env.checkpointing_get_period)(raw, checkpoint);
            (env.cleaner_get_period)(raw, cleaner);
            (env.cleaner_get_iterations)(raw, iterations);
            (env.get_lg_max)(raw, log);
            (env.get_lock_timeout)(raw, &mut timeout);
            (env.get_lk_max_memory)(raw, &mut lock_memory);
            (env.evictor_get_enable_partial_eviction)(raw, &mut partial);
            if let Some(&db) = self.dbs.first() {
                ((*db).get_pagesize)(db, page);
                ((*db).get_readpagesize)(db, read_page);
                ((*db).get_fanout)(db, fanout);
                ((*db).get_compression_method)(db, &mut compression);
            }
        }
        let [checkpoint, cleaner, iterations, log, page, read_page, fanout] = numbers.map(u64::from);
        vec![
            ("cachesize", (u64::from(gigabytes) << 30) + u64::from(bytes)),
            ("checkpointing_period", checkpoint),
            ("cleaner_period", cleaner),
            ("cleaner_iterations", iterations),
            ("enable_partial_eviction", partial.into()),
            ("lg_max", log),
            ("lock_timeout", timeout),
            ("lk_max_memory", lock_memory),
            ("pagesize", page),
            ("readpagesize", read_page),
            ("fanout", fanout),
            ("compression_method", u64::from(compression.unsigned_abs())),
        ]
    }

    /// Refuses further work once the device was found full.
    #[inline]
    pub(super) fn refuse_if_full(&self) -> Result<()> {
        if files::are_full() { Err(full()) } else { Ok(()) }
    }

    #[inline]
    pub(super) fn check(&self, call: &'static str, code: c_int) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failure(call, code)) }
    }

    #[cold]
    pub(super) fn failure(&self, call: &'static str, code: c_int) -> EngineError {
        match code {
            ffi::DB_LOCK_NOTGRANTED => {
                return EngineError::conflict("DB_LOCK_NOTGRANTED: a row lock was not granted in time");
            }
            ffi::DB_LOCK_DEADLOCK => return EngineError::conflict("DB_LOCK_DEADLOCK: deadlock"),
            _ if files::are_full() => return full(),
            _ => {}
        }
        let reported = std::mem::take(&mut *WORDS.lock().unwrap_or_else(PoisonError::into_inner));
        let words = self.library.words(code);
        let words = if reported.is_empty() { words } else { format!("{words}: {reported}") };
        match code {
            libc::ENOSPC => EngineError::DiskFull(format!(
                "{call}: {words}; less is free of it than the setting redzone, in percent, keeps free"
            )),
            ffi::TOKUDB_OUT_OF_LOCKS => EngineError::failed(call, format!("{words}; raise the setting lk_max_memory")),
            _ => EngineError::failed(call, format!("{words} ({code})")),
        }
    }

    /// Closes the environment, which writes a checkpoint.
    ///
    /// # Errors
    /// The library's error message; sessions that are still open; device full, in which case nothing more is written.
    pub fn close(self: Arc<Self>) -> Result<()> {
        let mut env = Arc::try_unwrap(self).map_err(|_| {
            EngineError::failed("DB_ENV->close", "sessions are still open; drop them before the instance")
        })?;
        env.end()
    }

    fn end(&mut self) -> Result<()> {
        if !std::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        // The library's threads may still use files that are no longer written. They end with the process.
        self.refuse_if_full()?;
        let mut closed = Ok(());
        for db in self.dbs.drain(..) {
            // SAFETY: no session is left, so the database is not in use.
            let code = unsafe { ((*db).close)(db, 0) };
            closed = closed.and(if code == 0 { Ok(()) } else { Err(("DB->close", code)) });
        }
        // SAFETY: the environment is not in use, and its databases are closed.
        let code = unsafe { ((*self.raw).close)(self.raw, 0) };
        closed.map_err(|(call, code)| self.failure(call, code)).and(self.check("DB_ENV->close", code))
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // `drop` cannot return an error; `close` does.
        let _ = self.end();
    }
}

#[cold]
fn full() -> EngineError {
    EngineError::DiskFull("a write found the disk full; rumba sends no more writes to PerconaFT".to_owned())
}

#[cold]
fn unknown(what: &'static str) -> EngineError {
    EngineError::failed("dlopen", format!("{what}: this PerconaFT is not known here, docs/engines/fractal-tree.md"))
}
