//! Statements sent in groups.

use crate::support::Server;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Param, SqlSession, Statement};
use rumba_protocol_mysql::{OnLost, SessionOptions, WireSession};
use rumba_testkit::sql::{Values, answer, fetch, ints};

fn text() -> SessionOptions {
    SessionOptions { text: true, terse_conflicts: true, ..SessionOptions::default() }
}

/// A session with groups and its own table, a statement that inserts a row, and one that selects all rows.
fn grouping(mut session: WireSession) -> (WireSession, Statement, Statement) {
    session.run("CREATE OR REPLACE TEMPORARY TABLE line (id INT PRIMARY KEY, word LONGTEXT) ENGINE=InnoDB").unwrap();
    assert!(session.group_statements());
    let insert = session.prepare("INSERT INTO line VALUES (?, ?)").unwrap();
    let select = session.prepare("SELECT id, word FROM line ORDER BY id").unwrap();
    (session, insert, select)
}

fn ids(rows: &[Values]) -> Vec<String> {
    rows.iter().map(|row| String::from_utf8_lossy(&row[0]).into_owned()).collect()
}

#[test]
#[needs(MariaDb, Openssl)]
fn each_statement_of_a_group_has_its_own_answer() {
    let server = Server::shared();
    assert!(!server.session(&SessionOptions::default()).group_statements(), "prepared ones travel alone");
    for session in server.sessions(&text()) {
        let (mut session, insert, select) = grouping(session);
        // More than the pipeline's depth, with all characters at which a text could be split.
        for id in 0..20 {
            session.submit(insert, &[Param::Int(id), Param::Text(b"a;'b\\;\"c -- ;")]).unwrap();
            session.submit(select, &[]).unwrap();
        }
        for id in 0..20 {
            assert_eq!(answer(&mut session, 0).unwrap().0.affected, 1);
            let (done, rows) = answer(&mut session, 2).unwrap();
            assert_eq!((done.rows, rows.len()), (id + 1, id as usize + 1));
            assert!(rows.iter().all(|row| row[1] == b"a;'b\\;\"c -- ;"));
        }
        assert!(answer(&mut session, 0).is_err(), "nothing is under way");
        // A statement submitted after the first is sent becomes a separate request.
        session.submit(select, &[]).unwrap();
        session.submit(insert, &[Param::Int(20), Param::Null]).unwrap();
        assert_eq!(answer(&mut session, 2).unwrap().0.rows, 20);
        session.submit(select, &[]).unwrap();
        assert_eq!(answer(&mut session, 0).unwrap().0.affected, 1);
        assert_eq!(answer(&mut session, 2).unwrap().0.rows, 21);
        // An unprepared statement is sent alone, and so is the one after it.
        session.submit_text("SELECT 5").unwrap();
        session.submit(select, &[]).unwrap();
        session.submit_text("SELECT 6").unwrap();
        assert_eq!(ids(&answer(&mut session, 1).unwrap().1), ["5"]);
        assert_eq!(answer(&mut session, 2).unwrap().0.rows, 21);
        assert_eq!(ids(&answer(&mut session, 1).unwrap().1), ["6"]);
    }
}

/// The first failed statement is the last to be executed: after a deadlock, the rest would run outside the transaction.
#[test]
#[needs(MariaDb, Openssl)]
fn statements_after_a_failed_one_are_not_executed() {
    let server = Server::shared();
    for session in server.sessions(&text()) {
        let (mut session, insert, select) = grouping(session);
        fetch(&mut session, insert, &[Param::Int(1), Param::Null], 0).unwrap();
        let begin = session.prepare("BEGIN").unwrap();
        let rollback = session.prepare("ROLLBACK").unwrap();
        for place in 0..4 {
            session.submit(begin, &[]).unwrap();
            for nth in 0..4 {
                let id = if nth == place { 1 } else { 10 + nth };
                session.submit(insert, &[Param::Int(id), Param::Null]).unwrap();
            }
            answer(&mut session, 0).unwrap();
            for nth in 0..4 {
                match answer(&mut session, 0) {
                    Ok((done, _)) => assert!(nth < place && done.affected == 1, "{nth} of {place}"),
                    Err(EngineError::Duplicate(_)) => assert_eq!(nth, place),
                    Err(error) => assert!(nth > place && error.to_string().contains("left out"), "{error}"),
                }
            }
            let (_, rows) = fetch(&mut session, select, &[], 1).unwrap();
            let expected: Vec<String> =
                std::iter::once(1).chain((0..place).map(|nth| 10 + nth)).map(|id| id.to_string()).collect();
            assert_eq!(ids(&rows), expected, "and the transaction goes on");
            fetch(&mut session, rollback, &[], 0).unwrap();
            assert_eq!(fetch(&mut session, select, &[], 1).unwrap().0.rows, 1);
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn group_may_exceed_the_socket_buffer() {
    let server = Server::shared();
    for session in server.sessions(&text()) {
        let (mut session, insert, select) = grouping(session);
        let long = vec![b'x'; 3 << 20];
        for id in 0..6 {
            session.submit(insert, &[Param::Int(id), Param::Text(&long)]).unwrap();
            session.submit(select, &[]).unwrap();
        }
        for id in 0..6 {
            assert_eq!(answer(&mut session, 0).unwrap().0.affected, 1);
            assert_eq!(answer(&mut session, 2).unwrap().0.rows, id + 1);
        }
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_group_whose_connection_is_lost_is_cut_off_as_a_whole() {
    let server = Server::shared();
    let options = SessionOptions { on_lost: OnLost::Reconnect, ..text() };
    let mut session = server.session(&options);
    assert!(session.group_statements());
    let select = session.prepare("SELECT 7").unwrap();
    let kill = session.prepare("KILL CONNECTION CONNECTION_ID()").unwrap();
    for statement in [select, kill, select] {
        session.submit(statement, &[]).unwrap();
    }
    assert_eq!(ids(&answer(&mut session, 1).unwrap().1), ["7"]);
    for _ in 0..2 {
        assert!(matches!(answer(&mut session, 0), Err(EngineError::CutOff(_))));
    }
    assert_eq!(ints(&mut session, "SELECT 8").unwrap(), [8]);
}
