//! Ratios of figures, with their certainty and verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::starts::Scope;

/// The margin around 1 within which a ratio needs no action: if the whole interval lies in it, the two are the same.
pub const SAME_MARGIN: f64 = 0.01;

/// The confidence level of a ratio's two-sided interval.
pub const LEVEL: f64 = 0.95;

/// The smallest share of all operations for a main type of operation, whose 99th percentile carries a verdict.
pub const MAIN_SHARE: f64 = 0.05;

/// The metrics of the load that carry verdicts.
pub const HEADLINE_LOAD: &[&str] = &["ops_per_s", "wkb_per_row_with_settle", "cpu_us_per_row_with_settle"];

/// The two CPU metrics, of which one carries the verdict about CPU ([`crate::headline::CpuHeadline`]): the host's, and
/// that of clients and engine alone.
pub const HEADLINE_CPU: [&str; 2] = ["host_cpu_us_per_op_with_drain", "cpu_us_per_op_with_drain"];

/// The metrics of the loops that carry verdicts, in addition to the 99th percentiles of the main operations; only one
/// of [`HEADLINE_CPU`] does.
pub const HEADLINE_RUN: &[&str] =
    &["ops_per_s", "wkb_per_op_with_drain", "reads_per_op", HEADLINE_CPU[0], HEADLINE_CPU[1], "data_bytes"];

/// The verdict on a ratio, with its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Better: the whole interval is on the better side of 1.
    Better,
    /// Worse: the whole interval is on the worse side of 1.
    Worse,
    /// A positive finding: the whole interval is within [`SAME_MARGIN`] of 1.
    Same,
    /// The interval excludes 1, and the metric has no better direction.
    Differs,
    /// The repeats do not decide; `more_repeats` estimates how many more probably would.
    Undecided,
    /// A single run on one side, so that its noise is not known.
    #[serde(alias = "seen-once")]
    SingleRun,
    /// Both are the same engine with the same settings, so a comparison is void; the reason is in `lacking`.
    Void,
}

impl Change {
    /// All verdicts, in the order of their importance for readers.
    pub const ALL: [Self; 7] =
        [Self::Worse, Self::Better, Self::Differs, Self::Same, Self::Undecided, Self::SingleRun, Self::Void];
}

/// A ratio of two figures with its exact interval and verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The metric's stable name, or `OP.p99_ms` for a type of operation.
    pub metric: String,
    /// The unit of both figures: `KB/op`; the ratio itself has none.
    pub unit: String,
    /// Whether it is one of the few metrics with a separate verdict at the level of the interval. The verdicts of all
    /// others together have a false discovery rate of 5%.
    pub headline: bool,
    /// The other's median divided by the base's.
    pub ratio: Metric,
    /// Lower end of the two-sided 95% interval: the smallest ratio that the permutation and Welch tests do not both
    /// reject.
    pub low: Metric,
    /// Upper end of it: the largest ratio that they do not both reject.
    pub high: Metric,
    /// The verdict on the ratio.
    pub change: Change,
    /// The scope of the verdict: other loads too, or this load only.
    #[serde(default)]
    pub scope: Scope,
    /// The two-sided p-value of the test that both are equal: the larger one of the permutation test's and Welch's.
    /// Absent with one repeat.
    pub p: Option<f64>,
    /// How many more repeats of each side would probably decide it, at the observed noise. `None` if it is decided, if
    /// the noise is unknown, or if more than [`MOST_MORE_REPEATS`] would be needed because the figures are too noisy.
    pub more_repeats: Option<u32>,
    /// The reason why there is no verdict although both sides have the figure. Some repeats lack it, the host was
    /// disturbed, a build checks assertions, the drain is most of the figure, or both sides are the same engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<String>,
}

impl Ratio {
    /// Whether both sides have the figure, so that there is something to judge.
    pub fn has_figure(&self) -> bool {
        self.ratio.value().is_some() || self.p.is_some()
    }
}

/// The largest estimate that is reported. Larger numbers of repeats are not practical, and the estimate itself rests on
/// few repeats.
pub const MOST_MORE_REPEATS: u32 = 20;

/// `3 more repeats of each would probably decide`; `None` if the noise is too large for that.
pub fn more_repeats(more: Option<u32>) -> Option<String> {
    let more = more?;
    Some(format!("{more} more {} of each would probably decide", if more == 1 { "repeat" } else { "repeats" }))
}

/// The same, or `too noisy to decide here`.
pub fn what_would_decide(more: Option<u32>) -> String {
    more_repeats(more).unwrap_or_else(|| "too noisy to decide here".to_owned())
}

/// A number of verdicts, each of which is wrong in at most 5% of cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictCount {
    /// The number of verdicts.
    pub verdicts: u32,
    /// The largest share of such runs in which at least one of them is wrong: `1 - 0.95^verdicts`.
    pub any_wrong: f64,
}

impl VerdictCount {
    /// Counts this number of verdicts.
    pub fn of(verdicts: usize) -> Self {
        let verdicts = u32::try_from(verdicts).unwrap_or(u32::MAX);
        Self { verdicts, any_wrong: 1.0 - LEVEL.powf(f64::from(verdicts)) }
    }

    /// `At least one of these 24 verdicts is wrong in up to 71% of such runs.` `None` for a single verdict.
    pub fn sentence(&self) -> Option<String> {
        let percent = 100.0 * self.any_wrong;
        // Rounding would give 100%.
        let share = if percent > 99.0 { "almost all".to_owned() } else { format!("up to {percent:.0}% of") };
        let verdicts = self.verdicts;
        (verdicts > 1).then(|| format!("At least one of these {verdicts} verdicts is wrong in {share} such runs."))
    }
}

/// The largest of these p-values that is rejected when all of them are tested together at a false discovery rate of 5%
/// (Benjamini and Hochberg); 0 if none is. If nothing differs, at least one is rejected in at most 5% of cases. Metrics
/// of one trial are positively correlated, under which the procedure keeps its rate.
///
/// Source: Benjamini and Yekutieli, The control of the false discovery rate in multiple testing under dependency,
/// Annals of Statistics 29 (2001).
pub fn discoveries(of: impl Iterator<Item = f64>) -> f64 {
    /// The largest rounding difference between sums of the same figures in another order.
    const ROUNDING: f64 = 1e-9;
    let mut ordered: Vec<f64> = of.collect();
    ordered.sort_unstable_by(f64::total_cmp);
    let count = ordered.len() as f64;
    let allowed = |(rank, p): (usize, &f64)| *p <= (1.0 - LEVEL) * (rank + 1) as f64 / count + ROUNDING;
    ordered.iter().enumerate().filter(|entry| allowed(*entry)).map(|(_, p)| *p).next_back().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_verdicts_state_their_joint_error_rate() {
        let sentence = |verdicts| VerdictCount::of(verdicts).sentence();
        assert_eq!((sentence(0), sentence(1)), (None, None));
        assert_eq!(
            sentence(24).as_deref(),
            Some("At least one of these 24 verdicts is wrong in up to 71% of such runs.")
        );
        assert_eq!(
            sentence(150).as_deref(),
            Some("At least one of these 150 verdicts is wrong in almost all such runs.")
        );
    }
}
