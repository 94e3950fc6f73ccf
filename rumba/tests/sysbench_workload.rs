//! sysbench's scripts as an experiment's workload, over real engines.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "sysbench_workload/measures.rs"]
mod measures;

use std::process::{Command, Output};

use common::{CALM, TestDir, phase, text};
use rumba_engine_api::workload::SCRIPT_TEXT;
use serde_json::Value;

const TABLES: &str = "options=--tables=3 --table-size=400";
/// More rows than one batch holds: ids must have no holes between batches.
const SEVERAL_BATCHES: &str = "options=--tables=3 --table-size=7000";

fn run(place: &TestDir, engine: &str, more: &[&str]) -> Command {
    run_into(place, "out", engine, more)
}

fn run_into(place: &TestDir, out: &str, engine: &str, more: &[&str]) -> Command {
    let mut command = place.rumba(&["run", "sysbench", "--engine", engine, "--out", out, "--quiet"]);
    for set in ["clients=2", CALM, "load_clients=2", "warmup=100ms", "loops=1", "loop=400ms"] {
        command.args(["--set", set]);
    }
    for set in more {
        command.args(["--set", set]);
    }
    command
}

/// Runs it to its end; its trials.
fn trials(place: &TestDir, engine: &str, more: &[&str]) -> Vec<Value> {
    let output = run(place, engine, more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report = place.report();
    assert!(place.is_clean());
    report["trials"].as_array().unwrap().clone()
}

/// The same into another place.
fn trials_in(place: &TestDir, out: &str, more: &[&str]) -> Vec<Value> {
    let output = run_into(place, out, "sqlite", more).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let output = place.rumba(&["report", out, "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["trials"].as_array().unwrap().clone()
}

fn in_a_line(output: &Output) -> String {
    text(output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// Events were measured, and the tables have the expected content.
fn measured(trial: &Value) {
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    let events = &phase(trial, "loop 1").unwrap()["op_types"]["event"];
    assert!(events["count"].as_u64().unwrap() > 0, "{events}");
    let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 2, "{checks:?}");
    for check in checks {
        assert_eq!(check["wrong"], 0, "{check}");
        assert!(check["examined"].as_u64().unwrap() >= 3, "{check}");
    }
}

#[test]
fn repeats_start_from_the_rows_that_prepare_has_loaded() {
    let place = TestDir::new();
    let all = trials(&place, "sqlite", &[TABLES, "repeats=2", "repeats_from=kept"]);
    assert_eq!(all.len(), 3);
    let load = phase(&all[0], "load").unwrap();
    assert_eq!(load["ops"], 1200, "rows: {load}");
    // id, k, c and pad, and an entry of the index on k.
    assert_eq!(load["logical_bytes"], f64::from(1200 * (186 + 8)), "{load}");
    all[1..].iter().for_each(measured);
    assert_eq!(phase(&all[1], "loop 1").unwrap()["logical_bytes"], f64::from(1200 * (186 + 8)));
    assert_eq!(all[1]["conditions"]["script"], "oltp_read_write", "{}", all[1]["conditions"]);
}

fn runs_over(engine: &str, server: &str) {
    let place = TestDir::new();
    for (number, script) in ["oltp_read_write", "micro"].into_iter().enumerate() {
        let script = format!("script={script}");
        let server = format!("server={server}");
        let out = format!("out{number}");
        let output = run_into(&place, &out, engine, &[SEVERAL_BATCHES, &script, &server]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let output = place.rumba(&["report", &out, "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        measured(&report["trials"][0]);
    }
    assert!(place.is_clean());
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn scripts_run_over_innodb() {
    runs_over("innodb", "mariadb@10.11");
}

#[test]
#[needs(Server("mariadb@11.8"))]
fn scripts_run_over_myrocks() {
    runs_over("myrocks", "mariadb@11.8");
}

#[test]
#[needs(Server("postgresql@15"))]
fn scripts_run_over_postgresql() {
    runs_over("postgresql", "postgresql@15");
}

/// One of its options has the name of a sysbench option with other values.
const OWN: &str = "
sysbench.cmdline.options = { rows = {'How many', 10}, rand_type = {'Which', 'none'} }
function prepare()
   local con = sysbench.sql.driver():connect()
   con:query('CREATE TABLE own (id INTEGER PRIMARY KEY, word VARCHAR(20))')
   con:bulk_insert_init('INSERT INTO own VALUES')
   for id = 1, sysbench.opt.rows do con:bulk_insert_next('(' .. id .. ', \\'word\\')') end
   con:bulk_insert_done()
   print('done')
end
function thread_init() con = sysbench.sql.driver():connect() assert(sysbench.opt.rand_type == 'none') end
function event()
   assert(sysbench.opt.threads == 2)
   assert(con:query_row('SELECT word FROM own WHERE id = ' .. sysbench.rand.uniform(1, sysbench.opt.rows)) == 'word')
end
";

#[test]
fn user_script_runs_unchanged() {
    let place = TestDir::new();
    std::fs::write(place.path("own.lua"), OWN).unwrap();
    let output =
        run(&place, "sqlite", &["script=own.lua", "options=--rows=70", "load_clients=4"]).arg("--json").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("what the script prints is not among it");
    let trial = &report["trials"][0];
    assert_eq!(phase(trial, "load").unwrap()["ops"], 70);
    assert!(phase(trial, "loop 1").unwrap()["ops"].as_u64().unwrap() > 0);
    assert!(trial["conditions"]["verification"].as_str().unwrap().starts_with("none: "), "{}", trial["conditions"]);

    // An error of the script ends the trial with the script's message.
    std::fs::write(place.path("own.lua"), OWN.replace("== 'word')", "== 'another')")).unwrap();
    let output = run_into(&place, "failed", "sqlite", &["script=own.lua"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("own.lua:14: assertion failed!"), "{}", text(&output));
    assert!(place.is_clean());
}

/// Guards against a wrong ratio. A table that had grown to 600 MB was once divided by the 43 KB of the load, giving
/// 14,456 bytes per byte.
#[test]
fn a_script_that_writes_rows_has_no_logical_size_after() {
    let place = TestDir::new();
    let writing =
        format!("{OWN}\nlocal read = event\nfunction event() read() con:query([[UPDATE own SET word = 'word']]) end\n");
    std::fs::write(place.path("own.lua"), writing).unwrap();
    let trial = &trials(&place, "sqlite", &["script=own.lua"])[0];
    assert!(
        phase(trial, "load").unwrap()["logical_bytes"].as_f64().unwrap() > 70.0,
        "what bulk_insert is given counts"
    );
    let after = phase(trial, "loop 1").unwrap();
    for metric in ["logical_bytes", "space_amp"] {
        let reason = after[metric]["absent"].as_str().unwrap_or_else(|| panic!("{metric}: {}", after[metric]));
        assert!(reason.contains("events changed rows"), "{reason}");
    }
    // Rows that the load inserts by its own statements are not counted either.
    let more = "con:query([[INSERT INTO own VALUES (1000, 'word')]]) print('done')";
    std::fs::write(place.path("own.lua"), OWN.replace("print('done')", more)).unwrap();
    let trial = &trials_in(&place, "more", &["script=own.lua"])[0];
    let load = phase(trial, "load").unwrap();
    for metric in ["logical_bytes", "space_amp", "write_amp"] {
        assert!(
            load[metric]["absent"].as_str().unwrap().contains("by its own statements"),
            "{metric}: {}",
            load[metric]
        );
    }
}

#[test]
fn logical_bytes_follow_the_rows_that_events_insert_and_delete() {
    let place = TestDir::new();
    for (out, script, sign) in [("inserted", "oltp_insert", 1.0), ("deleted", "oltp_delete", -1.0)] {
        let trial = &trials_in(&place, out, &[TABLES, &format!("script={script}")])[0];
        let bytes = |name: &str| phase(trial, name).unwrap()["logical_bytes"].as_f64().unwrap();
        let rows = sign * (bytes("drain") - bytes("load")) / f64::from(186 + 8);
        assert_eq!(rows, rows.round(), "{script}");
        let events = phase(trial, "loops").unwrap()["ops"].as_f64().unwrap();
        // A row may be deleted twice, and the second time has no effect.
        assert!(if sign > 0.0 { rows >= events } else { rows > 0.0 && rows <= 1200.0 }, "{script}: {rows} of {events}");
    }
}

/// Guards against a crash: the script's function was once looked up without protection, and the process ended.
#[test]
fn script_error_in_function_lookup_ends_the_trial_verbatim() {
    let place = TestDir::new();
    let script = "sysbench.cmdline = setmetatable({ options = {}, commands = { prepare = { function() end } } },
        { __index = function(_, name) error('there is no ' .. name) end })
        function event() end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let output = run(&place, "sqlite", &["script=own.lua"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let words = "`prepare' function failed: own.lua:2: there is no call_command";
    assert!(in_a_line(&output).contains(words), "{}", text(&output));
    assert!(place.is_clean());
}

#[test]
fn suite_tests_share_one_load_and_are_compared_per_test() {
    let place = TestDir::new();
    let file = r#"
name = "suite"
[workload.sysbench]
options = "--tables=2 --table-size=300"
suite = "point-pk,insert"
[run]
clients = 2
load_clients = 2
repeats = 2
warmup = "100ms"
loops = 1
loop = "200ms"
[[engine]]
name = "full"
use = "sqlite"
[[engine]]
name = "small"
use = "sqlite"
cache = "4MiB"
[[claim]]
text = "Reading a row is faster than inserting one."
holds = 'ops_per_s("full/point-pk") > ops_per_s("full/insert")'
"#;
    std::fs::write(place.path("suite.toml"), file).unwrap();
    let output = place.rumba(&["run", "suite.toml", "--out", "out", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    place.undisturbed("out");
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    let names: Vec<&str> = trials.iter().map(|trial| trial["engine"].as_str().unwrap()).collect();
    let turn = ["full/point-pk", "small/point-pk", "full/insert", "small/insert"];
    let back = ["small/point-pk", "full/point-pk", "small/insert", "full/insert"];
    assert_eq!(names, [&["full", "small"][..], &turn, &["small", "full"], &back].concat());
    let loads = trials.iter().filter(|trial| phase(trial, "load").is_some()).count();
    assert_eq!(loads, 4, "one of each engine for each repeat");
    // Rows are compared with those of the same test alone.
    let relative = report["summary"]["relative"].as_array().unwrap();
    let of_full = relative.iter().find(|relative| relative["baseline"] == "full").unwrap();
    let rows: Vec<&str> =
        of_full["rows"].as_array().unwrap().iter().map(|row| row["engine"].as_str().unwrap()).collect();
    assert_eq!(rows, ["small/point-pk", "small/insert"]);
    let tables = text(&output);
    assert!(tables.contains("Relative to full "), "{tables}");
    let claim = &report["summary"]["claims"][0];
    assert!(claim["seen"] == true && claim["measured"].as_f64().unwrap() > 1.0, "{claim}");
    // An interrupted run continues with its current test.
    std::fs::remove_dir_all(place.path("out/trials/012-full_insert-c2-r2")).unwrap();
    let output = place.rumba(&["run", "--resume", "out", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(place.is_clean());
}

/// Trials of two script texts are not repeats of each other, even from one file.
#[test]
fn changed_module_prevents_a_resume() {
    let place = TestDir::new();
    std::fs::write(place.path("mine.lua"), "require('theirs')\nfunction event() theirs() end\n").unwrap();
    let module = |text: &str| std::fs::write(place.path("theirs.lua"), text).unwrap();
    module("function theirs() end\n");
    let mut command = place.rumba(&["run", "sysbench", "--engine", "sqlite", "--out", "out", "--quiet"]);
    for set in ["script=mine.lua", "clients=1", "warmup=0s", "loops=1", "loop=200ms", "repeats=2", "repeats_from=kept"]
    {
        command.args(["--set", set]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    std::fs::remove_dir_all(place.path("out/trials/003-sqlite-c1-r2")).unwrap();
    module("function theirs() return 1 end\n");
    let output = place.rumba(&["run", "--resume", "out", "--quiet"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("the script was") && text(&output).contains("with a module"), "{}", text(&output));
    module("function theirs() end\n");
    let output = place.rumba(&["run", "--resume", "out", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

/// Trials of two C modules are therefore not repeats of each other either. Guards against missing symbols too: modules
/// once found no Lua functions in the program, and `require` failed.
#[test]
#[needs(CCompiler)]
fn a_module_in_c_is_a_part_of_the_script_s_text() {
    let place = TestDir::new();
    let module = "typedef struct lua_State lua_State;
        long luaL_checkinteger(lua_State *, int);
        void lua_pushinteger(lua_State *, long);
        void lua_pushcclosure(lua_State *, int (*)(lua_State *), int);
        static int twice(lua_State *lua) { lua_pushinteger(lua, 2 * luaL_checkinteger(lua, 1)); return 1; }
        int luaopen_twice(lua_State *lua) { lua_pushcclosure(lua, twice, 0); return 1; }";
    std::fs::write(place.path("twice.c"), module).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(place.path("twice.so")).arg(place.path("twice.c"));
    assert!(compiler.status().unwrap().success());
    let script = "local twice = require('twice') function event() assert(twice(2) == 4) end";
    std::fs::write(place.path("mine.lua"), script).unwrap();
    let all = trials(&place, "sqlite", &["script=mine.lua"]);
    let reported = all[0]["conditions"][SCRIPT_TEXT].as_str().unwrap();
    assert!(reported.contains(" bytes with a module, SHA-256 "), "{reported}");
}

/// A script's options work like the experiment's own settings: in its file, on the command line in any order, and
/// checked before anything is made.
#[test]
fn a_scripts_options_are_settings_of_the_experiment() {
    let place = TestDir::new();
    let file = |settings: &str| {
        let rest = "[run]\nclients = 1\nload_clients = 1\nwarmup = \"0s\"\nloops = 1\nloop = \"200ms\"\n[[engine]]\nname = \"sqlite\"\n";
        format!("name = \"named\"\n[workload.sysbench]\n{settings}\n{rest}")
    };
    std::fs::write(place.path("named.toml"), file("tables = 2\ntable-size = 300\nrand_type = \"uniform\"")).unwrap();
    let output = place.rumba(&["run", "named.toml", "--out", "out", "--set", "tables=3", "--quiet"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report = place.report();
    let trial = &report["trials"][0];
    measured(trial);
    assert_eq!(phase(trial, "load").unwrap()["ops"], 900, "three tables of 300 rows");
    assert_eq!(trial["conditions"]["script options"], "--rand_type=uniform --table-size=300 --tables=3");

    std::fs::write(place.path("own.lua"), OWN).unwrap();
    let own = trials_in(&place, "own", &["rows=70", "script=own.lua"]);
    assert_eq!(phase(&own[0], "load").unwrap()["ops"], 70);

    std::fs::write(place.path("wrong.toml"), file("tabels = 3")).unwrap();
    let output = place.rumba(&["run", "wrong.toml", "--out", "wrong"]).output().unwrap();
    let words = in_a_line(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("wrong.toml:3:1"), "{words}");
    assert!(words.contains("the script oltp_read_write has no option of this name"), "{words}");
    assert!(words.contains("did you mean `tables`?"), "{words}");
    assert!(place.is_clean());
}

#[test]
fn broken_and_choosy_scripts_are_refused_before_creation() {
    let place = TestDir::new();
    std::fs::write(place.path("broken.lua"), "function event( end").unwrap();
    let script = "sysbench.cmdline.options = { rows = {'How many', 1, nil, function(_, value)
        return ffi.string(value) ~= '0' end} } function event() end";
    std::fs::write(place.path("choosy.lua"), script).unwrap();
    for (more, reported) in [
        (&["script=broken.lua"][..], "broken.lua:1: "),
        (&["script=choosy.lua", "rows=0"], "rows: the script choosy.lua does not take `0`"),
        (&["script=choosy.lua", "options=--rows=0"], "invalid option: --rows=0"),
    ] {
        let output = run(&place, "sqlite", more).output().unwrap();
        let words = in_a_line(&output);
        assert!(output.status.code() == Some(2) && words.contains(reported), "{more:?}: {words}");
    }
    assert!(!place.path("out").exists());
}

/// A test that reads after the writes uses tables that were written to, which its record reports, and verifies them as
/// well.
#[test]
fn a_test_after_the_writes_begins_with_them_from_the_same_load() {
    let place = TestDir::new();
    let all = trials(&place, "sqlite", &["suite=point-query-post", TABLES]);
    let worn = &all[0];
    measured(worn);
    assert_eq!(worn["engine"], "sqlite/point-query-post");
    let options = worn["conditions"]["script options"].as_str().unwrap();
    assert_eq!(options, "--tables=3 --table-size=400 --writes_before=10");
    let events = &phase(worn, "loop 1").unwrap()["op_types"];
    assert_eq!(events.as_object().unwrap().len(), 1, "what came before is no operation: {events}");
}

/// If the script draws ids itself, the tables begin without rows.
#[test]
fn inserts_with_ids_of_their_own_are_proven_from_empty_tables() {
    let place = TestDir::new();
    let more = ["script=oltp_insert", "tables=3", "table_size=1000000", "auto_inc=false"];
    trials(&place, "sqlite", &more).iter().for_each(measured);
}
