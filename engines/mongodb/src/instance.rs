//! A server that a trial uses.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{Gauge, Instance, ProcessLocation, Session};
use rumba_engine_api::error::Result;
use rumba_protocol_mongodb::{MongoError, MongoSession, SessionOptions, Target};
use rumba_server_kit::dsn::UNFLUSHED;
use rumba_server_kit::host::{self, Running};
use rumba_server_kit::watch::Watched;

use crate::brand::Brand;
use crate::control::{Control, failed};
use crate::counters;
use crate::existing::{self, Held};
use crate::launch::ANSWER;

/// Twice the time after which a server journals its writes.
const JOURNALED: Duration = Duration::from_millis(200);

/// Who runs the server.
pub type Host = host::Host<Running, Option<Held>>;

/// A server that a trial uses.
pub struct ServerInstance {
    /// The server's software.
    pub brand: Brand,
    /// Who runs the server.
    pub host: Host,
    /// The address and user of the sessions.
    pub target: Target,
    /// The sessions' options.
    pub session: SessionOptions,
    /// The effective settings.
    pub settings: Vec<(String, String)>,
    /// The control session.
    pub control: Mutex<Control>,
}

impl ServerInstance {
    fn control(&self) -> MutexGuard<'_, Control> {
        // At worst, a panic leaves an unusable connection, and its next use returns an error.
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes all dirty data without a timeout, with a checkpoint if the storage engine has one.
    fn write_all(&self, call: &'static str) -> Result<()> {
        if !self.host.flushes() {
            return Ok(());
        }
        let mut control = self.control();
        control.set_timeout(None);
        let written = checkpoint(&mut control);
        control.set_timeout(Some(ANSWER));
        self.host.explained(written.map_err(failed(call)))
    }

    fn counted(&self) -> [(&'static str, u64); 6] {
        let counts = &self.session.counts;
        [
            ("client_write_conflicts", counts.write_conflicts.load(Relaxed)),
            ("client_lock_timeouts", counts.lock_timeouts.load(Relaxed)),
            ("client_transient_errors", counts.transient_errors.load(Relaxed)),
            ("client_commits_repeated", counts.commits_repeated.load(Relaxed)),
            ("client_connections_lost", counts.link.connections_lost.load(Relaxed)),
            ("client_reconnects", counts.link.reconnects.load(Relaxed)),
        ]
    }
}

impl Instance for ServerInstance {
    fn session(&self) -> Result<Session> {
        let session = self.host.explained(MongoSession::connect(&self.target, &self.session))?;
        Ok(Session::Document(match self.host.running() {
            Some(running) => Box::new(Watched { session, watch: running.watch.clone() }),
            None => Box::new(session),
        }))
    }

    fn settle(&self) -> Result<()> {
        self.write_all("settle: fsync")
    }

    fn drain(&self) -> Result<()> {
        self.write_all("drain: fsync")
    }

    fn unpaid(&self) -> Option<String> {
        (!self.host.flushes()).then(|| UNFLUSHED.to_owned())
    }

    fn debt(&self) -> Vec<Gauge> {
        counters::debt(&mut self.control()).gauges
    }

    fn counters(&self) -> Vec<Gauge> {
        let mut control = self.control();
        let mut gauges = counters::counters(&mut control).gauges;
        if control.was_restarted() {
            // The counters restart with the server, so a difference to earlier values is meaningless.
            gauges.clear();
        }
        gauges.extend(self.counted().map(|(name, value)| Gauge::new(name, value as f64)));
        gauges
    }

    /// SecantusDB reports the version of MongoDB that it emulates.
    fn version(&self) -> Option<String> {
        let version = self.control().version()?;
        Some(match self.brand {
            Brand::MongoDb => version,
            Brand::SecantusDb => format!("SecantusDB (reports version {version})"),
        })
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        self.settings.clone()
    }

    fn is_log(&self, file: &Path) -> bool {
        is_log(file)
    }

    fn place(&self) -> ProcessLocation {
        self.host.place()
    }

    fn access(&self) -> Option<Access> {
        self.host.access()
    }

    fn end_sessions_of(&self, names: &[String]) -> Result<()> {
        existing::end_sessions(&mut self.control(), names)
    }

    fn kill(&self) -> Result<()> {
        self.host.kill()
    }

    fn close(self: Box<Self>) -> Result<()> {
        let mut control = self.control.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.host {
            Host::Own { running, .. } => {
                drop(control);
                running.stop()
            }
            Host::Existing { taken: None, .. } => Ok(()),
            Host::Existing { taken: Some(_held), .. } => {
                control.set_timeout(None);
                existing::give_back(&mut control, &self.session.database)
            }
        }
    }
}

/// Writes a checkpoint of everything, and waits until the cache has no fewer dirty bytes. A replica set's checkpoint leaves
/// out the writes that are not in the journal when it begins. Eviction continues for a moment after it.
fn checkpoint(control: &mut Control) -> Result<(), MongoError> {
    sleep(JOURNALED);
    control.reported("fsync")?;
    let mut least = f64::INFINITY;
    while let Some(left) = counters::debt(control).get("dirty_bytes").filter(|left| *left < least) {
        least = left;
        sleep(JOURNALED);
    }
    Ok(())
}

/// Whether a file is a WiredTiger log, in `journal` or next to the data. Directories further up have arbitrary names.
fn is_log(file: &Path) -> bool {
    let is_journal = file.parent().and_then(Path::file_name).is_some_and(|above| above == "journal");
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_data = file.extension().is_some_and(|kind| kind == "wt" || kind == "sst");
    name.starts_with("WiredTigerLog") || (is_journal && !is_data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_distinguished_from_data() {
        for log in ["journal/WiredTigerLog.0000000001", "WiredTigerLog.0000000001", "journal/j._0"] {
            assert!(is_log(Path::new(log)), "{log}");
        }
        for data in [
            "collection-0-123.wt",
            "WiredTiger.wt",
            "index-1-123.wt",
            "000012.sst",
            "/journal/data/a.wt",
            "/journal/collection-0-1.wt",
        ] {
            assert!(!is_log(Path::new(data)), "{data}");
        }
    }
}
