//! Connections that end before their session.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rumba_engine_api::sql::SqlSession;
use rumba_protocol_postgresql::{OnLost, PgCounts, SessionOptions};
use rumba_testkit::postgresql::PostgreSql;
use rumba_testkit::sql::ints;
use rumba_testkit::sql_contract::{killed_connections_cost_one_operation, sessions_survive_a_restart};

use crate::support::{admin, session, shared};

fn options(on_lost: OnLost) -> SessionOptions {
    SessionOptions { on_lost, setup: vec!["SET rumba.kept = '17'".into()], ..SessionOptions::default() }
}

fn counted(counts: &Arc<PgCounts>) -> (u64, u64) {
    (counts.link.connections_lost.load(Relaxed), counts.link.reconnects.load(Relaxed))
}

fn kill_connection(server: &PostgreSql, session: &mut dyn SqlSession) {
    let id = ints(session, "SELECT pg_backend_pid()").unwrap()[0];
    // Waits for the end, up to 5 s.
    let killed = admin(server).query(&format!("SELECT pg_terminate_backend({id}, 5000)")).unwrap();
    assert_eq!(killed.rows[0][0].as_deref(), Some("t"));
}

#[test]
#[needs(PostgreSql)]
fn session_survives_a_server_restart_and_prepares_again() {
    let server = PostgreSql::start(&[], &[]);
    admin(&server).query("CREATE TABLE kept (id int PRIMARY KEY)").unwrap();
    let options = options(OnLost::Reconnect);
    let kept = "SELECT current_setting('rumba.kept') || $1::bigint";
    let (kill, restart) = (|| server.kill(), || server.start_again());
    sessions_survive_a_restart(&mut session(&server, &options), kept, kill, restart);
    assert_eq!(counted(&options.counts).1, 1);
}

#[test]
#[needs(PostgreSql)]
fn a_connection_that_is_killed_costs_one_operation() {
    let server = shared();
    for text in [false, true] {
        let options = SessionOptions { text, ..options(OnLost::Reconnect) };
        let kill = |session: &mut dyn SqlSession| kill_connection(&server, session);
        killed_connections_cost_one_operation(&mut session(&server, &options), kill, || counted(&options.counts));
    }
}

#[test]
#[needs(PostgreSql)]
fn server_message_before_disconnect_is_reported() {
    let server = shared();
    let mut first = admin(&server);
    let id = first.query("SELECT pg_backend_pid()").unwrap().rows[0][0].clone().unwrap();
    admin(&server).query(&format!("SELECT pg_terminate_backend({id}, 5000)")).unwrap();
    let error = first.query("SELECT 1").unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("57P01"), "{error}");
    let options = options(OnLost::Fail);
    let mut session = session(&server, &options);
    kill_connection(&server, &mut session);
    let error = session.run("SELECT 1").unwrap_err().to_string();
    assert!(error.starts_with("connection: ") && error.contains("57P01"), "{error}");
}
