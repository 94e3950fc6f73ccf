//! An open tree in its directory.
//!
//! The cache writes leaves in place when it evicts them, but the tree above the leaves exists in memory only. Therefore
//! `data` is useless without a snapshot. Closing writes a snapshot, and the next instance works on a copy of it, so
//! snapshot plus log always hold all the data.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bf_tree::{BfTree as Tree, ConfigError, LeafInsertResult};
use rumba_engine_api::engine::{Gauge, Instance, Session, require_database};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::units::show_bytes;
use rustix::fs::{Advice, fadvise};

use crate::files::{DATA, LOG, SNAPSHOT, failed, remove};
use crate::locks::Locks;
use crate::log_room::LogRoom;
use crate::options::{Options, words};
use crate::replay::{Entry, entry_length, replay};
use crate::session::BfTreeSession;

/// State shared by all sessions.
pub(crate) struct Shared {
    pub tree: Tree,
    pub locks: Locks,
    pub options: Options,
    /// Space in the current log segment, if the instance has a log.
    room: Option<LogRoom>,
}

impl Shared {
    /// Writes to the tree after waiting for space in the log.
    fn with_room<T>(&self, key: &[u8], value: &[u8], write: impl FnOnce() -> T) -> T {
        match &self.room {
            Some(room) => room.with(entry_length(key.len(), value.len()), write),
            None => write(),
        }
    }

    /// Inserts a record.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.with_room(key, value, || insert(&self.tree, key, value))
    }

    /// Deletes a record.
    pub fn delete(&self, key: &[u8]) {
        self.with_room(key, &[], || self.tree.delete(key));
    }
}

/// One tree for all key spaces: each key is prefixed with its space's number.
pub(crate) struct BfTreeInstance {
    dir: PathBuf,
    shared: Arc<Shared>,
}

/// Runs a library call and turns a panic into an error. The library panics when an I/O or kernel call fails.
fn caught<T>(call: &'static str, does: impl FnOnce() -> Result<T, ConfigError>) -> Result<T> {
    let done = catch_unwind(AssertUnwindSafe(does)).map_err(|panic| {
        let words = panic.downcast::<String>().map(|words| *words);
        let words = words.or_else(|panic| panic.downcast::<&str>().map(|words| (*words).to_owned()));
        EngineError::failed(call, words.unwrap_or_else(|_| "the library gave up".to_owned()))
    })?;
    done.map_err(|error| EngineError::failed(call, words(error)))
}

/// Creates a new tree; its files must not exist yet.
fn new_tree(dir: &Path, options: &Options) -> Result<Tree> {
    caught("with_config", || Tree::with_config(options.library(dir), None))
}

fn tree_of_snapshot(dir: &Path, options: &Options) -> Result<Tree> {
    let (data, cache, log) = (dir.join(DATA), Some(options.cache), options.log_of(dir));
    caught("new_from_cpr_snapshot", || Tree::new_from_cpr_snapshot(data, true, None, cache, log))
}

fn write_snapshot(tree: &Tree, path: &Path) -> Result<()> {
    caught("cpr_snapshot", || {
        tree.cpr_snapshot(path);
        Ok(())
    })
}

/// Inserts a record without waiting for space in the log, for single-threaded use or a tree without a log.
fn insert(tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
    match tree.insert(key, value) {
        LeafInsertResult::Success => Ok(()),
        LeafInsertResult::InvalidKV(words) => Err(EngineError::failed(
            "insert",
            format!(
                "{words}; cb_min_record_size and cb_max_record_size bound records, cb_max_key_len keys, and no value is empty"
            ),
        )),
    }
}

/// Copies a file and leaves neither copy in the page cache, so that a repeat starts cold. The copy never shares blocks
/// with its source, because writes to shared blocks (reflinks) cost more than the writes being measured.
fn copy_cold(from: &Path, to: &Path) -> io::Result<()> {
    const WINDOW: usize = 1 << 20;
    let (mut source, mut target) = (File::open(from)?, File::create(to)?);
    let mut window = vec![0; WINDOW];
    loop {
        let read = source.read(&mut window)?;
        if read == 0 {
            break;
        }
        target.write_all(&window[..read])?;
    }
    // `DontNeed` drops only clean pages, so both files are synced first.
    target.sync_all()?;
    [&source, &target].into_iter().try_for_each(|file| Ok(fadvise(file, 0, None, Advice::DontNeed)?))
}

/// Rebuilds a snapshot after a kill: the last snapshot, if any, plus the writes in the log.
fn recover(dir: &Path, options: &Options) -> Result<()> {
    let Some(log) = &options.log else { return Ok(()) };
    let quiet = Options { log: None, ..options.clone() };
    let tree = if dir.join(SNAPSHOT).exists() {
        copy_cold(&dir.join(SNAPSHOT), &dir.join(DATA)).map_err(failed("copy"))?;
        tree_of_snapshot(dir, &quiet)?
    } else {
        remove(&dir.join(DATA))?;
        new_tree(dir, &quiet)?
    };
    replay(&dir.join(LOG), log.segment, &mut |entry| match entry {
        Entry::Insert(key, value) => insert(&tree, key, value),
        Entry::Delete(key) => {
            tree.delete(key);
            Ok(())
        }
    })?;
    write_snapshot(&tree, &dir.join(SNAPSHOT))?;
    drop(tree);
    remove(&dir.join(DATA))?;
    remove(&dir.join(LOG))
}

impl BfTreeInstance {
    fn of(dir: &Path, tree: Tree, options: Options) -> Self {
        let room = options.log.as_ref().map(|log| LogRoom::new(log.segment));
        Self { dir: dir.to_owned(), shared: Arc::new(Shared { tree, locks: Locks::new(), options, room }) }
    }

    /// Creates an instance in an empty directory.
    pub fn create(dir: &Path, options: Options, spaces: &[KeySpace]) -> Result<Self> {
        if spaces.len() > usize::from(u8::MAX) {
            return Err(EngineError::failed("open", "a byte numbers the key spaces: 255 at most"));
        }
        let tree = new_tree(dir, &options)?;
        Ok(Self::of(dir, tree, options))
    }

    /// Opens the data of a closed instance, or of a killed one if it has a log.
    pub fn open_again(dir: &Path, options: Options, _spaces: &[KeySpace]) -> Result<Self> {
        if dir.join(LOG).exists() {
            recover(dir, &options)?;
        }
        require_database(dir, SNAPSHOT)?;
        if options.log.is_some() {
            copy_cold(&dir.join(SNAPSHOT), &dir.join(DATA)).map_err(failed("copy"))?;
        } else {
            // Without a log the snapshot is never needed for recovery, so it can be moved.
            fs::rename(dir.join(SNAPSHOT), dir.join(DATA)).map_err(failed("rename"))?;
        }
        let tree = tree_of_snapshot(dir, &options)?;
        Ok(Self::of(dir, tree, options))
    }

    fn length(&self, file: &str) -> f64 {
        fs::metadata(self.dir.join(file)).map_or(0.0, |metadata| metadata.len() as f64)
    }
}

impl Instance for BfTreeInstance {
    fn session(&self) -> Result<Session> {
        Ok(Session::Kv(Box::new(BfTreeSession::new(self.shared.clone()))))
    }

    /// Does nothing: the library has no compaction and no call that flushes the cache.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    /// Empty: the library does not count the records that its cache alone holds.
    fn debt(&self) -> Vec<Gauge> {
        Vec::new()
    }

    fn unpaid(&self) -> Option<String> {
        let most = show_bytes(self.shared.options.cache as f64);
        Some(format!(
            "the records that the cache alone holds, {most} at most, have not been written: the snapshot of a close \
             has them, and bytes written are the fewest that they can be"
        ))
    }

    fn counters(&self) -> Vec<Gauge> {
        vec![Gauge::new("data_file_bytes", self.length(DATA)), Gauge::new("wal_file_bytes", self.length(LOG))]
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let Options { cache, max_record, min_record, max_key, backend, read_promotion, log, .. } = &self.shared.options;
        let mut settings = vec![
            ("cb_size_byte", cache.to_string()),
            ("leaf_page_size", self.shared.tree.config().get_leaf_page_size().to_string()),
            ("cb_min_record_size", min_record.to_string()),
            ("cb_max_record_size", max_record.to_string()),
            ("cb_max_key_len", max_key.to_string()),
            ("storage_backend", format!("{backend:?}")),
            ("read_promotion_rate", read_promotion.to_string()),
            ("wal", log.is_some().to_string()),
        ];
        if let Some(log) = log {
            settings.push(("wal_flush_interval", format!("{:?}", log.flush_interval)));
            settings.push(("wal_segment_size", log.segment.to_string()));
        }
        settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn is_log(&self, file: &Path) -> bool {
        file.file_name().is_some_and(|name| name == LOG)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { dir, shared } = *self;
        if !shared.options.has_snapshots {
            return Ok(());
        }
        write_snapshot(&shared.tree, &dir.join(SNAPSHOT))?;
        drop(shared);
        remove(&dir.join(DATA))?;
        remove(&dir.join(LOG))
    }
}
