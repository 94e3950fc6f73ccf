//! How many cases were tried and how many missed an answer, as `docs/reliability.json` has it for each seed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::case::{Case, Outcome};

/// Cases, and those of them with a miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// All.
    pub cases: u32,
    /// Those with an answer that was not as it must be.
    pub misses: u32,
}

impl Tally {
    /// Counts another.
    pub fn add(&mut self, other: Tally) {
        self.cases += other.cases;
        self.misses += other.misses;
    }
}

/// What a seed came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By the fault's name.
    pub faults: BTreeMap<String, Tally>,
    /// By the moment at which it struck in fact.
    pub moments: BTreeMap<String, Tally>,
    /// By the engine.
    pub engines: BTreeMap<String, Tally>,
    /// By the limits.
    pub limits: BTreeMap<String, Tally>,
    /// Cases whose run had ended before they struck, every time: they say nothing.
    pub too_late: u32,
}

impl Counts {
    /// Counts a case.
    pub fn add(&mut self, case: &Case, outcome: &Outcome) {
        let Some(moment) = outcome.struck else {
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
