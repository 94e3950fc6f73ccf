//! An open environment: sessions, checkpoints and status.

use std::fs::{File, read_dir};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_engine_api::engine::{Gauge, Instance, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;

use crate::options::{Options, compression_name};
use crate::raw::{Environment, Library, Lock, Transactions};
use crate::session::FractalTreeSession;
use crate::status::{Status, WAITING};

/// An open instance.
pub struct FractalTreeInstance {
    env: Arc<Environment>,
    dir: PathBuf,
    options: Options,
    locks: Arc<[Lock]>,
    /// Whether this instance created the data. The library cannot count the pending messages in older data.
    is_new: bool,
}

impl FractalTreeInstance {
    /// Opens an environment with a tree for each key space, and creates the trees if it is new.
    pub fn open(
        library: &Arc<Library>,
        dir: &Path,
        options: Options,
        spaces: &[KeySpace],
        is_new: bool,
    ) -> Result<Self> {
        let names: Vec<&str> = spaces.iter().map(|space| space.name).collect();
        let env = Environment::open(library, dir, &options.environment, &options.trees, &names, is_new)?;
        let lock = |space: &KeySpace| if space.derived { Lock::Needless } else { Lock::Row };
        let (env, locks) = (Arc::new(env), spaces.iter().map(lock).collect());
        Ok(Self { env, dir: dir.to_owned(), options, locks, is_new })
    }

    fn status(&self) -> Status {
        Status::of(&self.env.status())
    }
}

/// Writes the log files to the device. The library syncs a full file in the commit that fills it, where `no-sync` skips
/// syncs, and a checkpoint removes the file. Its bytes would reach no device and no meter.
fn sync_logs(dir: &Path) -> std::io::Result<()> {
    for entry in read_dir(dir)? {
        let file = entry?.path();
        if is_log(&file) {
            File::open(file)?.sync_data()?;
        }
    }
    Ok(())
}

fn is_log(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().contains(".tokulog"))
}

impl Instance for FractalTreeInstance {
    fn session(&self) -> Result<Session> {
        let transactions = Transactions::open(&self.env)?;
        Ok(Session::Kv(Box::new(FractalTreeSession::new(transactions, &self.locks, self.options.upserts))))
    }

    /// Leaves the same state as a drain: no node is dirty, but messages remain in buffers. Later runs flush the
    /// messages of the load and pay for that, just as runs after this one pay for its messages. The two amounts differ,
    /// so a run need not end in the state where it started. With `hot_optimize` messages are flushed here instead.
    fn settle(&self) -> Result<()> {
        self.drain()
    }

    /// A checkpoint writes every dirty node but leaves the messages in their buffers. This tree flushes messages to the
    /// leaves only when it needs space. With `hot_optimize` they are flushed here instead.
    fn drain(&self) -> Result<()> {
        if self.options.optimizes {
            self.env.optimize()?;
        }
        sync_logs(&self.dir).map_err(|error| EngineError::failed("fsync of the log files", error.to_string()))?;
        self.env.checkpoint()
    }

    fn debt(&self) -> Vec<Gauge> {
        self.status().debt(self.is_new)
    }

    /// A checkpoint writes nodes but leaves the messages in them.
    fn unpaid(&self) -> Option<String> {
        if self.options.optimizes { None } else { self.status().unpaid(self.is_new) }
    }

    fn counters(&self) -> Vec<Gauge> {
        self.status().counters()
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let in_force = self.env.in_force().into_iter().map(|(name, value)| match name {
            "compression_method" => (name.to_owned(), compression_name(value)),
            "enable_partial_eviction" => (name.to_owned(), (value != 0).to_string()),
            _ => (name.to_owned(), value.to_string()),
        });
        let Options { environment, upserts, optimizes, .. } = &self.options;
        let own = [
            ("commit", format!("{:?}", environment.commit)),
            ("direct_io", environment.direct_io.to_string()),
            ("redzone", environment.redzone_percent.to_string()),
            ("upserts", upserts.to_string()),
            ("hot_optimize", optimizes.to_string()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        // This is not a setting, but only settings can hold text in the record: the reason why the gauge is absent.
        let absent = self.status().waiting(self.is_new).err();
        let absent = absent.map(|reason| (WAITING.to_owned(), format!("absent: {reason}")));
        in_force.chain(own).chain(absent).collect()
    }

    fn is_log(&self, file: &Path) -> bool {
        is_log(file)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.close()
    }
}
