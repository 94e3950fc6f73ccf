//! What a run has told, in order, for whoever comes later: all steps, and of the seconds the last.

use std::collections::VecDeque;

use serde_json::Value;

/// So many seconds are told to whoever comes later; the page has all of them from the results' files.
const LAST: usize = 600;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Happening {
    /// Its place in the order, from 1.
    pub id: u64,
    /// What kind of thing: `trial`, `phase`, `interval`, …
    pub kind: &'static str,
    /// The rest of it.
    pub what: Value,
}

/// What was told until now.
#[derive(Default)]
pub struct Told {
    last_id: u64,
    steps: VecDeque<Happening>,
    seconds: VecDeque<Happening>,
}

impl Told {
    /// Adds a step; it is kept to the end.
    pub fn step(&mut self, kind: &'static str, what: Value) -> u64 {
        let next = self.next(kind, what);
        self.steps.push_back(next);
        self.last_id
    }

    /// Adds a second; only the last are kept.
    pub fn second(&mut self, what: Value) -> u64 {
        let next = self.next("interval", what);
        self.seconds.push_back(next);
        if self.seconds.len() > LAST {
            self.seconds.pop_front();
        }
        self.last_id
    }

    fn next(&mut self, kind: &'static str, what: Value) -> Happening {
        self.last_id += 1;
        Happening { id: self.last_id, kind, what }
    }

    /// The first thing that came after this one.
    pub fn after(&self, id: u64) -> Option<&Happening> {
        let first = |of: &VecDeque<Happening>| of.partition_point(|happening| happening.id <= id);
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
    fn whoever_comes_late_hears_every_step_and_the_last_seconds_in_order() {
        let mut told = Told::default();
        told.step("trial", Value::Null);
        (0..LAST + 5).for_each(|_| {
            told.second(Value::Null);
        });
        told.step("phase-ended", Value::Null);
        let all: Vec<&Happening> = std::iter::successors(told.after(0), |before| told.after(before.id)).collect();
        assert_eq!((all[0].kind, all[1].id, all[all.len() - 1].kind), ("trial", 7, "phase-ended"));
        assert_eq!(all.len(), LAST + 2);
        assert!(all.is_sorted_by_key(|happening| happening.id));
    }
}
