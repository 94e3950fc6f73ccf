//! Generic crates must not name an engine or a workload. An engine or workload provides the facts they need through a
//! trait or in its record. Comments and tests may name them.

use std::collections::BTreeSet;
use std::path::Path;

use super::code::lines_of_code;
use super::{Finding, Text};

/// The crates that use engines and workloads only through traits or records.
const GENERIC: [&str; 6] = [
    "crates/engine-api/src",
    "crates/lab/src",
    "crates/live/src",
    "crates/report/src",
    "crates/results/src",
    "crates/statistics/src",
];

/// A dialect has the name of its engine; it is a language, and this file lists them.
const DIALECTS: &str = "crates/engine-api/src/sql.rs";

/// A word of Rust, which only a string turns into the name of an engine.
const OF_THE_LANGUAGE: &str = "null";

/// The lines of generic crates that name an engine or a workload of this project.
pub fn check(files: &[Text]) -> Vec<Finding> {
    let names = names(files);
    let generic = |file: &&Text| GENERIC.iter().any(|of| file.path.starts_with(of)) && !is_tests(&file.path);
    let sources = files.iter().filter(|file| file.extension() == "rs" && file.path != Path::new(DIALECTS));
    sources.filter(generic).flat_map(|file| check_file(file, &names)).collect()
}

fn check_file(file: &Text, names: &BTreeSet<String>) -> Vec<Finding> {
    lines_of_code(&file.content)
    .filter_map(|(number, line)| {
        let name = named(line, names)?;
        let what = format!(
            "names `{name}`; a generic crate knows engines and workloads by EngineInfo, OpInfo and names of counters \
             (an example in a message can say NAME)"
        );
        Some(file.finding(number, what))
    })
    .collect()
}

/// The first name in a line of code.
fn named(line: &str, names: &BTreeSet<String>) -> Option<String> {
    let code = line.split_once("//").map_or(line, |(code, _)| code);
    let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(str::to_ascii_lowercase);
    // This includes `mysql_page`, but not longer words that only contain the name.
    let mut parts = words.flat_map(|word| word.split('_').map(str::to_owned).chain([word.clone()]).collect::<Vec<_>>());
    let is_meant = |word: &str| word != OF_THE_LANGUAGE || code.contains(&format!("\"{OF_THE_LANGUAGE}\""));
    let of_one_word = parts.find(|part| names.contains(part) && is_meant(part));
    // Words in sources have no hyphen, so names with one are searched for separately.
    of_one_word.or_else(|| names.iter().find(|name| name.contains('-') && code.contains(name.as_str())).cloned())
}

/// The names of the crates of engines and workloads, and the engines' own names.
fn names(files: &[Text]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        let parts: Vec<&str> = file.path.iter().filter_map(|part| part.to_str()).collect();
        let ["engines" | "workloads", name, rest @ ..] = parts.as_slice() else { continue };
        if *rest == ["Cargo.toml"] {
            names.insert((*name).to_owned());
        }
        names.extend(registered(&file.content));
    }
    names
}

/// The names in the values of `EngineInfo` of a source.
fn registered(content: &str) -> impl Iterator<Item = String> {
    let after = content.split("EngineInfo {").skip(1);
    after.filter_map(|value| Some(value.trim_start().strip_prefix("name: \"")?.split_once('"')?.0.to_owned()))
}

fn is_tests(path: &Path) -> bool {
    let is_of_tests = |part: &str| {
        let stem = part.trim_end_matches(".rs");
        ["tests", "testing"].contains(&stem) || stem.ends_with("_tests")
    };
    // Records for the tests of several crates.
    let is_shared = path == Path::new("crates/results/src/samples.rs");
    is_shared || path.iter().filter_map(|part| part.to_str()).any(is_of_tests)
}
