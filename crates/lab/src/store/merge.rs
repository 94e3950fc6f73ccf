//! Several runs as one, to be shown beside each other.

use rumba_core::results::Results;

use crate::spec::without_claims;

/// Several runs as one, each with the name that tells it apart: engines and conditions that differ carry it. One alone
/// stays as it is; `None` of none.
pub fn merge(runs: Vec<(String, Results)>) -> Option<Results> {
    let is_one = runs.len() == 1;
    let mut runs = runs.into_iter();
    let (first_name, mut merged) = runs.next()?;
    if is_one {
        return Some(merged);
    }
    rename(&mut merged, &first_name);
    // They speak of engines by the names that these had in their own run.
    merged.experiment = without_claims(&merged.experiment);
    merged.claims.clear();
    for (name, mut results) in runs {
        rename(&mut results, &name);
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
