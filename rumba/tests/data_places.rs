//! The directory of an engine's data is exclusive. Foreign files in it are neither used nor changed, and only one of
//! two simultaneous runs gets it. The lab ensures this, not the engines; the test checks for each engine that its way
//! of opening does not undo it.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::process::Output;

use common::{TestDir, kill, start_long_run, text, two_at_a_time};
use serde_json::Value;

const PRECIOUS: &str = "irreplaceable";
/// Foreign files with the names that engines give to their own.
const THEIRS: [&str; 9] = [
    "thesis.txt",
    "data/CURRENT",
    "data/WiredTiger",
    "data/data",
    "data/data.mdb",
    "data/rumba.sqlite",
    "data/snapshot",
    "data/tokudb.directory",
    "data/wal",
];

fn assert_refused(engine: &str, place: &TestDir, output: &Output, why: &str) {
    let said: String = text(output).chars().filter(|c| !c.is_whitespace() && *c != '│').collect();
    assert_eq!(output.status.code(), Some(2), "{engine}: {}", text(output));
    assert!(said.contains(&why.replace(' ', "")), "{engine}: {}", text(output));
    assert!(!place.path("out").exists(), "{engine}: nothing was created");
}

fn files_of_others_stay_theirs(engine: &str) {
    let place = TestDir::for_engines(embedded::have_transactions(&[engine]));
    let trial = place.path(&format!("mine/001-{engine}-c2-r1"));
    std::fs::create_dir_all(trial.join("data")).unwrap();
    for name in THEIRS {
        std::fs::write(trial.join(name), PRECIOUS).unwrap();
    }
    let output = place.short_run(engine, &["--quiet", "--set", "data_dir=mine"]).output().unwrap();
    assert_refused(engine, &place, &output, "not made by rumba");
    for name in THEIRS {
        assert_eq!(std::fs::read_to_string(trial.join(name)).unwrap(), PRECIOUS, "{engine}: {name}");
    }
}

#[test]
fn data_directory_of_embedded_engines_is_exclusive() {
    two_at_a_time(&embedded::names(&embedded::here(), |_| true), files_of_others_stay_theirs);
    let place = TestDir::new();
    let run = || place.short_run("sqlite", &["--quiet", "--set", "data_dir=shared"]).output().unwrap();
    let mut first = start_long_run(&place, "sqlite", &place.path("first"), &["data_dir=shared"]);
    let second = run();
    kill("-INT", first.id());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    assert_refused("sqlite", &place, &second, "is in use by");
    let report = place.rumba(&["report", "first", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "interrupted", "{}", trial["failure"]);
    assert!(common::phase(trial, "loop 1").unwrap()["ops"].as_u64() > Some(0));
    assert!(place.is_clean());
    let again = run();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
}

#[test]
#[each(embedded::brought)]
fn data_directory_of_external_engines_is_exclusive(engine: &'static str) {
    files_of_others_stay_theirs(engine);
}
