//! A server that a trial uses.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rumba_engine_api::access::Access;
use rumba_engine_api::engine::{Gauge, Instance, MostClients, ProcessLocation, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_mysql::{SessionOptions, Target, UNREACHABLE, WireCounts, WireSession};

use crate::connections;
use crate::control::Control;
use crate::counters::{self, Kind, MESSAGES, OVER_OLDER_DATA, Server};
use crate::existing::Taken;
use crate::marker;
use crate::options::Options;
use crate::plan::Plan;
use crate::upkeep::{self, Patience, existing};
use rumba_server_kit::dsn::UNFLUSHED;
use rumba_server_kit::host::{self, Data, Running};

/// Timeout of a counter query.
const ANSWER: Duration = Duration::from_secs(60);

/// Who runs the server. The schema is `None` if another process of the trial has taken it.
pub type Host = host::Host<Running, Option<Taken>>;

/// A server that a trial uses.
pub struct ServerInstance {
    host: Host,
    /// Whether the server holds only data of this trial.
    is_new: bool,
    target: Target,
    schema: String,
    server: Server,
    session: SessionOptions,
    counts: Arc<WireCounts>,
    version: String,
    settings: Vec<(String, String)>,
    control: Arc<Mutex<Control>>,
}

/// The parts of an instance.
pub struct Parts {
    /// Who runs the server.
    pub host: Host,
    /// The contents of its data directory at the start.
    pub data: Data,
    /// The address and user of the sessions.
    pub target: Target,
    /// The schema of the tables.
    pub schema: String,
    /// The control session.
    pub control: Control,
    /// The effective settings.
    pub settings: Vec<(String, String)>,
    /// The version as the server prints it.
    pub version: String,
}

fn held(control: &Mutex<Control>) -> MutexGuard<'_, Control> {
    // At worst, a panic leaves an unusable connection, and its next use returns an error.
    control.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerInstance {
    /// Assembles an instance.
    ///
    /// # Errors
    /// A lost connection.
    pub fn new(parts: Parts, plan: &Plan, options: &Options) -> Result<Self> {
        let Parts { host, data, mut target, schema, mut control, settings, version } = parts;
        target.database = Some(schema.clone());
        let server = Server::new(plan.kind.clone(), &version);
        if matches!(host, Host::Own { .. }) {
            // The counters stay enabled, which the owner of an existing server may not want.
            counters::enable(&mut control, &server)?;
        }
        let counts = Arc::new(WireCounts::default());
        let control = Arc::new(Mutex::new(control));
        let observer = matches!(host, Host::Existing { .. }).then(|| marker::recorder(control.clone(), schema.clone()));
        let session = SessionOptions {
            table_options: plan.table_options.clone(),
            setup: plan.setup.clone(),
            on_lost: options.on_lost,
            connect_timeout: None,
            load: options.load,
            text: options.text,
            terse_conflicts: true,
            counts: counts.clone(),
            templates: Arc::default(),
            observer,
        };
        let is_new = data == Data::New;
        Ok(Self { host, is_new, target, schema, server, session, counts, version, settings, control })
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        held(&self.control)
    }

    /// Runs upkeep without a timeout for answers.
    fn patiently<T>(&self, upkeep: impl FnOnce(&mut Control) -> Result<T>) -> Result<T> {
        let mut control = self.control();
        control.set_timeout(None);
        let result = upkeep(&mut control).map_err(|error| control.reported(error));
        control.set_timeout(Some(ANSWER));
        self.host.explained(result)
    }

    fn counted(&self) -> [(&'static str, u64); 4] {
        use std::sync::atomic::Ordering::Relaxed;
        let counts = &self.counts;
        [
            ("client_deadlocks", counts.deadlocks.load(Relaxed)),
            ("client_lock_wait_timeouts", counts.lock_wait_timeouts.load(Relaxed)),
            ("client_connections_lost", counts.link.connections_lost.load(Relaxed)),
            ("client_reconnects", counts.link.reconnects.load(Relaxed)),
        ]
    }
}

impl Instance for ServerInstance {
    fn session(&self) -> Result<Session> {
        // The watch explains lost connections by the end of the server.
        let connected = WireSession::connect(&self.target, &self.session).map_err(|error| match error {
            EngineError::Refused(refusal) if UNREACHABLE.contains(&refusal.code.vendor) => {
                EngineError::Lost(refusal.words)
            }
            other => other,
        });
        self.host.sql(connected)
    }

    fn most_clients(&self) -> Option<MostClients> {
        connections::of_server(&mut *self.control())
    }

    fn settle(&self) -> Result<()> {
        let (server, schema, patience) = (&self.server, &self.schema, Patience::default());
        self.patiently(|control| match &self.host {
            Host::Own { .. } => upkeep::settle(control, server, schema, &patience),
            Host::Existing { flushes, .. } => existing::settle(control, server, schema, &patience, *flushes),
        })
    }

    fn drain(&self) -> Result<()> {
        let (server, patience) = (&self.server, Patience::default());
        self.patiently(|control| match &self.host {
            Host::Own { .. } => upkeep::drain(control, server, &patience),
            Host::Existing { flushes: true, .. } => existing::drain(control, server, &self.schema, &patience),
            Host::Existing { flushes: false, .. } => Ok(()),
        })
    }

    fn unpaid(&self) -> Option<String> {
        if !self.host.flushes() {
            return Some(UNFLUSHED.to_owned());
        }
        let messages = || self.debt().into_iter().find(|gauge| gauge.name == MESSAGES).map(|gauge| gauge.value);
        (self.server.kind == Kind::TokuDb).then(|| counters::unpaid(messages())).flatten()
    }

    fn debt(&self) -> Vec<Gauge> {
        let mut gauges = counters::debt(&mut *self.control(), &self.server).gauges;
        gauges.retain(|gauge| gauge.name != MESSAGES || self.is_new);
        gauges
    }

    fn counters(&self) -> Vec<Gauge> {
        let mut control = self.control();
        let mut gauges = counters::counters(&mut *control, &self.server).gauges;
        if control.was_restarted() {
            // The counters restart with the server, so a difference to earlier values is meaningless.
            gauges.clear();
        }
        gauges.extend(self.counted().map(|(name, value)| Gauge::new(name, value as f64)));
        gauges
    }

    fn version(&self) -> Option<String> {
        Some(self.version.clone())
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        let mut settings = self.settings.clone();
        if self.server.kind == Kind::TokuDb && !self.is_new {
            // This is not a setting, but only settings can hold text in the record: the reason why the gauge is absent.
            settings.push((MESSAGES.to_owned(), format!("absent: {OVER_OLDER_DATA}")));
        }
        settings
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
        crate::existing::end_sessions(&mut *self.control(), &self.schema, names)
    }

    fn kill(&self) -> Result<()> {
        self.host.kill()
    }

    fn close(self: Box<Self>) -> Result<()> {
        match self.host {
            Host::Own { running, .. } => {
                // Close the connection before the server is stopped. Only sessions of an existing server share it.
                drop(self.control);
                running.stop()
            }
            Host::Existing { taken: None, .. } => Ok(()),
            Host::Existing { taken: Some(taken), .. } => {
                let mut control = held(&self.control);
                control.set_timeout(None);
                taken.give_back(&mut *control)
            }
        }
    }
}

/// Whether a file is a log: InnoDB's redo log, the binary log, RocksDB's write-ahead log, or a log of Aria or TokuDB.
/// Undo is not a log, because it is in tablespaces, and neither is the doublewrite buffer, which holds copies of pages.
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
    use rumba_engine_api::engine::{Engine, EngineConfig, Schema};
    use rumba_engine_api::sql::SqlSession;
    use rumba_engine_api::worker::block_on;
    use rumba_protocol_mysql::Admin;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::MySqlEngine;
    use crate::counters::tests::server::{Private, run};
    use crate::testing::config;

    #[test]
    fn logs_are_distinguished_from_data() {
        for log in ["ib_logfile0", "data/#innodb_redo/#ib_redo7", "binlog.000001", "#rocksdb/000012.log"] {
            assert!(is_log(Path::new(log)), "{log}");
        }
        for data in ["ibdata1", "undo_001", "#rocksdb/000012.sst", "rumba/x.ibd", "#ib_16384_0.dblwr"] {
            assert!(!is_log(Path::new(data)), "{data}");
        }
    }

    fn sql(instance: &dyn Instance) -> Box<dyn SqlSession> {
        match instance.session() {
            Ok(Session::Sql(session)) => session,
            _ => panic!("an SQL session"),
        }
    }

    /// rumba emptied the schema of an existing server, with what others had created in it during the trial.
    #[test]
    #[needs(MariaDb)]
    fn tables_that_sessions_created_are_dropped_and_no_others() {
        let private = Private::start(&[]);
        let mut other = private.connect();
        run(&mut other, &["CREATE DATABASE lab"]);
        let (server, dir) = (Some(private.dsn("lab")), tempfile::tempdir().expect("a directory"));
        let config = EngineConfig { server, ..config("innodb") };
        let open = || MySqlEngine::INNODB.open(dir.path(), &config, Schema::BySession).expect("the schema is taken");
        let instance = open();
        let mut session = sql(&*instance);
        session.run("CREATE TABLE one (id INT); CREATE TABLE `two` (id INT)").expect("tables");
        session.submit_text("CREATE TABLE three (id INT)").expect("sent");
        block_on(session.answer(&mut |_| {})).expect("a table");
        drop(session);
        run(&mut other, &["CREATE TABLE lab.users_payroll (id INT)", "CREATE VIEW lab.seen AS SELECT 1 AS id"]);
        run(&mut other, &["CREATE PROCEDURE lab.pay() SELECT 1"]);
        run(&mut other, &["CREATE EVENT lab.monthly ON SCHEDULE EVERY 1 MONTH DO SET @paid = 1"]);
        let tables = |admin: &mut Admin| {
            let rows = admin.query("SHOW TABLES FROM lab").expect("tables").rows;
            rows.into_iter().filter_map(|row| row.into_iter().next()?).collect::<Vec<String>>()
        };
        assert_eq!(tables(&mut other), ["one", "rumba_marker", "seen", "three", "two", "users_payroll"]);
        let left = instance.close().expect_err("what is left is named").to_string();
        assert!(left.contains("rumba did not create seen, users_payroll, pay, monthly and has left them"), "{left}");
        assert_eq!(tables(&mut other), ["seen", "users_payroll"]);
        run(&mut other, &["CALL lab.pay()", "DROP EVENT lab.monthly", "DROP PROCEDURE lab.pay"]);
        run(&mut other, &["DROP VIEW lab.seen", "DROP TABLE lab.users_payroll"]);
        open().close().expect("the schema is empty again");
        assert_eq!(tables(&mut other), Vec::<String>::new());
    }

    /// A server killed during an index build or a drain was reported as "unexpected end of file". Only clients that
    /// waited for an answer reported its signal.
    #[test]
    #[needs(MariaDb)]
    fn every_error_from_a_killed_server_reports_the_signal() {
        let dir = tempfile::tempdir().expect("a directory");
        let instance = MySqlEngine::INNODB.open(dir.path(), &config("innodb"), Schema::BySession).expect("a server");
        let (mut first, mut second, mut third) = (sql(&*instance), sql(&*instance), sql(&*instance));
        first.run("CREATE TABLE t (id INT PRIMARY KEY)").expect("a table");
        let ProcessLocation::Server { pid: Some(pid), .. } = instance.place() else { panic!("a server has a process") };
        kill_process(Pid::from_raw(pid as i32).expect("a number"), Signal::KILL).expect("killed");
        let reported = [
            first.run("ALTER TABLE t ADD KEY (id)").expect_err("it is gone"),
            second.prepare("SELECT 1").expect_err("it is gone"),
            third.prepare_rows("t", &["id"]).expect_err("it is gone"),
            instance.session().err().expect("it is gone"),
            instance.settle().expect_err("it is gone"),
            instance.drain().expect_err("it is gone"),
        ];
        for error in reported {
            assert!(error.to_string().contains("the server ended with signal: 9"), "{error}");
        }
    }
}
