//! What an engine and its data came to at the end of each phase: size, debt, and the engine's own counters.

use std::collections::{BTreeMap, BTreeSet};

use rumba_core::engine::Gauge;
use rumba_core::record::{PhaseKind, PhaseRecord, Record};
use serde::Serialize;

use crate::timeline::round;

/// Values at the ends of a trial's phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Gauges {
    /// The phases' ends, seconds since the trial's start.
    pub at_s: Vec<f64>,
    /// What goes up and down, as it stood: `size_bytes`, what was put off, and counters that went back.
    pub levels: BTreeMap<String, Vec<Option<f64>>>,
    /// What only grew, by how much each second of the phase.
    pub rates: BTreeMap<String, Vec<Option<f64>>>,
}

/// Of a trial's phases that take time; nothing that never changed.
pub fn gauges(record: &Record) -> Gauges {
    of_phases(&record.phases.iter().filter(|phase| takes_time(phase.phase)).collect::<Vec<_>>())
}

fn of_phases(phases: &[&PhaseRecord]) -> Gauges {
    let mut all =
        Gauges { at_s: phases.iter().map(|phase| round(phase.start_s + phase.seconds)).collect(), ..Gauges::default() };
    let size = |phase: &&PhaseRecord| phase.metrics.size_bytes.value().map(round);
    put(&mut all.levels, "size_bytes", phases.iter().map(size).collect());
    for name in names(phases, |phase| &phase.debt_end) {
        put(&mut all.levels, name, phases.iter().map(|phase| of(&phase.debt_end, name).map(round)).collect());
    }
    for name in names(phases, |phase| &phase.counters) {
        let values: Vec<Option<f64>> = phases.iter().map(|phase| of(&phase.counters, name)).collect();
        let grown = |at: usize| Some(values[at]? - values[at.checked_sub(1)?]?);
        if (0..values.len()).filter_map(grown).any(|grown| grown < 0.0) {
            put(&mut all.levels, name, values.iter().map(|value| value.map(round)).collect());
        } else {
            let rate = |at: usize| Some(round(grown(at)? / phases[at].seconds)).filter(|rate| rate.is_finite());
            put(&mut all.rates, name, (0..values.len()).map(rate).collect());
        }
    }
    all
}

/// All loops together are no further time, and what proves the data is none of the trial's course.
fn takes_time(phase: PhaseKind) -> bool {
    use PhaseKind::{Age, Backlog, Drain, Load, Loop, Settle, Warmup};
    matches!(phase, Load | Settle | Age | Warmup | Loop(_) | Backlog | Drain)
}

fn names<'a>(phases: &[&'a PhaseRecord], list: impl Fn(&'a PhaseRecord) -> &'a Vec<Gauge>) -> BTreeSet<&'a str> {
    phases.iter().flat_map(|phase| list(phase)).map(|gauge| gauge.name.as_str()).collect()
}

fn of(gauges: &[Gauge], name: &str) -> Option<f64> {
    gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
}

fn put(into: &mut BTreeMap<String, Vec<Option<f64>>>, name: &str, values: Vec<Option<f64>>) {
    let mut known = values.iter().flatten();
    let first = known.next();
    if known.any(|value| Some(value) != first) {
        into.insert(name.to_owned(), values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(phase: PhaseKind, start_s: f64, counters: &[(&str, f64)]) -> PhaseRecord {
        let counters: Vec<Gauge> = counters.iter().map(|(name, value)| Gauge::new(*name, *value)).collect();
        let plain = serde_json::json!({
            "phase": phase.to_string(), "start_s": start_s, "seconds": 10.0, "complete": true, "ops": 1, "op_types": {},
            "spent": rumba_core::record::Spent::default(), "debt_start": [],
            "debt_end": [Gauge::new("dirty_pages", start_s)], "counters": counters,
        });
        serde_json::from_value(plain).unwrap()
    }

    #[test]
    fn what_only_grows_is_a_rate_what_goes_back_a_level_and_what_stands_still_is_left_out() {
        let (hits, used, still) = ("hits", "used", "still");
        let phases = [
            phase(PhaseKind::Warmup, 0.0, &[(hits, 5.0), (used, 7.0), (still, 3.0)]),
            phase(PhaseKind::Loop(1), 10.0, &[(hits, 105.0), (used, 9.0), (still, 3.0)]),
            phase(PhaseKind::Loops, 10.0, &[(hits, 105.0), (used, 9.0), (still, 3.0)]),
            phase(PhaseKind::Drain, 20.0, &[(hits, 105.0), (used, 8.0), (still, 3.0)]),
        ];
        let phases: Vec<&PhaseRecord> = phases.iter().filter(|phase| takes_time(phase.phase)).collect();
        assert_eq!(phases.len(), 3);
        let found = of_phases(&phases);
        assert_eq!(found.at_s, [10.0, 20.0, 30.0]);
        assert_eq!(found.rates, BTreeMap::from([(hits.to_owned(), vec![None, Some(10.0), Some(0.0)])]));
        let levels = BTreeMap::from([
            ("dirty_pages".to_owned(), vec![Some(0.0), Some(10.0), Some(20.0)]),
            (used.to_owned(), vec![Some(7.0), Some(9.0), Some(8.0)]),
        ]);
        assert_eq!(found.levels, levels);
    }
}
