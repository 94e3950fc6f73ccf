//! What makes a number less trustworthy than it looks, each with its remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning about a host, an experiment or a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A short stable name: `debt-at-end`.
    pub code: String,
    /// What was seen, with figures.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Warning {
    /// A warning of this code.
    pub fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), remedy: remedy.into() }
    }
}
