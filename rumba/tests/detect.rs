//! A pilot on real engines says how many repeats and minutes it takes to detect a difference.
#![allow(clippy::unwrap_used)]

mod common;

use common::{TestDir, ended, text};
use serde_json::Value;

const PILOT: &str = r#"
name = "pilot"
[workload.linkbench]
maxid1 = 1000
[run]
clients = 2
load_clients = 2
warmup = "100ms"
loops = 1
loop = "200ms"
repeats = 9
[[engine]]
name = "lmdb"
[[engine]]
name = "sqlite"
"#;

fn place() -> TestDir {
    let place = TestDir::new();
    std::fs::write(place.path("pilot.toml"), PILOT).unwrap();
    place
}

#[test]
fn pilot_estimates_repeats_to_detect_a_difference() {
    let place = place();
    let pilot = ["run", "pilot.toml", "--detect", "5%", "--json", "--out", "results"];
    let output = ended(0, place.rumba(&pilot));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((found["change"].as_f64(), found["power"].as_f64()), (Some(0.05), Some(0.9)));
    let rows = found["rows"].as_array().unwrap();
    let rate = rows.iter().find(|row| row["metric"] == "ops_per_s").unwrap();
    assert_eq!((&rate["base"], &rate["engine"]), (&"lmdb".into(), &"sqlite".into()));
    assert_eq!(rate["pilot_repeats"], 3, "and not the nine of the experiment");
    assert!(rate["noise"].as_f64().unwrap() > 0.0, "{rate}");
    let needed = &rate["needed"];
    // A disturbed host may need more than a thousand.
    if let Some(repeats) = needed["repeats"].as_u64() {
        let minutes = repeats as f64 * found["minutes_of_a_repeat"].as_f64().unwrap();
        assert!(repeats >= 4 && (needed["minutes"].as_f64().unwrap() - minutes).abs() < 1e-6, "{rate}");
    }
    let report = place.rumba(&["report", "--json", "results"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let loads = |engine: &str| {
        let trials = report["trials"].as_array().unwrap().iter().filter(|trial| trial["engine"] == engine);
        trials.flat_map(|trial| trial["phases"].as_array().unwrap()).filter(|phase| phase["phase"] == "load").count()
    };
    assert_eq!((loads("lmdb"), loads("sqlite")), (3, 3), "each repeat has its own load");
}

#[test]
fn impossible_pilot_is_refused_before_the_run() {
    let place = place();
    for (args, reported) in [
        (&["--detect", "5"][..], "expected a percentage above 0 such as 5%"),
        (&["--detect", "5%", "--set", "repeats=2"], "a pilot with repeats = 2 cannot estimate the noise"),
        (&["--detect", "5%", "--engine", "lmdb"], "--detect needs two engines to compare"),
    ] {
        let output = ended(2, place.rumba(&[&["run", "pilot.toml"], args].concat()));
        assert!(text(&output).contains(reported), "{args:?}: {}", text(&output));
    }
}
