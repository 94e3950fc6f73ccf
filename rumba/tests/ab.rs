//! A base and another experiment in one run, in turns, on real engines: compared at its end, and again later.
#![allow(clippy::unwrap_used)]

mod common;

use common::{TestDir, ended, text};
use serde_json::Value;

const FILE: &str = r#"
name = "NAME"
[workload.linkbench]
maxid1 = 2000
[run]
clients = 2
load_clients = 2
warmup = "100ms"
loops = 1
loop = "200ms"
[[engine]]
name = "store"
use = "ENGINE"
[[claim]]
text = "it runs"
holds = 'ops_per_s("store") > 1'
"#;

/// The title of the loops' table, with the unit that its verdicts generalise over.
const LOADS: &str = "store, 2 clients, loops, 4 and 4 repeats, each from its own load";

fn write(place: &TestDir, name: &str, engine: &str) {
    let file = FILE.replace("NAME", name).replace("ENGINE", engine);
    std::fs::write(place.path(&format!("{name}.toml")), file).unwrap();
}

/// Runs `rumba` with these arguments; returns its exit code and its output.
fn said(place: &TestDir, args: &[&str]) -> (i32, String) {
    let output = place.rumba(args).output().unwrap();
    (output.status.code().unwrap(), text(&output))
}

fn json(place: &TestDir, args: &[&str]) -> Value {
    let output = ended(0, place.rumba(args));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The disk space of both sides. Unlike throughput it does not depend on the host's load: with four repeats each, one
/// stall would leave a comparison of throughput undecided.
fn size(comparison: &Value) -> (&str, &Value) {
    let rows = comparison["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["part"] == "run").unwrap();
    let metrics = row["metrics"].as_array().unwrap();
    (row["engine"].as_str().unwrap(), metrics.iter().find(|metric| metric["metric"] == "data_bytes").unwrap())
}

/// The engines of the repeats in the order in which they began.
fn turns(report: &Value) -> Vec<&str> {
    let repeats = report["trials"].as_array().unwrap().iter().filter(|trial| trial["part"] != "load");
    repeats.map(|trial| trial["engine"].as_str().unwrap()).collect()
}

/// Four turns, every second one in reverse order, so that neither side always starts from the after-effects of the
/// other.
fn there_and_back<'a>(base: &'a str, other: &'a str) -> Vec<&'a str> {
    [base, other, other, base].repeat(2)
}

#[test]
fn ab_alternates_two_files_and_reports_their_difference() {
    let place = TestDir::new();
    write(&place, "disk", "lmdb");
    write(&place, "nothing", "null");
    let (code, shown) = said(&place, &["ab", "disk.toml", "nothing.toml", "--dry-run"]);
    assert!(code == 0 && shown.contains("nothing-over-disk: 8 trials"), "{shown}");
    assert!(shown.contains("store (other) is compared with store (base)"), "{shown}");
    assert!(!shown.contains("warning:"), "{shown}");
    let (code, shown) = said(&place, &["ab", "disk.toml", "nothing.toml", "--check"]);
    assert!(code == 2 && shown.contains("--fail-if"), "{shown}");

    let (code, shown) = said(&place, &["ab", "disk.toml", "nothing.toml", "--out", "out", "--quiet"]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("the claims of disk.toml (1) are left out"), "{shown}");
    assert!(shown.contains("medians of 4 repeats, each from its own load"), "{shown}");
    assert!(!shown.contains("for this load"), "{shown}");
    let table = shown.lines().skip_while(|line| !line.starts_with(LOADS)).take_while(|line| !line.is_empty());
    let row = table.into_iter().find(|line| line.trim_start().starts_with("data_bytes ")).unwrap();
    assert!(row.contains("<0.01") && row.ends_with("better"), "{row}");
    assert!(
        shown.contains("base   nothing-over-disk: store (base)  ") && !shown.contains("Not interleaved"),
        "{shown}"
    );
    let changed = shown.lines().find(|line| line.contains("store: engine")).unwrap();
    assert!(changed.contains("lmdb") && changed.contains("null"), "{changed}");

    let report = place.report();
    assert_eq!(turns(&report), there_and_back("base/store", "other/store"));
    let (engine, space) = size(&report["comparison"]);
    assert_eq!((engine, &space["change"]), ("store", &"better".into()), "{space}");
    assert!(space["high"].as_f64().unwrap() < 0.1, "{space}");
    assert_eq!(report["comparison"]["interleaved"], true);
    let rows = report["comparison"]["rows"].as_array().unwrap();
    // Loads take turns as loops do.
    let in_turns = |part: &str| rows.iter().find(|row| row["part"] == part).unwrap()["in_turns"].as_bool();
    assert_eq!((in_turns("load"), in_turns("run")), (Some(true), Some(true)));
    assert_eq!(json(&place, &["compare", "out", "--json"])["rows"], report["comparison"]["rows"]);
    let (code, gated) = said(&place, &["compare", "out", "--fail-if", "data_bytes < 0.9"]);
    assert!(code == 3 && gated.contains("fail-if data_bytes < 0.9: store, 2 clients: IS SO"), "{gated}");
    assert_eq!(said(&place, &["compare", "out", "--fail-if", "data_bytes > 1.1"]).0, 0);
    let larger = "size_bytes(\"base/store\") > size_bytes(\"other/store\")";
    let (code, shown) = said(&place, &["report", "out", "--check", "--claim", larger]);
    assert!(code == 0 && shown.contains("permutation and Welch tests, 4 and 4 repeats"), "{shown}");
    let relative = report["summary"]["relative"].as_array().unwrap();
    assert!(relative.iter().any(|relative| relative["baseline"] == "base/store"));

    // The experiment as run is a single one, which can be run again.
    let (code, shown) = said(&place, &["run", "out/experiment.toml", "--dry-run"]);
    assert!(
        code == 0 && shown.contains("nothing-over-disk: 8 trials") && shown.contains("is compared with"),
        "{shown}"
    );
    // Two directories shown as one have no sides, and engines have other names.
    assert!(json(&place, &["report", "out", "out", "--json"])["comparison"].is_null());
    assert!(place.is_clean());
}
