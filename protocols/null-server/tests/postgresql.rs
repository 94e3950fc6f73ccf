//! Answers to a client of PostgreSQL's protocol.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::Command;

use common::TestServer;
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement};
use rumba_engine_api::worker::block_on;
use rumba_null_server::{Column, Config, Protocol};
use rumba_protocol_postgresql::{Address, PgSession, SessionOptions, Target};

fn server(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::new(|config| {
        config.protocol = Protocol::PostgreSql;
        change(config);
    })
}

fn target(server: &TestServer) -> Target {
    Target { user: "anybody".into(), ..Target::anonymous(Address::Socket(server.socket())) }
}

fn session(server: &TestServer, text: bool) -> PgSession {
    PgSession::connect(&target(server), &SessionOptions { text, ..SessionOptions::default() }).unwrap()
}

fn fetch(session: &mut PgSession, statement: Statement, params: &[Param<'_>]) -> (Answer, Vec<(i64, Vec<u8>)>) {
    let session: &mut dyn SqlSession = session;
    let mut rows = Vec::new();
    let answer =
        block_on(session.execute(statement, params, &mut |row| rows.push((row.int(0), row.bytes(1).to_vec()))))
            .unwrap();
    (answer, rows)
}

#[test]
fn a_select_gives_the_rows_prepared_and_as_text() {
    let columns: Vec<Column> = vec!["id:int".parse().unwrap(), "c".parse().unwrap()];
    let place = server(|config| (config.columns, config.rows, config.row_bytes) = (columns, 3, 5));
    for text in [false, true] {
        let mut session = session(&place, text);
        let select = session.prepare("SELECT id, c FROM t WHERE id BETWEEN $1 AND $2").unwrap();
        let (answer, rows) = fetch(&mut session, select, &[Param::Int(1), Param::Int(3)]);
        assert_eq!((answer.rows, answer.affected), (3, 0));
        assert_eq!(rows, [1, 2, 3].map(|id| (id, b"07418".to_vec())));
    }
}

#[test]
fn changes_transactions_and_loads_are_counted_and_reported() {
    let place = server(|_| {});
    for text in [false, true] {
        let mut session = session(&place, text);
        let [begin, update, commit] =
            ["BEGIN", "UPDATE t SET a = $1", "COMMIT"].map(|sql| session.prepare(sql).unwrap());
        for _ in 0..3 {
            session.submit(begin, &[]).unwrap();
            session.submit(update, &[Param::Int(7)]).unwrap();
            let session_of: &mut dyn SqlSession = &mut session;
            block_on(session_of.answer(&mut |_| {})).unwrap();
            assert_eq!(block_on(session_of.answer(&mut |_| {})).unwrap().affected, 1);
            assert!(format!("{:?}", session.transaction()).contains("Open"));
            fetch(&mut session, commit, &[]);
            assert!(format!("{:?}", session.transaction()).contains("None"));
        }
        let rows = session.prepare_rows("t", &["c"]).unwrap();
        let payload = vec![b'x'; 100_000];
        let session: &mut dyn SqlSession = &mut session;
        for _ in 0..3 {
            assert_eq!(block_on(session.load_rows(rows, &[Param::Bytes(&payload); 10])).unwrap().affected, 1);
        }
        session.run("SELECT 1; SET a = 1; INSERT INTO t VALUES (1)").unwrap();
        session.run("").unwrap();
        // As other clients do it: prepared.
        session.run("SELECT 1").unwrap();
    }
}

#[test]
fn malformed_input_affects_only_its_own_connection() {
    let place = server(|_| {});
    let says = |bytes: &[u8]| place.answer_to(bytes);
    assert!(says(b"GET / HTTP/1.1\r\n\r\n").starts_with(b"E"));
    assert!(says(&[0, 0, 0, 8, 0, 2, 0, 0]).starts_with(b"E"), "version 2");
    assert_eq!(says(&[0, 0, 0, 8, 4, 210, 22, 47]), b"N", "no encryption");
    assert_eq!(says(&[0, 0, 0, 8, 4, 210, 22, 46]), b"", "nothing to cancel");
    let entered = [0, 0, 0, 9, 0, 3, 0, 0, 0];
    // An unknown prepared statement, followed by a query.
    let bind = b"B\0\0\0\x10\0lost\0\0\0\0\0\0\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04Q\0\0\0\x0dselect 1\0";
    let said = says(&[&entered[..], bind].concat());
    let text = String::from_utf8_lossy(&said);
    assert!(text.contains("08P01") && text.contains("SELECT 1"), "{text}");
    assert!(says(&[&entered[..], b"?\0\0\0\x04S\0\0\0\x04"].concat()).ends_with(b"Z\0\0\0\x05I"));
    let mut session = session(&place, false);
    let select = session.prepare("SELECT c FROM t").unwrap();
    assert_eq!(fetch(&mut session, select, &[]).0.rows, 1);
}

#[test]
#[needs(PostgreSql)]
fn psql_and_pgbench_talk_to_it() {
    let place = server(|config| (config.rows, config.row_bytes) = (2, 3));
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(format!("{}/{program}", rumba_testkit::postgresql::PROGRAMS));
        let output = command.arg("-h").arg(place.dir.path()).args(["-U", "x"]).args(args).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let reported = run("psql", &["-d", "db", "-XAtc", "select c from t", "-c", "insert into t values (1)"]);
    assert_eq!(reported, "074\n074\nINSERT 0 1\n");
    let script = place.dir.path().join("script");
    std::fs::write(&script, "\\set id random(1, 1000)\nSELECT c FROM t WHERE id = :id;\n").unwrap();
    for protocol in ["simple", "extended", "prepared"] {
        let reported =
            run("pgbench", &["-n", "-M", protocol, "-c", "4", "-t", "50", "-f", script.to_str().unwrap(), "db"]);
        assert!(reported.contains("number of transactions actually processed: 200/200"), "{protocol}: {reported}");
    }
}
