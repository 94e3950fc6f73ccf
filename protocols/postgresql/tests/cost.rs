//! The cost of a session in memory, allocations and instructions, with the null server, so that only the client is
//! measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::path::Path;

use rumba_engine_api::sql::{Param, SqlSession, Statement};
use rumba_engine_api::worker::block_on;
use rumba_null_server::{Config, Listen, NullServer, Protocol};
use rumba_protocol_postgresql::{Address, PgSession, SessionOptions, Target, Tls};
use rumba_testkit::allocations::Counting;
use rumba_testkit::cost::{self, point_select};
use rumba_testkit::instructions::{self, Work};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn server(dir: &Path) -> NullServer {
    let mut config = Config::new(Listen::Socket(dir.join("s")));
    config.protocol = Protocol::PostgreSql;
    NullServer::start(&config).unwrap()
}

fn session(dir: &Path, options: &SessionOptions) -> (PgSession, Statement) {
    let address = Address::Socket(dir.join("s"));
    let target = Target { address, user: "any".into(), password: Default::default(), database: None, tls: Tls::Off };
    let mut session = PgSession::connect(&target, options).unwrap();
    let statement = session.prepare("SELECT c FROM sbtest1 WHERE id = $1").unwrap();
    (session, statement)
}

#[test]
fn a_point_select_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    for text in [false, true] {
        let (mut session, statement) = session(dir.path(), &SessionOptions { text, ..SessionOptions::default() });
        cost::allocates_nothing(1, |id| point_select(&mut session, statement, id as i64));
    }
}

#[test]
fn a_session_at_rest_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    cost::is_small_at_rest(|| {
        let (mut session, statement) = session(dir.path(), &SessionOptions::default());
        (0..10).for_each(|id| point_select(&mut session, statement, id));
        session
    });
}

/// Counts in the test build; `scripts/instructions` counts in a release build, which would be built for this test
/// alone.
#[test]
#[needs(Valgrind)]
fn a_point_select_takes_no_more_instructions_than_allowed() {
    // The count is 1318 in a debug build with the counting allocator. In a release build it is 634.
    const MOST: u64 = 1360;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let selects = Work { test: "point_selects", directory: dir.path(), but_for: None };
    selects.takes_at_most(MOST, 1_000..11_000, 1);
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn point_selects() {
    let Some(requested) = instructions::requested() else { return };
    let (mut session, statement) = session(&requested.directory, &SessionOptions::default());
    for id in 0..requested.operations {
        point_select(&mut session, statement, id as i64);
    }
}

/// Rows of LinkBench's links, with their `numeric` columns.
#[test]
#[needs(PostgreSql, Valgrind)]
fn a_row_by_copy_takes_no_more_instructions_than_allowed() {
    // The count is 1098 in a debug build, including those to create the row. With the text format it was 1746.
    const MOST: u64 = 1150;
    let server = PostgreSql::start(&[], &[]);
    let rows = Work { test: "rows_by_copy", directory: &server.socket(), but_for: None };
    rows.takes_at_most(MOST, 10_000..60_000, 1);
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn rows_by_copy() {
    const BATCH: u64 = 1_000;
    let Some(requested) = instructions::requested() else { return };
    let address = Address::Socket(requested.directory);
    let (user, database) = (SUPERUSER.into(), Some("postgres".into()));
    let target = Target { address, user, password: Default::default(), database, tls: Tls::Off };
    let mut session = PgSession::connect(&target, &SessionOptions::default()).unwrap();
    let session: &mut dyn SqlSession = &mut session;
    session
        .run("CREATE TEMPORARY TABLE links (id1 numeric(20), type numeric(20), time numeric(20), data text)")
        .unwrap();
    let table = session.prepare_rows("links", &["id1", "type", "time", "data"]).unwrap();
    let data = b"some thirty characters, and one is \\";
    let row = |id| [Param::Int(id), Param::Int(123_456_789), Param::Int(1_511_481_600_000 + id), Param::Bytes(data)];
    for batch in 0..requested.operations / BATCH {
        let first = (batch * BATCH) as i64;
        let values: Vec<Param<'_>> = (first..first + BATCH as i64).flat_map(row).collect();
        assert_eq!(block_on(session.load_rows(table, &values)).unwrap().affected, BATCH);
    }
}
