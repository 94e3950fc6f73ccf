//! The events of a run, in order, for pages that connect late: every step, and the last seconds.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

/// The number of seconds kept; a page reads all seconds from the results' files.
const SECONDS: usize = 600;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveEvent {
    /// Its position in the order, from 1.
    pub id: u64,
    /// `trial`, `phase`, `interval`, …
    pub kind: &'static str,
    /// JSON, shared by all listeners.
    pub json: Arc<str>,
}

/// The events so far.
#[derive(Default)]
pub struct EventLog {
    last_id: u64,
    steps: VecDeque<LiveEvent>,
    seconds: VecDeque<LiveEvent>,
}

impl EventLog {
    /// Adds a step, which is kept until the run ends.
    pub fn step(&mut self, kind: &'static str, what: &Value) -> u64 {
        self.step_json(kind, what.to_string().into())
    }

    /// Adds a step whose content is JSON already.
    pub fn step_json(&mut self, kind: &'static str, json: Arc<str>) -> u64 {
        let next = self.next(kind, json);
        self.steps.push_back(next);
        self.last_id
    }

    /// Adds a second; only the last ones are kept.
    pub fn second(&mut self, what: &Value) -> u64 {
        let next = self.next("interval", what.to_string().into());
        self.seconds.push_back(next);
        if self.seconds.len() > SECONDS {
            self.seconds.pop_front();
        }
        self.last_id
    }

    fn next(&mut self, kind: &'static str, json: Arc<str>) -> LiveEvent {
        self.last_id += 1;
        LiveEvent { id: self.last_id, kind, json }
    }

    /// The first event after this one.
    pub fn after(&self, id: u64) -> Option<&LiveEvent> {
        let first = |of: &VecDeque<LiveEvent>| of.partition_point(|event| event.id <= id);
        let (step, second) = (self.steps.get(first(&self.steps)), self.seconds.get(first(&self.seconds)));
        match (step, second) {
            (Some(step), Some(second)) => Some(if step.id < second.id { step } else { second }),
            (step, second) => step.or(second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_listener_gets_all_steps_and_recent_seconds() {
        let mut log = EventLog::default();
        log.step("trial", &Value::Null);
        (0..SECONDS + 5).for_each(|_| {
            log.second(&Value::Null);
        });
        log.step("phase-ended", &Value::Null);
        let all: Vec<&LiveEvent> = std::iter::successors(log.after(0), |before| log.after(before.id)).collect();
        assert_eq!((all[0].kind, all[1].id, all[all.len() - 1].kind), ("trial", 7, "phase-ended"));
        assert_eq!(all.len(), SECONDS + 2);
        assert!(all.is_sorted_by_key(|event| event.id));
    }
}
