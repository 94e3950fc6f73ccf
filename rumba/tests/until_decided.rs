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

fn repeats(report: &Value) -> u64 {
    report["trials"].as_array().unwrap().iter().filter_map(|trial| trial["repeat"].as_u64()).max().unwrap()
}

/// The same engine twice is void in every headline, so there is nothing left to decide at the first interim test.
#[test]
fn run_ends_at_the_first_interim_analysis_that_decides_all() {
    let place = place();
    let twin = EXPERIMENT.replace("name = \"sqlite\"", "name = \"twin\"\nuse = \"lmdb\"");
    std::fs::write(place.path("experiment.toml"), twin).unwrap();
    let args = ["run", "experiment.toml", "--until-decided", "--at-most", "9", "--out", "results"];
    let said = text(&ended(0, place.rumba(&args)));
    let json = || -> Value {
        let report = place.rumba(&["report", "--json", "results"]).output().unwrap();
        serde_json::from_slice(&report.stdout).unwrap()
    };
    let report = json();
    assert!(said.contains("every headline is decided after 5 repeats: the run ends"), "{said}");
    assert_eq!((repeats(&report), report["trials"].as_array().unwrap().len()), (5, 10));
    assert!(report["missing"].as_array().is_none_or(Vec::is_empty), "{}", report["missing"]);
    let resumed = place.rumba(&["run", "--resume", "results"]).output().unwrap();
    let (said, is_success) = (text(&resumed), resumed.status.success());
    assert!(is_success && said.contains("every headline is decided after 5 repeats"), "{said}");
    assert_eq!(repeats(&json()), 5, "no further repeat");
}

#[test]
fn undecidable_run_is_refused_before_it_starts() {
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
