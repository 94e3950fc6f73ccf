//! Sources are short and finished, and core is documented.

use std::path::Path;

use super::{Finding, Text, has_word};

/// A file that is longer holds more than one thing.
const MOST_LINES: usize = 600;

/// Put together, so that this file does not find itself.
const UNFINISHED: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!"), concat!("unimplemented", "!")];

/// Checks the length, and words that mark unfinished code.
pub fn check(file: &Text) -> Vec<Finding> {
    if !is_source(file) {
        return Vec::new();
    }
    let lines = file.content.lines().count();
    let too_long = (lines > MOST_LINES).then(|| {
        file.finding(MOST_LINES + 1, format!("{lines} lines; at most {MOST_LINES}: move a part to its own file"))
    });
    let unfinished = file.content.lines().enumerate().filter_map(|(index, line)| {
        let word = UNFINISHED.into_iter().find(|&word| has_word(line, word, "_"))?;
        Some(file.finding(index + 1, format!("{word}: finish it, or write down what is missing as a limit")))
    });
    too_long.into_iter().chain(unfinished).collect()
}

/// The beginning of an ignored test's reason. A test with unmet needs states them with `#[needs(…)]`, so that it runs
/// where possible.
const REASONS_TO_IGNORE: [&str; 2] = ["run by ", "writes "];

/// Tests that would count as passed, or never run, without notice.
pub fn check_tests(file: &Text) -> Vec<Finding> {
    if file.extension() != "rs" || file.path.starts_with("crates/testkit") || file.path.starts_with("xtask") {
        return Vec::new();
    }
    let finding = |(index, line): (usize, &str)| {
        let line = line.trim_start();
        if line.contains("\"skipped: ") {
            let what = "a test that returns is counted as passed: state what it needs with #[needs(…)]";
            return Some(file.finding(index + 1, what));
        }
        let reason = line.strip_prefix("#[ignore")?;
        let is_known = REASONS_TO_IGNORE.iter().any(|known| reason.starts_with(&format!(" = \"{known}")));
        (!is_known).then(|| file.finding(index + 1, "ignored tests are \"run by …\" another, or \"write …\" a file"))
    };
    file.content.lines().enumerate().filter_map(finding).collect()
}

/// Whether the compiler refuses an undocumented item of the public types.
pub fn check_documented(files: &[Text]) -> Vec<Finding> {
    let attribute = "#![deny(missing_docs)]";
    let roots = ["crates/engine-api/src/lib.rs", "crates/results/src/lib.rs"].map(Path::new);
    let roots = files.iter().filter(|file| roots.contains(&file.path.as_path()));
    let is_there = |root: &&Text| root.content.lines().any(|line| line.trim() == attribute);
    roots.filter(|root| !is_there(root)).map(|root| root.finding(1, format!("lacks {attribute}"))).collect()
}

fn is_source(file: &Text) -> bool {
    matches!(file.extension(), "rs" | "ts" | "js" | "mjs" | "css" | "html" | "sh" | "py" | "lua" | "mk")
        || file.path.starts_with("scripts")
        || file.path.starts_with(".ci")
        || file.path.ends_with("Makefile")
}
