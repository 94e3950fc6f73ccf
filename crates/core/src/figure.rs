//! One number of an engine over its repeats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// How far repeats lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Largest over smallest, minus one: 0.05 when they differ by 5%.
    pub range: f64,
    /// Coefficient of variation: the standard deviation of the sample over its mean.
    pub cv: f64,
}

/// Where the centre of the repeats lies, by the exact test that verdicts rest on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Centre {
    /// The smallest centre that the test does not reject.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// How often such an interval holds the centre, at least: 0.95, or the most that so few repeats can give, 0.875 of four.
    pub level: f64,
}

/// One number of an engine over its repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The median of the repeats that have the number; absent when none has.
    pub median: Metric,
    /// Every repeat's number, in the order of [`crate::comparison::PhaseFigures::repeats`]; where several trials started
    /// from the load of a repeat, their mean.
    pub values: Vec<Metric>,
    /// The numbers behind these means, of each start of each repeat; empty where every repeat has one start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Vec<Metric>>,
    /// How far they lie apart; `None` with fewer than two numbers or a smallest of zero.
    pub spread: Option<Spread>,
    /// Where their centre lies; of a metric of a phase from four numbers on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub centre: Option<Centre>,
    /// Of a percentile that repeats lack because too few operations lie beyond it: for each repeat what it is at least, its
    /// next lower percentile that has enough; absent where the repeat has the number itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<Metric>,
}

impl Figure {
    /// The repeats' numbers, without the absent ones.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().filter_map(Metric::value).collect()
    }

    /// That some repeats have the number and others lack it, with the first reason: what is left of them has been chosen
    /// by what happened to them, so that no verdict may rest on it.
    pub fn lacking(&self) -> Option<String> {
        let lacking = self.values.iter().filter(|value| value.value().is_none()).count();
        let first = self.values.iter().find_map(Metric::reason)?;
        let all = self.values.len();
        (lacking < all).then(|| format!("{lacking} of {all} repeats have none: {first}"))
    }
}
