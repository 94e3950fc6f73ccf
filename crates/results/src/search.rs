//! The search for the highest rate that keeps a response time under a limit.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The percentile of a search.
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

/// The goal of a search: the highest rate at which a percentile of the response time stays below a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// The percentile of the response time; it counts for every type of operation with at least 5% of all operations.
    pub percentile: Percentile,
    /// The limit, milliseconds.
    pub limit_ms: f64,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max({} < {} ms)", self.percentile.name(), self.limit_ms)
    }
}

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The throughput of a closed loop, with which the search begins.
    Reference,
    /// The rate was served, within the limit.
    Kept,
    /// The rate was missed, or the limit exceeded.
    Missed,
    /// The rate was not served within the limit, and the probe was disturbed: its result is ignored, and the rate is
    /// probed again.
    Disturbed,
    /// The result is unknown, and the search ends there.
    Unknown,
}

/// The reason for a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A new rate.
    Step,
    /// A second probe of a rate, to confirm the first.
    Confirmation,
    /// The probe before it was disturbed.
    Repetition,
}

/// One trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Probe {
    /// Its number.
    pub trial: u32,
    /// The requested rate, operations per second; `null` for the first, a closed loop.
    pub rate: Option<f64>,
    /// The rate that was served.
    pub ops_per_s: Metric,
    /// The searched percentile of the response time, milliseconds: the largest of all types that count.
    pub percentile_ms: Metric,
    /// The reason for the probe.
    pub purpose: Purpose,
    /// The result.
    pub found: Found,
    /// The reason, in words.
    pub reason: String,
    /// The observed disturbance: other processes that used the CPU, or a suspension.
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
    /// The goal of the search.
    pub search: Search,
    /// In the order in which they ran.
    pub probes: Vec<Probe>,
    /// The highest rate that was kept, operations per second; absent, with the reason, if none was.
    pub highest: Metric,
    /// Whether at least two probes kept it, and more than missed it.
    pub confirmed: bool,
    /// The lowest rate that at least two probes missed, and more than kept it: the limit lies between the two.
    pub lowest_missed: Metric,
    /// The last trial that kept the highest rate, whose figures are the row's.
    pub trial: Option<u32>,
    /// Whether the search ended.
    pub ended: bool,
}
