//! Statements of every kind, over every kind of connection.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Waker};

use crate::support::Server;
use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_protocol_mysql::{SessionOptions, Target, Tls, WireSession};
use rumba_testkit::sql::{answer, fetch, ints};
use rumba_testkit::sql_contract::{
    AWKWARD, closed_statements_give_up_their_place, long_values_and_many_rows_come_through, parameters_arrive_as_sent,
    refusals_name_the_statement, statements_in_a_pipeline_fail_alone,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
    let create = "CREATE TEMPORARY TABLE kinds (id BIGINT PRIMARY KEY, n BIGINT, b VARBINARY(20000), \
                  t TEXT CHARACTER SET utf8mb4)";
    let select = "SELECT n, b, n IS NULL, b IS NULL, t FROM kinds WHERE id = ?";
    for options in [SessionOptions::default(), text()] {
        for mut session in Server::shared().sessions(&options) {
            parameters_arrive_as_sent(&mut session, create, "INSERT INTO kinds VALUES (?, ?, ?, ?)", select);
        }
    }
}

fn block(session: &mut WireSession, visit: rumba_engine_api::sql::Visit<'_>) -> Result<rumba_engine_api::sql::Answer> {
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
    const FULL: usize = 16 << 20;
    let lengths = [250, 251, 65_535, 65_536, FULL - 20, FULL - 9, FULL - 1, FULL, 20 << 20];
    let many = "SELECT REPEAT('r', 20000 + seq) FROM seq_1_to_500";
    for options in [SessionOptions::default(), text()] {
        for mut session in Server::shared().sessions(&options) {
            long_values_and_many_rows_come_through(&mut session, &lengths, "SELECT 1, ?, 2", many);
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn pipeline_error_belongs_to_its_statement_only() {
    let server = Server::shared();
    for options in [SessionOptions::default(), text()] {
        let options = SessionOptions { terse_conflicts: true, ..options };
        let mut session = server.session(&options);
        let duplicate = ErrorCode::of_server(1062, *b"23000");
        statements_in_a_pipeline_fail_alone(&mut session, "?", duplicate);
        let insert = session.prepare("INSERT INTO line VALUES (?)").unwrap();
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

#[test]
#[needs(MariaDb, Openssl)]
fn refusal_names_the_statement_and_the_session_continues() {
    let sick = "SELECT 1 FROM (SELECT 1 UNION SELECT 2) AS t WHERE 1 = (SELECT seq FROM seq_1_to_2)";
    refusals_name_the_statement(&mut Server::shared().session(&SessionOptions::default()), "1146", sick, "1242");
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
fn closed_statements_make_room_for_new_ones() {
    closed_statements_give_up_their_place(&mut Server::shared().session(&SessionOptions::default()), "?");
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
fn altered_table_is_read_with_its_new_columns() {
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
