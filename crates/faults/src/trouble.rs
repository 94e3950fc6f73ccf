//! What the suite itself could not do. It says nothing of rumba.

use std::fmt;
use std::process::Command;

/// What the suite itself could not do, and why.
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

/// Says what was being done when something failed.
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

/// Runs a program of the system's that must succeed.
///
/// # Errors
/// What it complains of.
pub fn run(program: &str, args: &[&str]) -> Result<(), Trouble> {
    let output = Command::new(program).args(args).output().doing(program)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Trouble::new(format!("{program} {}", args.join(" ")), String::from_utf8_lossy(&output.stderr).trim()))
}
