//! Checks that the binary reports in each record the commit that measured the figures.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::{TestDir, ended, text};

/// The commit of the sources that this test was compiled from, if they lie in a repository.
fn commit() -> Option<String> {
    let output = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

#[test]
fn every_record_states_its_commit_or_why_it_is_unknown() {
    let place = TestDir::new();
    ended(0, place.short_run("null", &["--set", "loops=1", "--quiet"]));
    let report = place.report();
    let build = &report["build"];
    assert_eq!(build, &report["trials"][0]["build"]);
    let record = std::fs::read_to_string(place.path("out/trials/001-null-c2-r1/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(build, &record["build"]);
    let condition = report["conditions"]["rumba's commit"].as_str().unwrap();
    let version = text(&place.rumba(&["--version"]).output().unwrap());
    assert!(version.contains(condition), "{version}: {condition}");
    // The program cannot know a commit that was made after it was compiled.
    match (commit(), build["commit"].as_str()) {
        (Some(_), Some(commit)) => {
            assert!(commit.len() == 40 && condition.starts_with(&commit[..12]), "{condition}");
            let known = ["-C", env!("CARGO_MANIFEST_DIR"), "cat-file", "-e", commit];
            assert!(Command::new("git").args(known).status().unwrap().success(), "{commit}");
        }
        (_, None) => assert!(condition.starts_with("unknown: ") && condition.len() > 12, "{condition}"),
        (None, Some(_)) => {}
    }
}
