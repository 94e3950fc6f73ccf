//! One number of an engine over its repeats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The spread of the repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Largest over smallest, minus one: 0.05 when they differ by 5%.
    pub range: f64,
    /// Coefficient of variation: the standard deviation of the sample over its mean.
    pub cv: f64,
}

/// The location of the repeats' centre, by the exact test that verdicts use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Centre {
    /// The smallest centre that the test does not reject.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The confidence level of the interval: 0.95, or the most that so few repeats allow, such as 0.875 with four.
    pub level: f64,
}

/// One number of an engine over its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The median of the repeats that have the number; absent if none has.
    pub median: Metric,
    /// Every repeat's number, in the order of [`crate::comparison::PhaseFigures::repeats`]; the mean if several trials
    /// started from the load of a repeat.
    pub values: Vec<Metric>,
    /// The numbers behind these means, for each start of each repeat; empty if every repeat has one start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Vec<Metric>>,
    /// The spread; `None` with fewer than two numbers or a smallest of zero.
    pub spread: Option<Spread>,
    /// The centre of the repeats; only for metrics of a phase with four or more numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<Centre>,
    /// For a percentile that some repeats lack because too few operations lie beyond it: a lower bound for each repeat,
    /// its next lower percentile with enough operations. Absent if the repeat has the number itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<Metric>,
}

impl Figure {
    /// The repeats' numbers, without the absent ones.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().filter_map(Metric::value).collect()
    }

    /// The first reason why some repeats lack the number, if others have it. The remaining numbers are a biased
    /// selection, so that no verdict may use them.
    pub fn lacking(&self) -> Option<String> {
        let lacking = self.values.iter().filter(|value| value.value().is_none()).count();
        let first = self.values.iter().find_map(Metric::reason)?;
        let all = self.values.len();
        (lacking < all).then(|| format!("{lacking} of {all} repeats have none: {first}"))
    }
}
