//! Comments use the words of the field: a banned word is a finding that names the plain one.

use super::{Finding, Text};

/// Words of the project's old language, and the plain word for each.
const BANNED: [(&str, &str); 14] = [
    ("told", "reported, passed or printed"),
    ("tell", "report, print or distinguish"),
    ("tells", "reports, prints or distinguishes"),
    ("untold", "unreported"),
    ("anew", "again"),
    ("beside", "next to or with"),
    ("stranger", "another process or user"),
    ("strangers", "other processes or users"),
    ("whoever", "the actor's name"),
    ("whatever", "the thing's name"),
    ("nobody", "no process, no user or nothing"),
    ("standstill", "stall"),
    ("hears", "receives"),
    ("heard", "received"),
];

/// Checks the comments of Rust sources.
pub fn check(texts: &[Text]) -> Vec<Finding> {
    let sources = texts.iter().filter(|text| text.extension() == "rs");
    sources
        .flat_map(|text| text.content.lines().enumerate().filter_map(|(line, words)| finding(text, line, words)))
        .collect()
}

fn finding(text: &Text, line: usize, words: &str) -> Option<Finding> {
    let comment = words.trim_start().strip_prefix("//")?;
    // Names of code stay as they are.
    let prose = comment.split('`').step_by(2);
    let mut found = prose.flat_map(|part| part.split(|c: char| !c.is_alphanumeric())).map(str::to_lowercase);
    let (word, plain) = found.find_map(|word| BANNED.into_iter().find(|(banned, _)| *banned == word))?;
    Some(text.finding(line + 1, format!("`{word}` in a comment: write {plain}")))
}
