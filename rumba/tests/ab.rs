//! A base and another experiment in one run, in turns, on real engines: compared at its end, again later, and after a
//! kill.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::{TestDir, ended, kill, text};
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
    let (_, shown) = said(&place, &["ab", "disk.toml", "nothing.toml", "--dry-run", "--set", "repeats=3"]);
    assert!(shown.contains("warning: with repeats = 3 no test can separate"), "{shown}");

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

/// Four starts of one load on each side: their verdicts hold only for this load.
#[test]
fn repeats_of_one_kept_load_never_pass_a_check() {
    let place = TestDir::new();
    write(&place, "disk", "lmdb");
    let claim = "[[claim]]\ntext = \"less\"\nholds = 'size_bytes(\"a\") < 100 * size_bytes(\"b\")'\n";
    let file = std::fs::read_to_string(place.path("disk.toml")).unwrap();
    let (head, _) = file.split_once("[[engine]]").unwrap();
    let engines = "[[engine]]\nname = \"a\"\nuse = \"lmdb\"\n[[engine]]\nname = \"b\"\nuse = \"sqlite\"\n";
    std::fs::write(place.path("both.toml"), format!("{head}repeats = 4\n{engines}{claim}")).unwrap();
    let kept = ["run", "both.toml", "--out", "out", "--quiet", "--check", "--set", "repeats_from=kept"];
    let (code, shown) = said(&place, &kept);
    assert_eq!(code, 3, "{shown}");
    assert!(shown.contains("1 true for this load only: run the experiment with repeats_from = \"load\""), "{shown}");
    assert!(shown.contains("true for this load") && !shown.contains(": sure"), "{shown}");
    assert_eq!(place.report()["summary"]["claims"][0]["verdict"], "true-for-this-load");
    let loads = ["run", "both.toml", "--out", "loads", "--quiet", "--check"];
    let (code, shown) = said(&place, &loads);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("holds") && !shown.contains("for this load"), "{shown}");
}

#[test]
fn against_compares_engines_of_one_run_by_name() {
    let place = TestDir::new();
    let set = ["--against", "sqlite", "--set", "loop=200ms", "--set", "loops=1", "--json"];
    let output = ended(0, place.short_run("null", &set));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(turns(&report), there_and_back("sqlite", "null"));
    let (engine, space) = size(&report["comparison"]);
    assert_eq!((engine, &space["change"]), ("null over sqlite", &"better".into()), "{space}");

    let (code, shown) = said(&place, &["run", "linkbench", "--against", "sqlite"]);
    assert!(code == 2 && shown.contains("--engine"), "{shown}");
    let output = place.rumba(&["run", "linkbench", "--engine", "null", "--out", "plain", "--set", "loop=200ms"]);
    ended(0, { output }.args(["--set", "maxid1=500", "--set", "warmup=0s", "--set", "loops=1"]));
    let (code, shown) = said(&place, &["compare", "plain"]);
    assert!(code == 2 && shown.contains("without a base and another") && shown.contains("rumba ab"), "{shown}");
}

#[test]
fn a_killed_run_of_both_goes_on_to_its_comparison() {
    let place = TestDir::new();
    write(&place, "one", "lmdb");
    let args = ["ab", "one.toml", "one.toml", "--out", "out", "--set", "other/cache=32MiB", "--set", "loops=4"];
    let mut run = place.rumba(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // An event decides the time, not a clock: the second repeat has begun.
    while !place.path("out/trials/003-other_store-c2-r2/intervals.ndjson").exists() {
        assert!(run.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill("-KILL", run.id());
    run.wait().unwrap();
    assert!(place.report()["trials"].as_array().unwrap().len() < 8, "killed before its end");
    let (code, shown) = said(&place, &["run", "--resume", "out"]);
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains(LOADS), "{shown}");
    assert!(shown.lines().any(|line| line.contains("store: cache")), "{shown}");
    let report = place.report();
    assert_eq!(turns(&report), there_and_back("base/store", "other/store"));
    let (_, space) = size(&report["comparison"]);
    assert_eq!(space["base"]["values"].as_array().unwrap().len(), 4, "{space}");
    assert!(place.is_clean());
}

#[test]
fn files_of_other_work_are_refused_with_both_values() {
    let place = TestDir::new();
    write(&place, "one", "lmdb");
    write(&place, "two", "sqlite");
    let two = std::fs::read_to_string(place.path("two.toml")).unwrap();
    std::fs::write(place.path("two.toml"), two.replace("maxid1 = 2000", "maxid1 = 3000")).unwrap();
    let (code, shown) = said(&place, &["ab", "one.toml", "two.toml", "--out", "out"]);
    assert_eq!(code, 2, "{shown}");
    let words = shown.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    let reported = "workload.linkbench.maxid1 is 2000 in one.toml, and 3000 in two.toml";
    assert!(words.contains(reported) && words.contains("--set maxid1=VALUE sets it for both"), "{shown}");
    assert!(!place.path("out").exists());
    let (code, shown) = said(&place, &["ab", "one.toml", "two.toml", "--set", "maxid1=500", "--check"]);
    assert!(code == 2 && shown.contains("--fail-if"), "{shown}");
    let (code, shown) = said(&place, &["ab", "one.toml", "two.toml", "--set", "maxid1=500", "--dry-run"]);
    assert_eq!(code, 0, "{shown}");
}
