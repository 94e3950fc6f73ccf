//! What is left to do of an experiment that was interrupted.

use std::collections::BTreeMap;

use rumba_core::record::{TrialPart, TrialPlan};

/// The trials that are still to run, in order, of all that were planned.
///
/// Loads are made anew where trials still wait for one whose data is gone: under
/// their own number if they had not ended, under a new one if they had, or if
/// trials that stay have started from them: the record of a load may be lost,
/// and the trials that name its number are not of the new one.
pub fn rest(
    plans: &[TrialPlan],
    is_settled: impl Fn(&TrialPlan) -> bool,
    has_kept: impl Fn(u32) -> bool,
    was_started_from: impl Fn(u32) -> bool,
) -> Vec<TrialPlan> {
    let waiting: Vec<&TrialPlan> =
        plans.iter().filter(|plan| plan.part != TrialPart::Load && !is_settled(plan)).collect();
    let mut number = plans.iter().map(|plan| plan.number).max().unwrap_or(0);
    let mut loads: Vec<TrialPlan> = Vec::new();
    let mut instead: BTreeMap<u32, u32> = BTreeMap::new();
    for old in plans.iter().filter(|plan| plan.part == TrialPart::Load) {
        if has_kept(old.number) || !waiting.iter().any(|plan| plan.loaded_by == Some(old.number)) {
            continue;
        }
        if !is_settled(old) && !was_started_from(old.number) {
            loads.push(old.clone());
            continue;
        }
        number += 1;
        let of_engine = |plan: &&TrialPlan| plan.part == TrialPart::Load && plan.engine.name == old.engine.name;
        let repeat = plans.iter().filter(of_engine).map(|plan| plan.repeat).max().unwrap_or(0) + 1;
        loads.push(TrialPlan { number, repeat, ..old.clone() });
        instead.insert(old.number, number);
    }
    let runs = waiting.into_iter().map(|plan| {
        let load = plan.loaded_by.map(|load| instead.get(&load).copied().unwrap_or(load));
        TrialPlan { loaded_by: load, ..plan.clone() }
    });
    loads.into_iter().chain(runs.collect::<Vec<_>>()).collect()
}
