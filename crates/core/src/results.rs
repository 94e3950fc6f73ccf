//! The results of an experiment as read back from disk: what a report and a
//! comparison work on. It may be partial; what is missing is said.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::Build;
use crate::claim::Claim;
use crate::engine_samples::EngineTimeSeries;
use crate::record::{Interval, Record};
use crate::warning::Warning;

/// An experiment and its trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The experiment's name.
    pub name: String,
    /// Where it was published, if the experiment reproduces something.
    pub source: Option<String>,
    /// The experiment as run, TOML.
    pub experiment: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// The build of it; absent in results of versions that did not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The host and what is common to all trials, by name.
    pub conditions: BTreeMap<String, String>,
    /// Warnings about the host and about parity between the engines.
    pub warnings: Vec<Warning>,
    /// What the experiment asserts.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// The trials in the order of running.
    pub trials: Vec<Trial>,
    /// What could not be read: trials not run, files cut off.
    pub missing: Vec<String>,
}

/// A trial as read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Its directory below the results directory.
    pub directory: String,
    /// Its record as it was last written: of a trial that runs, without its last phases.
    pub record: Record,
    /// Its intervals in order, as far as the file is whole.
    pub intervals: Vec<Interval>,
    /// What its engine was seen at while clients worked; nothing in results of versions that did not look.
    #[serde(default, skip_serializing_if = "EngineTimeSeries::is_empty")]
    pub course: EngineTimeSeries,
}
