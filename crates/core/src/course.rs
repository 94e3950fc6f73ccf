//! How metrics went over the loops: of one trial, and what its repeats have in common.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// What is known of a metric having settled: from the seconds of one trial's loops, or from the trends of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Settled {
    /// The trend's whole interval lies within 10% of the mean.
    Steady,
    /// It surely rose, and by more than 10% of the mean.
    Rising,
    /// It surely fell, and by more than 10% of the mean.
    Falling,
    /// The seconds are too few or too dependent on each other, or the repeats too few or too unlike, to tell.
    Undecided,
}

/// Where a metric's level became another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// When, in seconds since the loops' start.
    pub at_s: f64,
    /// The metric of the seconds before it, from the change point before or the loops' start.
    pub before: f64,
    /// That of the seconds after it, until the next change point.
    pub after: f64,
}

/// How a metric went over the seconds of all loops of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    /// The mean over the loops, in the metric's unit.
    pub mean: Metric,
    /// Effective sample size: how many independent seconds the loops' are worth.
    pub n_eff: Metric,
    /// The change from the loops' start to their end along a straight line, over the mean: −0.2 when it fell by a fifth.
    pub trend: Metric,
    /// Lower end of the trend's 95% interval.
    pub low: Metric,
    /// Upper end of the trend's 95% interval.
    pub high: Metric,
    /// Whether the trend's interval leaves it steady; docs/method.md has the rule.
    pub settled: Settled,
    /// Twice the mean of the second half less that of the first, over the mean: the trend of a straight line, of any
    /// other course no more than what its halves say.
    #[serde(default)]
    pub halves: Metric,
    /// Where the level changed, ascending.
    pub changes: Vec<ChangePoint>,
}

/// The change over the loops that the repeats of a row share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SharedTrend {
    /// The trials that it is of, in the order of running.
    pub trials: Vec<u32>,
    /// The mean of the repeats' `halves`.
    pub trend: Metric,
    /// Lower end of its 95% interval, of Student's t over the repeats.
    pub low: Metric,
    /// Upper end of its 95% interval.
    pub high: Metric,
    /// Whether the interval leaves it steady; docs/method.md has the rule.
    pub settled: Settled,
}

/// The changes that the repeats of an engine with a number of clients share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trends {
    /// The engine's name in the experiment, with the test of a suite behind it, as rows have it.
    pub engine: String,
    /// Clients of the operation mix.
    pub clients: u32,
    /// By the metric's stable name: `ops_per_s` and `wkb_per_op`.
    pub metrics: BTreeMap<String, SharedTrend>,
}
