//! What an event of a script costs the client: instructions, allocations. Against the null server, so that nothing but the
//! client is measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "../examples/script_cost.rs"]
#[allow(dead_code)] // Its command line.
mod script_cost;

use std::path::Path;

use rumba_lab::run::stop::RunClock;
use rumba_null_server::{Config, Listen, NullServer};
use rumba_testkit::allocations::{self, Counting};
use rumba_testkit::instructions::{self, Work};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn server(dir: &Path) -> NullServer {
    NullServer::start(&Config::new(Listen::Socket(dir.join("s")))).unwrap()
}

fn events(dir: &Path, events: u64, script: &str) {
    script_cost::run(dir.join("s").to_str().unwrap(), events, script).unwrap();
}

#[test]
fn an_event_of_a_script_allocates_nothing() {
    const FEW: u64 = 2_000;
    const EVENTS: u64 = 5_000;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    for script in ["oltp_point_select", "oltp_read_only", "oltp_read_write"] {
        let cost = |count| {
            let before = allocations::count();
            events(dir.path(), count, script);
            allocations::count() - before
        };
        // What connecting takes is in both, and most of what LuaJIT's compiler does; but it leaves to chance when it tries
        // a loop again that it could not compile, and allocates for each try. What an event allocates is there every time.
        let mut all = Vec::new();
        while all.len() < 4 && all.iter().all(|each| *each >= EVENTS / 20) {
            let (few, many) = (cost(FEW), cost(FEW + EVENTS));
            all.push(many.abs_diff(few));
        }
        assert!(all.iter().any(|each| *each < EVENTS / 20), "{script}: {all:?} allocations of {EVENTS} events");
    }
}

/// In the build that tests are of; `scripts/instructions` counts in the release, which would be made for this test alone.
#[test]
#[needs(Valgrind)]
fn a_point_select_of_a_script_takes_no_more_instructions_than_allowed() {
    // From 1860 to 1890 are counted in a build for debugging, with what counts allocations; 1321 in the release.
    const MOST: u64 = 1955;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let but_for = Some("*calibrate_the_clock*");
    let selects = Work { test: "point_selects", directory: dir.path(), but_for };
    // LuaJIT leaves to chance when it tries a loop again that it could not compile: the best of three.
    selects.takes_at_most(MOST, 5_000..25_000, 3);
}

/// It lasts for a time and not for a number of instructions, which would be the noise of what is counted.
#[inline(never)]
fn calibrate_the_clock() {
    std::hint::black_box(RunClock::start());
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn point_selects() {
    let Some(asked) = instructions::asked() else { return };
    calibrate_the_clock();
    events(&asked.directory, asked.operations, "oltp_point_select");
}
