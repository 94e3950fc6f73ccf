//! Time series of metrics over the loops: of one trial, and shared by its repeats.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Whether a metric has settled, judged by the seconds of one trial's loops or by the trends of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Settled {
    /// The whole interval of the trend is within 10% of the mean.
    Steady,
    /// A significant rise of more than 10% of the mean.
    Rising,
    /// A significant fall of more than 10% of the mean.
    Falling,
    /// Undecided: the seconds are too few or too dependent, or the repeats are too few or too different.
    Undecided,
}

/// A point at which a metric's level changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// The time, in seconds since the loops' start.
    pub at_s: f64,
    /// The level before it, from the previous change point or the loops' start.
    pub before: f64,
    /// The level after it, until the next change point.
    pub after: f64,
}

/// The time series of a metric over the seconds of all loops of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// The mean over the loops, in the metric's unit.
    pub mean: Metric,
    /// Effective sample size: the number of independent seconds that the loops are worth.
    pub n_eff: Metric,
    /// The change from the loops' start to their end along a straight line, over the mean: −0.2 if it fell by a fifth.
    pub trend: Metric,
    /// Lower end of the trend's 95% interval.
    pub low: Metric,
    /// Upper end of the trend's 95% interval.
    pub high: Metric,
    /// Whether the trend's interval shows it as steady; docs/method.md has the rule.
    pub settled: Settled,
    /// Twice the difference between the mean of the second half and that of the first, over the mean. For a straight
    /// line this is the trend.
    #[serde(default)]
    pub halves: Metric,
    /// The change points, ascending.
    pub changes: Vec<ChangePoint>,
}

/// The change over the loops that the repeats of a row share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedTrend {
    /// The trials behind it, in the order of running.
    pub trials: Vec<u32>,
    /// The mean of the repeats' `halves`.
    pub trend: Metric,
    /// Lower end of its 95% interval, of Student's t over the repeats.
    pub low: Metric,
    /// Upper end of its 95% interval.
    pub high: Metric,
    /// Whether the interval shows it as steady; docs/method.md has the rule.
    pub settled: Settled,
}

/// The changes that the repeats of an engine with a number of clients share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trends {
    /// The engine's name in the experiment, followed by the test of a suite, as in rows.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// By the metric's stable name: `ops_per_s` and `wkb_per_op`.
    pub metrics: BTreeMap<String, SharedTrend>,
}
