//! A test whose need is not met shows as ignored, with the reason, and never as passed.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::process::Command;

/// What every machine that builds Rust has.
#[test]
#[needs(CCompiler)]
fn example_with_a_need() {
    assert!(Command::new("cc").arg("--version").output().unwrap().status.success());
}

#[test]
#[ignore = "run by the tests below"]
fn example_that_fails() {
    panic!("as it should");
}

#[test]
#[ignore = "run by the tests below"]
fn example_that_returns_an_error() -> Result<(), String> {
    Err("a reason".into())
}

#[derive(Debug)]
struct Told {
    text: String,
    ended_well: bool,
}

fn run(arguments: &[&str], without: &str) -> Told {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(arguments).env("RUMBA_TESTS_WITHOUT", without).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Told { text, ended_well: output.status.success() }
}

#[test]
fn a_need_that_is_not_met_is_an_ignored_test_with_its_reason() {
    let told = run(&["example_with_a_need"], "CCompiler");
    assert!(told.ended_well, "{told:?}");
    let why = "needs CCompiler: RUMBA_TESTS_WITHOUT says so";
    assert!(told.text.contains(&format!("test example_with_a_need ... ignored ({why})")), "{told:?}");
    assert!(told.text.contains("test result: ok. 0 passed; 0 failed; 1 ignored;"), "{told:?}");
    assert!(
        told.text.contains(&format!("\nskipped: rumba-testkit mechanism::example_with_a_need {why}\n")),
        "{told:?}"
    );
}

#[test]
fn a_need_that_is_met_is_a_test_as_any_other() {
    let told = run(&["example_with_a_need"], "Root");
    assert!(told.text.contains("test example_with_a_need ... ok"), "{told:?}");
    assert!(told.text.contains("test result: ok. 1 passed; 0 failed; 0 ignored;"), "{told:?}");
    assert!(!told.text.contains("skipped: "), "{told:?}");
}

#[test]
fn what_lists_tests_is_told_which_are_ignored() {
    let listed =
        |arguments: &[&str], without| run(&[&["--list", "--format", "terse"], arguments].concat(), without).text;
    assert!(listed(&[], "CCompiler").contains("example_with_a_need: test\n"));
    assert!(listed(&["--ignored"], "CCompiler").contains("example_with_a_need: test\n"));
    assert!(!listed(&["--ignored"], "").contains("example_with_a_need"));
    assert!(!listed(&[], "").contains("the_attribute_is_the_kits"));
}

#[test]
fn an_ignored_test_runs_when_it_is_asked_for_and_its_failure_is_one() {
    let told = run(&["example_that_fails"], "");
    assert!(told.ended_well && told.text.contains("ignored (run by the tests below)"), "{told:?}");
    let told = run(&["--exact", "example_that_fails", "--ignored", "--nocapture", "--test-threads=1"], "");
    assert!(!told.ended_well && told.text.contains("thread 'example_that_fails'"), "{told:?}");
    assert!(told.text.contains("test result: FAILED. 0 passed; 1 failed;"), "{told:?}");
    let told = run(&["--exact", "example_that_returns_an_error", "--ignored"], "");
    assert!(!told.ended_well && told.text.contains("a reason"), "{told:?}");
}
