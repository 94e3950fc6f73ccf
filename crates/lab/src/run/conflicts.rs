//! A driver thread's conflicts, by the engine's name for each kind: written only by that thread, read by the collector.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rumba_engine_api::conflict::CountConflicts;
use rumba_engine_api::error::Conflict;

/// The number of kinds with separate counts; no known engine has a quarter of them.
const MOST: usize = 16;
/// The name for all other kinds.
const OTHERS: &str = "others";

pub type Conflicts = BTreeMap<String, u64>;

/// Adds the counts of another span or other clients.
pub fn merge(all: &mut Conflicts, more: &Conflicts) {
    for (name, count) in more {
        *all.entry(name.clone()).or_default() += count;
    }
}

/// One kind. A slot is assigned once, in order, and never reassigned.
#[derive(Default)]
struct Slot {
    conflict: OnceLock<Conflict>,
    count: AtomicU64,
}

/// The counts of one thread.
#[derive(Default)]
#[repr(align(128))]
pub struct ConflictCells {
    slots: [Slot; MOST],
    others: AtomicU64,
}

fn add_one(count: &AtomicU64) {
    count.store(count.load(Relaxed) + 1, Relaxed);
}

impl CountConflicts for ConflictCells {
    /// Called only by the owning thread.
    fn count(&self, conflict: Conflict) {
        let slot = self.slots.iter().find(|slot| *slot.conflict.get_or_init(|| conflict) == conflict);
        add_one(slot.map_or(&self.others, |slot| &slot.count));
    }
}

impl ConflictCells {
    /// Adds the counts so far.
    pub fn add_to(&self, all: &mut Conflicts) {
        let known =
            self.slots.iter().map_while(|slot| Some((slot.conflict.get()?.to_string(), slot.count.load(Relaxed))));
        let others = (OTHERS.to_owned(), self.others.load(Relaxed));
        for (name, count) in known.chain(std::iter::once(others)).filter(|(_, count)| *count > 0) {
            *all.entry(name).or_default() += count;
        }
    }
}

/// The counts between two readings.
pub fn since(now: &Conflicts, before: &Conflicts) -> Conflicts {
    let grown = |(name, count): (&String, &u64)| {
        let grown = count - before.get(name).copied().unwrap_or_default();
        (grown > 0).then(|| (name.clone(), grown))
    };
    now.iter().filter_map(grown).collect()
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::error::{EngineError, ErrorCode};

    use super::*;

    fn conflict(why: &'static str, vendor: u32) -> Conflict {
        Conflict::of(&EngineError::Conflict { why, code: ErrorCode::of_vendor(vendor) })
    }

    #[test]
    fn conflict_kinds_count_separately_and_overflow_together() {
        let cells = ConflictCells::default();
        for vendor in 0..20 {
            (0..=vendor).for_each(|_| cells.count(conflict("deadlock", vendor)));
        }
        let mut all = Conflicts::new();
        cells.add_to(&mut all);
        assert_eq!((all["deadlock"], all["deadlock: error 15"]), (1, 16));
        assert_eq!((all.len(), all[OTHERS]), (17, 17 + 18 + 19 + 20));
        let before = all.clone();
        cells.count(conflict("deadlock", 3));
        all.clear();
        cells.add_to(&mut all);
        assert_eq!(since(&all, &before), Conflicts::from([("deadlock: error 3".to_owned(), 1)]));
    }
}
