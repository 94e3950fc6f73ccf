//! A provisioned LMDB environment and its statistics.

use std::path::Path;
use std::sync::Arc;

use lmdb_master_sys as ffi;
use rumba_engine_api::engine::{Gauge, Instance, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;

use crate::options::Options;
use crate::raw::{Env, Reader, Writer};
use crate::session::LmdbSession;

/// The flags of `mdb_env_open` with their names, for reports.
const FLAGS: [(u32, &str); 7] = [
    (ffi::MDB_NOSYNC, "nosync"),
    (ffi::MDB_NOMETASYNC, "nometasync"),
    (ffi::MDB_WRITEMAP, "writemap"),
    (ffi::MDB_MAPASYNC, "mapasync"),
    (ffi::MDB_NORDAHEAD, "nordahead"),
    (ffi::MDB_NOMEMINIT, "nomeminit"),
    (ffi::MDB_NOTLS, "notls"),
];

/// An open environment.
pub(crate) struct LmdbInstance {
    env: Arc<Env>,
}

impl LmdbInstance {
    /// Creates an environment in an empty directory, and fails if the effective settings differ from the requested
    /// ones.
    pub fn open(dir: &Path, options: &Options, spaces: &[KeySpace]) -> Result<Self> {
        let env = Env::open(dir, options, spaces)?;
        let known = FLAGS.iter().fold(0, |all, (flag, _)| all | flag);
        let in_force = env.flags()? & known;
        if in_force != options.flags {
            let message = format!("requested flags {:#x}, but {in_force:#x} are in force", options.flags);
            return Err(EngineError::failed("mdb_env_open", message));
        }
        Ok(Self { env })
    }

    fn read_counters(&self) -> Result<Vec<Gauge>> {
        let info = self.env.info()?;
        let mut reader = Reader::new(&self.env)?;
        let snapshot = reader.snapshot()?;
        let mut counters = vec![
            Gauge::new("map_size_bytes", info.me_mapsize as f64),
            Gauge::new("used_pages", info.me_last_pgno as f64 + 1.0),
            Gauge::new("free_pages", snapshot.free_pages()? as f64),
            Gauge::new("last_txnid", info.me_last_txnid as f64),
            Gauge::new("readers", f64::from(info.me_numreaders)),
            Gauge::new("waited_writer_us", self.env.waited_us() as f64),
        ];
        for space in 0..self.env.spaces() {
            let (name, stat) = snapshot.stat(space)?;
            for (figure, value) in [
                ("entries", stat.ms_entries as f64),
                ("depth", f64::from(stat.ms_depth)),
                ("branch_pages", stat.ms_branch_pages as f64),
                ("leaf_pages", stat.ms_leaf_pages as f64),
                ("overflow_pages", stat.ms_overflow_pages as f64),
            ] {
                counters.push(Gauge::new(format!("{name}.{figure}"), value));
            }
        }
        Ok(counters)
    }
}

impl Instance for LmdbInstance {
    fn session(&self) -> Result<Session> {
        let reader = Reader::new(&self.env)?;
        Ok(Session::Kv(Box::new(LmdbSession::new(reader, Writer::new(&self.env)))))
    }

    /// LMDB has no log and no compaction; only the kernel's writeback remains.
    fn settle(&self) -> Result<()> {
        self.env.sync()
    }

    fn drain(&self) -> Result<()> {
        self.env.sync()
    }

    /// Empty: below `sync` the kernel holds the dirty pages, and LMDB cannot count them. `drain` writes them all the
    /// same.
    fn debt(&self) -> Vec<Gauge> {
        Vec::new()
    }

    /// Empty if LMDB refuses the read, never zeros.
    fn counters(&self) -> Vec<Gauge> {
        self.read_counters().unwrap_or_default()
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let unknown = |error: EngineError| error.to_string();
        let mut settings = vec![
            ("cache".to_owned(), "none of its own: the operating system's page cache".to_owned()),
            ("page_size".to_owned(), self.env.page_size().map_or_else(unknown, |size| size.to_string())),
            ("max_key_size".to_owned(), self.env.max_key_size().to_string()),
        ];
        match self.env.info() {
            Ok(info) => {
                settings.push(("map_size".to_owned(), info.me_mapsize.to_string()));
                settings.push(("max_readers".to_owned(), info.me_maxreaders.to_string()));
            }
            Err(error) => settings.push(("map_size".to_owned(), unknown(error))),
        }
        match self.env.flags() {
            Ok(flags) => {
                settings.extend(FLAGS.iter().map(|(flag, name)| ((*name).to_owned(), (flags & flag != 0).to_string())))
            }
            Err(error) => settings.push(("flags".to_owned(), unknown(error))),
        }
        settings
    }

    /// There is no log; lock.mdb is the reader table.
    fn is_log(&self, _file: &Path) -> bool {
        false
    }

    fn close(self: Box<Self>) -> Result<()> {
        match Arc::try_unwrap(self.env) {
            Ok(env) => {
                drop(env);
                Ok(())
            }
            Err(env) => {
                let sessions = (Arc::strong_count(&env) - 1).div_ceil(2);
                Err(EngineError::failed(
                    "mdb_env_close",
                    format!("{sessions} sessions are still open; drop them first"),
                ))
            }
        }
    }
}
