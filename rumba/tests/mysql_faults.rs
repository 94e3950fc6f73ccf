//! Faults of an existing server, and of a run on it. rumba is killed in the drain; the server is restarted in the
//! loops; connections are too few for the clients; a user has too few privileges.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/existing.rs"]
mod existing;

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::{CALM, TestDir, at_once, children, is_alive, kill, phase, set, survived_a_lost_server, text};
use existing::{Existing, PASSWORD};
use rumba_protocol_mysql::Admin;

const TRIAL: &str = "out/trials/001-innodb-c2-r1";

/// A run on an existing server, with loops of the given seconds.
fn command(place: &TestDir, server: &Existing, loop_s: u32, more: &[&str]) -> Command {
    command_of(place, server, "linkbench", loop_s, &[&["maxid1=2000"], more].concat())
}

fn command_of(place: &TestDir, server: &Existing, workload: &str, loop_s: u32, more: &[&str]) -> Command {
    let mut command = place.rumba(&["run", workload, "--engine", "innodb", "--out", "out", "--quiet"]);
    let (dsn, length) = (server.dsn("lab", ""), format!("loop={loop_s}s"));
    set(&mut command, ["clients=2", "load_clients=2", "warmup=0s", "loops=1", &length, &dsn].iter().chain(more));
    command.env("RUMBA_MYSQL_PASSWORD", PASSWORD).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Waits until a run's trial has reported an interval of a phase.
fn await_phase(place: &TestDir, run: &mut Child, phase: &str) {
    let reported = || std::fs::read_to_string(place.path(TRIAL).join("intervals.ndjson")).unwrap_or_default();
    while !reported().contains(&format!("\"{phase}\"")) {
        assert!(run.try_wait().unwrap().is_none(), "it ended before its {phase}: {}", place.report());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// All state that a run could leave changed: the variables, and InnoDB's counters.
fn state(server: &Existing) -> Vec<Vec<Option<String>>> {
    let mut admin: Admin = server.connect().unwrap();
    let mut state = admin.query("SHOW GLOBAL VARIABLES").unwrap().rows;
    state
        .extend(admin.query("SELECT NAME, ENABLED FROM information_schema.INNODB_METRICS ORDER BY NAME").unwrap().rows);
    state
}

/// The differences, so that a failure is easy to read.
fn changed(before: &[Vec<Option<String>>], after: &[Vec<Option<String>>]) -> Vec<Vec<Option<String>>> {
    after.iter().filter(|row| !before.contains(row)).cloned().collect()
}

/// Guards against changed settings: innodb_io_capacity, innodb_io_capacity_max, innodb_max_dirty_pages_pct and
/// innodb_purge_rseg_truncate_frequency once kept the drain's values. The next run then measured a differently
/// configured server.
#[test]
#[needs(MariaDb)]
fn run_killed_in_drain_leaves_server_settings_unchanged() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let before = state(&server);
    let mut run = command(&place, &server, 3, &[]).spawn().unwrap();
    await_phase(&place, &mut run, "loop 1");
    // An open snapshot blocks purge, so the drain stays active.
    let mut reader = server.connect().unwrap();
    reader.query("START TRANSACTION WITH CONSISTENT SNAPSHOT").unwrap();
    await_phase(&place, &mut run, "drain");
    let trial = children(run.id())[0];
    kill("-KILL", run.id());
    run.wait().unwrap();
    while is_alive(trial) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(changed(&before, &state(&server)), Vec::<Vec<_>>::new());
    drop(reader);
    // Its tables are marked as rumba's: the next run takes the schema, and restores the earlier settings.
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = server.run(&place, "innodb", "lab", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!server.fetch("SHOW DATABASES").contains(&"lab".to_owned()));
    assert_eq!(changed(&before, &state(&server)), Vec::<Vec<_>>::new());
    assert!(place.is_clean());
}

/// Guards against a failing drain: the clients continued, but the drain failed with "receiving from the server:
/// unexpected end of file".
#[test]
#[needs(MariaDb)]
fn server_restarted_in_the_loops_is_drained_and_restored() {
    let place = TestDir::new();
    let mut server = Existing::start(&[]);
    let mut run = command(&place, &server, 12, &["innodb.on_lost=reconnect", CALM]).spawn().unwrap();
    await_phase(&place, &mut run, "loop 1");
    server.restart();
    run.wait().unwrap();
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["failure"], serde_json::Value::Null, "{trial}");
    for name in ["drain", "verify"] {
        assert_eq!(phase(trial, name).unwrap()["complete"], true, "{name}: {trial}");
    }
    let drain = phase(trial, "drain").unwrap();
    let counter = |name: &str| {
        let counters = drain["counters"].as_array().unwrap();
        counters.iter().find(|gauge| gauge["name"] == name).map(|gauge| gauge["value"].as_f64().unwrap())
    };
    assert!(counter("client_reconnects").is_some_and(|count| count >= 2.0));
    assert_eq!(counter("Innodb_data_written"), None, "it is counted from another start");
    let written = trial["charged"]["redo_kb_per_op"].as_f64();
    assert_eq!(written, None, "a difference over two starts is none: {written:?}");
    assert!(!server.fetch("SHOW DATABASES").contains(&"lab".to_owned()), "the schema that was made is removed");
}

/// Transactions in progress when the connections were lost are in doubt; all others are present once, and consistent.
/// Statements may have been sent alone, or several as one text, of which the server may have executed a part.
#[test]
#[needs(MariaDb)]
fn tpcc_consistency_conditions_hold_over_a_server_restart() {
    at_once([&["statements=plain"][..], &["statements=grouped", "innodb.prepared=false"]], hold_over_a_restart);
}

/// Runs TPC-C in this way on a separate server that is restarted in the loop, and verifies the data.
fn hold_over_a_restart(way: &[&str]) {
    let place = TestDir::new();
    let mut server = Existing::start(&[]);
    let small = ["warehouses=1", "customers=60", "items=500", "innodb.on_lost=reconnect"];
    let mut run = command_of(&place, &server, "tpcc", 10, &[&small[..], way].concat()).spawn().unwrap();
    await_phase(&place, &mut run, "loop 1");
    server.restart();
    run.wait().unwrap();
    survived_a_lost_server(&place.report()["trials"][0], &way.join(" "));
}

fn words(output: &Output) -> String {
    text(output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// Guards against a late failure: the load once completed, and then a client got "Too many connections".
#[test]
#[needs(MariaDb)]
fn clients_above_server_limit_are_refused_before_the_load() {
    let place = TestDir::new();
    let server = Existing::start(&["--max-connections=20"]);
    let _other = server.connect().unwrap();
    let run = |clients: u32| {
        let (dsn, clients) = (server.dsn("lab", ""), format!("clients={clients}"));
        let mut command = place.short_run("innodb", &["--set", &dsn, "--set", &clients]);
        command.env("RUMBA_MYSQL_PASSWORD", PASSWORD).output().unwrap()
    };
    let output = run(30);
    let words = words(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("--set clients=30") && words.contains("max_connections is 20"), "{words}");
    assert!(!place.path("out").exists(), "nothing was created");
    assert!(words.contains("or set 18 or fewer"), "one is another's, and one is for rumba's own session: {words}");
    let output = run(18);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(place.report()["trials"][0]["status"], "done");
}

#[test]
#[needs(MariaDb)]
fn user_without_settle_rights_is_refused_before_creation() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    server.fetch(&format!("CREATE USER lab@localhost IDENTIFIED BY '{PASSWORD}'"));
    server.fetch("GRANT ALL ON lab.* TO lab@localhost");
    let run_with = |more: &str| {
        let mut command = place.short_run("innodb", &["--set", &server.dsn_of("lab", "lab", more)]);
        command.env("RUMBA_MYSQL_PASSWORD", PASSWORD).output().unwrap()
    };
    let output = run_with("");
    let words = words(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("the user lacks privileges that settle and drain need"), "{words}");
    assert!(words.contains("add `flush=no` to the server's address"), "{words}");
    assert!(words.contains("GRANT RELOAD, PROCESS ON *.* TO 'lab'@'localhost'"), "{words}");
    assert!(!place.path("out").exists(), "nothing was created");
    let output = run_with("&flush=no");
    assert!(output.status.success(), "{}", text(&output));
    let trial = &place.report()["trials"][0];
    assert_eq!(trial["status"], "done");
    let unpaid = trial["warnings"].as_array().unwrap().iter().find(|warning| warning["code"] == "debt-unpaid").unwrap();
    assert!(unpaid["message"].to_string().contains("`flush=no`"), "{unpaid}");
}

/// Servers that rumba starts have room for as many clients as the profile sets.
#[test]
#[needs(MariaDb)]
fn clients_above_configured_limit_are_refused_early() {
    let place = TestDir::new();
    let output = place.short_run("innodb", &["--set", "innodb.max_connections=10", "--set", "clients=2,10"]).output();
    let output = output.unwrap();
    let words = words(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("raise the engine's setting max_connections, or set 9 or fewer"), "{words}");
    assert!(!place.path("out").exists(), "nothing was created");
}

/// Guards against a crash: the process once died while starting a thread, with "failed to allocate an alternative
/// stack".
#[test]
fn clients_above_host_thread_limit_are_refused() {
    let place = TestDir::new();
    let output = place.short_run("null", &["--dry-run", "--set", "clients=65536"]).output().unwrap();
    let words = words(&output);
    assert!(output.status.code() == Some(2) && words.contains("65536 clients are more than the"), "{words}");
}
