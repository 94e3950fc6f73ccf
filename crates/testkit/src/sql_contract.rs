//! The contract of an SQL session. The tests of each protocol check it with their own server and dialect.

use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Context, Waker};

use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::{Param, Row, SqlSession, Statement};
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_engine_api::worker::block_on;

use crate::sql::{answer, fetch, ints, load};

/// A value that a careless client would corrupt.
pub const AWKWARD: &[u8] = b"it's \"q\" `n` $1 \\ back\\\\slash\ttab\nline\r\x1a zero\0 percent% high\x80\xc3\xa4\xff";

/// Parameters of every kind arrive as they were sent. `create` makes a temporary table `kinds` with columns for a number,
/// bytes and UTF-8 text after the key. The statements insert a row, and select by key.
pub fn parameters_arrive_as_sent(session: &mut dyn SqlSession, create: &str, insert: &str, select: &str) {
    session.run(create).expect("a table");
    let [insert, select] = [insert, select].map(|sql| session.prepare(sql).expect("prepared"));
    let long = vec![0xa7; 20_000];
    let written = "it's \\ ä";
    let numbers = [Param::Null, Param::Int(i64::MIN), Param::Int(i64::MAX), Param::Int(0), Param::Int(-1)];
    let strings = [Param::Null, Param::Bytes(b""), Param::Bytes(AWKWARD), Param::Bytes(&long)];
    let pairs = numbers.iter().flat_map(|number| strings.iter().map(move |string| (*number, *string)));
    for (id, (number, string)) in (0..).zip(pairs) {
        let values = [Param::Int(id), number, string, Param::Bytes(written.as_bytes())];
        let (done, _) = fetch(session, insert, &values, 0).expect("a row");
        assert_eq!((done.affected, done.matched, done.rows), (1, 1, 0));
        session.submit(select, &[Param::Int(id)]).expect("submitted");
        let mut seen = 0;
        let mut visit = |row: &dyn Row| {
            assert_eq!(row.int(0), if let Param::Int(n) = number { n } else { 0 });
            assert_eq!(row.bytes(1), if let Param::Bytes(b) = string { b } else { b"" });
            assert_eq!((row.int(2) == 1, row.int(3) == 1), (number == Param::Null, string == Param::Null));
            assert_eq!(row.bytes(4), written.as_bytes());
            assert_eq!((row.int(9), row.bytes(9)), (0, &b""[..]), "no such column");
            seen += 1;
        };
        let answer = block_on(session.answer(&mut visit)).expect("an answer");
        assert_eq!((answer.rows, answer.affected, seen), (1, 0, 1));
    }
}

/// Values of these lengths, and many rows, come through. `echo` selects its parameter as the second of three columns;
/// `many` selects 500 strings, which are one byte longer each, from 20,001 bytes on.
pub fn long_values_and_many_rows_come_through(session: &mut dyn SqlSession, lengths: &[usize], echo: &str, many: &str) {
    let [echo, many] = [echo, many].map(|sql| session.prepare(sql).expect("prepared"));
    for &length in lengths {
        let value: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
        let (done, rows) = fetch(session, echo, &[Param::Bytes(&value)], 3).expect("an answer");
        assert_eq!(done.rows, 1);
        assert!(rows[0][1] == value, "{length} bytes");
    }
    let (done, rows) = fetch(session, many, &[], 1).expect("an answer");
    assert_eq!(done.rows, 500);
    assert!(rows.iter().zip(1..).all(|(row, number)| row[0].len() == 20_000 + number));
}

/// Without a transaction, a statement in a pipeline that fails does not affect the others. `mark` is a parameter.
pub fn statements_in_a_pipeline_fail_alone(session: &mut dyn SqlSession, mark: &str, duplicate: ErrorCode) {
    session.run("CREATE TEMPORARY TABLE line (id bigint PRIMARY KEY)").expect("a table");
    let insert = session.prepare(&format!("INSERT INTO line VALUES ({mark})")).expect("prepared");
    let select = session.prepare(&format!("SELECT id FROM line WHERE id <= {mark} ORDER BY id")).expect("prepared");
    assert_eq!(session.pipeline(), 8);
    for round in 0..3 {
        for id in [1, 1, 2, 3] {
            session.submit(insert, &[Param::Int(id)]).expect("submitted");
            session.submit(select, &[Param::Int(9)]).expect("submitted");
        }
        let mut next = || answer(session, 1).map(|(done, _)| done.rows + done.affected);
        let rows: Vec<Result<u64>> = (0..8).map(|_| next()).collect();
        let taken = || Err(EngineError::Duplicate(duplicate));
        assert_eq!(rows, [Ok(1), Ok(1), taken(), Ok(1), Ok(1), Ok(2), Ok(1), Ok(3)], "round {round}");
        session.run("DELETE FROM line").expect("deleted");
    }
    assert!(answer(session, 0).is_err(), "no statement is in progress");
}

/// A statement that is closed gives its number to the next one. `mark` is a parameter that is a number.
pub fn closed_statements_give_up_their_place(session: &mut dyn SqlSession, mark: &str) {
    let kept = session.prepare("SELECT 1").expect("prepared");
    for number in 0..20 {
        let next = session.prepare(&format!("SELECT {number} + {mark}")).expect("prepared");
        assert_eq!(next.0, kept.0 + 1);
        session.submit(next, &[Param::Int(number)]).expect("submitted");
        block_on(session.answer(&mut |row| assert_eq!(row.int(0), 2 * number))).expect("an answer");
        session.close(next).expect("closed");
        assert!(session.submit(next, &[]).expect_err("closed").to_string().contains("closed"));
        assert!(session.close(next).expect_err("closed").to_string().contains("closed"));
    }
    assert_eq!(fetch(session, kept, &[], 1).expect("an answer").0.rows, 1);
}

/// A refused statement is named, and the session continues. The codes are the server's for an unknown table, and for
/// `sick`, a statement without parameters that fails when it is executed.
pub fn refusals_name_the_statement(session: &mut dyn SqlSession, unknown: &str, sick: &str, code: &str) {
    let error = session.prepare("SELECT nonsense FROM nowhere").expect_err("refused").to_string();
    assert!(error.contains(unknown) && error.contains("in: SELECT nonsense FROM nowhere"), "{error}");
    let statement = session.prepare(sick).expect("prepared");
    let error = fetch(session, statement, &[], 1).expect_err("refused").to_string();
    assert!(error.contains(code) && error.contains(&format!("in: {sick}")), "{error}");
    let error = session.submit(Statement(99), &[]).expect_err("refused").to_string();
    assert!(error.contains("another session"), "{error}");
    let error = session.submit(statement, &[Param::Int(1)]).expect_err("refused").to_string();
    assert!(error.contains("as many parameters"), "{error}");
    assert_eq!(ints(session, "SELECT 5").expect("an answer"), [5]);
}

/// A driver that never polls its client again.
struct Deaf;

impl Driver for Deaf {
    fn wait(&self, _wait: Wait) -> bool {
        true
    }

    fn forget(&self, _fd: RawFd) {}
}

/// Sends the submitted statements without waiting for the answer.
pub fn send(session: &mut dyn SqlSession) {
    let _driven = drive_with(Rc::new(Deaf));
    assert!(session.poll_answer(&mut Context::from_waker(Waker::noop()), &mut |_| {}).is_pending());
}

/// Two transactions that wait for each other: one is a conflict, and both sessions continue. The table `dead` has two
/// rows with `v = 0`; `update` increments the one of its parameter. `blocked` returns when a session waits for a lock.
pub fn deadlocks_are_one_conflict([a, b]: [&mut dyn SqlSession; 2], update: &str, blocked: impl FnOnce()) {
    let (of_a, of_b) = (a.prepare(update).expect("prepared"), b.prepare(update).expect("prepared"));
    a.run("BEGIN").expect("begun");
    b.run("BEGIN").expect("begun");
    fetch(a, of_a, &[Param::Int(1)], 0).expect("locked");
    fetch(b, of_b, &[Param::Int(2)], 0).expect("locked");
    a.submit(of_a, &[Param::Int(2)]).expect("submitted");
    send(a);
    blocked();
    let of_b = fetch(b, of_b, &[Param::Int(1)], 0);
    // Release B's locks, because A may still wait for one.
    b.run("ROLLBACK").expect("rolled back");
    let of_a = answer(a, 0);
    let conflicts = [of_a.err(), of_b.err()].into_iter().flatten().filter(EngineError::is_conflict).count();
    assert_eq!(conflicts, 1);
    a.run("ROLLBACK").expect("rolled back");
    assert_eq!(ints(a, "SELECT SUM(v) FROM dead").expect("an answer"), [0]);
}

/// A session that may not reconnect fails with the cause after `kill` has ended the server, also after its restart.
/// `echo` selects its parameter.
pub fn lost_sessions_keep_failing(
    session: &mut dyn SqlSession,
    echo: &str,
    kill: impl FnOnce(),
    restart: impl FnOnce(),
) {
    let echo = session.prepare(echo).expect("prepared");
    fetch(session, echo, &[Param::Int(1)], 1).expect("an answer");
    kill();
    for _ in 0..2 {
        let error = fetch(session, echo, &[Param::Int(1)], 1).expect_err("lost");
        assert!(matches!(error, EngineError::Lost(_)), "{error:?}");
        let reported = error.to_string();
        assert!(reported.starts_with("connection: the connection to "), "{reported}");
        for words in [" was lost: ", "on_lost = \"reconnect\" goes on after its restart"] {
            assert!(reported.contains(words), "{reported}");
        }
    }
    restart();
    assert!(session.run("SELECT 1").is_err(), "it does not reconnect");
}

/// A session that may reconnect survives a restart of the server. `kept` selects `17`, which the session's setup has
/// set, followed by its parameter; there is an empty table `kept` with a column `id`.
pub fn sessions_survive_a_restart(
    session: &mut dyn SqlSession,
    kept: &str,
    kill: impl FnOnce(),
    restart: impl FnOnce() + Send,
) {
    let early = session.prepare(kept).expect("prepared");
    let rows = session.prepare_rows("kept", &["id"]).expect("prepared");
    fetch(session, early, &[Param::Int(0)], 1).expect("an answer");
    kill();
    // Three statements are in progress; none of them can be answered.
    for _ in 0..3 {
        session.submit(early, &[Param::Int(1)]).expect("submitted");
    }
    std::thread::scope(|scope| {
        scope.spawn(restart);
        for _ in 0..3 {
            assert!(matches!(answer(session, 1), Err(EngineError::CutOff(_))));
        }
    });
    let (_, found) = fetch(session, early, &[Param::Int(1)], 1).expect("an answer");
    assert_eq!(found[0][0], b"171", "set up and prepared as before");
    assert_eq!(load(session, rows, &[Param::Int(1)]).expect("loaded").affected, 1);
}

/// A killed connection costs one operation. `counted` returns the connections lost and reopened.
pub fn killed_connections_cost_one_operation(
    session: &mut dyn SqlSession,
    mut kill_connection: impl FnMut(&mut dyn SqlSession),
    counted: impl Fn() -> (u64, u64),
) {
    let select = session.prepare("SELECT 1").expect("prepared");
    kill_connection(session);
    assert!(matches!(fetch(session, select, &[], 1), Err(EngineError::CutOff(_))));
    assert_eq!(fetch(session, select, &[], 1).expect("an answer").0.rows, 1);
    assert_eq!(counted(), (1, 1));
    kill_connection(session);
    assert!(matches!(session.run("SELECT 1"), Err(EngineError::CutOff(_))), "calls that block as well");
    session.run("SELECT 1").expect("an answer");
    assert_eq!(counted(), (2, 2));
}
