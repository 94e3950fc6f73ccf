//! A client's operations must not pay for the harness. After warmup, a read or a write through the session allocates no
//! memory on the Rust side.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rumba_engine_api::sql::Param;
use rumba_testkit::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_warmed_up_session_allocates_nothing() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)").unwrap();
    let [begin, upsert, select, range, commit] = [
        "BEGIN IMMEDIATE",
        "INSERT INTO t VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET b = excluded.b",
        "SELECT b FROM t WHERE id = ?",
        "SELECT id, b FROM t WHERE id >= ? ORDER BY id LIMIT 10",
        "COMMIT",
    ]
    .map(|sql| session.prepare(sql).unwrap());
    let mut sum = 0;
    let mut round = |rounds: i64| {
        for id in 0..rounds {
            let id = Param::Int(id % 100);
            execute(&mut *session, begin, &[], &mut |_| {}).unwrap();
            execute(&mut *session, upsert, &[id, Param::Bytes(&[7; 300])], &mut |_| {}).unwrap();
            execute(&mut *session, commit, &[], &mut |_| {}).unwrap();
            execute(&mut *session, select, &[id], &mut |row| sum += row.bytes(0).len()).unwrap();
            execute(&mut *session, range, &[id], &mut |row| sum += row.bytes(1).len()).unwrap();
        }
    };
    assert!(allocations::during(|| round(100)) > 0, "the counter counts");
    assert_eq!(allocations::during(|| round(1000)), 0);
    assert!(sum > 0);
}
