//! Statements of every kind, over every kind of connection.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::Server;
use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_protocol_mysql::{SessionOptions, Target, Tls, WireSession};
use rumba_testkit::sql::{answer, fetch, ints};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A value that a careless client would corrupt.
const AWKWARD: &[u8] = b"it's \"q\" `n` \\ back\\\\slash\ttab\nline\r\x1a zero\0 percent% high\x80\xc3\xa4\xff";

fn text() -> SessionOptions {
    SessionOptions { text: true, ..SessionOptions::default() }
}

/// latin1, in which any byte is a character.
fn latin1(text: bool) -> SessionOptions {
    SessionOptions { text, setup: vec!["SET NAMES latin1".to_owned()], ..SessionOptions::default() }
}

#[test]
#[needs(MariaDb, Openssl)]
fn every_kind_of_parameter_arrives_as_it_was_sent() {
    let server = Server::shared();
    for options in [SessionOptions::default(), text()] {
        for mut session in server.sessions(&options) {
            session
                .run("CREATE OR REPLACE TEMPORARY TABLE kinds (id BIGINT PRIMARY KEY, n BIGINT, b VARBINARY(20000))")
                .unwrap();
            let insert = session.prepare("INSERT INTO kinds VALUES (?, ?, ?)").unwrap();
            let select = session.prepare("SELECT n, b, n IS NULL, b IS NULL FROM kinds WHERE id = ?").unwrap();
            let long = vec![0xa7; 20_000];
            let numbers = [Param::Null, Param::Int(i64::MIN), Param::Int(i64::MAX), Param::Int(0), Param::Int(-1)];
            let strings = [Param::Null, Param::Bytes(b""), Param::Bytes(AWKWARD), Param::Bytes(&long)];
            let pairs = numbers.iter().flat_map(|number| strings.iter().map(move |string| (*number, *string)));
            for (id, (number, string)) in (0..).zip(pairs) {
                let (done, _) = fetch(&mut session, insert, &[Param::Int(id), number, string], 0).unwrap();
                assert_eq!((done.affected, done.rows), (1, 0));
                session.submit(select, &[Param::Int(id)]).unwrap();
                let mut seen = 0;
                let mut visit = |row: &dyn rumba_engine_api::sql::Row| {
                    let (n, b) = (if let Param::Int(n) = number { n } else { 0 }, string);
                    assert_eq!(row.int(0), n);
                    assert_eq!(row.bytes(1), if let Param::Bytes(b) = b { b } else { b"" });
                    assert_eq!((row.int(2) == 1, row.int(3) == 1), (number == Param::Null, b == Param::Null));
                    assert_eq!((row.int(9), row.bytes(9)), (0, &b""[..]), "no such column");
                    seen += 1;
                };
                let rows = block(&mut session, &mut visit).unwrap().rows;
                assert_eq!((rows, seen), (1, 1));
            }
        }
    }
}

fn block(
    session: &mut WireSession,
    visit: rumba_engine_api::sql::Visit<'_>,
) -> Result<rumba_engine_api::sql::Answer, EngineError> {
    let session: &mut dyn SqlSession = session;
    rumba_engine_api::worker::block_on(session.answer(visit))
}

#[test]
#[needs(MariaDb, Openssl)]
fn parameter_type_may_change_between_executions() {
    let server = Server::shared();
    let mut session = server.session(&SessionOptions::default());
    let echo = session.prepare("SELECT CONCAT(?, ''), CONCAT(?, '')").unwrap();
    let mut reported = |first, second| fetch(&mut session, echo, &[first, second], 2).unwrap().1.remove(0);
    for _ in 0..2 {
        assert_eq!(reported(Param::Int(7), Param::Bytes(b"x")), [b"7", b"x"]);
        assert_eq!(reported(Param::Bytes(b"y"), Param::Int(-8)), [&b"y"[..], b"-8"]);
        assert_eq!(reported(Param::Null, Param::Bytes(b"z")), [&b""[..], b"z"]);
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn every_type_of_column_is_read_as_its_integer_or_its_bytes() {
    let server = Server::shared();
    const INTEGERS: &str = "SELECT CAST(-3 AS SIGNED), t, ut, s, us, m, um, i, ui, b, ub, y, f, d, dec_, bits+0, e, txt \
                            FROM types";
    for options in [SessionOptions::default(), text()] {
        let mut session = server.session(&options);
        session
            .run(
                "CREATE OR REPLACE TEMPORARY TABLE types (t TINYINT, ut TINYINT UNSIGNED, s SMALLINT, us SMALLINT \
                 UNSIGNED, m MEDIUMINT, um MEDIUMINT UNSIGNED, i INT, ui INT UNSIGNED, b BIGINT, ub BIGINT UNSIGNED, \
                 y YEAR, f FLOAT, d DOUBLE, dec_ DECIMAL(10,2), bits BIT(9), e ENUM('3','4'), txt TEXT, dt DATETIME(6), \
                 tm TIME, da DATE, bl LONGBLOB); \
                 INSERT INTO types VALUES (-128, 255, -32768, 65535, -8388608, 16777215, -2147483648, 4294967295, \
                 -9223372036854775808, 9223372036854775807, 2026, -2.5, 1e15, -7.50, b'100000001', '4', '-12x', \
                 '2026-01-02 03:04:05.000006', '-12:00:00', '2026-01-02', 'last')",
            )
            .unwrap();
        let all = session.prepare(INTEGERS).unwrap();
        session.submit(all, &[]).unwrap();
        let mut found = Vec::new();
        block(&mut session, &mut |row| found = (0..18).map(|column| row.int(column)).collect()).unwrap();
        let expected = [
            -3,
            -128,
            255,
            -32768,
            65535,
            -8_388_608,
            16_777_215,
            -2_147_483_648,
            4_294_967_295,
            i64::MIN,
            i64::MAX,
            2026,
            -2,
            1_000_000_000_000_000,
            -7,
            257,
            4,
            -12,
        ];
        // As text a double may be 1e15.
        let upto = if options.text { 13 } else { 18 };
        assert_eq!(found[..upto], expected[..upto], "text: {}", options.text);
        let last = session.prepare("SELECT dt, tm, da, NULL, bl FROM types WHERE b < ?").unwrap();
        let (_, rows) = fetch(&mut session, last, &[Param::Int(0)], 5).unwrap();
        assert_eq!(rows[0][4], b"last", "what stands before it was measured rightly");
        assert_eq!(rows[0][3], b"");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn rows_and_parameters_beyond_a_packet_of_16_mib_come_through() {
    let server = Server::shared();
    for options in [SessionOptions::default(), text()] {
        for mut session in server.sessions(&options) {
            let echo = session.prepare("SELECT 1, ?, 2").unwrap();
            for length in
                [250, 251, 65_535, 65_536, (16 << 20) - 20, (16 << 20) - 9, (16 << 20) - 1, 16 << 20, 20 << 20]
            {
                let value: Vec<u8> = (0..length).map(|at| b'a' + (at % 23) as u8).collect();
                let (done, rows) = fetch(&mut session, echo, &[Param::Bytes(&value)], 3).unwrap();
                assert_eq!(done.rows, 1);
                assert!(rows[0][1] == value, "{length} bytes, text: {}", options.text);
            }
            let many = session.prepare("SELECT REPEAT('r', 20000 + seq) FROM seq_1_to_500").unwrap();
            let (done, rows) = fetch(&mut session, many, &[], 1).unwrap();
            assert_eq!(done.rows, 500);
            assert!(rows.iter().zip(1..).all(|(row, number)| row[0].len() == 20_000 + number));
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn an_error_in_a_pipeline_is_that_of_its_statement_alone() {
    let server = Server::shared();
    for options in [SessionOptions::default(), text()] {
        let options = SessionOptions { terse_conflicts: true, ..options };
        for mut session in server.sessions(&options) {
            session.run("CREATE OR REPLACE TEMPORARY TABLE line (id INT PRIMARY KEY)").unwrap();
            let insert = session.prepare("INSERT INTO line VALUES (?)").unwrap();
            let select = session.prepare("SELECT id FROM line WHERE id <= ? ORDER BY id").unwrap();
            assert_eq!(session.pipeline(), 8);
            for round in 0..3 {
                for (statement, param) in [
                    (insert, 1),
                    (select, 9),
                    (insert, 1),
                    (select, 9),
                    (insert, 2),
                    (select, 9),
                    (insert, 3),
                    (select, 9),
                ] {
                    session.submit(statement, &[Param::Int(param)]).unwrap();
                }
                let rows: Vec<Result<u64, EngineError>> =
                    (0..8).map(|_| answer(&mut session, 1).map(|(done, _)| done.rows + done.affected)).collect();
                let taken = || Err(EngineError::Duplicate(ErrorCode::of_server(1062, *b"23000")));
                assert_eq!(rows, [Ok(1), Ok(1), taken(), Ok(1), Ok(1), Ok(2), Ok(1), Ok(3)], "round {round}");
                session.run("DELETE FROM line").unwrap();
            }
            assert!(answer(&mut session, 0).is_err(), "nothing is under way");
            // A transaction continues as well.
            assert!(session.survives_errors());
            session.run("BEGIN; INSERT INTO line VALUES (1)").unwrap();
            for id in [1, 2] {
                session.submit(insert, &[Param::Int(id)]).unwrap();
            }
            assert!(matches!(answer(&mut session, 0), Err(EngineError::Duplicate(_))));
            assert_eq!(answer(&mut session, 0).unwrap().0.affected, 1);
            session.run("COMMIT").unwrap();
            assert_eq!(ints(&mut session, "SELECT count(*) FROM line").unwrap(), [2]);
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn refusal_names_the_statement_and_the_session_continues() {
    let server = Server::shared();
    let mut session = server.session(&SessionOptions::default());
    let error = session.prepare("SELECT nonsense FROM nowhere").unwrap_err().to_string();
    assert!(error.contains("1146") && error.contains("in: SELECT nonsense FROM nowhere"), "{error}");
    let sick = session.prepare("SELECT 1 FROM (SELECT 1 UNION SELECT 2) AS t WHERE 1 = (SELECT seq FROM seq_1_to_2)");
    let error = fetch(&mut session, sick.unwrap(), &[], 1).unwrap_err().to_string();
    assert!(error.contains("1242") && error.contains("in: SELECT 1 FROM"), "{error}");
    let error = session.submit(rumba_engine_api::sql::Statement(99), &[]).unwrap_err().to_string();
    assert!(error.contains("another session"), "{error}");
    assert_eq!(ints(&mut session, "SELECT 5").unwrap(), [5]);
}

#[test]
#[needs(MariaDb, Openssl)]
fn statements_may_contain_bytes_that_are_not_utf8() {
    let server = Server::shared();
    for options in [latin1(false), latin1(true)] {
        let mut session = server.session(&options);
        session.submit_bytes(b"SELECT HEX('\xe4')").unwrap();
        assert_eq!(answer(&mut session, 1).unwrap().1, [[b"E4"]]);
        let prepared = session.prepare_bytes(b"SELECT HEX(CONCAT('\xe4', ?))").unwrap();
        assert_eq!(fetch(&mut session, prepared, &[Param::Text(b"\xff")], 1).unwrap().1, [[b"E4FF"]]);
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn what_is_prepared_and_closed_again_and_again_takes_one_place() {
    let server = Server::shared();
    let mut session = server.session(&SessionOptions::default());
    let kept = session.prepare("SELECT 1").unwrap();
    for number in 0..20 {
        let next = session.prepare(&format!("SELECT CONCAT({number}, ?)")).unwrap();
        assert_eq!(next.0, kept.0 + 1);
        let (_, rows) = fetch(&mut session, next, &[Param::Bytes(b"x")], 1).unwrap();
        assert_eq!(rows, [[format!("{number}x").as_bytes()]]);
        session.close(next).unwrap();
        assert!(session.submit(next, &[]).unwrap_err().to_string().contains("closed"));
        assert!(session.close(next).unwrap_err().to_string().contains("closed"));
    }
    assert_eq!(fetch(&mut session, kept, &[], 1).unwrap().0.rows, 1);
}

#[test]
#[needs(MariaDb, Openssl)]
fn too_many_prepared_statements_are_counted_with_remedies() {
    let server = Server::start(&["--max-prepared-stmt-count=2"]);
    let mut session = server.session(&SessionOptions::default());
    for number in 0..2 {
        session.prepare(&format!("SELECT {number}")).unwrap();
    }
    let error = session.prepare("SELECT 2").unwrap_err();
    assert_eq!(error.code(), ErrorCode::of_server(1461, *b"42000"));
    let error = error.to_string();
    for words in ["raise the server's max_prepared_stmt_count", "--db-ps-mode=disable", "alone needs 3 or more, in: "] {
        assert!(error.contains(words), "{error}");
    }
    let mut as_text = server.session(&text());
    let select = as_text.prepare("SELECT 3").unwrap();
    assert_eq!(fetch(&mut as_text, select, &[], 1).unwrap().1, [[b"3"]]);
}

#[test]
#[needs(MariaDb, Openssl)]
fn update_reports_matched_and_changed_counts() {
    let server = Server::shared();
    for options in [SessionOptions::default(), text()] {
        let mut session = server.session(&options);
        session
            .run(
                "CREATE OR REPLACE TEMPORARY TABLE found (id INT PRIMARY KEY AUTO_INCREMENT, v INT); \
                 INSERT INTO found (v) VALUES (1), (1), (2)",
            )
            .unwrap();
        let update = session.prepare("UPDATE found SET v = ?").unwrap();
        let done = fetch(&mut session, update, &[Param::Int(2)], 0).unwrap().0;
        assert_eq!((done.matched, done.affected), (3, 2));
        let insert = session.prepare("INSERT INTO found (v) VALUES (?)").unwrap();
        assert_eq!(fetch(&mut session, insert, &[Param::Null], 0).unwrap().0.last_insert_id, 4);
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn strings_are_escaped_as_the_sessions_sql_mode_wants_it() {
    let server = Server::shared();
    for mode in ["", "NO_BACKSLASH_ESCAPES"] {
        let mut options = latin1(true);
        options.setup.push(format!("SET sql_mode = '{mode}'"));
        let mut session = server.session(&options);
        let echo = session.prepare("SELECT ?").unwrap();
        let (_, rows) = fetch(&mut session, echo, &[Param::Bytes(AWKWARD)], 1).unwrap();
        assert_eq!(rows[0][0], AWKWARD, "mode {mode:?}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_table_that_is_altered_is_read_with_its_new_columns() {
    let server = Server::shared();
    let mut session = server.session(&SessionOptions::default());
    session.run("CREATE OR REPLACE TABLE altered (a INT, b INT); INSERT INTO altered VALUES (1, 2)").unwrap();
    let select = session.prepare("SELECT * FROM altered WHERE a >= ?").unwrap();
    let reported = |session: &mut WireSession, columns| {
        session.submit(select, &[Param::Int(0)]).unwrap();
        let mut row_read = Vec::new();
        block(session, &mut |row| row_read = (0..columns).map(|column| row.int(column)).collect()).unwrap();
        row_read
    };
    assert_eq!(reported(&mut session, 3), [1, 2, 0]);
    assert_eq!(reported(&mut session, 3), [1, 2, 0], "its columns are known and not sent");
    let mut admin = server.admin();
    admin.query("ALTER TABLE test.altered ADD COLUMN c BIGINT DEFAULT 3 FIRST, MODIFY b SMALLINT").unwrap();
    assert_eq!(reported(&mut session, 3), [3, 1, 2]);
    assert_eq!(reported(&mut session, 3), [3, 1, 2]);
    admin.query("ALTER TABLE test.altered DROP COLUMN c").unwrap();
    assert_eq!(reported(&mut session, 2), [1, 2]);
}

/// Records the last wait.
#[derive(Default)]
struct Last(RefCell<Option<Wait>>);

impl Driver for Last {
    fn wait(&self, wait: Wait) -> bool {
        *self.0.borrow_mut() = Some(wait);
        true
    }

    fn forget(&self, _fd: i32) {}
}

#[test]
#[needs(MariaDb, Openssl)]
fn session_reports_its_wait_and_never_blocks_the_driver() {
    let server = Server::shared();
    for mut session in server.sessions(&SessionOptions::default()) {
        let slow = session.prepare("SELECT SLEEP(?), 7").unwrap();
        let last = Rc::new(Last::default());
        let _driven = drive_with(last.clone());
        session.submit(slow, &[Param::Bytes(b"0.05")]).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut found = Vec::new();
        let mut pending = 0;
        loop {
            match session.poll_answer(&mut context, &mut |row| found.push(row.int(1))) {
                Poll::Ready(done) => break assert_eq!(done.unwrap().rows, 1),
                Poll::Pending => pending += 1,
            }
            let Some(Wait::Readable(socket)) = last.0.take() else { panic!("nothing is waited for") };
            // SAFETY: the session, which is alive, keeps the socket open.
            let socket = unsafe { BorrowedFd::borrow_raw(socket) };
            poll(&mut [PollFd::new(&socket, PollFlags::IN)], None).unwrap();
        }
        assert_eq!(found, [7]);
        assert!((1..4).contains(&pending), "{pending} waits");
    }
}

/// A session had passed a complete statement to its encryption and waited for the answer. But the end of the statement
/// was still held back for lack of space in the socket, so on a busy host it waited forever.
#[test]
#[needs(MariaDb, Openssl)]
fn tls_output_is_flushed_before_waiting_for_the_answer() {
    let server = Server::start(&[]);
    let target = Target { tls: Tls::Required, ..server.test() };
    let mut session = WireSession::connect(&target, &SessionOptions::default()).unwrap();
    let measure = session.prepare("SELECT LENGTH(?)").unwrap();
    let last = Rc::new(Last::default());
    let _driven = drive_with(last.clone());
    let mut context = Context::from_waker(Waker::noop());
    for length in (1..40).map(|step| step * (16 << 10)) {
        let mut found = 0;
        let value = vec![b'v'; length];
        server.pause();
        session.submit(measure, &[Param::Bytes(&value)]).unwrap();
        while session.poll_answer(&mut context, &mut |row| found = row.int(0)).is_pending() {
            server.go_on();
            let (socket, ready) = match last.0.take() {
                Some(Wait::Readable(socket)) => (socket, PollFlags::IN),
                Some(Wait::Writable(socket)) => (socket, PollFlags::OUT),
                other => panic!("{other:?} is waited for"),
            };
            // SAFETY: the session, which is alive, keeps the socket open.
            let socket = unsafe { BorrowedFd::borrow_raw(socket) };
            let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
            let came = poll(&mut [PollFd::new(&socket, ready)], Some(&limit)).unwrap();
            assert_eq!(came, 1, "{length} bytes: the server never makes the socket ready for {ready:?}");
        }
        assert_eq!(found, length as i64);
    }
}
