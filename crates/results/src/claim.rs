//! Claims: inequalities over records that an experiment asserts, and their verdicts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::starts::Scope;

/// A claim as an experiment states it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// The finding as a sentence.
    pub text: String,
    /// The publication.
    pub source: Option<String>,
    /// The inequality: `wkb_per_op("innodb") >= 4 * wkb_per_op("myrocks")`.
    pub holds: String,
    /// The expression shown with the published figure: `wkb_per_op("innodb") / wkb_per_op("myrocks")`.
    pub measure: Option<String>,
    /// The published value of `measure`, in its unit. Shown with the measured value; it has no influence on the
    /// verdict.
    pub published: Option<f64>,
}

/// The verdict on a claim's inequality, by an exact test at 5%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The inequality holds: an exact test rejects that it does not.
    Holds,
    /// It does not: an exact test rejects that it does.
    Fails,
    /// The repeats do not decide, a figure is absent, or a repeat's data failed its verification or the verification
    /// did not end.
    Undecided,
    /// A single repeat: `seen` reports its result.
    #[serde(alias = "seen-once")]
    SingleRun,
    /// It compares an engine with itself: same build, same effective settings. `reason` names both.
    Void,
    /// As `Holds`, over starts of one load, so that the verdict may not hold for another load.
    TrueForThisLoad,
    /// As `Fails`, over starts of one load.
    FalseForThisLoad,
}

impl Verdict {
    /// The verdict limited to this scope.
    pub fn within(self, scope: Scope) -> Self {
        match (scope, self) {
            (Scope::ThisLoad, Verdict::Holds) => Verdict::TrueForThisLoad,
            (Scope::ThisLoad, Verdict::Fails) => Verdict::FalseForThisLoad,
            _ => self,
        }
    }
}

/// A claim with its verdict and the reasons; computed when results are read, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// As the experiment states it.
    #[serde(flatten)]
    pub claim: Claim,
    /// The result of the test. With one repeat there is no test, and only `seen` is set.
    pub verdict: Verdict,
    /// The reason in words: the sides of the inequality, or the absent part.
    pub reason: String,
    /// Whether the inequality holds for the medians, regardless of noise; `None` when a figure is absent.
    #[serde(default)]
    pub seen: Option<bool>,
    /// The test that decided, in words: `permutation and Welch tests, 4 and 4 repeats`.
    #[serde(default)]
    pub test: Option<String>,
    /// How many more repeats would probably decide it, at the observed noise.
    #[serde(default)]
    pub more_repeats: Option<u32>,
    /// The value of `measure`; without one, the inequality's left side divided by its right side.
    pub measured: Metric,
    /// The two-sided 90% interval of `measured`, by inversion of the exact test:
    /// each end errs in at most 5%, as the verdict does. `None` with too few repeats.
    pub interval: Option<(f64, f64)>,
}
