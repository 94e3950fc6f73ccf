//! Statements of every kind, prepared and as text, over every kind of connection.

use std::sync::{Arc, Mutex};

use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::{Answer, Param, SqlSession};
use rumba_engine_api::worker::block_on;
use rumba_protocol_postgresql::codec::message::Transaction;
use rumba_protocol_postgresql::{PgSession, SessionOptions, TableObserver, Target};
use rumba_testkit::sql::{answer, fetch, ints};
use rumba_testkit::sql_contract::{
    AWKWARD, closed_statements_give_up_their_place, long_values_and_many_rows_come_through, parameters_arrive_as_sent,
    refusals_name_the_statement, statements_in_a_pipeline_fail_alone,
};

use crate::support::{admin, local, session, sessions, shared, text};

fn visited(session: &mut PgSession, visit: rumba_engine_api::sql::Visit<'_>) -> Result<Answer> {
    let session: &mut dyn SqlSession = session;
    block_on(session.answer(visit))
}

#[test]
#[needs(PostgreSql)]
fn every_kind_of_parameter_arrives_as_it_was_sent() {
    let create = "CREATE TEMPORARY TABLE kinds (id bigint PRIMARY KEY, n bigint, b bytea, t text)";
    let select = "SELECT n, b, n IS NULL, b IS NULL, t FROM kinds WHERE id = $1";
    for mut session in sessions(&shared()) {
        parameters_arrive_as_sent(&mut session, create, "INSERT INTO kinds VALUES ($1, $2, $3, $4)", select);
    }
}

#[test]
#[needs(PostgreSql)]
fn a_parameter_may_be_of_another_kind_than_its_type() {
    let server = shared();
    for mut session in sessions(&server) {
        let echo = session
            .prepare("SELECT $1::bigint + 0, $2::text || '', $3::numeric + 0, $4::smallint, $5::boolean")
            .unwrap();
        let mut reported = |params: [Param<'_>; 5]| {
            session.submit(echo, &params)?;
            let mut found = Vec::new();
            visited(&mut session, &mut |row| found.push([row.int(0), row.int(1), row.int(2), row.int(3), row.int(4)]))?;
            Ok::<_, EngineError>(found.remove(0))
        };
        for _ in 0..2 {
            let usual = [Param::Int(7), Param::Bytes(b"8x"), Param::Bytes(b"-9.5"), Param::Int(-4), Param::Bytes(b"t")];
            assert_eq!(reported(usual).unwrap(), [7, 8, -9, -4, 1]);
            let other =
                [Param::Bytes(b"7"), Param::Int(8), Param::Int(-9), Param::Bytes(b"-4"), Param::Bytes(b"false")];
            assert_eq!(reported(other).unwrap(), [7, 8, -9, -4, 0]);
            assert_eq!(reported([Param::Null; 5]).unwrap(), [0; 5]);
        }
        let zero = reported([Param::Int(1), Param::Bytes(b"a\0b"), Param::Null, Param::Null, Param::Null]).unwrap_err();
        assert!(!zero.to_string().contains("lost"), "{zero}");
        let far = reported([Param::Int(1), Param::Null, Param::Null, Param::Int(1 << 20), Param::Null]).unwrap_err();
        assert!(far.to_string().contains("22003") || far.to_string().contains("out of range"), "{far}");
    }
}

#[test]
#[needs(PostgreSql)]
fn every_type_of_column_is_read_as_its_integer_or_its_bytes() {
    let server = shared();
    let all = "SELECT (-3)::smallint, (-2147483648)::int, (-9223372036854775808)::bigint, true, false, 2.5::real, \
               (-1e15)::double precision, (-7.50)::numeric, '12x'::text, 'v'::varchar(9), '5  '::char(3), \
               4294967295::oid, '2026-01-02 03:04:05.000006'::timestamp, '{\"a\": 1}'::jsonb, '\\x00ff'::bytea, \
               NULL::int, 'last'::name";
    for options in [SessionOptions::default(), text()] {
        let mut session = session(&server, &options);
        let statement = session.prepare(all).unwrap();
        for _ in 0..2 {
            session.submit(statement, &[]).unwrap();
            let (mut found, mut bytes, mut time) = (Vec::new(), Vec::new(), None);
            visited(&mut session, &mut |row| {
                found = [0, 1, 2, 3, 4, 5, 7, 8, 10, 11, 15].map(|column| row.int(column)).to_vec();
                bytes = [9, 13, 14, 15, 16].map(|column| row.bytes(column).to_vec()).to_vec();
                time = row.value(12).timestamp();
            })
            .unwrap();
            assert_eq!(found, [-3, -2_147_483_648, i64::MIN, 1, 0, 2, -7, 12, 5, 4_294_967_295, 0], "{options:?}");
            let expected: [&[u8]; 5] = [b"v", b"{\"a\": 1}", &[0, 0xff], b"", b"last"];
            assert_eq!(bytes, expected, "{options:?}");
            assert_eq!(time, "2026-01-02T03:04:05.000006".parse().ok(), "{options:?}");
        }
    }
}

/// The client decodes both formats, so it does not have to set one of them.
#[test]
#[needs(PostgreSql)]
fn bytea_arrives_in_either_of_its_text_formats() {
    let server = shared();
    for format in ["hex", "escape"] {
        let setup = vec![format!("SET bytea_output = '{format}'")];
        let mut session = session(&server, &SessionOptions { setup, ..text() });
        let echo = session.prepare("SELECT $1::bytea").unwrap();
        let every: Vec<u8> = (0..=u8::MAX).collect();
        for value in [AWKWARD, &every[..], b"", b"\\x41"] {
            assert_eq!(fetch(&mut session, echo, &[Param::Bytes(value)], 1).unwrap().1, [[value]], "{format}");
        }
    }
}

#[test]
#[needs(PostgreSql)]
fn sessions_do_not_share_names_of_statements() {
    let server = shared();
    let [first, second] = [0, 1].map(|_| {
        let mut session = session(&server, &SessionOptions::default());
        let name = session.prepare("SELECT name FROM pg_prepared_statements").unwrap();
        fetch(&mut session, name, &[], 1).unwrap().1.remove(0).remove(0)
    });
    assert_ne!(first, second);
}

#[test]
#[needs(PostgreSql)]
fn observer_receives_of_tables_before_they_are_created() {
    let server = shared();
    for as_text in [false, true] {
        let tables = Arc::new(Mutex::new(Vec::new()));
        let options = SessionOptions { text: as_text, observer: Some(keeps(&tables)), ..SessionOptions::default() };
        let mut session = session(&server, &options);
        session.run("CREATE TEMPORARY TABLE brief (id int)").unwrap();
        session.run("CREATE TABLE IF NOT EXISTS heard_1 (id int)").unwrap();
        session.submit_text("create table if not exists heard_2 (id int)").unwrap();
        answer(&mut session, 0).unwrap();
        let prepared = session.prepare("CREATE TABLE refused (id int)").unwrap_err();
        assert!(prepared.to_string().contains("refused by the observer"), "{prepared}");
        assert_eq!(*tables.lock().unwrap(), ["heard_1", "heard_2", "refused"]);
        assert_eq!(ints(&mut session, "SELECT count(*) FROM pg_class WHERE relname = 'refused'").unwrap(), [0]);
    }
}

fn keeps(tables: &Arc<Mutex<Vec<String>>>) -> TableObserver {
    let tables = tables.clone();
    TableObserver::new(move |name| {
        tables.lock().unwrap().push(name.table.clone());
        if name.table == "refused" { Err(EngineError::failed("create", "refused by the observer")) } else { Ok(()) }
    })
}

#[test]
#[needs(PostgreSql)]
fn closed_statements_make_room_for_new_ones() {
    for mut session in sessions(&shared()) {
        closed_statements_give_up_their_place(&mut session, "$1::bigint");
        // The answer to the closing comes with that to another command.
        let [first, second] = ["SELECT 1", "SELECT 2"].map(|sql| session.prepare(sql).unwrap());
        session.close(first).unwrap();
        session.run("SELECT 3").unwrap();
        session.close(second).unwrap();
        session.submit_text("SELECT 4").unwrap();
        assert_eq!(answer(&mut session, 1).unwrap().0.rows, 1);
    }
}

/// A new connection uses the database's encoding.
#[test]
#[needs(PostgreSql)]
fn statements_may_use_a_non_utf8_encoding() {
    let server = shared();
    let options = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0";
    admin(&server).query(&format!("CREATE DATABASE latin {options}")).unwrap();
    for options in [SessionOptions::default(), text()] {
        let target = Target { database: Some("latin".into()), ..local(&server) };
        let mut session = PgSession::connect(&target, &options).unwrap();
        session.submit_bytes(b"SELECT convert_to('\xe4', 'LATIN1')::text").unwrap();
        assert_eq!(answer(&mut session, 1).unwrap().1, [[b"\\xe4"]]);
        let prepared = session.prepare_bytes(b"SELECT convert_to('\xe4' || $1::text, 'LATIN1')::text").unwrap();
        assert_eq!(fetch(&mut session, prepared, &[Param::Text(b"\xff")], 1).unwrap().1, [[b"\\xe4ff"]]);
        let error = session.prepare_bytes(b"SELEC '\xe4'").unwrap_err().to_string();
        assert!(error.contains("42601") && error.contains("in: SELEC"), "{error}");
    }
}

#[test]
#[needs(PostgreSql)]
fn long_values_and_rows_come_through() {
    let lengths = [0, 1, 4_000, 4_096, 16_384, 65_536, 1 << 20, 20 << 20];
    let many = "SELECT repeat('r', 20000 + n) FROM generate_series(1, 500) n";
    for mut session in sessions(&shared()) {
        long_values_and_many_rows_come_through(&mut session, &lengths, "SELECT 1, $1::bytea, 2", many);
    }
}

#[test]
#[needs(PostgreSql)]
fn changed_rows_are_counted_and_returned_rows_are_visited() {
    let server = shared();
    for mut session in sessions(&server) {
        session.run("CREATE TEMPORARY TABLE counted (id bigserial PRIMARY KEY, v int)").unwrap();
        let insert =
            session.prepare("INSERT INTO counted (v) SELECT n FROM generate_series(1, $1) n RETURNING id").unwrap();
        let (done, rows) = fetch(&mut session, insert, &[Param::Int(5)], 1).unwrap();
        assert_eq!((done.rows, done.affected, rows.len()), (5, 5, 5));
        let update = session.prepare("UPDATE counted SET v = 0 WHERE id > $1").unwrap();
        assert_eq!(fetch(&mut session, update, &[Param::Int(2)], 0).unwrap().0.matched, 3);
        let none = session.prepare("SELECT v FROM counted WHERE id = $1").unwrap();
        let (done, _) = fetch(&mut session, none, &[Param::Int(99)], 0).unwrap();
        assert_eq!((done.rows, done.affected), (0, 0));
        let empty = session.prepare("").unwrap();
        assert_eq!(fetch(&mut session, empty, &[], 0).unwrap().0, Answer::default());
    }
}

#[test]
#[needs(PostgreSql)]
fn statements_without_a_transaction_each_stand_for_themselves() {
    for mut session in sessions(&shared()) {
        statements_in_a_pipeline_fail_alone(&mut session, "$1", ErrorCode::of_server(0, *b"23505"));
    }
}

#[test]
#[needs(PostgreSql)]
fn requested_group_stays_one_group_at_any_length() {
    let server = shared();
    let mut grouping = 0;
    for mut session in sessions(&server) {
        // Statements sent as text are not grouped.
        if !session.group_statements() {
            continue;
        }
        grouping += 1;
        session.run("CREATE TEMPORARY TABLE long_group (id bigint PRIMARY KEY)").unwrap();
        let [begin, rollback] = ["BEGIN", "ROLLBACK"].map(|sql| session.prepare(sql).unwrap());
        let insert = session.prepare("INSERT INTO long_group VALUES ($1)").unwrap();
        session.submit(begin, &[]).unwrap();
        for id in 0..30 {
            session.submit(insert, &[Param::Int(id / 2 * 2)]).unwrap();
        }
        answer(&mut session, 0).unwrap();
        answer(&mut session, 0).unwrap();
        assert!(matches!(answer(&mut session, 0), Err(EngineError::Duplicate(_))));
        for nth in 2..30 {
            let error = answer(&mut session, 0).unwrap_err().to_string();
            // After a separate Sync the server would execute the statement and refuse it.
            assert!(error.contains("left out"), "{nth}: {error}");
        }
        fetch(&mut session, rollback, &[], 0).unwrap();
    }
    assert!(grouping > 0);
}

#[test]
#[needs(PostgreSql)]
fn error_skips_rest_of_transaction_and_fails_its_commit() {
    let server = shared();
    for mut session in sessions(&server) {
        session.run("CREATE TEMPORARY TABLE block (id bigint PRIMARY KEY)").unwrap();
        let [begin, commit, rollback] = ["BEGIN", "COMMIT", "ROLLBACK"].map(|sql| session.prepare(sql).unwrap());
        let insert = session.prepare("INSERT INTO block VALUES ($1)").unwrap();
        for round in 0..3 {
            // All are sent at once, and the third fails.
            session.submit(begin, &[]).unwrap();
            for id in [1, 1, 2] {
                session.submit(insert, &[Param::Int(id)]).unwrap();
            }
            assert!(answer(&mut session, 0).is_ok() && answer(&mut session, 0).is_ok(), "round {round}");
            let taken = EngineError::Duplicate(ErrorCode::of_server(0, *b"23505"));
            assert_eq!(answer(&mut session, 0).unwrap_err(), taken, "round {round}");
            assert!(!session.survives_errors());
            let error = answer(&mut session, 0).unwrap_err().to_string();
            assert!(error.contains("left out") || error.contains("25P02"), "{error}");
            let error = fetch(&mut session, insert, &[Param::Int(3)], 0).unwrap_err().to_string();
            assert!(error.contains("25P02") && error.contains("ROLLBACK"), "{error}");
            let error = fetch(&mut session, commit, &[], 0).unwrap_err().to_string();
            assert!(error.contains("rolled it back"), "{error}");
            assert_eq!(ints(&mut session, "SELECT count(*) FROM block").unwrap(), [0]);
            // The end of the transaction is executed even if it was sent together with a failed statement.
            for (end, ends_well) in [(rollback, true), (commit, false)] {
                session.submit(begin, &[]).unwrap();
                for id in [1, 1] {
                    session.submit(insert, &[Param::Int(id)]).unwrap();
                }
                session.submit(end, &[]).unwrap();
                assert!(answer(&mut session, 0).is_ok() && answer(&mut session, 0).is_ok());
                assert!(answer(&mut session, 0).unwrap_err().to_string().contains("23505"));
                assert_eq!(answer(&mut session, 0).is_ok(), ends_well);
                assert_eq!(session.transaction(), Transaction::None);
            }
            // A successful transaction in one exchange, and one that is abandoned.
            session.submit(begin, &[]).unwrap();
            session.submit(insert, &[Param::Int(1)]).unwrap();
            session.submit(commit, &[]).unwrap();
            let done: Vec<u64> = (0..3).map(|_| answer(&mut session, 0).unwrap().0.affected).collect();
            assert_eq!(done, [0, 1, 0]);
            fetch(&mut session, begin, &[], 0).unwrap();
            fetch(&mut session, insert, &[Param::Int(9)], 0).unwrap();
            fetch(&mut session, rollback, &[], 0).unwrap();
            assert_eq!(ints(&mut session, "SELECT id FROM block").unwrap(), [1]);
            session.run("DELETE FROM block").unwrap();
        }
    }
}

#[test]
#[needs(PostgreSql)]
fn refusal_names_the_statement_and_the_session_continues() {
    let server = shared();
    for options in [SessionOptions::default(), text()] {
        let mut session = session(&server, &options);
        let sick = "SELECT 1 / (n - 5) FROM generate_series(1, 9) n";
        refusals_name_the_statement(&mut session, "42P01", sick, "22012");
        assert!(session.run("SELECT 1; SELECT 1 / 0").is_err());
        assert!(session.run("SELECT 1\0; DROP TABLE x").unwrap_err().to_string().contains("zero byte"));
        assert_eq!(ints(&mut session, "SELECT 5").unwrap(), [5]);
    }
}

#[test]
#[needs(PostgreSql)]
fn pipeline_of_large_messages_does_not_deadlock() {
    let server = shared();
    for mut session in sessions(&server) {
        session.run("CREATE TEMPORARY TABLE wide (id bigint, b bytea); BEGIN").unwrap();
        let rows = session.prepare("SELECT repeat('r', 1000) FROM generate_series(1, 3000) n").unwrap();
        let insert = session.prepare("INSERT INTO wide VALUES ($1, $2)").unwrap();
        let value = vec![7; 3 << 20];
        for _ in 0..4 {
            session.submit(rows, &[]).unwrap();
            session.submit(insert, &[Param::Int(1), Param::Bytes(&value)]).unwrap();
        }
        for _ in 0..4 {
            assert_eq!(answer(&mut session, 1).unwrap().0.rows, 3000);
            assert_eq!(answer(&mut session, 1).unwrap().0.affected, 1);
        }
        session.run("COMMIT").unwrap();
        assert_eq!(ints(&mut session, "SELECT sum(length(b)) FROM wide").unwrap(), [4 * (3 << 20)]);
    }
}
