//! `scripts/experiments`: the files that it keeps and its exit code, also if a trial failed. It runs in a separate
//! tree, so that no figure of the repository changes, and without a browser, which leaves out the pictures.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{TestDir, text};
use serde_json::Value;

/// LMDB's map is too small for the data, so that its load fails.
const TINY: &str = r#"name = "quickstart"
[workload.linkbench]
maxid1 = 2000
[run]
clients = 2
load_clients = 2
warmup = "100ms"
loops = 1
loop = "300ms"
[[engine]]
name = "null"
[[engine]]
name = "lmdb"
[engine.settings]
map_size = "256KiB"
"#;

/// A tree with the scripts of this one and an experiment of a second.
fn tree() -> TestDir {
    let place = TestDir::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    // The module for pictures is missing in the directory where npm would install it.
    for directory in ["scripts", "experiments", "web/scripts", "web/node_modules"] {
        std::fs::create_dir_all(place.path(directory)).unwrap();
    }
    for file in ["web/scripts/summary.mjs", "web/scripts/picture.mjs", "web/scripts/browser.mjs"] {
        std::fs::copy(root.join(file), place.path(file)).unwrap();
    }
    // A link instead of a copy. When a parallel test starts a process, the copy would still be open for writing in it,
    // and a file open for writing cannot be executed (ETXTBSY).
    std::os::unix::fs::symlink(root.join("scripts/experiments"), place.path("scripts/experiments")).unwrap();
    std::fs::write(place.path("experiments/quickstart.toml"), TINY).unwrap();
    place
}

fn script(place: &TestDir, args: &[&str]) -> Output {
    let mut command = Command::new(place.path("scripts/experiments"));
    // It gets the path of this program, and writes no pages.
    command.args(args).env("RUMBA", env!("CARGO_BIN_EXE_rumba")).env("XTASK", "true");
    command.env("XDG_STATE_HOME", place.path("state")).output().unwrap()
}

fn kept(place: &TestDir, name: &str) -> Value {
    let file = place.path(&format!("docs/experiments/{name}.json"));
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
#[needs(Node)]
fn failed_trial_is_kept_and_sets_the_exit_code() {
    let place = tree();
    let output = script(&place, &["quickstart"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("no picture of quickstart"), "{}", text(&output));
    let report = kept(&place, "quickstart");
    let statuses: Vec<&str> =
        report["trials"].as_array().unwrap().iter().map(|trial| trial["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["done", "failed"]);
    let tables = std::fs::read_to_string(place.path("docs/experiments/quickstart.txt")).unwrap();
    assert!(tables.contains("Did not end as planned") && tables.contains("lmdb"), "{tables}");
    let here = place.path("");
    assert!(!tables.contains(here.to_str().unwrap()), "published tables name no local path: {tables}");
}

#[test]
#[needs(Node)]
fn variant_replaces_no_results_and_takes_run_arguments() {
    let place = tree();
    let output = script(&place, &["quickstart", "--as", "null-alone", "--engine", "null", "--set", "repeats=2"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(!place.path("docs/experiments/quickstart.json").exists());
    let trials = kept(&place, "quickstart-null-alone")["trials"].as_array().unwrap().clone();
    assert!(trials.len() >= 2 && trials.iter().all(|trial| trial["engine"] == "null"), "{} trials", trials.len());
}

#[test]
fn a_mistake_in_the_arguments_runs_nothing() {
    let place = tree();
    let help = script(&place, &["--help"]);
    assert!(help.status.success() && text(&help).contains("Exit code: 0 all claims hold"), "{}", text(&help));
    for (args, said) in [
        (&["--nothing"][..], "usage: scripts/experiments"),
        (&["quickstart", "--as"], "usage: scripts/experiments"),
        (&["small-sever"], "small-server"),
        (&["quickstart", "--set", "loop=never"], "loop"),
    ] {
        let output = script(&place, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(said), "{args:?}: {}", text(&output));
    }
    let kept = std::fs::read_dir(place.path("docs/experiments")).map_or(0, Iterator::count);
    assert_eq!(kept, 0);
}
