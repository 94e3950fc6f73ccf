//! The effects of concurrent transactions.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Waker};

use crate::support::Server;
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_protocol_mysql::{SessionOptions, WireCounts, WireSession};
use rumba_testkit::sql::{answer, fetch, ints};

struct Deaf;

impl Driver for Deaf {
    fn wait(&self, _wait: Wait) -> bool {
        true
    }

    fn forget(&self, _fd: i32) {}
}

/// Sends the submitted statements without waiting for the answer.
pub fn send(session: &mut WireSession) {
    let _driven = drive_with(std::rc::Rc::new(Deaf));
    assert!(session.poll_answer(&mut Context::from_waker(Waker::noop()), &mut |_| {}).is_pending());
}

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
    panic!("nobody waits for a lock on {table}");
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
    let (of_a, of_b) = (a.prepare(update).unwrap(), b.prepare(update).unwrap());
    a.run("BEGIN").unwrap();
    b.run("BEGIN").unwrap();
    fetch(&mut a, of_a, &[Param::Int(1)], 0).unwrap();
    fetch(&mut b, of_b, &[Param::Int(2)], 0).unwrap();
    a.submit(of_a, &[Param::Int(2)]).unwrap();
    send(&mut a);
    wait_for_a_lock(&server, "dead");
    let of_b = fetch(&mut b, of_b, &[Param::Int(1)], 0);
    // Release B's locks, because A may still wait for one.
    b.run("ROLLBACK").unwrap();
    let of_a = answer(&mut a, 0);
    let conflicts = [of_a.err(), of_b.err()].into_iter().flatten().filter(|error| error.is_conflict()).count();
    assert_eq!(conflicts, 1);
    assert_eq!(counts.deadlocks.load(Relaxed), 1);
    assert_eq!((counts.lock_wait_timeouts.load(Relaxed), counts.link.connections_lost.load(Relaxed)), (0, 0));
    a.run("ROLLBACK").unwrap();
    assert_eq!(ints(&mut a, "SELECT SUM(v) FROM dead").unwrap(), [0], "both go on");
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
