//! Clients' waits by the engine's own names. An engine reports them as counters `wait_event_NAME_us`: microseconds that
//! all clients together waited for this event.

use std::collections::BTreeMap;

use crate::record::{PhaseKind, Record};

/// Microseconds per operation that clients waited in the loops of these trials together, by event, the largest first.
/// Empty if the engine reports no events.
pub fn waits_by_event<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<(String, f64)> {
    let (mut all_us, mut ops): (BTreeMap<&str, f64>, f64) = (BTreeMap::new(), 0.0);
    for record in records {
        let Some(last) = record.loops().last() else { continue };
        let before = record.phases.iter().take_while(|phase| !matches!(phase.phase, PhaseKind::Loop(_))).last();
        let at_start = |name: &str| before?.counters.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value);
        ops += record.loops().map(|one| one.ops as f64).sum::<f64>();
        for gauge in &last.counters {
            let name = gauge.name.strip_prefix("wait_event_").and_then(|name| name.strip_suffix("_us"));
            let Some(event) = name else { continue };
            // An event that had not occurred by the loops' start was not counted.
            let grown = gauge.value - at_start(&gauge.name).unwrap_or_default();
            *all_us.entry(event).or_default() += grown.max(0.0);
        }
    }
    let each = all_us.into_iter().filter(|(_, us)| *us > 0.0 && ops > 0.0);
    let mut each: Vec<(String, f64)> = each.map(|(event, us)| (event.to_owned(), us / ops)).collect();
    each.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    each
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::Gauge;

    use super::*;
    use crate::record::PhaseRecord;
    use crate::samples;

    #[test]
    fn waits_are_per_operation_since_the_end_of_the_warmup() {
        let phase = |kind, ops, counters: &[(&str, f64)]| {
            let counters = counters.iter().map(|(name, value)| Gauge::new(*name, *value)).collect();
            PhaseRecord { ops, counters, ..samples::phase(kind, 1.0) }
        };
        let (log, lock) = ("wait_event_LWLock_WALWrite_us", "wait_event_Lock_tuple_us");
        let phases = vec![
            phase(PhaseKind::Warmup, 500, &[(log, 100.0), ("hits", 1.0)]),
            phase(PhaseKind::Loop(1), 50, &[(log, 300.0), ("hits", 9.0)]),
            phase(PhaseKind::Loop(2), 50, &[(log, 400.0), (lock, 900.0), ("hits", 99.0)]),
            phase(PhaseKind::Loops, 100, &[(log, 400.0), (lock, 900.0)]),
        ];
        let record = samples::record(samples::trial_plan(), phases);
        let waits = waits_by_event([&record, &record].into_iter());
        assert_eq!(waits, [("Lock_tuple".to_owned(), 9.0), ("LWLock_WALWrite".to_owned(), 3.0)]);
    }
}
