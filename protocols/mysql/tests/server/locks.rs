//! The effects of concurrent transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::support::Server;
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_mysql::{SessionOptions, WireCounts, WireSession};
use rumba_testkit::sql::fetch;
use rumba_testkit::sql_contract::deadlocks_are_one_conflict;

/// Waits until a session of this schema waits for a lock.
pub fn wait_for_a_lock(server: &Server, table: &str) {
    let mut admin = server.admin();
    let waits = format!(
        "SELECT COUNT(*) FROM information_schema.innodb_lock_waits w JOIN information_schema.innodb_locks l \
         ON l.lock_id = w.requested_lock_id WHERE l.lock_table LIKE '%`{table}`%'"
    );
    for _ in 0..200 {
        if admin.query(&waits).unwrap().rows[0][0].as_deref() == Some("1") {
            return;
        }
        // InnoDB refreshes this view at most every 100 ms.
        std::thread::sleep(std::time::Duration::from_millis(150));
    }
    panic!("no session waits for a lock on {table}");
}

fn pair(server: &Server, table: &str, setup: &str) -> ([WireSession; 2], Arc<WireCounts>) {
    let setup = vec![setup.to_owned()];
    let options = SessionOptions { setup, terse_conflicts: true, ..SessionOptions::default() };
    let mut first = server.session(&options);
    first
        .run(&format!(
            "CREATE OR REPLACE TABLE {table} (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; \
             INSERT INTO {table} VALUES (1, 0), (2, 0)"
        ))
        .unwrap();
    ([first, server.session(&options)], options.counts)
}

#[test]
#[needs(MariaDb, Openssl)]
fn deadlock_gives_one_session_a_counted_conflict() {
    let server = Server::shared();
    let ([mut a, mut b], counts) = pair(&server, "dead", "SET innodb_lock_wait_timeout = 60");
    let update = "UPDATE dead SET v = v + 1 WHERE id = ?";
    deadlocks_are_one_conflict([&mut a, &mut b], update, || wait_for_a_lock(&server, "dead"));
    assert_eq!(counts.deadlocks.load(Relaxed), 1);
    assert_eq!((counts.lock_wait_timeouts.load(Relaxed), counts.link.connections_lost.load(Relaxed)), (0, 0));
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_lock_that_is_waited_for_too_long_is_a_conflict_and_counted() {
    let server = Server::shared();
    let ([mut a, mut b], counts) = pair(&server, "waited", "SET innodb_lock_wait_timeout = 1");
    let update = b.prepare("UPDATE waited SET v = v + 1 WHERE id = ?").unwrap();
    a.run("BEGIN; UPDATE waited SET v = 1 WHERE id = 1").unwrap();
    let error = fetch(&mut b, update, &[Param::Int(1)], 0).unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let error = b.run("UPDATE waited SET v = 2 WHERE id = 1").unwrap_err();
    assert!(error.is_conflict(), "as text too: {error}");
    assert_eq!((counts.deadlocks.load(Relaxed), counts.lock_wait_timeouts.load(Relaxed)), (0, 2));
    a.run("COMMIT").unwrap();
    assert_eq!(fetch(&mut b, update, &[Param::Int(1)], 0).unwrap().0.affected, 1);
}
