//! Claims: inequalities over records that an experiment asserts, and what came of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// A claim as an experiment states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// The finding as a sentence.
    pub text: String,
    /// Where it was published.
    pub source: Option<String>,
    /// The inequality: `wkb_per_op("innodb") >= 4 * wkb_per_op("myrocks")`.
    pub holds: String,
    /// What is shown beside the published figure: `wkb_per_op("innodb") / wkb_per_op("myrocks")`.
    pub measure: Option<String>,
    /// The published figure.
    pub published: Option<f64>,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The inequality holds, beyond the noise of the repeats.
    Holds,
    /// It does not, beyond the noise.
    Fails,
    /// The noise straddles it, or a figure is absent.
    Undecided,
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// What came of it.
    pub verdict: Verdict,
    /// Why, in words: the sides of the inequality, or what is absent.
    pub reason: String,
    /// What `measure` comes to; without one, the inequality's left side over its right.
    pub measured: Metric,
    /// The 95% bootstrap interval of `measured`, where there are repeats enough.
    pub interval: Option<(f64, f64)>,
    /// Share of the bootstrap's draws in which the inequality holds, 0 to 1.
    pub support: Option<f64>,
}
