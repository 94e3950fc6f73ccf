//! A mistake in an experiment: what, where, and what to write instead.

use std::ops::Range;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A place in the experiment's file, as a byte range.
    File(Range<usize>),
    /// An option of the command line, as written.
    Option(String),
    /// Nobody wrote it.
    Default,
}

/// A mistake in an experiment or on the command line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}")]
pub struct SpecError {
    /// What is wrong.
    pub problem: String,
    /// What to do instead.
    pub remedy: String,
    /// Where it was written.
    pub origin: Origin,
    /// The file's name and text, where the experiment came from a file.
    pub file: Option<(String, String)>,
}

impl SpecError {
    /// A mistake at `origin`.
    pub fn new(origin: &Origin, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into(), origin: origin.clone(), file: None }
    }

    /// The line and column (from 1) of the mistake, where it is in a file.
    pub fn line_column(&self) -> Option<(usize, usize)> {
        let (Origin::File(range), Some((_, text))) = (&self.origin, &self.file) else { return None };
        let before = text.get(..range.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(1, |rest| rest.chars().count() + 1);
        Some((line, column))
    }

    /// The place as text: `file.toml:12:3`, or the option as written, less a password in it.
    pub fn place(&self) -> Option<String> {
        match &self.origin {
            Origin::Option(option) => Some(without_password(option)),
            Origin::Default => self.file.as_ref().map(|(name, _)| name.clone()),
            Origin::File(_) => {
                let (line, column) = self.line_column()?;
                Some(format!("{}:{line}:{column}", self.file.as_ref()?.0))
            }
        }
    }
}

/// A DSN's password is not repeated into logs and tickets.
fn without_password(option: &str) -> String {
    let hidden = || {
        let (scheme, rest) = option.split_once("://")?;
        let (login, place) = rest.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:***@{place}"))
    };
    hidden().unwrap_or_else(|| option.to_owned())
}
