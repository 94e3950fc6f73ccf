//! Connections that end before their session.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::support::Server;
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_mysql::{Admin, OnLost, SessionOptions, Target, WireCounts, WireSession};
use rumba_testkit::sql::{fetch, ints};
use rumba_testkit::sql_contract::{
    killed_connections_cost_one_operation, lost_sessions_keep_failing, sessions_survive_a_restart,
};

fn options(on_lost: OnLost) -> SessionOptions {
    SessionOptions { on_lost, setup: vec!["SET @kept = 17".into()], ..SessionOptions::default() }
}

fn counted(counts: &Arc<WireCounts>) -> (u64, u64) {
    (counts.link.connections_lost.load(Relaxed), counts.link.reconnects.load(Relaxed))
}

fn kill_connection(server: &Server, session: &mut dyn SqlSession) {
    let id = ints(session, "SELECT CONNECTION_ID()").unwrap()[0];
    server.admin().query(&format!("KILL CONNECTION {id}")).unwrap();
}

#[test]
#[needs(MariaDb, Openssl)]
fn session_without_reconnect_keeps_failing_with_the_cause() {
    let server = Server::start(&[]);
    let options = options(OnLost::Fail);
    for way in 0..3 {
        let mut session = server.sessions(&options).into_iter().nth(way).unwrap();
        lost_sessions_keep_failing(&mut session, "SELECT ?", || server.kill(), || server.start_again());
    }
    assert_eq!(counted(&options.counts), (3, 0));
}

#[test]
#[needs(MariaDb, Openssl)]
fn session_survives_a_server_restart_and_prepares_again() {
    let server = Server::start(&[]);
    let options = options(OnLost::Reconnect);
    for way in 0..3 {
        let mut session = server.sessions(&options).into_iter().nth(way).unwrap();
        server.admin().query("CREATE OR REPLACE TABLE test.kept (id INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        let kept = "SELECT CONCAT(@kept, ?)";
        sessions_survive_a_restart(&mut session, kept, || server.kill(), || server.start_again());
    }
    assert_eq!(counted(&options.counts), (3, 3));
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_connection_that_is_killed_costs_one_operation() {
    let server = Server::shared();
    for text in [false, true] {
        let options = SessionOptions { text, ..options(OnLost::Reconnect) };
        let kill = |session: &mut dyn SqlSession| kill_connection(&server, session);
        killed_connections_cost_one_operation(&mut server.session(&options), kill, || counted(&options.counts));
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_session_that_finds_no_server_any_more_says_so() {
    let server = Server::start(&[]);
    let options = options(OnLost::Reconnect);
    server.admin().query("CREATE USER brief@localhost; GRANT ALL ON *.* TO brief@localhost").unwrap();
    let target = Target { user: "brief".into(), ..server.test() };
    let mut session = WireSession::connect(&target, &options).unwrap();
    let select = session.prepare("SELECT 1").unwrap();
    server.admin().query("ALTER USER brief@localhost ACCOUNT LOCK").unwrap();
    kill_connection(&server, &mut session);
    let error = fetch(&mut session, select, &[], 1).unwrap_err().to_string();
    assert!(error.contains("reconnecting failed") && error.contains("4151"), "{error}");
    assert_eq!(counted(&options.counts), (1, 0));
}

/// A number of the server's status.
fn status(admin: &mut Admin, name: &str) -> u64 {
    let rows = admin.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).unwrap().rows;
    rows[0][1].as_deref().unwrap().parse().unwrap()
}

/// A session whose last call closed a statement ended without COM_QUIT. The server counted it as aborted, and the
/// deallocation was never sent.
#[test]
#[needs(MariaDb, Openssl)]
fn closed_sessions_are_not_counted_as_aborted() {
    let server = Server::start(&[]);
    let mut admin = server.admin();
    let [aborted, closed] = ["Aborted_clients", "Com_stmt_close"].map(|name| status(&mut admin, name));
    for text in [false, true] {
        let options = SessionOptions { text, ..SessionOptions::default() };
        for mut session in server.sessions(&options) {
            let select = session.prepare("SELECT ?").unwrap();
            fetch(&mut session, select, &[Param::Int(1)], 1).unwrap();
            session.close(select).unwrap();
        }
    }
    // One for each kind of connection, and the control session alone is left.
    let expected = [1, aborted, closed + 3, 0];
    let mut found = [0; 4];
    for _ in 0..500 {
        let names = ["Threads_connected", "Aborted_clients", "Com_stmt_close", "Prepared_stmt_count"];
        found = names.map(|name| status(&mut admin, name));
        if found == expected {
            return;
        }
        // The server notices a closed connection when it next reads from it.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{found:?}, not {expected:?}");
}
