//! The remaining trials of an interrupted experiment.

use std::collections::BTreeMap;

use rumba_results::record::{TrialPart, TrialPlan};

/// The trials that are still to run, in order, from all planned trials.
///
/// A load is repeated if trials still need it and its data is gone. It keeps its number if it had not ended. It gets a
/// new number if it had ended, or if finished trials have started from it. The record of a load may be lost, and the
/// trials that name its number did not start from the new one. Each load stays directly before its trials.
pub fn rest(
    plans: &[TrialPlan],
    is_settled: impl Fn(&TrialPlan) -> bool,
    has_kept: impl Fn(u32) -> bool,
    was_started_from: impl Fn(u32) -> bool,
) -> Vec<TrialPlan> {
    let is_waiting = |plan: &&TrialPlan| plan.part != TrialPart::Load && !is_settled(plan);
    let mut number = plans.iter().map(|plan| plan.number).max().unwrap_or(0);
    let mut rest: Vec<TrialPlan> = Vec::new();
    let mut instead: BTreeMap<u32, u32> = BTreeMap::new();
    for plan in plans {
        if plan.part != TrialPart::Load {
            let load = plan.loaded_by.map(|load| instead.get(&load).copied().unwrap_or(load));
            rest.extend((!is_settled(plan)).then(|| TrialPlan { loaded_by: load, ..plan.clone() }));
            continue;
        }
        let is_wanted = plans.iter().filter(is_waiting).any(|waiting| waiting.loaded_by == Some(plan.number));
        if has_kept(plan.number) || !is_wanted {
            continue;
        }
        if !is_settled(plan) && !was_started_from(plan.number) {
            rest.push(plan.clone());
            continue;
        }
        number += 1;
        let of_engine = |other: &&TrialPlan| other.part == TrialPart::Load && other.engine.name == plan.engine.name;
        let loads = plans.iter().chain(&rest).filter(of_engine);
        let repeat = loads.map(|load| load.repeat).max().unwrap_or(0) + 1;
        rest.push(TrialPlan { number, repeat, ..plan.clone() });
        instead.insert(plan.number, number);
    }
    rest
}
