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

use common::{TestDir, children, kill, phase, start_long_run, text};
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
    std::fs::write(place.path("e.toml"), experiment).unwrap();
    place.rumba(&[&["run", "e.toml", "--out", "out"], more].concat()).output().unwrap()
}

#[test]
#[needs(MariaDb)]
fn insufficient_memory_is_refused_before_creation() {
    for engine in ["innodb", "myrocks"] {
        let place = TestDir::new();
        let output = run(&place, engine, "87MiB", "32MiB", &[]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        let said = text(&output);
        assert!(said.contains("e.toml:5:") && said.contains("too small for"), "{said}");
        assert!(said.contains("set memory to") && said.contains("--allow-tight-memory"), "{said}");
        assert!(!place.path("out").exists());
    }
}

#[test]
fn memory_named_by_the_refusal_is_accepted() {
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

#[test]
fn stopped_trial_of_an_embedded_engine_is_a_stall() {
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
