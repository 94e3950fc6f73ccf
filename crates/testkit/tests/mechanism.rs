//! A test with an unmet need shows as ignored with the reason, and never as passed.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::process::Command;

use rumba_engine_api::engine::ExternalLibrary;
use rumba_testkit::{Each, Need};

/// Every machine that builds Rust has a C compiler.
#[test]
#[needs(CCompiler)]
fn example_with_a_need() {
    assert!(Command::new("cc").arg("--version").output().unwrap().status.success());
}

fn brought(variable: &'static str) -> Need {
    Need::ExternalLibrary(ExternalLibrary { variable, page: "CONTRIBUTING.md" })
}

/// Cargo names its program and the directory of the package to each test that it runs.
fn named_by_cargo() -> Vec<Each> {
    let each = |name, variable| Each { name, need: Some(brought(variable)) };
    vec![each("one", "CARGO"), each("two", "CARGO_MANIFEST_DIR")]
}

#[test]
#[needs(CCompiler)]
#[each(named_by_cargo)]
fn example_for_each(name: &'static str) {
    let each = named_by_cargo().into_iter().find(|each| each.name == name);
    assert_eq!(each.unwrap().need.unwrap().missing(), None);
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
    let reported = run(&["example_with_a_need"], "CCompiler");
    assert!(reported.ended_well, "{reported:?}");
    let why = "needs CCompiler: RUMBA_TESTS_WITHOUT says so";
    assert!(reported.text.contains(&format!("test example_with_a_need ... ignored ({why})")), "{reported:?}");
    assert!(reported.text.contains("test result: ok. 0 passed; 0 failed; 1 ignored;"), "{reported:?}");
    assert!(
        reported.text.contains(&format!("\nskipped: rumba-testkit mechanism::example_with_a_need {why}\n")),
        "{reported:?}"
    );
}

#[test]
fn a_test_for_each_of_a_list_is_one_test_for_each() {
    let reported = run(&["example_for_each"], "");
    for name in ["one", "two"] {
        assert!(reported.text.contains(&format!("test example_for_each::{name} ... ok")), "{reported:?}");
    }
    assert!(reported.text.contains("test result: ok. 2 passed; 0 failed; 0 ignored;"), "{reported:?}");
    let reported = run(&["--exact", "example_for_each::two"], "");
    assert!(reported.text.contains("test result: ok. 1 passed; 0 failed; 0 ignored;"), "{reported:?}");
    // All entries have the test's own need.
    let reported = run(&["example_for_each"], "CCompiler");
    assert_eq!(reported.text.matches("ignored (needs CCompiler: ").count(), 2, "{reported:?}");
}

/// Guards against hidden gaps: if the whole test were ignored or passed silently, the entries that ran would be
/// unknown.
#[test]
fn unmet_need_of_one_case_is_reported_and_the_others_run() {
    let reported = run(&["example_for_each"], "ExternalLibrary(\"CARGO\")");
    let why = "needs ExternalLibrary(\"CARGO\"): RUMBA_TESTS_WITHOUT says so";
    assert!(reported.text.contains(&format!("test example_for_each::one ... ignored ({why})")), "{reported:?}");
    assert!(reported.text.contains("test example_for_each::two ... ok"), "{reported:?}");
    assert!(reported.text.contains("test result: ok. 1 passed; 0 failed; 1 ignored;"), "{reported:?}");
    let skipped = format!("\nskipped: rumba-testkit mechanism::example_for_each::one {why}\n");
    assert!(reported.text.contains(&skipped), "{reported:?}");
}

/// Else it would pass by not being there.
#[test]
fn a_test_for_each_of_an_empty_list_fails() {
    let reported = run(&["example_for_none", "--ignored"], "");
    assert!(!reported.ended_well && reported.text.contains("a list that is empty: nothing is tested"), "{reported:?}");
    assert!(reported.text.contains("test result: FAILED. 0 passed; 1 failed;"), "{reported:?}");
}

#[test]
fn missing_library_is_reported_by_variable_and_page() {
    let reported = |variable| brought(variable).missing().unwrap().to_string();
    let remedy = "CONTRIBUTING.md says what to bring";
    let unset = reported("RUMBA_TEST_UNSET");
    assert_eq!(unset, format!("needs ExternalLibrary(\"RUMBA_TEST_UNSET\"): RUMBA_TEST_UNSET names nothing; {remedy}"));
    // Cargo sets this variable to a value that is not a file.
    let elsewhere = reported("CARGO_PKG_NAME");
    let why = format!("CARGO_PKG_NAME names what is not there, rumba-testkit; {remedy}");
    assert!(elsewhere.ends_with(&why), "{elsewhere}");
}

#[test]
fn test_listing_marks_ignored_tests() {
    let listed =
        |arguments: &[&str], without| run(&[&["--list", "--format", "terse"], arguments].concat(), without).text;
    assert!(listed(&[], "CCompiler").contains("example_with_a_need: test\n"));
    assert!(listed(&["--ignored"], "CCompiler").contains("example_with_a_need: test\n"));
    assert!(!listed(&["--ignored"], "").contains("example_with_a_need"));
    assert!(!listed(&[], "").contains("the_attribute_is_the_kits"));
}

#[test]
fn ignored_test_runs_on_request_and_its_failure_counts() {
    let reported = run(&["example_that_fails"], "");
    assert!(reported.ended_well && reported.text.contains("ignored (run by the tests below)"), "{reported:?}");
    let reported = run(&["--exact", "example_that_fails", "--ignored", "--nocapture", "--test-threads=1"], "");
    assert!(!reported.ended_well && reported.text.contains("thread 'example_that_fails'"), "{reported:?}");
    assert!(reported.text.contains("test result: FAILED. 0 passed; 1 failed;"), "{reported:?}");
    let reported = run(&["--exact", "example_that_returns_an_error", "--ignored"], "");
    assert!(!reported.ended_well && reported.text.contains("a reason"), "{reported:?}");
}
