//! A server that a trial uses.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rumba_core::engine::{EngineError, Gauge, Instance, Place, Session};
use rumba_wire::{Admin, SessionOptions, Target, WireCounts, WireSession};

use crate::counters::{self, Server};
use crate::external::Taken;
use crate::launch::{Running, STOP};
use crate::options::Options;
use crate::plan::Plan;
use crate::upkeep::{self, Patience};
use crate::watch::{Watch, Watched};

/// How long a server may take to say a counter.
const ANSWER: Duration = Duration::from_secs(60);

/// Whose server it is.
pub enum Host {
    /// One that rumba runs.
    Own {
        /// The server.
        running: Running,
        /// Its data directory.
        data: PathBuf,
    },
    /// One that the user brings.
    Brought {
        /// The schema.
        taken: Taken,
        /// Its process and data directory, where they can be told.
        place: (Option<u32>, Option<PathBuf>),
    },
}

/// A server that a trial uses.
pub struct ServerInstance {
    host: Host,
    target: Target,
    schema: String,
    server: Server,
    session: SessionOptions,
    counts: Arc<WireCounts>,
    version: String,
    settings: Vec<(String, String)>,
    admin: Mutex<Admin>,
}

/// What an instance is made of.
pub struct Parts {
    /// Whose server it is.
    pub host: Host,
    /// Where sessions connect to.
    pub target: Target,
    /// The schema of the tables.
    pub schema: String,
    /// A connection for administration.
    pub admin: Admin,
    /// The settings in force.
    pub settings: Vec<(String, String)>,
    /// The version in the server's own words.
    pub version: String,
}

impl ServerInstance {
    /// An instance out of its parts.
    ///
    /// # Errors
    /// A connection that was lost.
    pub fn new(parts: Parts, plan: &Plan, options: &Options) -> Result<Self, EngineError> {
        let Parts { host, mut target, schema, mut admin, settings, version } = parts;
        target.database = Some(schema.clone());
        let server = Server::new(plan.kind.clone(), &version);
        counters::enable(&mut admin, &server)?;
        let counts = Arc::new(WireCounts::default());
        let session = SessionOptions {
            table_options: plan.table_options.clone(),
            setup: plan.setup.clone(),
            on_lost: options.on_lost,
            load: options.load,
            text: options.text,
            counts: counts.clone(),
        };
        Ok(Self { host, target, schema, server, session, counts, version, settings, admin: Mutex::new(admin) })
    }

    fn admin(&self) -> MutexGuard<'_, Admin> {
        // A panic in between leaves at worst a connection that is of no more use, which says so itself.
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs upkeep with answers that may take as long as they take.
    fn patiently<T>(&self, upkeep: impl FnOnce(&mut Admin) -> Result<T, EngineError>) -> Result<T, EngineError> {
        let mut admin = self.admin();
        admin.set_timeout(None);
        let result = upkeep(&mut admin);
        admin.set_timeout(Some(ANSWER));
        match self.watch() {
            Some(watch) => watch.explained(result),
            None => result,
        }
    }

    /// The server, if rumba runs it.
    fn watch(&self) -> Option<&Arc<Watch>> {
        match &self.host {
            Host::Own { running, .. } => Some(&running.watch),
            Host::Brought { .. } => None,
        }
    }

    fn counted(&self) -> [(&'static str, u64); 4] {
        use std::sync::atomic::Ordering::Relaxed;
        let counts = &self.counts;
        [
            ("client_deadlocks", counts.deadlocks.load(Relaxed)),
            ("client_lock_wait_timeouts", counts.lock_wait_timeouts.load(Relaxed)),
            ("client_connections_lost", counts.connections_lost.load(Relaxed)),
            ("client_reconnects", counts.reconnects.load(Relaxed)),
        ]
    }
}

impl Instance for ServerInstance {
    fn session(&self) -> Result<Session, EngineError> {
        let connected = WireSession::connect(&self.target, &self.session);
        Ok(Session::Sql(match self.watch() {
            Some(watch) => Box::new(Watched { session: watch.explained(connected)?, watch: watch.clone() }),
            None => Box::new(connected?),
        }))
    }

    fn settle(&self) -> Result<(), EngineError> {
        self.patiently(|admin| upkeep::settle(admin, &self.server, &self.schema, &Patience::default()))
    }

    fn drain(&self) -> Result<(), EngineError> {
        self.patiently(|admin| upkeep::drain(admin, &self.server, &Patience::default()))
    }

    fn debt(&self) -> Vec<Gauge> {
        counters::debt(&mut *self.admin(), &self.server).gauges
    }

    fn counters(&self) -> Vec<Gauge> {
        let mut gauges = counters::counters(&mut *self.admin(), &self.server).gauges;
        gauges.extend(self.counted().map(|(name, value)| Gauge::new(name, value as f64)));
        gauges
    }

    fn version(&self) -> Option<String> {
        Some(self.version.clone())
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn is_log(&self, file: &Path) -> bool {
        is_log(file)
    }

    fn place(&self) -> Place {
        match &self.host {
            Host::Own { running, data } => {
                Place::Server { pid: Some(running.watch.pid()), data_dir: Some(data.clone()) }
            }
            Host::Brought { place: (pid, data_dir), .. } => Place::Server { pid: *pid, data_dir: data_dir.clone() },
        }
    }

    fn close(self: Box<Self>) -> Result<(), EngineError> {
        let mut admin = self.admin.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.host {
            Host::Own { running, .. } => {
                drop(admin);
                running.watch.stop(STOP)
            }
            Host::Brought { taken, .. } => {
                admin.set_timeout(None);
                taken.give_back(&mut admin)
            }
        }
    }
}

/// Whether a file is a log: InnoDB's redo, the binary log, RocksDB's write-ahead
/// log, Aria's and TokuDB's logs. Undo is not: it is in tablespaces, and what
/// doublewrite has is a copy of pages.
pub fn is_log(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let within = |directory: &str| file.components().any(|part| part.as_os_str() == directory);
    name.starts_with("ib_logfile")
        || within("#innodb_redo")
        || name.starts_with("binlog.")
        || name.starts_with("aria_log")
        || (within("#rocksdb") || within(".rocksdb")) && name.ends_with(".log")
        || name.ends_with(".tokulog29")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_told_from_data() {
        for log in ["ib_logfile0", "data/#innodb_redo/#ib_redo7", "binlog.000001", "#rocksdb/000012.log"] {
            assert!(is_log(Path::new(log)), "{log}");
        }
        for data in ["ibdata1", "undo_001", "#rocksdb/000012.sst", "rumba/x.ibd", "#ib_16384_0.dblwr"] {
            assert!(!is_log(Path::new(data)), "{data}");
        }
    }
}
