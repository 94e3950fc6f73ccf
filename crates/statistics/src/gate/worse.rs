//! The gate `worse`: whether any headline metric of any engine is worse.
//!
//! Each headline's own verdict errs in 5% of cases, so that a gate over twenty of them would close every second time
//! without any change. The p-values are therefore corrected for their number (Holm, A simple sequentially rejective
//! multiple test procedure, Scandinavian Journal of Statistics 6, 1979). The result is one false alarm in twenty
//! comparisons. For runs that did not take turns, each p-value tests whether the headline moved further than the
//! allowed drift. The guarantee then is as good as the allowance.

use rumba_results::comparison::{ComparedRow, Comparison, Part};
use rumba_results::gate::{Found, Gated};
use rumba_results::ratio::{Change, LEVEL, Ratio};
use rumba_results::starts::Starts;

use super::few_samples;
use super::{Drift, Mistake, Weighed, nothing_compared};
use std::borrow::Cow;

use crate::ratios::p_beyond;

pub(super) const WORD: &str = "worse";

/// The rounding error of a quotient of whole numbers.
const ROUNDING: f64 = 1e-9;

pub(super) fn judge(comparison: &Comparison, drift: Drift) -> Result<Vec<Gated>, Mistake> {
    if comparison.rows.is_empty() && comparison.unmatched.is_empty() {
        return Err(nothing_compared(WORD));
    }
    let rows: Vec<(&ComparedRow, Vec<Headline>)> =
        comparison.rows.iter().map(|row| (row, headlines(row, drift))).collect();
    let mut all: Vec<f64> =
        rows.iter().flat_map(|(_, headlines)| headlines).filter_map(|headline| headline.p).collect();
    all.sort_unstable_by(f64::total_cmp);
    let holm = Holm { bound: bound(&all), tests: all.len() };
    let of_rows = rows.iter().map(|(row, headlines)| {
        let weighed = holm.weigh(row, headlines);
        Gated { scope: row.scope(), ..weighed.gated(WORD, &row.engine, row.clients) }
    });
    let unmatched = comparison.unmatched.iter();
    let unmatched =
        unmatched.map(|one| Weighed::of(Found::NotJudged, &*one.reason).gated(WORD, &one.engine, one.clients));
    Ok(of_rows.chain(unmatched).collect())
}

/// The largest of these sorted p-values that is rejected when all of them are tested together.
fn bound(ordered: &[f64]) -> f64 {
    let tests = ordered.len();
    let is_rejected = |(rank, p): &(usize, &f64)| **p <= (1.0 - LEVEL) / (tests - rank) as f64 + ROUNDING;
    ordered.iter().enumerate().take_while(is_rejected).map(|(_, p)| *p).last().unwrap_or(-1.0)
}

struct Headline<'a> {
    ratio: Cow<'a, Ratio>,
    /// The allowed drift of the host.
    drift: Option<Drift>,
    /// The two-sided p-value that it has moved no further than the allowed drift.
    p: Option<f64>,
}

impl Headline<'_> {
    fn is_rejected_at(&self, bound: f64) -> bool {
        self.p.is_some_and(|p| p <= bound + ROUNDING)
    }
}

fn headlines(row: &ComparedRow, drift: Drift) -> Vec<Headline<'_>> {
    let all = row.metrics.iter().filter(|compared| compared.ratio.headline);
    let looks = Starts::looks_factor(&[row.base_starts, row.other_starts]);
    let with_p = all.map(|compared| {
        // A percentile with too few samples is at least the next lower ones, which may be enough to show a regression.
        let (ratio, other) = match few_samples::worse(compared, looks) {
            Some((ratio, bounded)) => (Cow::Owned(ratio), bounded.numbers()),
            None => (Cow::Borrowed(&compared.ratio), compared.other.numbers()),
        };
        let drift = drift.between(row, &ratio.metric);
        let beyond = |drift: Drift| p_beyond(&compared.base.numbers(), &other, drift.factor(), looks);
        Headline { p: ratio.p.map(|p| drift.map_or(p, beyond)), ratio, drift }
    });
    with_p.collect()
}

struct Holm {
    bound: f64,
    tests: usize,
}

impl Holm {
    fn weigh(&self, row: &ComparedRow, headlines: &[Headline<'_>]) -> Weighed {
        if let Some(why) = &row.unsound {
            return Weighed::of(Found::NotJudged, &**why);
        }
        if let Some(void) = headlines.iter().find(|headline| headline.ratio.change == Change::Void) {
            return Weighed::of(Found::Void, void.ratio.lacking.clone().unwrap_or_default());
        }
        let part = if row.part == Part::Load { "of the load" } else { "of the loops" };
        let of = |change: Change| headlines.iter().filter(move |headline| headline.ratio.change == change);
        let (certain, others): (Vec<&Headline>, Vec<&Headline>) =
            of(Change::Worse).partition(|headline| headline.is_rejected_at(self.bound));
        let (drifted, likely): (Vec<&Headline>, Vec<&Headline>) =
            others.into_iter().partition(|headline| headline.drift.is_some() && !headline.is_rejected_at(1.0 - LEVEL));
        let weighed = |found: Found, about: &[&Headline], reason: String| {
            let drift = about.iter().find_map(|headline| headline.drift);
            Weighed { found, reason: format!("{part}: {reason}"), drift }
        };
        if !certain.is_empty() {
            weighed(Found::Holds, &certain, named(&certain))
        } else if let Some(why) = lost(row) {
            // A proven regression takes precedence, because it names the metric.
            weighed(Found::NotJudged, &[], why)
        } else if !likely.is_empty() {
            let (named, tests) = (named(&likely), self.tests);
            let alone = format!("{named} alone, but not among {tests} headlines together; more repeats would decide");
            weighed(Found::Undecided, &likely, alone)
        } else if !drifted.is_empty() {
            weighed(Found::Undecided, &drifted, format!("{}, and not beyond that", named(&drifted)))
        } else if of(Change::Undecided).next().is_some() {
            let open: Vec<&str> = of(Change::Undecided).map(|headline| headline.ratio.metric.as_str()).collect();
            let why = of(Change::Undecided).find_map(|headline| headline.ratio.lacking.as_deref());
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            weighed(Found::Undecided, &[], format!("{} cannot be decided{why}", open.join(", ")))
        } else if of(Change::SingleRun).next().is_some() {
            weighed(Found::SingleRun, &[], "one repeat".to_owned())
        } else {
            weighed(Found::Fails, &[], "no headline is worse".to_owned())
        }
    }
}

/// The first headline that repeats of the other lack although all of the base have it.
fn lost(row: &ComparedRow) -> Option<String> {
    row.metrics.iter().filter(|compared| compared.ratio.headline).find_map(|compared| {
        let why = super::lost(&compared.base, &compared.other);
        let why = why.or_else(|| few_samples::lost_while_slower(row, compared))?;
        Some(format!("{} was lost: {why}", compared.ratio.metric))
    })
}

fn named(headlines: &[&Headline<'_>]) -> String {
    let one = |Headline { ratio, .. }: &&Headline<'_>| match ratio.ratio.value() {
        Some(value) => format!("{} is {value:.3} of the base", ratio.metric),
        None => ratio.metric.clone(),
    };
    headlines.iter().map(one).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::Metric;
    use rumba_results::record::{PhaseKind, Status};
    use rumba_results::results::Results;

    use super::*;
    use crate::testing::{at_rates, break_data, results, taking_turns};
    use crate::{Gate, compare};

    fn runs(repeats: u32, rate: f64) -> Results {
        let rates: Vec<f64> = (1..=repeats).map(|repeat| rate * (1.0 + f64::from(repeat) / 1e3)).collect();
        served(&rates)
    }

    /// A run whose repeats have these rates.
    fn served(rates: &[f64]) -> Results {
        results(at_rates("a", rates))
    }

    fn of_loops(base: &Results, other: &Results) -> Gated {
        found(base, other).into_iter().find(|gated| gated.reason.starts_with("of the loops")).unwrap()
    }

    fn found(base: &Results, other: &Results) -> Vec<Gated> {
        Gate::parse("worse").unwrap().judge(&compare(base, other)).unwrap()
    }

    #[test]
    fn gate_tests_all_headlines_together_and_reports_few_repeats() {
        let enough = found(&runs(7, 100.0), &runs(7, 80.0));
        assert!(enough.iter().all(|gated| gated.verdict == Found::Holds), "{enough:?}");
        assert!(enough[0].reason.contains("ops_per_s is 0.800 of the base"), "{}", enough[0].reason);
        let few = found(&runs(4, 100.0), &runs(4, 80.0));
        assert!(few.iter().all(|gated| gated.verdict == Found::Undecided), "{few:?}");
        assert!(few[0].reason.contains("of the base alone"), "{}", few[0].reason);
    }

    #[test]
    fn change_within_host_drift_closes_gate_only_if_interleaved() {
        let apart = of_loops(&runs(7, 100.0), &runs(7, 96.0));
        assert_eq!(apart.verdict, Found::Undecided);
        assert!(apart.reason.contains("ops_per_s is 0.960 of the base, and not beyond that; "), "{}", apart.reason);
        assert!(apart.reason.contains("the runs did not take turns"), "{}", apart.reason);
        let (base, other) = taking_turns(runs(7, 100.0), runs(7, 96.0));
        let in_turns = of_loops(&base, &other);
        assert!(in_turns.verdict == Found::Holds && !in_turns.reason.contains("turns"), "{}", in_turns.reason);
        assert_eq!((apart.allowed_drift_percent, in_turns.allowed_drift_percent), (Some(5.0), None));
        // The verdict that no headline is worse uses no allowance.
        let same = of_loops(&runs(7, 100.0), &runs(7, 100.0));
        let reported = (same.verdict, same.reason.as_str(), same.allowed_drift_percent);
        assert_eq!(reported, (Found::Fails, "of the loops: no headline is worse", None));
    }

    /// The test over all headlines ignored the allowance, which was applied only to each headline alone.
    #[test]
    fn worse_beyond_allowance_is_tested_over_all_headlines() {
        // All are below the base; two of seven are near it, so that beyond 5% the p-value is 2.1% and not 0.06%.
        let (base, other) = (runs(7, 100.0), served(&[80.0, 80.0, 98.0, 80.0, 98.0, 80.0, 80.0]));
        let apart = of_loops(&base, &other);
        assert_eq!(apart.verdict, Found::Undecided, "{}", apart.reason);
        assert!(apart.reason.starts_with("of the loops: ops_per_s is 0.797 of the base alone"), "{}", apart.reason);
        let reported = " headlines together; more repeats would decide; the runs did not take turns";
        assert!(apart.reason.contains(reported), "{}", apart.reason);
        let (base, other) = taking_turns(base, other);
        assert_eq!(of_loops(&base, &other).verdict, Found::Holds, "in turns");
    }

    /// A figure of zero had no interval that could exclude the allowance.
    #[test]
    fn change_from_or_to_zero_is_worse_under_any_allowance() {
        let reading = |reads: f64| {
            let mut run = runs(7, 100.0);
            for phase in run.trials.iter_mut().flat_map(|trial| &mut trial.record.phases) {
                phase.metrics.reads_per_op = Metric::Value(reads);
            }
            run
        };
        let reads = of_loops(&reading(0.0), &reading(3.0));
        assert!(reads.verdict == Found::Holds && reads.reason.starts_with("of the loops: reads_per_op; "), "{reads:?}");
        let stopped = of_loops(&runs(7, 100.0), &served(&[0.0; 7]));
        assert!(stopped.verdict == Found::Holds && stopped.reason.contains("ops_per_s is 0.000"), "{stopped:?}");
        for (base, other) in [(reading(3.0), reading(0.0)), (served(&[0.0; 7]), runs(7, 100.0))] {
            assert_eq!(of_loops(&base, &other).verdict, Found::Fails, "it is better");
        }
    }

    #[test]
    fn better_or_same_passes_and_unproven_does_not() {
        assert!(found(&runs(7, 100.0), &runs(7, 120.0)).iter().all(|gated| !gated.verdict.closes()));
        let mut broken = runs(7, 100.0);
        break_data(&mut broken.trials[0].record);
        assert!(found(&runs(7, 100.0), &broken).iter().all(|gated| gated.verdict == Found::NotJudged));
        let lost = found(&runs(7, 100.0), &results(Vec::new()));
        assert!(!lost.is_empty() && lost.iter().all(|gated| gated.verdict.closes()));
        assert!(found(&runs(1, 100.0), &runs(1, 50.0)).iter().all(|gated| gated.verdict == Found::SingleRun));
    }

    #[test]
    fn parts_of_runs_close_every_gate() {
        let mut cut_off = runs(7, 100.0);
        for trial in &mut cut_off.trials {
            trial.record.status = Status::Failed { phase: PhaseKind::Loop(2), cause: "killed".to_owned() };
            trial.record.phases.truncate(3);
        }
        for gate in ["worse", "ops_per_s < 0.95"] {
            let gated = Gate::parse(gate).unwrap().judge(&compare(&runs(7, 100.0), &cut_off)).unwrap();
            let of_loops = gated.iter().find(|gated| gated.reason.contains("no repeat of a ended its loops"));
            assert!(of_loops.is_some_and(|gated| gated.verdict == Found::NotJudged), "{gate}: {gated:?}");
        }
    }

    #[test]
    fn lost_headline_does_not_pass_or_hide_a_worse_one() {
        const OPEN: &str = "30 operations were still open";
        let lose = |mut run: Results, repeats: usize, why: &str| {
            for trial in run.trials.iter_mut().take(repeats) {
                for op in trial.record.phases.iter_mut().flat_map(|phase| phase.op_types.values_mut()) {
                    op.response.p99_ms = Metric::absent(why);
                }
            }
            run
        };
        for lost in [1, 7] {
            let same = of_loops(&runs(7, 100.0), &lose(runs(7, 100.0), lost, OPEN));
            assert_eq!(same.verdict, Found::NotJudged, "{lost}");
            assert!(same.reason.contains("get_node.p99_ms was lost: in the other, "), "{}", same.reason);
            assert!(same.reason.contains("30 operations were still open"), "{}", same.reason);
            let worse = of_loops(&runs(7, 100.0), &lose(runs(7, 80.0), lost, OPEN));
            assert!(worse.verdict == Found::Holds && worse.reason.contains("ops_per_s"), "{}", worse.reason);
            let of_base = of_loops(&lose(runs(7, 100.0), lost, OPEN), &runs(7, 100.0));
            assert!(!of_base.verdict.closes(), "{}", of_base.reason);
        }
        let both = of_loops(&lose(runs(7, 100.0), 1, OPEN), &lose(runs(7, 100.0), 7, OPEN));
        assert_eq!(both.verdict, Found::NotJudged, "that the base lacks one excuses nothing: {}", both.reason);
        for (lost, verdict) in [(1, Found::Undecided), (7, Found::NotJudged)] {
            let few = lose(runs(7, 100.0), lost, "997 samples are too few for p99: fewer than 10 lie beyond it");
            let few = of_loops(&runs(7, 100.0), &few);
            assert_eq!(
                few.verdict, verdict,
                "a few operations less are no loss, in all repeats they are: {}",
                few.reason
            );
        }
        let bound = Gate::parse("get_node.p99_ms > 1.1").unwrap();
        let judged = |base: &Results, other: &Results| bound.judge(&compare(base, other)).unwrap().remove(0);
        let lost = judged(&runs(7, 100.0), &lose(runs(7, 100.0), 1, OPEN));
        assert!(lost.verdict == Found::NotJudged && lost.reason.contains("1 of 7 repeats have none"), "{lost:?}");
        assert_eq!(judged(&lose(runs(7, 100.0), 1, OPEN), &runs(7, 100.0)).verdict, Found::Undecided);
    }

    #[test]
    fn p_values_are_held_against_their_number() {
        assert_eq!(bound(&[0.01, 0.02, 0.04]), 0.04, "each is below its own bound: 0.0167, 0.025, 0.05");
        assert_eq!(bound(&[0.02, 0.02, 0.02]), -1.0);
        assert_eq!(bound(&[]), -1.0);
    }
}
