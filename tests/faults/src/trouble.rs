//! Failures of the suite itself, which are no findings about rumba.

use std::fmt;
use std::process::Command;

/// A failure of the suite itself, and the reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Trouble {
    what: String,
    why: String,
}

impl Trouble {
    /// Something that failed.
    pub fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}

/// Adds the step that failed.
pub trait Doing<T> {
    /// The same result, or the trouble.
    ///
    /// # Errors
    /// The trouble.
    fn doing(self, what: &str) -> Result<T, Trouble>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: &str) -> Result<T, Trouble> {
        self.map_err(|why| Trouble::new(what, why))
    }
}

/// Runs a system program that must succeed.
///
/// # Errors
/// The program's error message.
pub fn run(program: &str, args: &[&str]) -> Result<(), Trouble> {
    let output = Command::new(program).args(args).output().doing(program)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Trouble::new(format!("{program} {}", args.join(" ")), String::from_utf8_lossy(&output.stderr).trim()))
}
