//! Connections that end before their session.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::support::Server;
use rumba_engine_api::sql::SqlSession;
use rumba_protocol_mysql::{OnLost, SessionOptions, Target, WireCounts, WireSession};
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
fn session_survives_a_server_restart_only_if_it_may_reconnect() {
    let server = Server::start(&[]);
    let fails = options(OnLost::Fail);
    let mut session = server.session(&fails);
    lost_sessions_keep_failing(&mut session, "SELECT ?", || server.kill(), || server.start_again());
    assert_eq!(counted(&fails.counts), (1, 0));
    let options = options(OnLost::Reconnect);
    let [_, _, mut encrypted] = server.sessions(&options);
    server.admin().query("CREATE TABLE test.kept (id INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
    let kept = "SELECT CONCAT(@kept, ?)";
    sessions_survive_a_restart(&mut encrypted, kept, || server.kill(), || server.start_again());
    assert_eq!(counted(&options.counts), (1, 1));
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
fn session_reports_a_server_that_is_gone() {
    let server = Server::shared();
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
