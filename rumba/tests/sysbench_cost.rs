//! The client's cost of a script's event: instructions and allocations. The null server is used, so that only the
//! client is measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "../examples/script_cost.rs"]
#[allow(dead_code)] // Its command line.
mod script_cost;

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::worker::{Client, Op, OpKind, Pace};
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::ClientPace;
use rumba_lab::run::stop::RunClock;
use rumba_null_server::{Config, Listen, NullServer};
use rumba_testkit::allocations::{self, Counting};
use rumba_testkit::instructions::{self, Work};
use rumba_testkit::mariadb::MariaDb;
use rumba_workload_sysbench::{Interpreter, memory};
use script_cost::ScriptInvocation;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn server(dir: &Path) -> NullServer {
    NullServer::start(&Config::new(Listen::Socket(dir.join("s")))).unwrap()
}

fn events(dir: &Path, events: u64, script: &str) {
    script_cost::run(dir.join("s").to_str().unwrap(), events, script).unwrap();
}

/// A point select that names its operation, and counts.
const MEASURED: &str = "
rumba.operations, rumba.counters = { 'even', 'odd' }, { 'rows' }
function thread_init()
   con = sysbench.sql.driver():connect()
   stmt = con:prepare('SELECT c FROM sbtest1 WHERE id = ?')
   id = stmt:bind_create(sysbench.sql.type.INT)
   stmt:bind_param(id)
end
function event()
   local number = sysbench.rand.uniform(1, 100)
   if number % 2 == 0 then rumba.op('even') else rumba.op('odd') end
   id:set(number)
   stmt:execute()
   rumba.count('rows', number)
   rumba.logical_bytes(number)
end
";

#[test]
fn an_event_of_a_script_allocates_nothing() {
    const FEW: u64 = 2_000;
    const EVENTS: u64 = 5_000;
    // One run without a retry of the compiler is enough; four in a row with one have occurred.
    const TRIES: usize = 16;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let measured = dir.path().join("measured.lua");
    std::fs::write(&measured, MEASURED).unwrap();
    for script in ["oltp_point_select", "oltp_read_only", "oltp_read_write", measured.to_str().unwrap()] {
        // LuaJIT's allocations come from a separate memory.
        let allocated = || allocations::count() + memory::given();
        let cost = |count| {
            let before = allocated();
            events(dir.path(), count, script);
            allocated() - before
        };
        // The cost of connecting is in both counts, and most of the cost of LuaJIT's compiler. It is random, however,
        // when LuaJIT retries a loop that it could not compile, and each retry allocates. The allocations of an event
        // itself occur every time.
        let mut all = Vec::new();
        while all.len() < TRIES && all.iter().all(|each| *each >= EVENTS / 20) {
            let (few, many) = (cost(FEW), cost(FEW + EVENTS));
            all.push(many.abs_diff(few));
        }
        assert!(all.iter().any(|each| *each < EVENTS / 20), "{script}: {all:?} allocations of {EVENTS} events");
    }
}

/// Lets this many events through, and then makes the client wait.
struct Paused {
    pace: ClientPace,
    left: u64,
}

impl Pace for Paused {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        let Some(left) = self.left.checked_sub(1) else { return Poll::Pending };
        self.left = left;
        self.pace.poll_turn(context)
    }

    fn start(&mut self, kind: OpKind) {
        self.pace.start(kind);
    }

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        self.pace.done(kind, op)
    }
}

/// Hundreds of clients each have an interpreter, so its size counts for each.
#[test]
fn a_client_with_its_interpreter_is_small() {
    // The memory of interpreters is allocated for several of them at once.
    const CLIENTS: usize = 40;
    // 177,100 are counted. When malloc allocated LuaJIT's pieces, its headers took some 20,000 more, which are not
    // counted here.
    const MOST: i64 = 178_000;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let cells = Arc::new(Cells::new(1));
    let socket = dir.path().join("s");
    let requested = ScriptInvocation::run(socket.to_str().unwrap(), "oltp_point_select");
    let mut runs = Vec::new();
    let before = allocations::bytes();
    for _ in 0..CLIENTS {
        // They are measured, and freed with the test's process.
        let client = Box::leak(Box::new(requested.client().unwrap()));
        let pace = Box::leak(Box::new(Paused { pace: ClientPace::alone(cells.clone()), left: 1_000 }));
        let mut run = client.run(pace);
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        runs.push(run);
    }
    let each = (allocations::bytes() - before) / CLIENTS as i64;
    println!("a client with its interpreter takes {each} bytes");
    assert!(each <= MOST, "{each} bytes");
}

/// In the tests' own build; `scripts/instructions` counts in the release build, which would be made only for this test.
#[test]
#[needs(Valgrind)]
fn point_select_script_stays_within_its_instruction_limit() {
    // Some 1940 are counted in a debug build, including the allocation counter; runs differ by 50.
    const MOST: u64 = 1990;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let but_for = Some("*calibrate_the_clock*");
    let selects = Work { test: "point_selects", directory: dir.path(), but_for };
    // It is random when LuaJIT retries a loop that it could not compile, so the best of three counts.
    selects.takes_at_most(MOST, 5_000..25_000, 3);
}

/// It runs for a time and not for a number of instructions, which would add noise to the count.
#[inline(never)]
fn calibrate_the_clock() {
    std::hint::black_box(RunClock::start());
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn point_selects() {
    let Some(requested) = instructions::requested() else { return };
    calibrate_the_clock();
    events(&requested.directory, requested.operations, "oltp_point_select");
}

/// A row of `prepare`: drawn, placed next to others, and sent by COM_STMT_BULK_EXECUTE.
#[test]
#[needs(MariaDb, Valgrind)]
fn a_row_of_prepare_takes_no_more_instructions_than_allowed() {
    // 4425 are counted in a debug build; when digits were drawn in pairs there were 7590.
    const MOST: u64 = 4600;
    let server = MariaDb::start(&[]);
    let rows = Work { test: "rows_of_prepare", directory: &server.socket(), but_for: None };
    rows.takes_at_most(MOST, 10_000..50_000, 3);
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn rows_of_prepare() {
    let Some(requested) = instructions::requested() else { return };
    let begins =
        ["CREATE DATABASE IF NOT EXISTS rows_of_prepare", "USE rows_of_prepare", "DROP TABLE IF EXISTS sbtest1"];
    let requested = ScriptInvocation {
        socket: requested.directory.to_str().unwrap(),
        begins: &begins,
        script: "oltp_point_select",
        command: "prepare",
        options: &[("table_size", requested.operations as f64)],
    };
    let interpreter = Interpreter::new(&requested.setup().unwrap(), 0, Arc::default()).unwrap();
    assert!(interpreter.call_command("prepare").unwrap());
}

/// A list of ten values and its ten rows, which are kept until the script reads them.
#[test]
#[needs(Valgrind)]
fn random_points_script_stays_within_its_instruction_limit() {
    // From 11,100 are counted in a debug build; 8,360 in the release, and 20,975 in sysbench 1.0.20.
    const MOST: u64 = 11_700;
    let dir = tempfile::tempdir().unwrap();
    let columns = ["id:int", "k:int", "c:text", "pad:text"].map(|column| column.parse().unwrap()).to_vec();
    let listen = Listen::Socket(dir.path().join("s"));
    let _server = NullServer::start(&Config { rows: 10, columns, ..Config::new(listen) }).unwrap();
    let but_for = Some("*calibrate_the_clock*");
    let points = Work { test: "random_points", directory: dir.path(), but_for };
    points.takes_at_most(MOST, 5_000..15_000, 3);
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn random_points() {
    let Some(requested) = instructions::requested() else { return };
    calibrate_the_clock();
    events(&requested.directory, requested.operations, "select_random_points");
}
