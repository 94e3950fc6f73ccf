//! Checks the project's rules. Each rule is a file and returns findings.

mod arrows;
mod circles;
mod code;
mod folders;
mod links;
mod messages;
mod named;
mod names;
mod prose;
mod sources;
#[cfg(test)]
mod tests;
mod traces;
mod warnings;
mod words;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use links::within;

/// Something that is not in order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The mistake, and the expected form.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// The result of a check.
pub struct Report {
    /// The number of checked files.
    pub files: usize,
    /// The findings, by file and line.
    pub findings: Vec<Finding>,
    /// The pages' language in numbers.
    pub counts: String,
}

/// A text file of the project.
struct Text {
    /// Relative to the root.
    path: PathBuf,
    content: String,
}

impl Text {
    fn finding(&self, line: usize, what: impl Into<String>) -> Finding {
        Finding { file: self.path.clone(), line, what: what.into() }
    }

    /// The line of a byte of the content, from 1.
    fn line_of(&self, offset: usize) -> usize {
        self.content[..offset].matches('\n').count() + 1
    }

    fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }
}

/// Whether a word occurs alone, and not within a longer one of letters, digits and these characters.
fn has_word(text: &str, word: &str, more: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || more.contains(c);
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part))
}

/// Checks every text file below the root.
///
/// # Errors
/// A directory that cannot be read.
pub fn check(root: &Path) -> io::Result<Report> {
    let (mut files, mut paths) = (Vec::new(), Vec::new());
    collect(root, Path::new(""), &mut files, &mut paths)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut findings = arrows::check(&files);
    findings.extend(folders::check(&files));
    findings.extend(circles::check(&files));
    findings.extend(named::check(&files, &paths));
    findings.extend(sources::check_documented(&files));
    findings.extend(warnings::check(&files));
    findings.extend(prose::check(&files));
    findings.extend(messages::check(&files));
    findings.extend(words::check(&files));
    findings.extend(names::check(&files));
    for file in &files {
        findings.extend(sources::check(file));
        findings.extend(sources::check_tests(file));
        findings.extend(traces::check(file));
        findings.extend(links::check(file, root));
    }
    findings.sort();
    Ok(Report { files: files.len(), findings, counts: prose::counts(&files) })
}

/// Generated directories that are not checked, wherever they are, and those of the root.
const MADE: [&str; 4] = [".git", "target", "node_modules", "dist"];
const MADE_IN_ROOT: &str = "results";

/// Finds the files below a directory: the paths of all, and the text of those that are text.
fn collect(root: &Path, below: &Path, files: &mut Vec<Text>, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        // In a linked work tree `.git` is a file.
        if MADE.iter().any(|&made| entry.file_name() == made) || path == Path::new(MADE_IN_ROOT) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, files, paths)?;
        } else if kind.is_file() {
            paths.push(path.clone());
            if let Ok(content) = String::from_utf8(fs::read(entry.path())?) {
                files.push(Text { path, content });
            }
        }
    }
    Ok(())
}
