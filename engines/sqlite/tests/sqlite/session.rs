//! Guarantees of the engine to its clients.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rumba_engine_api::error::ErrorCode;
use rumba_engine_api::setting::Value;
use rumba_engine_api::sql::{Dialect, Param};
use rumba_testkit::allocations;
use rumba_testkit::contract;
use rumba_testkit::sql_contract::{closed_statements_give_up_their_place, parameters_arrive_as_sent};

use crate::*;

const TABLE: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, b BLOB)";

#[test]
fn every_kind_of_parameter_comes_back_as_it_went_in() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    assert_eq!(session.dialect(), Dialect::Sqlite);
    parameters_arrive_as_sent(
        &mut *session,
        "CREATE TABLE kinds (id INTEGER PRIMARY KEY, n INTEGER, b BLOB, t TEXT)",
        "INSERT INTO kinds VALUES (?, ?, ?, ?)",
        "SELECT n, b, n IS NULL, b IS NULL, t FROM kinds WHERE id = ?",
    );
}

#[test]
fn repeatedly_prepared_statement_uses_one_slot() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    closed_statements_give_up_their_place(&mut *session, "?");
    let refused = session.prepare_bytes(b"SELECT '\xe4'").unwrap_err().to_string();
    assert!(refused.contains("not UTF-8 from its byte 8 on"), "{refused}");
}

#[test]
fn a_number_can_be_read_as_text_and_text_as_a_number() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let select = session.prepare("SELECT 1234567, '42'").unwrap();
    let mut seen = Vec::new();
    execute(&mut *session, select, &[], &mut |row| {
        seen.push((row.bytes(0).to_vec(), row.int(0), row.bytes(0).len(), row.int(1), row.bytes(1).to_vec()));
    })
    .unwrap();
    assert_eq!(seen, [(b"1234567".to_vec(), 1_234_567, 7, 42, b"42".to_vec())]);
}

#[test]
fn parameters_may_be_gone_when_the_answer_is_taken() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run(TABLE).unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (1, ?, ?)").unwrap();
    {
        let mut gone = vec![b'x'; 100_000];
        session.submit(insert, &[Param::Bytes(b"7"), Param::Bytes(&gone)]).unwrap();
        gone.fill(b'y');
    }
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    assert!(session.poll_answer(context, &mut |_| {}).is_ready());
    assert_eq!(int(&mut *session, "SELECT count(*) FROM t WHERE length(b) = 100000 AND b NOT LIKE '%y%'"), 1);
}

#[test]
fn an_answer_counts_what_its_own_statement_did() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run(TABLE).unwrap();
    let first = change(&mut *session, "INSERT INTO t (n) VALUES (1), (2), (3)", &[]).unwrap();
    assert_eq!((first.rows, first.affected, first.last_insert_id), (0, 3, 3));
    // These must not repeat the insert's counts.
    for sql in ["BEGIN IMMEDIATE", "UPDATE t SET n = 9 WHERE id > 3", "COMMIT", "CREATE TABLE u (x)"] {
        let answer = change(&mut *session, sql, &[]).unwrap();
        assert_eq!((answer.affected, answer.last_insert_id), (0, 0), "{sql}");
    }
    let updated = change(&mut *session, "UPDATE t SET n = 9 WHERE id > 1", &[]).unwrap();
    assert_eq!((updated.affected, updated.last_insert_id), (2, 0));
    let returning = session.prepare("INSERT INTO t (n) VALUES (?) RETURNING id").unwrap();
    let mut ids = Vec::new();
    let answer = execute(&mut *session, returning, &[Param::Int(5)], &mut |row| ids.push(row.int(0))).unwrap();
    assert_eq!((answer.rows, answer.affected, answer.last_insert_id, ids), (1, 1, 4, vec![4]));
    let select = session.prepare("SELECT * FROM t").unwrap();
    let answer = execute(&mut *session, select, &[], &mut |_| {}).unwrap();
    assert_eq!((answer.rows, answer.affected, answer.last_insert_id), (4, 0, 0));
}

#[test]
fn rollback_without_a_transaction_succeeds() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run("ROLLBACK;").unwrap();
    let rollback = session.prepare("rollback transaction").unwrap();
    execute(&mut *session, rollback, &[], &mut |_| {}).unwrap();
    session.run("BEGIN").unwrap();
    session.run(TABLE).unwrap();
    execute(&mut *session, rollback, &[], &mut |_| {}).unwrap();
    assert_eq!(int(&mut *session, "SELECT count(*) FROM sqlite_schema"), 0, "it does undo what there is");
}

/// Increments a counter `times` times, with retries; `begin` is the statement that begins each transaction.
fn increment(mut session: Box<Sql>, begin: &str, times: u32) {
    let statements = [begin, "SELECT n FROM t WHERE id = 1", "UPDATE t SET n = ? WHERE id = 1", "COMMIT", "ROLLBACK"];
    let [begin, select, update, commit, rollback] = statements.map(|sql| session.prepare(sql).unwrap());
    let mut done = 0;
    while done < times {
        let mut attempt = || {
            let mut count = 0;
            execute(&mut *session, begin, &[], &mut |_| {})?;
            execute(&mut *session, select, &[], &mut |row| count = row.int(0))?;
            execute(&mut *session, update, &[Param::Int(count + 1)], &mut |_| {})?;
            execute(&mut *session, commit, &[], &mut |_| {})
        };
        match attempt() {
            Ok(_) => done += 1,
            Err(error) if error.is_conflict() => {
                execute(&mut *session, rollback, &[], &mut |_| {}).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn two_clients_that_increment_one_counter_lose_no_update() {
    const EACH: u32 = 500;
    for journal_mode in ["wal", "delete"] {
        for begin in ["BEGIN IMMEDIATE", "BEGIN"] {
            // Without waits every collision is a conflict, so that retries are tested.
            let (_dir, instance) = open_with(&[("journal_mode", text(journal_mode)), ("busy_timeout", Value::Int(0))]);
            let mut setup = session(&*instance);
            setup.run(TABLE).unwrap();
            setup.run("INSERT INTO t VALUES (1, 0, NULL)").unwrap();
            std::thread::scope(|scope| {
                for session in [session(&*instance), session(&*instance)] {
                    scope.spawn(move || increment(session, begin, EACH));
                }
            });
            assert_eq!(int(&mut *setup, "SELECT n FROM t"), 2 * i64::from(EACH), "{journal_mode}, {begin}");
        }
    }
}

#[test]
fn a_wait_for_the_writer_is_counted() {
    let (_dir, instance) = open();
    let (mut holder, mut waiter) = (session(&*instance), session(&*instance));
    holder.run(TABLE).unwrap();
    holder.run("BEGIN IMMEDIATE").unwrap();
    let begin = waiter.prepare("BEGIN IMMEDIATE").unwrap();
    let wait = || {
        execute(&mut *waiter, begin, &[], &mut |_| {}).unwrap();
        waiter.run("ROLLBACK").unwrap();
    };
    contract::waits_for_the_writer_are_counted(&*instance, wait, || holder.run("ROLLBACK").unwrap());
}

#[test]
fn invalid_statement_error_shows_text_and_engine_message() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let error = session.prepare("SELECT x FROM nowhere").unwrap_err().to_string();
    assert!(error.contains("no such table: nowhere") && error.contains("SELECT x FROM nowhere"), "{error}");
    assert!(session.prepare("SELECT 1; SELECT 2").unwrap_err().to_string().contains("SELECT 2"));
    assert!(session.prepare("  -- nothing").is_err());
    session.prepare("SELECT 1 ;\n").unwrap();
}

#[test]
fn misuse_of_a_session_is_an_error_and_not_a_wrong_answer() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let select = session.prepare("SELECT ?").unwrap();
    let error = session.submit(select, &[]).unwrap_err().to_string();
    assert!(error.contains("0 parameters for a statement that has 1"), "{error}");
    session.submit(select, &[Param::Int(1)]).unwrap();
    assert!(session.submit(select, &[Param::Int(2)]).is_err(), "one at a time");
    let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
    let mut seen = 0;
    assert!(session.poll_answer(context, &mut |row| seen = row.int(0)).is_ready());
    assert_eq!(seen, 1);
    assert!(matches!(session.poll_answer(context, &mut |_| {}), std::task::Poll::Ready(Err(_))));
}

#[test]
fn session_survives_a_failed_statement_and_a_visitor_panic() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run(TABLE).unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (1, 1, NULL)").unwrap();
    execute(&mut *session, insert, &[], &mut |_| {}).unwrap();
    let error = execute(&mut *session, insert, &[], &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("UNIQUE constraint failed: t.id"), "{error}");
    assert!(!error.is_conflict(), "trying again would not help");
    assert_eq!(error.code(), ErrorCode::of_vendor(1555), "SQLITE_CONSTRAINT_PRIMARYKEY");
    let select = session.prepare("SELECT id FROM t").unwrap();
    let panicked =
        catch_unwind(AssertUnwindSafe(|| execute(&mut *session, select, &[], &mut |_| panic!("the visitor")).unwrap()));
    assert!(panicked.is_err());
    // An unfinished read would block dropping the table.
    session.run("DROP TABLE t").unwrap();
}

#[test]
fn bad_row_stops_the_load_and_rolls_back_earlier_rows() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    session.run(TABLE).unwrap();
    let rows = session.prepare_rows("t", &["id", "n", "b"]).unwrap();
    let row = |id| [Param::Int(id), Param::Int(7), Param::Bytes(b"x")];
    let values = [row(1), row(2), row(1), row(3)].concat();
    session.run("BEGIN").unwrap();
    assert!(session.submit_rows(rows, &values).is_err());
    assert_eq!(ints(&mut *session, "SELECT id FROM t"), [1, 2], "nothing was loaded after the bad row");
    session.run("ROLLBACK").unwrap();
    assert_eq!(int(&mut *session, "SELECT count(*) FROM t"), 0);
    // A number of values that is not a multiple of the columns is refused, and the session continues.
    assert!(session.submit_rows(rows, &values[..4]).is_err());
    session.run("DELETE FROM t").unwrap();
    let answer = rumba_engine_api::worker::block_on(session.load_rows(rows, &values[..6])).unwrap();
    assert_eq!((answer.affected, int(&mut *session, "SELECT count(*) FROM t")), (2, 2));
}

/// An allocation per call would count as the engine's cost.
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
