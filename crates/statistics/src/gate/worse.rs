//! The gate `worse`: whether any headline metric of any engine is.
//!
//! Each headline's own verdict errs in 5% of cases, so that a gate over twenty of them would close every second time
//! though nothing has changed. So their p-values are corrected for their number (Holm, A simple sequentially rejective
//! multiple test procedure, Scandinavian Journal of Statistics 6, 1979): one false alarm in twenty comparisons.

use rumba_core::comparison::{ComparedRow, Comparison, Part};
use rumba_core::gate::{Found, Gated};
use rumba_core::ratio::{Change, LEVEL, Ratio};

use super::{Drift, GateError, nothing_compared};

pub(super) const WORD: &str = "worse";

/// Rounding of a quotient of whole numbers.
const ROUNDING: f64 = 1e-9;

pub(super) fn judge(comparison: &Comparison, drift: Drift) -> Result<Vec<Gated>, GateError> {
    if comparison.rows.is_empty() && comparison.unmatched.is_empty() {
        return Err(nothing_compared(WORD));
    }
    let mut all: Vec<f64> = comparison.rows.iter().flat_map(headlines).filter_map(|ratio| ratio.p).collect();
    all.sort_unstable_by(f64::total_cmp);
    let holm = Holm { bound: bound(&all), tests: all.len(), drift };
    let unmatched =
        comparison.unmatched.iter().map(|one| gated(&one.engine, one.clients, Found::NotJudged, &one.reason));
    Ok(comparison.rows.iter().map(|row| holm.of_row(row)).chain(unmatched).collect())
}

/// The largest p-value, of these in their order, that is rejected when all of them are tested together.
fn bound(ordered: &[f64]) -> f64 {
    let tests = ordered.len();
    let is_rejected = |(rank, p): &(usize, &f64)| **p <= (1.0 - LEVEL) / (tests - rank) as f64 + ROUNDING;
    ordered.iter().enumerate().take_while(is_rejected).map(|(_, p)| *p).last().unwrap_or(-1.0)
}

struct Holm {
    bound: f64,
    tests: usize,
    drift: Drift,
}

impl Holm {
    fn of_row(&self, row: &ComparedRow) -> Gated {
        if let Some(why) = &row.unsound {
            return gated(&row.engine, row.clients, Found::NotJudged, why);
        }
        let of = |change: Change| headlines(row).filter(move |ratio| ratio.change == change);
        let (certain, likely): (Vec<&Ratio>, Vec<&Ratio>) =
            of(Change::Worse).partition(|ratio| ratio.p.is_some_and(|p| p <= self.bound + ROUNDING));
        let drift = self.drift.between(row);
        let (certain, drifted): (Vec<&Ratio>, Vec<&Ratio>) =
            certain.into_iter().partition(|ratio| drift.is_none_or(|drift| drift.is_exceeded_by(ratio)));
        let beyond = drift.map(|drift| format!("; {drift}")).unwrap_or_default();
        let part = if row.part == Part::Load { "of the load" } else { "of the loops" };
        let (verdict, reason) = if !certain.is_empty() {
            (Found::Holds, format!("{part}: {}{beyond}", named(&certain)))
        } else if let Some(why) = lost(row) {
            // What is surely worse is the better news: it says what.
            (Found::NotJudged, format!("{part}: {why}"))
        } else if !drifted.is_empty() {
            (Found::Undecided, format!("{part}: {}, and not beyond that{beyond}", named(&drifted)))
        } else if !likely.is_empty() {
            let tests = self.tests;
            let alone = format!("{part}: {} by itself, and not among {tests} headlines together", named(&likely));
            (Found::Undecided, format!("{alone}; more repeats would tell"))
        } else if of(Change::Undecided).next().is_some() {
            let open: Vec<&str> = of(Change::Undecided).map(|ratio| ratio.metric.as_str()).collect();
            (Found::Undecided, format!("{part}: {} cannot be told", open.join(", ")))
        } else if of(Change::SeenOnce).next().is_some() {
            (Found::SeenOnce, format!("{part}: one repeat"))
        } else {
            (Found::Fails, format!("{part}: no headline is worse{beyond}"))
        };
        gated(&row.engine, row.clients, verdict, &reason)
    }
}

/// The first headline that repeats of the other lack though all of the base have it.
fn lost(row: &ComparedRow) -> Option<String> {
    row.metrics.iter().filter(|compared| compared.ratio.headline).find_map(|compared| {
        let why = super::lost(&compared.base, &compared.other)?;
        Some(format!("{} was lost: {why}", compared.ratio.metric))
    })
}

fn headlines(row: &ComparedRow) -> impl Iterator<Item = &Ratio> {
    row.metrics.iter().map(|compared| &compared.ratio).filter(|ratio| ratio.headline)
}

fn named(ratios: &[&Ratio]) -> String {
    let one = |ratio: &&Ratio| match ratio.ratio.value() {
        Some(value) => format!("{} is {value:.3} of the base", ratio.metric),
        None => ratio.metric.clone(),
    };
    ratios.iter().map(one).collect::<Vec<String>>().join(", ")
}

fn gated(engine: &str, clients: u32, verdict: Found, reason: &str) -> Gated {
    Gated { gate: WORD.to_owned(), engine: engine.to_owned(), clients, verdict, reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::metric::Metric;
    use rumba_core::record::{PhaseKind, Status};
    use rumba_core::results::Results;

    use super::*;
    use crate::testing::{break_data, record, results, taking_turns};
    use crate::{Gate, compare};

    fn runs(repeats: u32, rate: f64) -> Results {
        let repeats = (1..=repeats).map(|repeat| {
            let mut record = record("a", 8, repeat);
            let rate = rate * (1.0 + f64::from(repeat) / 1e3);
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(rate));
            record
        });
        results(repeats.collect())
    }

    fn found(base: &Results, other: &Results) -> Vec<Gated> {
        Gate::parse("worse").unwrap().judge(&compare(base, other)).unwrap()
    }

    #[test]
    fn it_closes_on_what_is_worse_among_all_headlines_together_and_says_when_repeats_are_too_few() {
        let enough = found(&runs(7, 100.0), &runs(7, 80.0));
        assert!(enough.iter().all(|gated| gated.verdict == Found::Holds), "{enough:?}");
        assert!(enough[0].reason.contains("ops_per_s is 0.800 of the base"), "{}", enough[0].reason);
        let few = found(&runs(4, 100.0), &runs(4, 80.0));
        assert!(few.iter().all(|gated| gated.verdict == Found::Undecided), "{few:?}");
        assert!(few[0].reason.contains("by itself"), "{}", few[0].reason);
    }

    #[test]
    fn what_the_host_alone_may_have_done_between_two_runs_closes_it_only_where_they_took_turns() {
        let of_loops = |base: &Results, other: &Results| {
            found(base, other).into_iter().find(|gated| gated.reason.starts_with("of the loops")).unwrap()
        };
        let apart = of_loops(&runs(7, 100.0), &runs(7, 96.0));
        assert_eq!(apart.verdict, Found::Undecided);
        assert!(apart.reason.contains("ops_per_s is 0.960 of the base, and not beyond that; "), "{}", apart.reason);
        assert!(apart.reason.contains("the runs did not take turns"), "{}", apart.reason);
        let (base, other) = taking_turns(runs(7, 100.0), runs(7, 96.0));
        let in_turns = of_loops(&base, &other);
        assert!(in_turns.verdict == Found::Holds && !in_turns.reason.contains("turns"), "{}", in_turns.reason);
    }

    #[test]
    fn what_is_better_or_the_same_passes_and_what_is_not_shown_does_not() {
        assert!(found(&runs(7, 100.0), &runs(7, 120.0)).iter().all(|gated| !gated.verdict.closes()));
        let mut broken = runs(7, 100.0);
        break_data(&mut broken.trials[0].record);
        assert!(found(&runs(7, 100.0), &broken).iter().all(|gated| gated.verdict == Found::NotJudged));
        let lost = found(&runs(7, 100.0), &results(Vec::new()));
        assert!(!lost.is_empty() && lost.iter().all(|gated| gated.verdict.closes()));
        assert!(found(&runs(1, 100.0), &runs(1, 50.0)).iter().all(|gated| gated.verdict == Found::SeenOnce));
    }

    #[test]
    fn a_headline_that_repeats_lost_is_not_passed_and_does_not_hide_what_is_surely_worse() {
        const OPEN: &str = "30 operations were still open";
        let lose = |mut run: Results, repeats: usize, why: &str| {
            for trial in run.trials.iter_mut().take(repeats) {
                for op in trial.record.phases.iter_mut().flat_map(|phase| phase.op_types.values_mut()) {
                    op.response.p99_ms = Metric::absent(why);
                }
            }
            run
        };
        let of_loops = |base: &Results, other: &Results| {
            found(base, other).into_iter().find(|gated| gated.reason.starts_with("of the loops")).unwrap()
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
    fn p_values_are_held_against_their_number() {
        assert_eq!(bound(&[0.01, 0.02, 0.04]), 0.04, "each is below its own bound: 0.0167, 0.025, 0.05");
        assert_eq!(bound(&[0.02, 0.02, 0.02]), -1.0);
        assert_eq!(bound(&[]), -1.0);
    }
}
