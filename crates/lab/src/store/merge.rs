//! Merges several runs into one, to show them together.

use rumba_results::results::Results;

use crate::spec::without_claims;

/// The least distance between the numbers of two runs, because directories begin with three digits.
const APART: u32 = 1000;

/// Merges several runs, each with a distinguishing name. Engines and conditions that differ get this name, and the
/// trials of all runs but the first get higher numbers. A single run is unchanged; `None` for no runs.
pub fn merge(runs: Vec<(String, Results)>) -> Option<Results> {
    let is_one = runs.len() == 1;
    let apart = apart(&runs);
    let mut runs = runs.into_iter();
    let (first_name, mut merged) = runs.next()?;
    if is_one {
        return Some(merged);
    }
    rename(&mut merged, &first_name);
    // Claims are left out, because they use the engines' names in their own run.
    merged.experiment = without_claims(&merged.experiment);
    merged.claims.clear();
    for ((name, mut results), place) in runs.zip(1..) {
        rename(&mut results, &name);
        number_on(&mut results, apart.saturating_mul(place));
        merged.name = format!("{} + {}", merged.name, results.name);
        for (condition, value) in results.conditions {
            if merged.conditions.get(&condition) != Some(&value) {
                merged.conditions.insert(format!("{condition} ({name})"), value);
            }
        }
        merged.trials.extend(results.trials);
        merged.warnings.extend(results.warnings);
        merged.missing.extend(results.missing);
    }
    Some(merged)
}

fn rename(results: &mut Results, run: &str) {
    for trial in &mut results.trials {
        trial.record.plan.engine.name = format!("{}@{run}", trial.record.plan.engine.name);
    }
}

/// The offset between the trial numbers of two runs: a power of ten above all of them. The last digits then stay the
/// run's own, for example `1003` for the second run's `003-…`.
fn apart(runs: &[(String, Results)]) -> u32 {
    let plans = runs.iter().flat_map(|(_, results)| &results.trials).map(|trial| &trial.record.plan);
    let most = plans.flat_map(|plan| [Some(plan.number), plan.loaded_by]).flatten().max().unwrap_or(0);
    let mut powers = std::iter::successors(Some(APART), |power| power.checked_mul(10));
    powers.find(|power| *power > most).unwrap_or(u32::MAX)
}

/// Trials refer to loads, and figures to trials, by number, so no two trials may share one.
fn number_on(results: &mut Results, by: u32) {
    for trial in &mut results.trials {
        let plan = &mut trial.record.plan;
        plan.number = plan.number.saturating_add(by);
        plan.loaded_by = plan.loaded_by.map(|load| load.saturating_add(by));
    }
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::{Metric, Metrics};
    use rumba_results::record::{Interval, PhaseKind, PhaseRecord, TrialPart, TrialPlan};
    use rumba_results::results::Trial;
    use rumba_results::samples::{self, trial_plan};

    use super::*;

    fn phase(phase: PhaseKind, ops_per_s: f64) -> PhaseRecord {
        let metrics = Metrics { ops_per_s: Metric::Value(ops_per_s), ..Metrics::default() };
        PhaseRecord { ops: 20, metrics, ..samples::phase(phase, 20.0) }
    }

    fn second(second: u32) -> Interval {
        let ops = u64::from(100 + second * 3 % 7);
        Interval { ops, ..samples::interval(PhaseKind::Loop(1), f64::from(second)) }
    }

    fn trial(plan: TrialPlan, ops_per_s: f64) -> Trial {
        let (phases, seconds) = match plan.part {
            TrialPart::Load => (vec![PhaseKind::Load], 0),
            _ => (vec![PhaseKind::Loop(1), PhaseKind::Loops], 20),
        };
        let record = samples::record(plan, phases.into_iter().map(|kind| phase(kind, ops_per_s)).collect());
        let intervals = (0..seconds).map(second).collect();
        Trial { directory: "trials/001".to_owned(), record, intervals, course: Default::default() }
    }

    /// A load at this rate, and three repeats that started from it.
    fn from_one_load(ops_per_s: f64) -> Results {
        let load = TrialPlan { part: TrialPart::Load, ..trial_plan() };
        let repeat = |repeat: u32| TrialPlan {
            number: 1 + repeat,
            repeat,
            part: TrialPart::Run,
            loaded_by: Some(1),
            ..trial_plan()
        };
        let plans = std::iter::once(load).chain((1..=3).map(repeat));
        let trials = plans.map(|plan| trial(plan, ops_per_s)).collect();
        Results { name: "bench".to_owned(), ..samples::results(trials) }
    }

    fn both() -> Results {
        merge(vec![("A".to_owned(), from_one_load(100.0)), ("B".to_owned(), from_one_load(200.0))]).unwrap()
    }

    #[test]
    fn merged_trials_get_unique_numbers_that_end_in_the_original() {
        let plans: Vec<(u32, Option<u32>)> =
            both().trials.iter().map(|trial| (trial.record.plan.number, trial.record.plan.loaded_by)).collect();
        let of_run = |by: u32| [1, 2, 3, 4].map(move |number| (by + number, (number > 1).then_some(by + 1)));
        assert_eq!(plans, [of_run(0), of_run(1000)].concat());
        let mut long = from_one_load(100.0);
        long.trials[3].record.plan.number = 1000;
        let merged = merge(vec![("A".to_owned(), long), ("B".to_owned(), from_one_load(200.0))]).unwrap();
        assert_eq!(merged.trials[4].record.plan.number, 10_001);
    }

    #[test]
    fn merged_row_has_load_and_trend_of_its_own_run_only() {
        let summary = rumba_statistics::summarise(&both());
        for (engine, rate, load) in [("null@A", 100.0, 1), ("null@B", 200.0, 1001)] {
            let row = summary.row(engine, 1).unwrap();
            let figures = row.load.as_ref().unwrap();
            assert_eq!((figures.trials.as_slice(), row.loads), ([load].as_slice(), 1), "{engine}");
            assert_eq!(figures.metrics["ops_per_s"].values, [Metric::Value(rate)], "{engine}");
            let trends = summary.trends.iter().find(|trends| trends.engine == engine).unwrap();
            assert_eq!(trends.metrics["ops_per_s"].trials, [load + 1, load + 2, load + 3], "{engine}");
        }
    }
}
