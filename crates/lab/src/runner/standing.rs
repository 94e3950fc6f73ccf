//! The state of each trial of a run that is resumed.

use std::collections::BTreeMap;

use rumba_results::record::{Record, Status, TrialPart, TrialPlan};
use rumba_results::results::Results;

use crate::store::lacked_room;

/// The records so far, by trial.
pub struct Standing<'a> {
    records: BTreeMap<u32, &'a Record>,
    retry_failed: bool,
}

impl<'a> Standing<'a> {
    /// The state of a run with these results.
    pub fn of(results: &'a Results, retry_failed: bool) -> Self {
        let records = results.trials.iter().map(|trial| (trial.record.plan.number, &trial.record)).collect();
        Self { records, retry_failed }
    }

    pub fn complete_load(&self, load: u32) -> Option<&'a Record> {
        let is_complete = |record: &&&Record| matches!(record.status, Status::Done | Status::Suspended { .. });
        self.records.get(&load).filter(is_complete).copied()
    }

    /// Whether a trial's result is final. A failed load is not while trials still wait for it, nor is a trial that
    /// failed because its results had no room.
    pub fn is_settled(&self, trial: &TrialPlan) -> bool {
        let Some(record) = self.records.get(&trial.number) else { return false };
        // The probes of a search follow from each other: the search stays complete, or starts again.
        if trial.probe.is_some() {
            return self.search_has_ended(trial);
        }
        match record.status {
            Status::Done => true,
            Status::Failed { .. } => !self.retry_failed && trial.part != TrialPart::Load && !lacked_room(record),
            // The data that a load has written is complete, no matter how long the load was suspended.
            Status::Suspended { .. } => trial.part == TrialPart::Load,
            Status::Running | Status::Interrupted => false,
        }
    }

    /// Whether this trial's search came to its end, other than for lack of room for its results.
    pub fn search_has_ended(&self, trial: &TrialPlan) -> bool {
        let of_search = |record: &&&Record| rumba_statistics::is_same_search(&record.plan, trial);
        let own: Vec<&Record> = self.records.values().filter(of_search).copied().collect();
        let is_failed = |record: &&Record| matches!(record.status, Status::Failed { .. });
        let is_again = |record: &&Record| lacked_room(record) || (self.retry_failed && is_failed(record));
        !own.iter().any(is_again) && rumba_statistics::searches(&own).first().is_some_and(|found| found.ended)
    }

    /// Whether a trial with a final result started from this load's data. A trial that failed before that did not.
    pub fn was_started_from(&self, load: u32) -> bool {
        self.records.values().any(|record| {
            record.plan.loaded_by == Some(load) && !record.phases.is_empty() && self.is_settled(&record.plan)
        })
    }
}
