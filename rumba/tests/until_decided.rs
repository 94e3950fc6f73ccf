//! A run on real engines that ends once every headline is decided.
#![allow(clippy::unwrap_used)]

mod common;

use common::{TestDir, ended, text};
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "until-decided"
[workload.linkbench]
maxid1 = 1000
[run]
clients = 2
load_clients = 2
warmup = "100ms"
loops = 1
loop = "200ms"
[[engine]]
name = "lmdb"
[[engine]]
name = "sqlite"
"#;

fn place() -> TestDir {
    let place = TestDir::new();
    std::fs::write(place.path("experiment.toml"), EXPERIMENT).unwrap();
    place
}

/// Adds this many repeats at most; returns the output, and the results as JSON.
fn run(place: &TestDir, args: &[&str]) -> (String, Value) {
    let output = ended(0, place.rumba(&[&["run", "experiment.toml", "--until-decided"], args].concat()));
    let report = place.rumba(&["report", "--json", "results"]).output().unwrap();
    (text(&output), serde_json::from_slice(&report.stdout).unwrap())
}

fn repeats(report: &Value) -> u64 {
    report["trials"].as_array().unwrap().iter().filter_map(|trial| trial["repeat"].as_u64()).max().unwrap()
}

/// The same engine twice is void in every headline, so there is nothing left to decide at the first interim test.
#[test]
fn run_ends_at_the_first_interim_analysis_that_decides_all() {
    let place = place();
    let twin = EXPERIMENT.replace("name = \"sqlite\"", "name = \"twin\"\nuse = \"lmdb\"");
    std::fs::write(place.path("experiment.toml"), twin).unwrap();
    let (said, report) = run(&place, &["--at-most", "9", "--out", "results"]);
    assert!(said.contains("every headline is decided after 5 repeats: the run ends"), "{said}");
    assert_eq!((repeats(&report), report["trials"].as_array().unwrap().len()), (5, 10));
    assert!(report["missing"].as_array().is_none_or(Vec::is_empty), "{}", report["missing"]);
    let resumed = place.rumba(&["run", "--resume", "results"]).output().unwrap();
    let (said, is_success) = (common::text(&resumed), resumed.status.success());
    assert!(is_success && said.contains("every headline is decided after 5 repeats"), "{said}");
    let again = place.rumba(&["report", "--json", "results"]).output().unwrap();
    assert_eq!(repeats(&serde_json::from_slice(&again.stdout).unwrap()), 5, "no further repeat");
}

/// Each interim test lists the open headlines, and the last repeat ends the run, decided or not.
#[test]
fn last_repeat_ends_run_with_sequentially_corrected_p_values() {
    let place = place();
    let (said, report) = run(&place, &["--at-most", "6", "--out", "results"]);
    let looked = said.contains("after 5 repeats undecided: ") || said.contains("decided after 5 repeats");
    assert!(looked, "{said}");
    assert!(repeats(&report) == 6 || said.contains("decided after 5 repeats"), "{said}");
    let row = &report["summary"]["rows"][0];
    assert_eq!(row["at_most_repeats"], 6);
    let relative = &report["summary"]["relative"][0]["rows"][0]["metrics"];
    let smallest = relative.as_array().unwrap().iter().filter_map(|ratio| ratio["p"].as_f64()).fold(1.0, f64::min);
    // With six repeats no p-value is smaller than 2 of 924 deals, times 1 + 3.1 ln(6 / 5).
    let least = if repeats(&report) == 6 { 2.0 / 924.0 } else { 2.0 / 252.0 };
    assert!(smallest >= least * 1.56, "{smallest}");
}

#[test]
fn what_cannot_be_decided_is_refused_before_anything_runs() {
    let place = place();
    for (args, reported) in [
        (&["--until-decided", "--engine", "lmdb"][..], "until_decided needs two engines to compare"),
        (&["--until-decided", "--at-most", "5"], "needs more than 5 repeats"),
        (&["--at-most", "9"], "--until-decided"),
    ] {
        let output = place.rumba(&[&["run", "experiment.toml"], args].concat()).output().unwrap();
        let said = text(&output);
        assert!(output.status.code() == Some(2) && said.contains(reported), "{args:?}: {said}");
    }
}
