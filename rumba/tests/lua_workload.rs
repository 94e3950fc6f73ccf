//! Lua scripts over keys and values, over real engines.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::process::Command;

use common::{CALM, TestDir, ended, phase, set, text, two_at_a_time};
use serde_json::Value;

/// The script of the book's page.
fn carts() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/run-my-lua-script.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```lua,file=carts.lua\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

fn run(place: &TestDir, engine: &str, more: &[&str]) -> Command {
    let mut command = place.rumba(&["run", "lua", "--engine", engine, "--out", "out", "--quiet"]);
    set(
        &mut command,
        ["script=carts.lua", "clients=2", "load_clients=2", CALM, "warmup=100ms", "loops=1", "loop=400ms"],
    );
    set(&mut command, more.iter());
    command
}

/// Runs the script; the trial's document.
fn trial(engine: &str, more: &[&str]) -> Value {
    let place = TestDir::new();
    std::fs::write(place.path("carts.lua"), carts()).unwrap();
    ended(0, &mut run(&place, engine, more));
    let trial = place.report()["trials"][0].clone();
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    assert!(place.is_clean());
    trial
}

/// A cart is a key of 9 bytes with a value of 100.
fn carts_run_over(engine: &str, more: &[&str]) {
    let trial = trial(engine, &[&["carts=2500"], more].concat());
    let load = phase(&trial, "load").unwrap();
    assert_eq!((load["ops"].as_u64(), load["logical_bytes"].as_f64()), (Some(2500), Some(2500.0 * 109.0)), "{engine}");
    let loops = phase(&trial, "loops").unwrap();
    let ops = loops["op_types"].as_object().unwrap();
    assert_eq!(ops.keys().collect::<Vec<_>>(), ["fill", "list", "look"], "{engine}");
    assert!(ops.values().all(|op| op["count"].as_u64().unwrap() > 0), "{engine}: {ops:?}");
    // A transaction reads and writes one cart.
    let fill = &ops["fill"];
    let [ended, late, retries] = ["count", "ended_late", "retries"].map(|name| fill[name].as_u64().unwrap_or(0));
    let writes = fill["statements"]["writes"].as_u64().unwrap();
    assert!((ended + late..=ended + late + retries).contains(&writes), "{engine}: {writes} writes of {fill}");
    let rows = loops["counted"]["rows"].as_u64().unwrap();
    assert!(rows > 0 && rows.is_multiple_of(10), "{engine}: {rows} rows");
    assert!(phase(&trial, "drain").unwrap()["space_amp"].as_f64().is_some(), "{engine}");
}

#[test]
fn one_script_runs_over_engines_in_the_process() {
    two_at_a_time(&embedded::names(&embedded::here(), |_| true), |engine| carts_run_over(engine, &[]));
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn the_script_runs_over_innodb() {
    carts_run_over("innodb", &["server=mariadb@10.11"]);
}

#[test]
#[needs(Server("postgresql@15"))]
fn the_script_runs_over_postgresql() {
    carts_run_over("postgresql", &["server=postgresql@15"]);
}

/// All functions of keys and values, with keys and values of any bytes.
const ASSERTIONS: &str = r"
local any, empty = 'k\0\255\'\\', ''
function prepare()
   local kv = rumba.kv()
   for n = 1, 5 do kv:put('p' .. n, 'v' .. n) end
   assert(kv:get('p3') == 'v3', 'what is collected is seen')
   assert(not pcall(kv.begin, kv))
end
function thread_init() kv = rumba.kv() assert(rumba.kv() == kv) end
function event()
   assert(kv:get('nothing') == nil and kv:get('p1') == 'v1')
   local rows = kv:scan('p2', 2)
   assert(#rows == 2 and rows[1][1] == 'p2' and rows[2][1] == 'p3' and rows[2][2] == 'v3')
   assert(#kv:scan('p4', 10) == 2 and #kv:scan('q', 10) == 0)
   kv:put(any, empty)
   assert(kv:get(any) == empty)
   kv:put(any, any)
   assert(kv:get(any) == any)
   kv:delete(any)
   kv:delete(any)
   assert(kv:get(any) == nil)
   kv:begin()
   assert(kv:get('p1', true) == 'v1')
   kv:put('p1', 'changed')
   assert(kv:get('p1') == 'changed')
   kv:rollback()
   kv:rollback()
   assert(kv:get('p1') == 'v1')
   kv:begin()
   kv:put('p1', 'v1')
   kv:delete('p9')
   kv:commit()
   assert(not pcall(sysbench.sql.driver().connect, sysbench.sql.driver()))
end
";

#[test]
fn keys_and_values_are_any_bytes_and_transactions_end_whole() {
    for engine in ["lmdb", "rocksdb", "sqlite"] {
        let place = TestDir::new();
        std::fs::write(place.path("carts.lua"), ASSERTIONS).unwrap();
        ended(0, &mut run(&place, engine, &["clients=1", "load_clients=1"]));
        let report = place.report();
        assert!(phase(&report["trials"][0], "loops").unwrap()["ops"].as_u64().unwrap() > 0);
    }
}

/// Guards against lost updates: an event that met a conflict is run again as a whole.
#[test]
fn conflicting_events_are_restarted() {
    let script = "
        rumba.counters = { 'added' }
        function prepare() rumba.kv():put('n', '0') end
        function thread_init() kv = rumba.kv() end
        function event()
           kv:begin()
           local n = tonumber(kv:get('n', true)) + 1
           kv:put('n', tostring(n))
           kv:commit()
           rumba.count('added')
        end
        function thread_done()
           if sysbench.tid == 0 then assert(tonumber(kv:get('n')) > 0) end
        end";
    for engine in ["rocksdb", "sqlite"] {
        let place = TestDir::new();
        std::fs::write(place.path("carts.lua"), script).unwrap();
        ended(0, &mut run(&place, engine, &["clients=4"]));
        let report = place.report();
        let loops = phase(&report["trials"][0], "loops").unwrap();
        assert!(loops["counted"]["added"].as_u64().unwrap() > 0, "{loops}");
    }
}

#[test]
fn missing_and_sql_scripts_are_refused() {
    let place = TestDir::new();
    let refused = |arguments: &[&str]| {
        let output = place.rumba(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        text(&output)
    };
    assert!(refused(&["run", "lua", "--engine", "lmdb"]).contains("the workload needs a script"));
    let bundled = refused(&["run", "lua", "--engine", "lmdb", "--set", "script=oltp_read_only"]);
    assert!(bundled.contains("speaks SQL") && bundled.contains("use the workload sysbench"), "{bundled}");
    std::fs::write(place.path("early.lua"), "kv = rumba.kv() function event() end").unwrap();
    let early = refused(&["run", "lua", "--engine", "lmdb", "--set", "script=early.lua"]);
    assert!(early.contains("rumba.kv"), "{early}");
}
