//! The effects of concurrent transactions.

use std::sync::atomic::Ordering::Relaxed;

use crate::support::Server;
use rumba_engine_api::sql::SqlSession;
use rumba_protocol_mysql::SessionOptions;
use rumba_testkit::sql_contract::deadlocks_are_one_conflict;

/// Waits until a session of this schema waits for a lock.
fn wait_for_a_lock(server: &Server, table: &str) {
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

#[test]
#[needs(MariaDb, Openssl)]
fn deadlock_gives_one_session_a_counted_conflict() {
    let server = Server::shared();
    let setup = vec!["SET innodb_lock_wait_timeout = 60".to_owned()];
    let options = SessionOptions { setup, terse_conflicts: true, ..SessionOptions::default() };
    let [mut a, mut b] = [0; 2].map(|_| server.session(&options));
    a.run("CREATE TABLE dead (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; INSERT INTO dead VALUES (1, 0), (2, 0)")
        .unwrap();
    let counts = options.counts;
    let update = "UPDATE dead SET v = v + 1 WHERE id = ?";
    deadlocks_are_one_conflict([&mut a, &mut b], update, || wait_for_a_lock(&server, "dead"));
    assert_eq!(counts.deadlocks.load(Relaxed), 1);
    assert_eq!((counts.lock_wait_timeouts.load(Relaxed), counts.link.connections_lost.load(Relaxed)), (0, 0));
}
