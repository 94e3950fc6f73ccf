//! Too little memory, and trials that stall. rumba reports them before the start if they are predictable, and otherwise
//! at once; a stall is never silent.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::process::Output;

use common::{CALM, TestDir, children, ended, kill, phase, set, start_long_run, text};
use serde_json::Value;

const EXPERIMENT: &str = r#"name = "memory"
workload.linkbench.maxid1 = 2000
run = { clients = [16], load_clients = 4 }
[limits]
memory = "MEMORY"
[common]
cache = "CACHE"
[[engine]]
name = "ENGINE"
"#;

/// The outcome of a run of one engine with this cache in this memory, and with more arguments.
fn run(place: &TestDir, engine: &str, memory: &str, cache: &str, more: &[&str]) -> Output {
    let experiment = EXPERIMENT.replace("MEMORY", memory).replace("ENGINE", engine).replace("CACHE", cache);
    let experiment = if cache.is_empty() { experiment.replace("[common]\ncache = \"\"\n", "") } else { experiment };
    std::fs::write(place.path("e.toml"), experiment).unwrap();
    place.rumba(&[&["run", "e.toml", "--out", "out"], more].concat()).output().unwrap()
}

#[test]
#[needs(MariaDb)]
fn insufficient_memory_is_refused_before_creation() {
    for more in [&[][..], &["--dry-run"]] {
        for engine in ["innodb", "myrocks"] {
            let place = TestDir::new();
            let output = run(&place, engine, "87MiB", "32MiB", more);
            assert_eq!(output.status.code(), Some(2), "{}", text(&output));
            let said = text(&output);
            assert!(said.contains("e.toml:5:") && said.contains("too small for"), "{said}");
            assert!(said.contains("set memory to") && said.contains("--allow-tight-memory"), "{said}");
            assert!(!place.path("out").exists());
        }
    }
}

/// Guards against large batches: records under hashed keys lie on as many leaves, and WiredTiger holds every leaf of a
/// transaction. Batches of a thousand needed four times this cache, and the kernel killed the load.
#[test]
#[needs(MemoryGroup)]
fn a_load_of_hashed_keys_fits_a_small_cache() {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "ycsb", "--engine", "wiredtiger", "--out", "out", "--quiet"]);
    set(&mut command, ["recordcount=60000", "cache=16MiB", "limits.memory=80MiB", "load_clients=4", CALM]);
    ended(0, command.args(["--set", "warmup=0s", "--set", "loops=1", "--set", "loop=1s"]));
    let trial = &place.report()["trials"][0];
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    assert_eq!(phase(trial, "load").unwrap()["ops"], 60_000);
}

#[test]
fn the_memory_that_the_refusal_names_is_taken_without_a_word() {
    for engine in embedded::of_linkbench() {
        let place = TestDir::new();
        let output = run(&place, engine, "16MiB", "64MiB", &["--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{engine}: {}", text(&output));
        let said = text(&output);
        let (_, rest) = said.split_once("set memory to \"").unwrap_or_else(|| panic!("{engine}: {said}"));
        let (enough, _) = rest.split_once('"').unwrap();
        let output = run(&place, engine, enough, "64MiB", &["--dry-run"]);
        assert!(output.status.success() && !text(&output).contains("warning:"), "{engine}: {}", text(&output));
        assert!(text(&output).contains(&format!("memory needed, {engine}")), "{}", text(&output));
    }
}

#[test]
fn a_cache_as_large_as_the_memory_is_refused_at_the_caches_line() {
    let place = TestDir::new();
    let output = run(&place, "rocksdb", "512MiB", "512MiB", &["--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("e.toml:7:"), "{}", text(&output));
}

#[test]
fn a_cache_that_is_not_given_is_derived_and_said() {
    let place = TestDir::new();
    let output = run(&place, "rocksdb", "512MiB", "", &["--dry-run"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("derived from limits.memory"), "{}", text(&output));
}

/// Guards against a wrong cache size: both sides once showed the common 64 MiB, which was in effect in neither, and no
/// difference.
#[test]
fn dry_run_reports_the_cache_from_engine_settings() {
    let place = TestDir::new();
    let set = ["rocksdb.block_cache=16MiB", "rocksdb.db_write_buffer_size=8MiB", "sqlite.cache_size=-2000"];
    let more: Vec<&str> = set.into_iter().flat_map(|set| ["--set", set]).chain(["--dry-run"]).collect();
    let output = ended(0, place.short_run("rocksdb,sqlite", &more));
    let said = text(&output);
    for line in ["rocksdb: cache 32.0 MiB (block_cache), no limit", "sqlite: cache cache_size = -2000, no limit"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

fn warnings(trial: &Value) -> Vec<String> {
    let warnings = trial["warnings"].as_array().unwrap().iter();
    warnings.filter(|warning| warning["code"] == "stall").map(|warning| warning["message"].to_string()).collect()
}

fn failure(place: &TestDir) -> String {
    place.report()["trials"][0]["failure"]["cause"].as_str().unwrap_or_default().to_owned()
}

#[test]
#[needs(MariaDb)]
fn stopped_server_fails_the_trial_after_the_stall_limit() {
    let place = TestDir::new();
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &["stall=6s", "cache=16MiB", "interval=100ms"]);
    let server = children(children(run.id())[0])[0];
    kill("-STOP", server);
    assert_eq!(run.wait().unwrap().code(), Some(1));
    let report = place.report();
    let trial = &report["trials"][0];
    let stopped = format!("a stopped process: mariadbd (pid {server}) is in state T");
    let cause = failure(&place);
    assert!(cause.starts_with("stalled: no operation ended for") && cause.contains(&stopped), "{cause}");
    assert_eq!(trial["failure"]["phase"], "loop 1");
    assert!(warnings(trial).iter().any(|warning| warning.contains(&stopped)), "{}", trial["warnings"]);
    assert!(phase(trial, "loop 1").unwrap()["ops"].as_u64().unwrap() > 0, "what was measured is kept");
    assert!(!common::is_alive(server), "the server has ended");
    assert!(place.is_clean());
}

/// Its backends are separate processes: each stopped one blocks the clients that it serves.
#[test]
#[needs(PostgreSql)]
fn stopped_postgresql_backends_fail_trial_at_stall_limit() {
    let place = TestDir::new();
    let more = ["stall=6s", "cache=16MiB", "interval=100ms"];
    let mut run = start_long_run(&place, "postgresql", &place.path("out"), &more);
    let server = children(children(run.id())[0])[0];
    let processes = children(server);
    processes.iter().for_each(|process| kill("-STOP", *process));
    assert_eq!(run.wait().unwrap().code(), Some(1));
    let cause = failure(&place);
    let stopped = |process: &u32| cause.contains(&format!("(pid {process}) is in state T"));
    assert!(cause.starts_with("stalled: no operation ended for"), "{cause}");
    assert!(processes.iter().any(stopped), "{cause}: {processes:?}");
    assert_eq!(place.report()["trials"][0]["failure"]["phase"], "loop 1");
    assert!(processes.iter().chain([&server]).all(|process| !common::is_alive(*process)), "all of it has ended");
    assert!(place.is_clean());
}

#[test]
#[needs(Root, MemoryGroup, PostgreSql)]
fn postgresql_in_a_small_memory_group_reports_memory() {
    let place = TestDir::new();
    let more = ["--allow-tight-memory", "--set", "stall=8s", "--set", "maxid1=50000", "--set", "verify=false"];
    let output = run(&place, "postgresql", "20MiB", "16MiB", &more);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let report = place.report();
    let cause = report["trials"][0]["failure"]["cause"].as_str().unwrap();
    assert!(cause.contains("memory"), "{cause}");
    assert!(place.is_clean());
}

#[test]
fn so_is_a_stopped_trial_whose_engine_is_embedded() {
    let place = TestDir::new();
    let mut run = start_long_run(&place, "sqlite", &place.path("out"), &["stall=5s"]);
    let trial = children(run.id())[0];
    kill("-STOP", trial);
    assert_eq!(run.wait().unwrap().code(), Some(1));
    let cause = failure(&place);
    assert!(cause.starts_with("stalled:") && cause.contains(&format!("(pid {trial}) is in state T")), "{cause}");
    assert!(place.is_clean());
}

#[test]
#[needs(MariaDb)]
fn server_resumed_within_stall_limit_continues_the_trial() {
    let place = TestDir::new();
    let sets = ["stall=20s", "cache=16MiB"];
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &sets);
    let server = children(children(run.id())[0])[0];
    let record = || std::fs::read_to_string(place.path("out/trials/001-innodb-c2-r1/record.json")).unwrap_or_default();
    let wait_for = |code: &str| {
        while !record().contains(&format!("\"{code}\"")) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    kill("-STOP", server);
    wait_for("stall");
    kill("-CONT", server);
    wait_for("stall-ended");
    kill("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(place.is_clean());
}

#[test]
#[needs(Root, MemoryGroup, MariaDb)]
fn tight_memory_group_is_reported_as_memory_pressure() {
    let place = TestDir::new();
    let more = ["--allow-tight-memory", "--set", "stall=8s", "--set", "maxid1=50000", "--set", "verify=false"];
    let output = run(&place, "innodb", "95MiB", "32MiB", &more);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let cause = failure(&place);
    // The kernel may act before the stall watch does.
    let stalled = cause.starts_with("stalled:") && cause.contains("pressure of memory: the memory group");
    assert!(stalled || cause.starts_with("killed by the memory group"), "{cause}");
    let report = place.report();
    let tight = report["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "memory-tight");
    assert!(tight, "{}", report["warnings"]);
    assert!(place.is_clean());
}

#[test]
fn a_bound_without_a_unit_is_refused_and_none_is_accepted() {
    let place = TestDir::new();
    let dry = |stall: &str| place.short_run("null", &["--dry-run", "--set", stall]).output().unwrap();
    assert!(text(&dry("stall=60")).contains("write \"60s\""), "{}", text(&dry("stall=60")));
    assert_eq!(dry("stall=1ms").status.code(), Some(2), "{}", text(&dry("stall=1ms")));
    assert!(dry("stall=0s").status.success());
}
