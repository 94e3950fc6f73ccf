//! Bytes written by purpose in each loop, by the engine's own counters.

use std::collections::BTreeMap;

use rumba_engine_api::engine::Gauge;
use rumba_results::counted::WRITTEN;
use rumba_results::record::{PhaseKind, PhaseRecord, Record};
use schemars::JsonSchema;
use serde::Serialize;

/// The bytes that one phase wrote by purpose.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PhaseWritten {
    /// The warmup or a loop.
    pub phase: PhaseKind,
    /// KB per operation of the phase, by the metrics' names: `compaction_level2_kb_per_op`. A counter that was not
    /// reported at both ends of the phase is left out.
    pub kb_per_op: BTreeMap<String, f64>,
}

/// Bytes written by purpose in ageing, warmup and each loop: the growth of the engine's counters from the end of the
/// phase before, divided by the phase's operations. A phase without counters is left out.
pub fn written(record: &Record) -> Vec<PhaseWritten> {
    let pairs = record.phases.iter().zip(record.phases.iter().skip(1));
    pairs.filter_map(|(before, phase)| phase_written(before, phase)).collect()
}

fn phase_written(before: &PhaseRecord, phase: &PhaseRecord) -> Option<PhaseWritten> {
    if !matches!(phase.phase, PhaseKind::Age | PhaseKind::Warmup | PhaseKind::Loop(_)) || phase.ops == 0 {
        return None;
    }
    let per_op = |counter: &Gauge| {
        let metric = WRITTEN.metric_of(&counter.name)?;
        let grown = counter.value - gauge(&before.counters, &counter.name)?;
        // A counter that went back was reset.
        (grown >= 0.0).then(|| (metric, grown / WRITTEN.per / phase.ops as f64))
    };
    let kb_per_op: BTreeMap<String, f64> = phase.counters.iter().filter_map(per_op).collect();
    (!kb_per_op.is_empty()).then_some(PhaseWritten { phase: phase.phase, kb_per_op })
}

fn gauge(gauges: &[Gauge], name: &str) -> Option<f64> {
    gauges.iter().find(|gauge| gauge.name == name).map(|gauge| gauge.value)
}

#[cfg(test)]
mod tests {
    use rumba_results::samples;

    use super::*;

    fn phase(phase: PhaseKind, ops: u64, counters: &[(&str, f64)]) -> PhaseRecord {
        let counters = counters.iter().map(|(name, value)| Gauge::new(*name, *value)).collect();
        PhaseRecord { ops, counters, ..samples::phase(phase, 1.0) }
    }

    #[test]
    fn loop_has_counter_growth_per_op_and_no_uncounted_figures() {
        let (level, redo) = ("written_compaction_level2_bytes", "written_redo_bytes");
        let settle = phase(PhaseKind::Settle, 0, &[(level, 1024.0)]);
        let first = phase(PhaseKind::Loop(1), 10, &[(level, 21.0 * 1024.0), (redo, 5.0)]);
        let written = phase_written(&settle, &first).unwrap();
        assert_eq!(written.kb_per_op, BTreeMap::from([("compaction_level2_kb_per_op".to_owned(), 2.0)]));
        let reset = phase(PhaseKind::Loop(2), 10, &[(level, 0.0)]);
        assert_eq!(phase_written(&first, &reset), None);
        assert_eq!(phase_written(&first, &phase(PhaseKind::Drain, 0, &[(level, 1e9)])), None);
    }
}
