//! The cost of a session in memory, allocations and instructions, with the null server, so that only the client is
//! measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::path::Path;

use rumba_engine_api::sql::{SqlSession, Statement};
use rumba_null_server::{Config, Listen, NullServer};
use rumba_protocol_mysql::{Address, SessionOptions, Target, Tls, WireSession};
use rumba_testkit::allocations::Counting;
use rumba_testkit::cost::{self, point_select};
use rumba_testkit::instructions::{self, Work};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn server(dir: &Path) -> NullServer {
    NullServer::start(&Config::new(Listen::Socket(dir.join("s")))).unwrap()
}

fn session(dir: &Path, options: &SessionOptions) -> (WireSession, Statement) {
    let address = Address::Socket(dir.join("s"));
    let target = Target { address, user: "root".into(), password: Default::default(), database: None, tls: Tls::Off };
    let mut session = WireSession::connect(&target, options).unwrap();
    let statement = session.prepare("SELECT c FROM sbtest1 WHERE id=?").unwrap();
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
    // The count is 1440 in a debug build, which has little inlining across crates, and with the counting allocator. In
    // a release build it is 593.
    const MOST: u64 = 1480;
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
