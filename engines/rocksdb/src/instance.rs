//! An open RocksDB: sessions, settle, drain and statistics.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_engine_api::engine::{Durability, Gauge, Instance, Session};
use rumba_engine_api::error::{EngineError, Result};

use crate::db::{Database, Locking};
use crate::effective::Effective;
use crate::names::Group;
use crate::plan::Plan;
use crate::session::{self, Space};
use crate::stopped::Watch;
use crate::transaction::WriteOptions;
use crate::{counters, quiet};

/// An open instance.
pub struct RocksDbInstance {
    dir: PathBuf,
    db: Arc<Database>,
    watch: Watch,
    durability: Durability,
    locking: Locking,
    spaces: Arc<[Space]>,
    /// Whether RocksDB compacts automatically, and by levels. L0 can be emptied only if both are true.
    compacts: bool,
    leveled: bool,
    /// The effective `level0_file_num_compaction_trigger`.
    trigger: String,
}

impl RocksDbInstance {
    /// Wraps an open database after checking that the plan's settings took effect.
    ///
    /// # Errors
    /// The settings that did not take effect.
    pub fn new(dir: &Path, db: Arc<Database>, plan: Plan, spaces: Arc<[Space]>) -> Result<Self> {
        let failed = |words: String| EngineError::failed("rocksdb settings", words);
        let effective = Effective::read(dir, db.names()).map_err(failed)?;
        let mut differences = effective.differences(&plan.options);
        let capacity = db.int_of_all(c"rocksdb.block-cache-capacity");
        if let Some(capacity) = capacity.filter(|capacity| *capacity != plan.block_cache) {
            differences.push(format!("block_cache: requested {}, but RocksDB runs with {capacity}", plan.block_cache));
        }
        if !differences.is_empty() {
            return Err(failed(differences.join("; ")));
        }
        let of_family = |name| effective.get(Group::Family, name);
        Ok(Self {
            dir: dir.to_owned(),
            durability: plan.durability,
            locking: plan.locking,
            spaces,
            compacts: of_family("disable_auto_compactions") != Some("true"),
            leveled: of_family("compaction_style") == Some("kCompactionStyleLevel"),
            trigger: of_family("level0_file_num_compaction_trigger").unwrap_or("4").to_owned(),
            watch: Watch::start(&db)?,
            db,
        })
    }
}

impl Instance for RocksDbInstance {
    fn session(&self) -> Result<Session> {
        let session = session::Session::new(&self.db, self.durability, &self.locking, &self.spaces);
        Ok(Session::Kv(Box::new(session)))
    }

    /// Drains, then compacts L0, so that a run starts without the load's deferred work. Without automatic compaction,
    /// or with another style than levels, L0 stays unchanged, because the experiment requested that shape.
    fn settle(&self) -> Result<()> {
        self.drain()?;
        if self.compacts && self.leveled {
            quiet::empty_l0(&self.db, &self.trigger)?;
        }
        Ok(())
    }

    /// Flushes the memtables and waits for the compactions that RocksDB's own triggers demand.
    fn drain(&self) -> Result<()> {
        quiet::flush(&self.db)?;
        quiet::wait(&self.db, self.compacts)
    }

    fn debt(&self) -> Vec<Gauge> {
        // With other compaction styles a compaction does not rewrite the level below.
        let trigger = if self.leveled { self.trigger.parse().ok() } else { None };
        counters::debt(&self.db, trigger)
    }

    fn counters(&self) -> Vec<Gauge> {
        counters::all(&self.db)
    }

    fn version(&self) -> Option<String> {
        let version = Effective::read(&self.dir, self.db.names()).ok()?.version?;
        Some(if self.db.built_with_assertions() { format!("{version} (built with assertions)") } else { version })
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        let mut add = |name: &str, value: String| settings.push((name.to_owned(), value));
        let effective = Effective::read(&self.dir, self.db.names());
        if let Ok(Effective { version: Some(version), .. }) = &effective {
            add("rocksdb_version", version.clone());
        }
        add("built_with_assertions", self.db.built_with_assertions().to_string());
        if let Some(capacity) = self.db.int_of_all(c"rocksdb.block-cache-capacity") {
            add("block_cache", capacity.to_string());
        }
        let write = WriteOptions::new(&self.db, self.durability);
        add("WriteOptions.sync", write.sync().to_string());
        add("WriteOptions.disableWAL", write.disable_wal().to_string());
        for (name, value) in self.locking.list() {
            add(name, value);
        }
        if let Ok(effective) = effective {
            settings.extend(effective.list());
        }
        settings
    }

    fn is_log(&self, file: &Path) -> bool {
        file.extension().is_some_and(|extension| extension == "log")
    }

    fn close(self: Box<Self>) -> Result<()> {
        if self.durability == Durability::None {
            // Without a log, unflushed data would be lost. On a full device it is lost, as after a kill.
            let _ = quiet::flush(&self.db);
        }
        self.watch.end();
        self.db.cancel_background_work();
        match Arc::try_unwrap(self.db) {
            Ok(db) => {
                drop(db);
                Ok(())
            }
            Err(_) => Err(EngineError::failed("rocksdb_transactiondb_close", "a session is still open")),
        }
    }
}
