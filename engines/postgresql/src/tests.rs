//! Shared test helpers, and trials with a real server.

mod existing;

use std::path::Path;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::{Engine, EngineConfig, Instance, ProcessLocation, Schema, Session};
use rumba_engine_api::setting::Value;
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::block_on;
use rustix::process::{Pid, Signal, kill_process};

use crate::PostgreSql;
use crate::instance::most_clients_planned;
use crate::plan::{Line, Plan};

/// An engine configuration with defaults only.
pub fn config() -> EngineConfig {
    EngineConfig { cache: 32 << 20, server: Some("postgresql@15".into()), ..EngineConfig::new("postgresql") }
}

fn set(config: &mut EngineConfig, name: &str, value: &str) {
    config.settings.0.insert(name.into(), Value::Text(value.into()));
}

fn sql(instance: &dyn Instance) -> Box<dyn SqlSession> {
    match instance.session() {
        Ok(Session::Sql(session)) => session,
        Ok(_) => panic!("an SQL session"),
        Err(error) => panic!("{error}"),
    }
}

fn count(session: &mut dyn SqlSession, from: &str) -> i64 {
    let statement = session.prepare(&format!("SELECT count(*) FROM {from}")).expect("a statement");
    let mut found = -1;
    block_on(session.execute(statement, &[], &mut |row| found = row.int(0))).expect("an answer");
    found
}

fn figure(figures: &[rumba_engine_api::engine::Gauge], name: &str) -> f64 {
    figures.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no {name}")).value
}

/// A directory that only its owner may enter, like a trial's. If root runs the tests, another user runs the server.
fn private() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let own = std::fs::Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(own).tempdir().expect("a directory")
}

#[test]
#[needs(PostgreSql)]
fn server_completes_its_lifecycle_and_reopens() {
    let dir = private();
    let mut config = config();
    config.settings.0.insert("fillfactor".into(), Value::Int(90));
    // Sessions over TCP need the password that only rumba has.
    config.settings.0.insert("tcp".into(), Value::Bool(true));
    set(&mut config, "work_mem", "8MB");
    PostgreSql.check(&config).expect("a configuration that can run");
    let instance = PostgreSql.open(dir.path(), &config, Schema::BySession).expect("a server");
    let settings = instance.effective_settings();
    let setting = |name: &str| settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!(setting("shared_buffers"), Some("32MB"));
    assert_eq!(setting("work_mem"), Some("8MB"));
    assert_eq!((setting("fsync"), setting("synchronous_commit")), (Some("off"), Some("on")));
    assert_eq!(setting("table_options"), Some("WITH (fillfactor = 90)"));
    let mut session = sql(&*instance);
    let options = session.table_options().to_owned();
    session.run(&format!("CREATE TABLE t (id bigint PRIMARY KEY, value text) {options}")).expect("a table");
    session.run("INSERT INTO t SELECT i, 'v' FROM generate_series(1, 5000) AS i").expect("rows");
    session.run("UPDATE t SET value = 'w' WHERE id <= 1000").expect("an update");
    let before = instance.counters();
    assert!(figure(&before, "backends_cpu_s") >= 0.0);
    instance.settle().expect("settled");
    let (debt, counters) = (instance.debt(), instance.counters());
    assert_eq!(figure(&debt, "dead_tuples"), 0.0);
    assert!(figure(&debt, "wal_since_checkpoint_bytes") < 1e6);
    assert!(
        figure(&counters, "written_pages_checkpointer_bytes") > figure(&before, "written_pages_checkpointer_bytes")
    );
    assert!(figure(&counters, "written_wal_bytes") > 0.0 && figure(&counters, "wal_fpi") >= 0.0);
    instance.drain().expect("drained");
    // Three sessions are connected: this one, the control session, and the one that samples waits.
    assert_eq!(instance.most_clients().expect("a bound").clients, 300 - 3 - 3);
    // Without this session the result equals the limit planned before the start. The planned limit was four clients too
    // high, which failed trials.
    let planned = PostgreSql.most_clients(&config).expect("a plan").expect("a bound");
    assert_eq!(planned.clients, 300 - 3 - 2, "{planned:?}");
    drop(session);
    instance.close().expect("closed");
    let log = std::fs::read_to_string(dir.path().join("kept/error.log")).expect("a log");
    assert!(log.contains("database system is shut down"), "{log}");
    let configuration = std::fs::read_to_string(dir.path().join("kept/postgresql.conf")).expect("kept");
    assert!(configuration.contains("listen_addresses = '127.0.0.1'"), "{configuration}");
    assert!(!configuration.to_ascii_lowercase().contains("password"), "{configuration}");
    let instance = PostgreSql.reopen(dir.path(), &config, Schema::BySession).expect("opened again");
    assert_eq!(count(&mut *sql(&*instance), "t"), 5000);
    instance.close().expect("closed");
}

#[test]
fn client_limit_excludes_reserved_and_own_connections() {
    let clients = |settings: &[(&str, &str)]| {
        let line = |(name, value): &(&str, &str)| {
            let (name, value) = ((*name).to_owned(), (*value).to_owned());
            Line { name, value, must_hold: true }
        };
        let plan = Plan { lines: settings.iter().map(line).collect(), ..Plan::default() };
        most_clients_planned(&plan).map(|most| most.clients)
    };
    assert_eq!(clients(&[("max_connections", "300")]), Some(295));
    assert_eq!(clients(&[("max_connections", "100"), ("superuser_reserved_connections", "0")]), Some(98));
    assert_eq!(clients(&[("max_connections", "4")]), Some(0));
    assert_eq!(clients(&[]), None);
}

/// The WAL of a run is reported once, after the drain. It is not read within loops, so it is not reported there.
#[test]
#[needs(PostgreSql)]
fn run_log_is_split_by_kind_only_after_the_drain() {
    let kinds = ["full_pages", "heap", "heap2", "btree", "transaction", "others"];
    let name = |kind: &str| format!("written_wal_{kind}_bytes");
    let dir = private();
    let instance = PostgreSql.open(dir.path(), &config(), Schema::BySession).expect("a server");
    let mut session = sql(&*instance);
    session.run("CREATE TABLE t (id bigint PRIMARY KEY, value text)").expect("a table");
    session.run("INSERT INTO t SELECT i, 'v' FROM generate_series(1, 5000) AS i").expect("rows");
    drop(session);
    instance.settle().expect("settled");
    let settled = instance.counters();
    assert!(kinds.iter().all(|kind| figure(&settled, &name(kind)) == 0.0), "{settled:?}");
    let mut session = sql(&*instance);
    session.run("UPDATE t SET value = 'w' WHERE id <= 1000").expect("an update");
    // The drain's checkpoint leaves complete WAL files behind it.
    for value in ["x", "y"] {
        session.run("DO $$ BEGIN PERFORM pg_switch_wal(); END $$").expect("another file");
        session.run(&format!("UPDATE t SET value = '{value}' WHERE id <= 10")).expect("an update");
    }
    let looped = instance.counters();
    assert!(!looped.iter().any(|gauge| gauge.name == name("heap")), "{looped:?}");
    instance.drain().expect("drained");
    let drained = instance.counters();
    let parts: Vec<f64> = kinds.iter().map(|kind| figure(&drained, &name(kind))).collect();
    let (heap, full_pages) = (figure(&drained, &name("heap")), parts[0]);
    assert!(heap > 1000.0 * 30.0 && full_pages > 8192.0, "{parts:?}");
    assert_eq!(figure(&instance.counters(), &name("heap")), heap, "it is read once");
    drop(session);
    instance.close().expect("closed");
}

/// A drain vacuumed every table: with 0.8% dead rows that was 39% of the bytes including deferred writes.
#[test]
#[needs(PostgreSql)]
fn drain_vacuums_only_tables_due_for_autovacuum() {
    let dir = private();
    let mut config = config();
    // Only the test triggers a vacuum.
    set(&mut config, "autovacuum_naptime", "1h");
    set(&mut config, "autovacuum_vacuum_scale_factor", "0.1");
    let instance = PostgreSql.open(dir.path(), &config, Schema::BySession).expect("a server");
    let vacuums = |instance: &dyn Instance| figure(&instance.counters(), "vacuum_count");
    // A session's server process reports its row counts when it ends.
    let await_rows = |name: &str, rows: f64| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let counted = || figure(&[instance.debt(), instance.counters()].concat(), name);
        while counted() < rows && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let change = |text: &str, dead: f64| {
        sql(&*instance).run(text).expect("done");
        await_rows("dead_tuples", dead);
    };
    change("CREATE TABLE t (id bigint PRIMARY KEY, value text)", 0.0);
    change("CREATE TABLE off (id bigint PRIMARY KEY, value text) WITH (autovacuum_enabled = false)", 0.0);
    change("INSERT INTO t SELECT i, 'v' FROM generate_series(1, 10000) AS i", 0.0);
    change("INSERT INTO off SELECT i, 'v' FROM generate_series(1, 10000) AS i", 0.0);
    await_rows("live_tuples", 20000.0);
    instance.settle().expect("settled");
    let settled = vacuums(&*instance);
    assert_eq!(instance.unpaid(), None);
    // These updates move rows to another page, because pruning would otherwise remove the old ones. They affect 200 of
    // 10,000 rows, and a table without autovacuum.
    change("UPDATE t SET value = repeat('w', 900) WHERE id % 50 = 0", 200.0);
    change("UPDATE off SET value = repeat('w', 900) WHERE id % 2 = 0", 5200.0);
    instance.drain().expect("drained");
    assert_eq!(vacuums(&*instance), settled, "2% are below the threshold of 50 rows and 10%");
    assert_eq!(figure(&instance.debt(), "dead_tuples"), 5200.0);
    assert!(figure(&instance.debt(), "wal_since_checkpoint_bytes") < 1e6, "the checkpoint is owed");
    let unpaid = instance.unpaid().expect("dead rows");
    assert!(unpaid.contains("public.t has 200 of the 1050 that start autovacuum"), "{unpaid}");
    change("UPDATE t SET value = repeat('x', 900) WHERE id % 5 = 1", 7200.0);
    instance.drain().expect("drained");
    assert_eq!(vacuums(&*instance), settled + 1.0, "22% are above it");
    assert_eq!(figure(&instance.debt(), "dead_tuples"), 5000.0);
    instance.close().expect("closed");
}

#[test]
#[needs(PostgreSql)]
fn refused_setting_is_named_before_anything_is_created() {
    for (name, value, words) in [
        ("wal_levle", "minimal", "did you mean `wal_level`?"),
        ("wal_level", "maximal", "Available values"),
        ("work_mem", "8 bananas", "Valid units"),
    ] {
        let mut config = config();
        set(&mut config, name, value);
        let error = PostgreSql.check(&config).expect_err(name);
        assert_eq!(error.key, name);
        assert!(format!("{error:?}").contains(words), "{error:?}");
    }
}

/// An error that only a start can reveal.
#[test]
#[needs(PostgreSql)]
fn server_startup_failure_reports_the_last_log_lines() {
    let dir = private();
    let mut config = config();
    set(&mut config, "shared_preload_libraries", "no_such_library");
    let error = PostgreSql.open(dir.path(), &config, Schema::BySession).err().expect("it cannot start").to_string();
    assert!(error.contains("`shared_preload_libraries`") && error.contains("no_such_library"), "{error}");
}

#[test]
#[needs(PostgreSql)]
fn every_error_from_a_killed_server_reports_the_signal() {
    let dir = private();
    let instance = PostgreSql.open(dir.path(), &config(), Schema::BySession).expect("a server");
    let (mut first, mut second) = (sql(&*instance), sql(&*instance));
    first.run("CREATE TABLE t (id int PRIMARY KEY)").expect("a table");
    let ProcessLocation::Server { pid: Some(number), .. } = instance.place() else { panic!("a server has a process") };
    let shared = shared_with(number);
    assert!(!shared.is_empty());
    let pid = Pid::from_raw(number as i32).expect("a number");
    let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children")).expect("its processes");
    kill_process(pid, Signal::KILL).expect("killed");
    // Its processes need some time to notice. A process that has ended has no command line, even if its parent has not
    // waited for it.
    let works = |pid: &str| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    let until = Instant::now() + Duration::from_secs(30);
    while children.split_ascii_whitespace().any(works) {
        assert!(Instant::now() < until, "processes of the killed server work on: {children}");
        std::thread::sleep(Duration::from_millis(10));
    }
    for reported in [
        first.run("INSERT INTO t VALUES (1)").expect_err("it is gone"),
        second.prepare("SELECT 1").expect_err("it is gone"),
        instance.settle().expect_err("it is gone"),
    ] {
        assert!(reported.to_string().contains("the server ended with signal: 9"), "{reported}");
    }
    drop((first, second));
    assert!(instance.close().is_err(), "it did not end well");
    assert!(shared.iter().all(|path| !Path::new(path).exists()), "{shared:?} is left");
}

/// The shared-memory files of a process.
fn shared_with(pid: u32) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives");
    let files = maps.lines().filter_map(|line| Some(line.split_once("/dev/shm/")?.1));
    files.map(|name| format!("/dev/shm/{name}")).collect()
}

/// The user that runs the server for root is reported, and only an existing user can be requested.
#[test]
#[needs(PostgreSql, Root)]
fn root_runs_the_server_as_another_user() {
    use std::os::unix::fs::MetadataExt;
    let dir = private();
    let mut config = config();
    set(&mut config, "os_user", "nobody");
    let instance = PostgreSql.open(dir.path(), &config, Schema::BySession).expect("a server");
    assert!(instance.effective_settings().contains(&("os_user".to_owned(), "nobody".to_owned())));
    let owner = |path: &Path| std::fs::metadata(path).expect("there").uid();
    assert_eq!((owner(&dir.path().join("data")), owner(dir.path())), (65534, 0));
    instance.close().expect("closed");
    set(&mut config, "os_user", "root");
    assert!(PostgreSql.check(&config).expect_err("never").problem.contains("root"));
}

/// When one session locks a row for four seconds, another session's wait must be reported as about four seconds. On a
/// busy host, where a sample takes longer, samples are a second apart.
#[test]
#[needs(PostgreSql)]
fn client_waits_are_counted_by_kind() {
    let dir = private();
    let instance = PostgreSql.open(dir.path(), &config(), Schema::BySession).expect("a server");
    let mut holder = sql(&*instance);
    holder.run("CREATE TABLE t (id bigint PRIMARY KEY, value bigint)").expect("a table");
    holder.run("INSERT INTO t VALUES (1, 1)").expect("a row");
    let waited = |instance: &dyn Instance| figure(&instance.counters(), "waited_locks_us");
    assert_eq!(waited(&*instance), 0.0);
    holder.run("BEGIN").expect("a transaction");
    holder.run("UPDATE t SET value = 2 WHERE id = 1").expect("a lock");
    let mut waiter = sql(&*instance);
    let waits = std::thread::spawn(move || waiter.run("UPDATE t SET value = 3 WHERE id = 1"));
    std::thread::sleep(Duration::from_secs(4));
    holder.run("COMMIT").expect("the end of the lock");
    waits.join().expect("no panic").expect("the update that waited");
    let us = waited(&*instance);
    assert!((2.0e6..6.0e6).contains(&us), "{us}");
    assert_eq!(figure(&instance.counters(), "wait_event_Lock_transactionid_us"), us);
    drop(holder);
    instance.close().expect("closed");
}
