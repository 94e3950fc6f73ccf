//! Verdicts and their exit codes, over results of real runs.
#![allow(clippy::unwrap_used)]

mod common;

use common::{TestDir, ended, text};
use serde_json::Value;

/// Runs `rumba` with these arguments; returns its exit code and its output.
fn said(place: &TestDir, args: &[&str]) -> (i32, String) {
    let output = place.rumba(args).output().unwrap();
    (output.status.code().unwrap(), text(&output))
}

fn run(engines: &str, more: &[&str]) -> TestDir {
    let place = TestDir::new();
    ended(0, place.fast_run(engines, more));
    place.undisturbed("out");
    place
}

const TRUE: &str = "ops_per_s(\"lmdb\") > 7/10";
const FALSE: &str = "ops_per_s(\"lmdb\") < 7/10";

/// One run serves all cases: each is a report of the same results.
#[test]
fn single_repeat_passes_only_on_request_broken_data_never() {
    let place = run("lmdb", &[]);
    let (code, text) = said(&place, &["report", "out", "--check", "--claim", TRUE]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("single run") && text.contains("--accept-single-run"), "{text}");
    let accepted = ["report", "out", "--check", "--accept-single-run", "--claim"];
    assert_eq!(said(&place, &[&accepted[..], &[TRUE]].concat()).0, 0);
    let (code, text) = said(&place, &[&accepted[..], &[TRUE, "--claim", FALSE]].concat());
    assert_eq!(code, 3, "{text}");
    let (code, text) = said(&place, &["report", "out", "--claim", "ops_per_s(\"lmbd\") > 1"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("did you mean `lmdb`?"), "{text}");

    let (code, text) = said(&place, &["compare", "out", "out", "--fail-if", "ops_per_s < 1.5"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("fail-if ops_per_s < 1.5: lmdb, 2 clients: single run"), "{text}");
    let undecided = ["compare", "out", "out", "--json", "--fail-if", "ops_per_s < 1.5", "--fail-if-undecided"];
    let (code, text) = said(&place, &undecided);
    assert!(code == 3 && text.contains("\"fail_if\""), "{text}");
    assert_eq!(said(&place, &["compare", "out", "out", "--fail-if", "ops < 1.5"]).0, 2);
    let (code, text) = said(&place, &["compare", "out"]);
    assert!(code == 2 && text.contains("without a base and another") && text.contains("rumba ab"), "{text}");

    let file = place.path("out/trials/001-lmdb-c2-r1/record.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let verify = record["phases"].as_array_mut().unwrap().iter_mut().find(|phase| phase["phase"] == "verify").unwrap();
    verify["checks"][0]["wrong"] = 1.into();
    std::fs::write(&file, record.to_string()).unwrap();
    let (code, text) = said(&place, &[&accepted[..], &[TRUE]].concat());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("undecided") && text.contains("repeat 1 of lmdb failed its verification"), "{text}");
}
