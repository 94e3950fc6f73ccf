//! A server that a trial uses.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{Gauge, Instance, MostClients, ProcessLocation, Session};
use rumba_engine_api::error::Result;
use rumba_protocol_postgresql::{PgCounts, PgSession, SessionOptions, Target};
use rumba_server_kit::dsn::UNFLUSHED;
use rumba_server_kit::host;

use crate::control::Control;
use crate::launch::Running;
use crate::options::Options;
use crate::plan::Plan;
use crate::processes::Processes;
use crate::waits::Waits;
use crate::wal::Wal;
use crate::{counters, existing, marker, upkeep};

/// Timeout of a counter query.
const ANSWER: Duration = Duration::from_secs(60);

/// The schema of the trial's tables and of its marker, on an existing server.
pub struct Taken {
    pub schema: String,
    /// Whether this process has taken it, and not another one of the trial.
    pub is_own: bool,
}

/// Who runs the server.
pub type Host = host::Host<Running, Taken>;

/// A server that a trial uses.
pub struct ServerInstance {
    host: Host,
    target: Target,
    session: SessionOptions,
    counts: Arc<PgCounts>,
    release: u16,
    settings: Vec<(String, String)>,
    control: Arc<Mutex<Control>>,
    /// The condition that selects the trial's tables for upkeep.
    tables: String,
    processes: Mutex<Processes>,
    /// Samples waits of a server that rumba runs. An existing server has its owner's own monitoring.
    waits: Option<Waits>,
    /// Reads the WAL of a server that rumba runs.
    wal: Option<Mutex<Wal>>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // At worst, a panic leaves an unusable connection, and its next use returns an error.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerInstance {
    /// Assembles an instance. `target` has the address and user of the sessions, and `settings` are the effective ones.
    pub fn new(
        host: Host,
        target: Target,
        mut control: Control,
        settings: Vec<(String, String)>,
        plan: &Plan,
        options: &Options,
    ) -> Self {
        let counts = Arc::new(PgCounts::default());
        let digits = control.server_version().split(|c: char| !c.is_ascii_digit()).next();
        let release = digits.and_then(|digits| digits.parse().ok()).unwrap_or_default();
        let waits = matches!(host, Host::Own { .. }).then(|| Waits::watch(&target, &mut control));
        let (control, processes) = (Arc::new(Mutex::new(control)), Mutex::default());
        let (tables, observer) = match &host {
            Host::Own { .. } => (upkeep::OWN_TABLES.to_owned(), None),
            Host::Existing { taken: Taken { schema, .. }, .. } => {
                (marker::condition(schema), Some(marker::recorder(control.clone(), schema.clone())))
            }
        };
        let session = SessionOptions {
            table_options: plan.table_options.clone(),
            startup: plan.startup.clone(),
            setup: plan.setup.clone(),
            on_lost: options.on_lost,
            connect_timeout: None,
            text: options.text,
            counts: counts.clone(),
            templates: Arc::default(),
            observer,
        };
        let wal = matches!(host, Host::Own { .. }).then(Mutex::default);
        Self { host, target, session, counts, release, settings, control, tables, processes, waits, wal }
    }

    /// Runs upkeep without a timeout for answers.
    fn patiently<T>(&self, upkeep: impl FnOnce(&mut Control) -> Result<T>) -> Result<T> {
        let mut control = held(&self.control);
        control.set_timeout(None);
        let result = upkeep(&mut control).map_err(|error| control.reported(error));
        control.set_timeout(Some(ANSWER));
        self.host.explained(result)
    }

    fn counted(&self) -> [(&'static str, u64); 5] {
        let counts = &self.counts;
        [
            ("client_deadlocks", counts.deadlocks.load(Relaxed)),
            ("client_serialization_failures", counts.serialization_failures.load(Relaxed)),
            ("client_lock_timeouts", counts.lock_timeouts.load(Relaxed)),
            ("client_connections_lost", counts.link.connections_lost.load(Relaxed)),
            ("client_reconnects", counts.link.reconnects.load(Relaxed)),
        ]
    }
}

impl Instance for ServerInstance {
    fn session(&self) -> Result<Session> {
        if let Some(wal) = &self.wal {
            held(wal).worked();
        }
        let connected = PgSession::connect(&self.target, &self.session);
        self.host.sql(connected)
    }

    fn most_clients(&self) -> Option<MostClients> {
        most_clients(&mut held(&self.control))
    }

    fn settle(&self) -> Result<()> {
        self.patiently(|control| upkeep::settle(control, &self.tables, self.host.flushes()))?;
        if let Some(wal) = &self.wal {
            held(wal).settled(&mut held(&self.control), self.release);
        }
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        if let Some(wal) = &self.wal {
            held(wal).drains(&mut held(&self.control));
        }
        self.patiently(|control| upkeep::drain(control, &self.tables, self.host.flushes()))?;
        if let Some(wal) = &self.wal {
            held(wal).drained(&mut held(&self.control));
        }
        Ok(())
    }

    fn debt(&self) -> Vec<Gauge> {
        counters::debt(&mut held(&self.control)).gauges
    }

    fn unpaid(&self) -> Option<String> {
        let unflushed = (!self.host.flushes()).then(|| UNFLUSHED.to_owned());
        unflushed.or_else(|| upkeep::unpaid(&mut held(&self.control), &self.tables))
    }

    fn counters(&self) -> Vec<Gauge> {
        let mut control = held(&self.control);
        let mut gauges = counters::counters(&mut control, self.release).gauges;
        let wal = self.wal.iter().flat_map(|wal| held(wal).counters(&mut control));
        gauges.extend(wal.map(|(name, bytes)| Gauge::new(name, bytes)));
        if control.was_restarted() {
            // The counters restart after a crash, so a difference to earlier values is meaningless.
            gauges.clear();
        }
        if let Host::Own { running, .. } = &self.host {
            running.note_memory();
        }
        if let ProcessLocation::Server { pid: Some(pid), .. } = self.host.place() {
            gauges.extend(held(&self.processes).look(pid).into_iter().map(|(name, value)| Gauge::new(name, value)));
        }
        gauges.extend(self.counted().map(|(name, value)| Gauge::new(name, value as f64)));
        let waits = self.waits.iter().flat_map(Waits::counted);
        gauges.extend(waits.map(|(name, us)| Gauge::new(name, us)));
        gauges
    }

    fn version(&self) -> Option<String> {
        Some(held(&self.control).server_version().to_owned())
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
        existing::end_sessions(&mut held(&self.control), names)
    }

    fn kill(&self) -> Result<()> {
        self.host.kill()
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Close these connections before the server is stopped. Only sessions of an existing server share the control
        // session.
        drop(self.waits);
        match self.host {
            Host::Own { running, .. } => {
                drop(self.control);
                running.server.stop()
            }
            Host::Existing { taken: Taken { is_own: false, .. }, .. } => Ok(()),
            Host::Existing { taken: Taken { schema, .. }, .. } => {
                let mut control = held(&self.control);
                control.set_timeout(None);
                existing::give_back(&mut control, &schema)
            }
        }
    }
}

/// Connections that a server reserves for superusers by default.
const OF_SUPERUSERS: u32 = 3;
/// rumba's own sessions on a server that it runs: the control session, and the one that samples waits.
const OWN_SESSIONS: u32 = 2;

/// The client limit of a managed server without rumba's own sessions, as far as it is known before the start. It is no
/// more than [`most_clients`] reports after the start.
pub fn most_clients_planned(plan: &Plan) -> Option<MostClients> {
    let number = |name: &str| plan.value(name)?.parse::<u32>().ok();
    let most = number("max_connections")?;
    let of_superusers = number("superuser_reserved_connections").unwrap_or(OF_SUPERUSERS);
    Some(MostClients {
        clients: most.saturating_sub(of_superusers).saturating_sub(OWN_SESSIONS),
        why: format!(
            "its max_connections is {most}, of which {of_superusers} are for superusers alone, and rumba's own \
             sessions take {OWN_SESSIONS}"
        ),
        remedy: "raise the engine's setting max_connections".to_owned(),
    })
}

/// How many more clients a running server accepts. This session is among the connected. `None` if the server does not
/// report it.
pub fn most_clients(control: &mut Control) -> Option<MostClients> {
    const SQL: &str = "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int, \
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), \
        current_setting('max_connections')";
    let row = control.fetch(SQL).ok()?.rows.into_iter().next()?;
    let number = |column: usize| row.get(column)?.as_deref()?.parse::<u32>().ok();
    let (room, connected, most) = (number(0)?, number(1)?, number(2)?);
    Some(MostClients {
        clients: room.saturating_sub(connected),
        why: format!(
            "the server's max_connections is {most}, of which some are for superusers alone, and {connected} are taken, \
             by rumba's own sessions among others"
        ),
        remedy: "raise the setting max_connections".to_owned(),
    })
}

/// Whether a file belongs to the write-ahead log.
fn is_log(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "pg_wal")
}
