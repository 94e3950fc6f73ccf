//! Every warning must have a place in the ranking: without one it is shown after all others, and marks no figure.

use std::path::Path;

use super::code::code_alone;
use super::{Finding, Text};

/// The file of the ranking.
const RANKING: &str = "crates/results/src/warning.rs";
/// The call that makes a warning; its first argument is its code.
const MAKES: &str = concat!("Warning::", "new(");

/// Codes of warnings in sources that the ranking lacks.
pub fn check(files: &[Text]) -> Vec<Finding> {
    let Some(ranking) = files.iter().find(|file| file.path == Path::new(RANKING)) else { return Vec::new() };
    let is_known = |code: &str| ranking.content.contains(&format!("row(\"{code}\","));
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| makes_warnings(file)) {
        // Tests in a module use made-up codes.
        let content = code_alone(&file.content);
        for (at, _) in content.match_indices(MAKES) {
            let Some(code) = literal(&content[at + MAKES.len()..]) else { continue };
            if !is_known(code) {
                findings.push(file.finding(
                    content[..at].matches('\n').count() + 1,
                    format!("the warning `{code}` has no rank in {RANKING}"),
                ));
            }
        }
    }
    findings
}

fn makes_warnings(file: &Text) -> bool {
    let in_tests = file.path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")));
    file.extension() == "rs" && !in_tests && file.path != Path::new(RANKING)
}

/// The text in quotes that comes first, if one does.
fn literal(arguments: &str) -> Option<&str> {
    arguments.trim_start().strip_prefix('"')?.split('"').next()
}
