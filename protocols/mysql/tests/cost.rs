//! What a session costs: memory, allocations, instructions. Against the null
//! server, so that nothing but the client is measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use rumba_testkit::allocations::{self, Counting};
use std::path::Path;
use std::process::Command;

use rumba_core::sql::{Param, Row, SqlSession, Statement};
use rumba_core::worker::block_on;
use rumba_null_server::{Config, Listen, NullServer};
use rumba_protocol_mysql::{Address, SessionOptions, Target, Tls, WireSession};

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

fn select(session: &mut WireSession, statement: Statement, id: i64) {
    let session: &mut dyn SqlSession = session;
    let mut seen = 0;
    let mut visit = |row: &dyn Row| seen = row.bytes(0).len();
    let answer = block_on(session.execute(statement, &[Param::Int(id)], &mut visit)).unwrap();
    assert_eq!((answer.rows, seen), (1, 119));
}

#[test]
fn a_point_select_allocates_nothing() {
    const SELECTS: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    for text in [false, true] {
        let (mut session, statement) = session(dir.path(), &SessionOptions { text, ..SessionOptions::default() });
        select(&mut session, statement, 0);
        let before = allocations::count();
        for id in 0..SELECTS {
            select(&mut session, statement, id as i64);
        }
        // What runs a future makes one waker, which is not the session's.
        assert_eq!(allocations::count() - before - SELECTS, 0, "text: {text}");
    }
}

#[test]
fn a_session_at_rest_is_small() {
    const MOST: i64 = 12 << 10;
    const SESSIONS: usize = 100;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let options = SessionOptions::default();
    let before = allocations::bytes();
    let mut sessions = Vec::with_capacity(SESSIONS);
    for _ in 0..SESSIONS {
        let (mut session, statement) = session(dir.path(), &options);
        for id in 0..10 {
            select(&mut session, statement, id);
        }
        sessions.push(session);
    }
    let each = (allocations::bytes() - before) / SESSIONS as i64;
    println!("a session takes {each} bytes");
    assert!(each <= MOST, "{each} bytes");
}

const DIRECTORY: &str = "RUMBA_TEST_DIRECTORY";
const SELECTS: &str = "RUMBA_TEST_SELECTS";

/// Instructions of this binary in user mode, with so many selects.
fn instructions(dir: &Path, selects: u64) -> u64 {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe().unwrap());
    valgrind.args(["--exact", "selects_of_the_environment", "--ignored", "--test-threads=1"]);
    let output = valgrind.env(DIRECTORY, dir).env(SELECTS, selects.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")).unwrap();
    collected.1.trim().replace(',', "").parse().unwrap()
}

/// In the build that tests are of; `scripts/instructions` counts in the release,
/// which would be made for this test alone.
#[test]
#[needs(Valgrind)]
fn a_point_select_takes_no_more_instructions_than_allowed() {
    const FEW: u64 = 1000;
    const MANY: u64 = 11_000;
    // 1372 are counted, in a build for debugging, which inlines little from one crate into another, and with what
    // counts allocations; a release takes 594.
    const MOST: u64 = 1440;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let each = (instructions(dir.path(), MANY) - instructions(dir.path(), FEW)) / (MANY - FEW);
    println!("{each} user instructions per prepared point select (allowed: {MOST})");
    assert!(each <= MOST, "{each} instructions");
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn selects_of_the_environment() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let selects: i64 = std::env::var(SELECTS).unwrap().parse().unwrap();
    let (mut session, statement) = session(Path::new(&dir), &SessionOptions::default());
    for id in 0..selects {
        select(&mut session, statement, id);
    }
}
