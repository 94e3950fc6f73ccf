//! The effects of concurrent transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_postgresql::{PgCounts, PgSession, SessionOptions};
use rumba_testkit::postgresql::PostgreSql;
use rumba_testkit::sql::fetch;
use rumba_testkit::sql_contract::deadlocks_are_one_conflict;

use crate::support::{admin, session, shared};

/// Waits until a session waits for a lock of this table.
fn wait_for_a_lock(server: &PostgreSql, table: &str) {
    let mut admin = admin(server);
    let waits =
        format!("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{table}%'");
    for _ in 0..1000 {
        let waiting = admin.query(&waits).unwrap();
        if waiting.rows[0][0].as_deref() != Some("0") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no session waits for a lock");
}

fn pair(server: &PostgreSql, table: &str, setup: &str) -> ([PgSession; 2], Arc<PgCounts>) {
    let options = SessionOptions { setup: vec![setup.to_owned()], ..SessionOptions::default() };
    let mut first = session(server, &options);
    let made = format!("CREATE TABLE {table} (id int PRIMARY KEY, v int); INSERT INTO {table} VALUES (1, 0), (2, 0)");
    first.run(&made).unwrap();
    ([first, session(server, &options)], options.counts)
}

#[test]
#[needs(PostgreSql)]
fn deadlock_gives_one_session_a_counted_conflict() {
    let server = shared();
    let ([mut a, mut b], counts) = pair(&server, "dead", "SET lock_timeout = 0; SET deadlock_timeout = '50ms'");
    let update = "UPDATE dead SET v = v + 1 WHERE id = $1";
    deadlocks_are_one_conflict([&mut a, &mut b], update, || wait_for_a_lock(&server, "dead"));
    assert_eq!((counts.deadlocks.load(Relaxed), counts.link.connections_lost.load(Relaxed)), (1, 0));
}

#[test]
#[needs(PostgreSql)]
fn lock_timeout_and_serialization_failure_are_conflicts() {
    let server = shared();
    let ([mut a, mut b], counts) = pair(&server, "waited", "SET lock_timeout = '50ms'");
    let update = b.prepare("UPDATE waited SET v = v + 1 WHERE id = $1").unwrap();
    a.run("BEGIN; UPDATE waited SET v = 1 WHERE id = 1").unwrap();
    let error = fetch(&mut b, update, &[Param::Int(1)], 0).unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let error = b.run("UPDATE waited SET v = 2 WHERE id = 1").unwrap_err();
    assert!(error.is_conflict(), "as text too: {error}");
    assert_eq!(counts.lock_timeouts.load(Relaxed), 2);
    // The transaction whose snapshot precedes the other's commit fails.
    b.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM waited").unwrap();
    a.run("COMMIT").unwrap();
    assert!(fetch(&mut b, update, &[Param::Int(1)], 0).unwrap_err().is_conflict());
    assert_eq!(counts.serialization_failures.load(Relaxed), 1);
    b.run("ROLLBACK").unwrap();
    assert_eq!(fetch(&mut b, update, &[Param::Int(1)], 0).unwrap().0.affected, 1);
}
