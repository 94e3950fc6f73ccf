//! CPU time per statement on one thread, by the thread's own clock:
//! `cargo run --release -p rumba-engine-sqlite --example sqlite_cost`
//!
//! It prints what it measures and decides nothing.
#![allow(clippy::unwrap_used)]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rumba_core::engine::{Engine, EngineConfig, Schema, Session};
use rumba_core::setting::Value;
use rumba_core::sql::{Param, SqlSession, Statement, Visit};
use rumba_engine_sqlite::Sqlite;
use rustix::time::{ClockId, clock_gettime};

const ROWS: i64 = 1_000_000;
const CALLS: i64 = 200_000;

type Sql = dyn SqlSession;

fn main() {
    for mmap_size in ["0", "1GiB"] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig {
            cache: 512 << 20,
            settings: [("mmap_size", Value::Text(mmap_size.to_owned()))].into(),
            ..EngineConfig::new("sqlite")
        };
        let instance = Sqlite.open(dir.path(), &config, Schema::BySession).unwrap();
        let Ok(Session::Sql(mut session)) = instance.session() else { panic!("no SQL session") };
        println!("durability no-sync, mmap_size {mmap_size}");
        measure(&mut *session);
    }
}

fn execute(session: &mut Sql, statement: Statement, params: &[Param<'_>], visit: Visit<'_>) {
    let Poll::Ready(answer) =
        pin!(session.execute(statement, params, visit)).poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("sqlite made its client wait")
    };
    answer.unwrap();
}

fn measure(session: &mut Sql) {
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)").unwrap();
    let [begin, insert, select, range, update, commit] = [
        "BEGIN IMMEDIATE",
        "INSERT INTO t VALUES (?, ?)",
        "SELECT b FROM t WHERE id = ?",
        "SELECT id, b FROM t WHERE id >= ? ORDER BY id LIMIT 10",
        "UPDATE t SET b = ? WHERE id = ?",
        "COMMIT",
    ]
    .map(|sql| session.prepare(sql).unwrap());
    report("load, per row of a batch of 1024", ROWS, || {
        for id in 0..ROWS {
            if id % 1024 == 0 {
                execute(session, begin, &[], &mut |_| {});
            }
            execute(session, insert, &[Param::Int(id), Param::Bytes(&[7; 128])], &mut |_| {});
            if id % 1024 == 1023 || id + 1 == ROWS {
                execute(session, commit, &[], &mut |_| {});
            }
        }
    });
    let mut random = 1u64;
    let mut key = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Param::Int(((random >> 32) % ROWS as u64) as i64)
    };
    let mut bytes = 0;
    execute(session, range, &[Param::Int(0)], &mut |_| {});
    report("select by key", CALLS, || {
        (0..CALLS).for_each(|_| execute(session, select, &[key()], &mut |row| bytes += row.bytes(0).len()));
    });
    execute(session, begin, &[], &mut |_| {});
    report("select by key inside a transaction", CALLS, || {
        (0..CALLS).for_each(|_| execute(session, select, &[key()], &mut |row| bytes += row.bytes(0).len()));
    });
    execute(session, commit, &[], &mut |_| {});
    report("select of 10 rows", CALLS, || {
        (0..CALLS).for_each(|_| execute(session, range, &[key()], &mut |row| bytes += row.bytes(1).len()));
    });
    report("begin, select, update, commit", CALLS / 4, || {
        for _ in 0..CALLS / 4 {
            let key = key();
            execute(session, begin, &[], &mut |_| {});
            execute(session, select, &[key], &mut |row| bytes += row.bytes(0).len());
            execute(session, update, &[Param::Bytes(&[9; 128]), key], &mut |_| {});
            execute(session, commit, &[], &mut |_| {});
        }
    });
    assert!(bytes > 0);
}

fn report(what: &str, calls: i64, work: impl FnOnce()) {
    let cpu_ns = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec * 1_000_000_000 + now.tv_nsec
    };
    let before = cpu_ns();
    work();
    println!("  {what}: {} ns of CPU", (cpu_ns() - before) / calls);
}
