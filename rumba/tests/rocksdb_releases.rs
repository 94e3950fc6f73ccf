//! Releases of RocksDB that rumba installs: each loads, serves and verifies, and several can be compared in one run.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::Command;

use common::{TestDir, ended, text};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "releases"
[workload.linkbench]
maxid1 = 2000
[run]
load_clients = 2
clients = [2]
warmup = "200ms"
loops = 1
loop = "500ms"
[[engine]]
name = "rocksdb"
"#;

fn run_over(place: &TestDir, libraries: &[&str]) -> Command {
    std::fs::write(place.path("releases.toml"), format!("{EXPERIMENT}library = {libraries:?}\n")).unwrap();
    place.rumba(&["run", "releases.toml", "--out", "out"])
}

/// The trials of such a run.
fn trials_over(place: &TestDir, libraries: &[&str]) -> Vec<Value> {
    ended(0, run_over(place, libraries));
    let report = place.report();
    report["trials"].as_array().unwrap().iter().filter(|trial| trial["part"] != "load").cloned().collect()
}

fn versions(trials: &[Value]) -> Vec<&str> {
    trials.iter().map(|trial| trial["version"].as_str().unwrap()).collect()
}

fn warns_of_assertions(trial: &Value) -> bool {
    trial["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "built-with-assertions")
}

#[test]
#[needs(Server("rocksdb@7.10"), Server("rocksdb@8.11"), Server("rocksdb@9.11"), Server("rocksdb@11.1"))]
fn releases_from_7_to_11_serve_and_verify_in_one_run() {
    let place = TestDir::new();
    let trials = trials_over(&place, &["rocksdb@7.10", "rocksdb@8.11", "rocksdb@9.11", "rocksdb@11.1"]);
    assert_eq!(versions(&trials), ["7.10.2", "8.11.4", "9.11.2", "11.1.1"]);
    assert!(!trials.iter().any(warns_of_assertions), "{trials:?}");
}

/// Guards against a slow default: it was once the system's build, which on Debian checks assertions.
#[test]
#[needs(Server("rocksdb@10.4"))]
fn installed_release_is_default_and_system_is_selectable() {
    let place = TestDir::new();
    ended(0, place.short_run("rocksdb", &[]));
    let report = place.report();
    let trial = report["trials"].as_array().unwrap().last().unwrap();
    assert_eq!((trial["version"].as_str(), warns_of_assertions(trial)), (Some("10.4.2"), false));
    let place = TestDir::new();
    let trials = trials_over(&place, &["rocksdb@10.4", "librocksdb.so.7.8"]);
    assert_eq!(versions(&trials), ["10.4.2", "7.8.3 (built with assertions)"]);
    assert!(warns_of_assertions(&trials[1]));
}

#[test]
fn missing_release_is_refused_with_its_install_command() {
    let place = TestDir::new();
    let output = ended(2, run_over(&place, &["rocksdb@10.4"]).env("RUMBA_CACHE", place.path("cache")));
    assert!(text(&output).contains("rumba engines install rocksdb@10.4"), "{}", text(&output));
}
