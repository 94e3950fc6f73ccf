//! A mistake in an experiment: problem, place, and correction.

use std::ops::Range;

/// The source of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A place in the experiment's file, as a byte range.
    File(Range<usize>),
    /// An option of the command line, as written.
    Option(String),
    Default,
}

/// A mistake in an experiment or on the command line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}")]
pub struct SpecError {
    pub problem: String,
    pub remedy: String,
    /// Its place.
    pub origin: Origin,
    /// The file's name and text, if the experiment came from a file.
    pub file: Option<(String, String)>,
}

impl SpecError {
    pub fn new(origin: &Origin, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into(), origin: origin.clone(), file: None }
    }

    /// The line and column (from 1) of the mistake, if it is in a file.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let (Origin::File(range), Some((_, text))) = (&self.origin, &self.file) else { return None };
        let before = text.get(..range.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(1, |rest| rest.chars().count() + 1);
        Some((line, column))
    }

    /// The place as text: `file.toml:12:3`, or the option as written, without a password in it.
    pub fn place(&self) -> Option<String> {
        match &self.origin {
            Origin::Option(option) => Some(hidden(option)),
            Origin::Default => self.file.as_ref().map(|(name, _)| name.clone()),
            Origin::File(_) => {
                let (line, column) = self.line_column()?;
                Some(format!("{}:{line}:{column}", self.file.as_ref()?.0))
            }
        }
    }
}

/// The parts of a line that may be a password, which must not appear in logs and tickets. In a DSN, with or without
/// scheme, this is the text between the user's name and the `@`. It is also the value of a parameter with `password` in
/// its name.
fn secrets(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let start = line.find("://").map(|at| at + 3).or_else(|| Some(line.find('=')? + 1)).unwrap_or_default();
    if let Some(end) = line[start..].rfind('@').map(|at| start + at)
        && let Some(colon) = line[start..end].find(':')
    {
        found.push(start + colon + 1..end);
    }
    let lower = line.to_ascii_lowercase();
    for word in ["password=", "passwd=", "pwd="] {
        for (at, _) in lower.match_indices(word) {
            let from = at + word.len();
            let end = line[from..].find(['&', '"', '\'', ' ']).map_or(line.len(), |length| from + length);
            found.push(from..end);
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

/// An option, or its value, without parts that may be a password.
pub(super) fn hidden(option: &str) -> String {
    let (mut shown, mut from) = (String::new(), 0);
    for secret in secrets(option) {
        if secret.start >= from {
            shown += &option[from..secret.start];
            shown += "***";
        }
        from = from.max(secret.end);
    }
    shown + &option[from..]
}

/// A file's text with possible passwords in DSNs masked; every other byte keeps its place.
pub fn without_passwords(text: &str) -> String {
    let is_dsn = |line: &str| line.contains("://") || line.contains("server");
    let blot = |line: &str| {
        let found = if is_dsn(line) { secrets(line) } else { Vec::new() };
        found.into_iter().fold(line.to_owned(), |mut line, secret| {
            let stars = "*".repeat(secret.len());
            line.replace_range(secret, &stars);
            line
        })
    };
    text.split('\n').map(blot).collect::<Vec<_>>().join("\n")
}
