//! The search for the highest rate that keeps a response time under a limit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The percentile that a search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Percentile {
    /// The median.
    P50,
    /// The 95th.
    P95,
    /// The 99th.
    P99,
    /// The 99.9th.
    P999,
}

impl Percentile {
    /// Each, by the name an experiment uses.
    pub const NAMES: [(&'static str, Percentile); 4] =
        [("p50", Percentile::P50), ("p95", Percentile::P95), ("p99", Percentile::P99), ("p999", Percentile::P999)];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, percentile)| *percentile == self).map_or("", |(name, _)| name)
    }
}

/// What is searched for: the highest rate at which a percentile of the response time stays below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// Of the response times of every type of operation that is at least 5% of all.
    pub percentile: Percentile,
    /// What it is to stay below, milliseconds.
    pub limit_ms: f64,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max({} < {} ms)", self.percentile.name(), self.limit_ms)
    }
}

/// What one probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// As many operations as the clients serve, a closed loop: where the search begins.
    Reference,
    /// The rate was served, within the limit.
    Kept,
    /// It was not.
    Missed,
    /// It was not, and was seen to be disturbed: that counts for nothing, and the rate is asked for once more.
    Disturbed,
    /// It cannot be told, and the search ends there.
    Unknown,
}

/// What a probe was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Its rate was not asked for before.
    Step,
    /// Whether what was found at its rate is found there again.
    Confirmation,
    /// The probe before it was disturbed.
    Repetition,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Its number.
    pub trial: u32,
    /// The rate that was asked for, operations per second; `null` of the first, a closed loop.
    pub rate: Option<f64>,
    /// The rate that was served.
    pub ops_per_s: Metric,
    /// The searched percentile of the response time, milliseconds: the largest of all types that count.
    pub percentile_ms: Metric,
    /// What it was made for.
    pub purpose: Purpose,
    /// What it found.
    pub found: Found,
    /// Why, in words.
    pub reason: String,
    /// What was seen to disturb it: others that took the CPU, or a suspension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbed: Option<String>,
}

/// A search, with all its probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Searched {
    /// The engine's name in the experiment.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// Which repeat it is, from 1.
    pub repeat: u32,
    /// What was searched for.
    pub search: Search,
    /// In the order in which they ran.
    pub probes: Vec<Probe>,
    /// The highest rate that was kept, operations per second; absent, with the reason, where none was.
    pub highest: Metric,
    /// Whether it was kept by two probes at least, and by more than missed it.
    pub confirmed: bool,
    /// The lowest rate that was missed by two probes at least, and by more than kept it: the limit lies between the two.
    pub lowest_missed: Metric,
    /// The last trial that kept the highest rate, whose figures are the row's.
    pub trial: Option<u32>,
    /// Whether the search came to its end.
    pub ended: bool,
}
