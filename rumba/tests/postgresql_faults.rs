//! Faults of an existing PostgreSQL, and of a run on it: it crashes and returns during the loops.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{TestDir, at_once, set, survived_a_lost_server};
use rumba_protocol_postgresql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

const DATABASE: &str = "CREATE DATABASE lab TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'";

/// A run of TPC-C on a separate database of that server, with a loop of this many seconds.
fn command(place: &TestDir, server: &PostgreSql, loop_s: u32, more: &[&str]) -> Command {
    let target = Target {
        address: Address::Socket(server.socket()),
        user: SUPERUSER.into(),
        password: Secret::new(String::new()),
        database: Some("postgres".into()),
        tls: Tls::Off,
    };
    Admin::connect(&target, Duration::from_secs(30)).unwrap().query(DATABASE).unwrap();
    let dsn = format!("server=postgresql://{SUPERUSER}@127.0.0.1:{}/lab", server.port());
    let length = format!("loop={loop_s}s");
    let mut command = place.rumba(&["run", "tpcc", "--engine", "postgresql", "--out", "out", "--quiet"]);
    let small = ["warehouses=1", "customers=60", "items=500", "clients=2", "load_clients=2", "warmup=0s", "loops=1"];
    set(&mut command, small.iter().chain(&[&*length, &*dsn]).chain(more));
    command.stdout(Stdio::null());
    command
}

/// Kills the server in the middle of the first loop, and starts it again.
fn crash_in_the_loop(place: &TestDir, server: &PostgreSql, run: &mut Child) {
    let intervals = place.path("out/trials/001-postgresql-c2-r1/intervals.ndjson");
    let reported = || std::fs::read_to_string(&intervals).unwrap_or_default().contains("\"loop 1\"");
    while !reported() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before its loop: {}", place.report());
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    server.start_again();
}

/// Transactions in progress when the connections were lost are in doubt; all others are present once, and consistent.
/// Statements may have been sent alone, or several before one Sync, of which the server may have executed a part.
#[test]
#[needs(PostgreSql)]
fn tpcc_consistency_conditions_hold_over_a_server_crash() {
    at_once(["plain", "grouped"], hold_over_a_crash);
}

/// Runs TPC-C with these statements on a separate server that crashes in the loop, and verifies the data.
fn hold_over_a_crash(statements: &str) {
    let place = TestDir::new();
    let server = PostgreSql::start(&[], &["host all all 127.0.0.1/32 trust"]);
    let statements_of = format!("statements={statements}");
    let mut run = command(&place, &server, 15, &["postgresql.on_lost=reconnect", &statements_of]).spawn().unwrap();
    crash_in_the_loop(&place, &server, &mut run);
    run.wait().unwrap();
    survived_a_lost_server(&place.report()["trials"][0], statements);
}
