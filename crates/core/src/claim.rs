//! Claims: inequalities over records that an experiment asserts, and what came of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::starts::Scope;

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
    /// What `measure` came to where it was published, in its unit; shown beside the measured one, and no part of the
    /// verdict.
    pub published: Option<f64>,
}

/// What the repeats say of a claim's inequality, by an exact test at 5%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The inequality holds: an exact test rejects that it does not.
    Holds,
    /// It does not: an exact test rejects that it does.
    Fails,
    /// The repeats cannot tell, a figure is absent, or a repeat's data failed its verification or did not come through it.
    Undecided,
    /// There is one repeat: `seen` says what it showed.
    SeenOnce,
    /// It compares an engine with itself: same build, same effective settings. `reason` names both.
    Void,
    /// As `Holds`, over starts of one load: how another load would come out is not known.
    TrueForThisLoad,
    /// As `Fails`, over starts of one load.
    FalseForThisLoad,
}

impl Verdict {
    /// What is left of it where it holds for no more than this.
    pub fn within(self, scope: Scope) -> Self {
        match (scope, self) {
            (Scope::ThisLoad, Verdict::Holds) => Verdict::TrueForThisLoad,
            (Scope::ThisLoad, Verdict::Fails) => Verdict::FalseForThisLoad,
            _ => self,
        }
    }
}

/// A claim with its verdict and what it rests on; made when results are read, never stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// As the experiment states it.
    #[serde(flatten)]
    pub claim: Claim,
    /// What the test says; of one repeat there is none, and `seen` stands alone.
    pub verdict: Verdict,
    /// Why, in words: the sides of the inequality, or what is absent.
    pub reason: String,
    /// Whether the inequality is true of the medians, whatever the noise; `None` when a figure is absent.
    #[serde(default)]
    pub seen: Option<bool>,
    /// The test that decided, in words: `permutation and Welch tests, 4 and 4 repeats`.
    #[serde(default)]
    pub test: Option<String>,
    /// How many more repeats would probably decide it, at the noise seen.
    #[serde(default)]
    pub more_repeats: Option<u32>,
    /// What `measure` comes to; without one, the inequality's left side over its right.
    pub measured: Metric,
    /// The two-sided 90% interval of `measured`, by inversion of the exact test:
    /// each end errs in at most 5%, as the verdict does. `None` with too few repeats.
    pub interval: Option<(f64, f64)>,
}
