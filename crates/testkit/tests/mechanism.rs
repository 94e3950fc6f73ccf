//! A test with an unmet need shows as ignored with the reason, and never as passed.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::process::Command;

use rumba_engine_api::engine::Brought;
use rumba_testkit::{Each, Need};

/// Every machine that builds Rust has a C compiler.
#[test]
#[needs(CCompiler)]
fn example_with_a_need() {
    assert!(Command::new("cc").arg("--version").output().unwrap().status.success());
}

fn brought(variable: &'static str) -> Need {
    Need::Brought(Brought { variable, page: "CONTRIBUTING.md" })
}

/// Cargo names its program and the directory of the package to each test that it runs.
fn named_by_cargo() -> Vec<Each> {
    let each = |name, variable| Each { name, need: brought(variable) };
    vec![each("one", "CARGO"), each("two", "CARGO_MANIFEST_DIR")]
}

#[test]
#[needs(CCompiler)]
#[each(named_by_cargo)]
fn example_for_each(name: &'static str) {
    let each = named_by_cargo().into_iter().find(|each| each.name == name);
    assert_eq!(each.unwrap().need.missing(), None);
}

#[test]
#[ignore = "run by the tests below"]
#[each(Vec::new)]
fn example_for_none(name: &'static str) {
    panic!("there is no {name}");
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
struct TestOutput {
    text: String,
    ended_well: bool,
}

fn run(arguments: &[&str], without: &str) -> TestOutput {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(arguments).env("RUMBA_TESTS_WITHOUT", without).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    TestOutput { text, ended_well: output.status.success() }
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
fn a_test_for_each_of_a_list_is_one_test_for_each() {
    let told = run(&["example_for_each"], "");
    for name in ["one", "two"] {
        assert!(told.text.contains(&format!("test example_for_each::{name} ... ok")), "{told:?}");
    }
    assert!(told.text.contains("test result: ok. 2 passed; 0 failed; 0 ignored;"), "{told:?}");
    let told = run(&["--exact", "example_for_each::two"], "");
    assert!(told.text.contains("test result: ok. 1 passed; 0 failed; 0 ignored;"), "{told:?}");
    // All entries have the test's own need.
    let told = run(&["example_for_each"], "CCompiler");
    assert_eq!(told.text.matches("ignored (needs CCompiler: ").count(), 2, "{told:?}");
}

/// Guards against hidden gaps: if the whole test were ignored or passed silently, the entries that ran would be
/// unknown.
#[test]
fn of_a_test_for_each_what_one_lacks_is_told_and_the_others_run() {
    let told = run(&["example_for_each"], "Brought(\"CARGO\")");
    let why = "needs Brought(\"CARGO\"): RUMBA_TESTS_WITHOUT says so";
    assert!(told.text.contains(&format!("test example_for_each::one ... ignored ({why})")), "{told:?}");
    assert!(told.text.contains("test example_for_each::two ... ok"), "{told:?}");
    assert!(told.text.contains("test result: ok. 1 passed; 0 failed; 1 ignored;"), "{told:?}");
    let skipped = format!("\nskipped: rumba-testkit mechanism::example_for_each::one {why}\n");
    assert!(told.text.contains(&skipped), "{told:?}");
}

/// Else it would pass by not being there.
#[test]
fn a_test_for_each_of_an_empty_list_fails() {
    let told = run(&["example_for_none", "--ignored"], "");
    assert!(!told.ended_well && told.text.contains("a list that is empty: nothing is tested"), "{told:?}");
    assert!(told.text.contains("test result: FAILED. 0 passed; 1 failed;"), "{told:?}");
}

#[test]
fn what_nobody_has_brought_is_told_by_its_variable_and_its_page() {
    let told = |variable| brought(variable).missing().unwrap().to_string();
    let remedy = "CONTRIBUTING.md says what to bring";
    let unset = told("RUMBA_TEST_UNSET");
    assert_eq!(unset, format!("needs Brought(\"RUMBA_TEST_UNSET\"): RUMBA_TEST_UNSET names nothing; {remedy}"));
    // Cargo sets this variable to a value that is not a file.
    let elsewhere = told("CARGO_PKG_NAME");
    let why = format!("CARGO_PKG_NAME names what is not there, rumba-testkit; {remedy}");
    assert!(elsewhere.ends_with(&why), "{elsewhere}");
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
fn ignored_test_runs_on_request_and_its_failure_counts() {
    let told = run(&["example_that_fails"], "");
    assert!(told.ended_well && told.text.contains("ignored (run by the tests below)"), "{told:?}");
    let told = run(&["--exact", "example_that_fails", "--ignored", "--nocapture", "--test-threads=1"], "");
    assert!(!told.ended_well && told.text.contains("thread 'example_that_fails'"), "{told:?}");
    assert!(told.text.contains("test result: FAILED. 0 passed; 1 failed;"), "{told:?}");
    let told = run(&["--exact", "example_that_returns_an_error", "--ignored"], "");
    assert!(!told.ended_well && told.text.contains("a reason"), "{told:?}");
}
