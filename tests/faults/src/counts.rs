//! The number of cases and of misses for each seed, as stored in `docs/reliability.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::{Case, Outcome};

/// Cases, and those of them with a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// All.
    pub cases: u32,
    /// Cases with a wrong answer.
    pub misses: u32,
}

impl Tally {
    /// Counts another.
    pub fn add(&mut self, other: Tally) {
        self.cases += other.cases;
        self.misses += other.misses;
    }
}

/// The results of a seed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By the fault's name.
    pub faults: BTreeMap<String, Tally>,
    /// By the actual moment of the fault.
    pub moments: BTreeMap<String, Tally>,
    /// By the engine.
    pub engines: BTreeMap<String, Tally>,
    /// By the limits.
    pub limits: BTreeMap<String, Tally>,
    /// Cases whose run ended before the fault in every attempt; they show no result.
    pub too_late: u32,
}

impl Counts {
    /// Counts a case.
    pub fn add(&mut self, case: &Case, outcome: &Outcome) {
        let Some(moment) = outcome.injected else {
            self.too_late += 1;
            return;
        };
        let tally = Tally { cases: 1, misses: u32::from(!outcome.misses.is_empty()) };
        self.faults.entry(case.fault.name.to_owned()).or_default().add(tally);
        self.moments.entry(moment.to_string()).or_default().add(tally);
        self.engines.entry(case.engine.to_string()).or_default().add(tally);
        self.limits.entry(case.limit.to_string()).or_default().add(tally);
    }

    /// All cases.
    pub fn all(&self) -> Tally {
        let mut all = Tally::default();
        self.faults.values().for_each(|tally| all.add(*tally));
        all
    }
}
