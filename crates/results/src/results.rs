//! The results of an experiment as read back from disk, for reports and comparisons. They may be partial; missing parts
//! are named.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::Build;
use crate::claim::Claim;
use crate::engine_samples::EngineTimeSeries;
use crate::record::{Interval, Record};
use crate::warning::Warning;

/// An experiment and its trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// The experiment's name.
    pub name: String,
    /// The publication, if the experiment reproduces one.
    pub source: Option<String>,
    /// The experiment as run, TOML.
    pub experiment: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    /// The build of it; absent in results of versions that did not store it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// The host and everything that is common to all trials, by name.
    pub conditions: BTreeMap<String, String>,
    /// Warnings about the host and about parity between the engines.
    pub warnings: Vec<Warning>,
    /// The experiment's claims.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// The trials in the order of running.
    pub trials: Vec<Trial>,
    /// Missing parts: trials not run, truncated files.
    pub missing: Vec<String>,
}

/// A trial as read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Its directory below the results directory.
    pub directory: String,
    /// Its record as last written; for a running trial, without its last phases.
    pub record: Record,
    /// Its intervals in order, as far as the file is complete.
    pub intervals: Vec<Interval>,
    /// Samples of its engine while clients worked; empty in results of versions that took none.
    #[serde(default, skip_serializing_if = "EngineTimeSeries::is_empty")]
    pub course: EngineTimeSeries,
}
