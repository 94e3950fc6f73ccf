//! Warnings about trials, and about the repeats of an engine together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::warning::Warning;

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrialName {
    /// Its number in the order of running.
    pub trial: u32,
    /// The engine's name in the experiment.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Which repeat of its engine and clients it is, from 1.
    pub repeat: u32,
}

/// The subject of a remark: a trial, or all repeats of an engine with a number of clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The trial's number in the order of running; `null` if it is about all repeats together.
    pub trial: Option<u32>,
    /// The engine's name in the experiment.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Which repeat of its engine and clients the trial is, from 1; `null` if it is about all of them together.
    pub repeat: Option<u32>,
}

impl About {
    /// All repeats of this engine with this number of clients.
    pub fn repeats(engine: &str, clients: u32) -> Self {
        Self { trial: None, engine: engine.to_owned(), clients, repeat: None }
    }
}

impl From<TrialName> for About {
    fn from(TrialName { trial, engine, clients, repeat }: TrialName) -> Self {
        Self { trial: Some(trial), engine, clients, repeat: Some(repeat) }
    }
}

/// A warning about one trial, or about all repeats of an engine together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Remark {
    /// The subject; each of its fields is a field of the JSON.
    #[serde(flatten)]
    pub about: About,
    /// Its code and its text, with the remedy.
    #[serde(flatten)]
    pub warning: Warning,
}
