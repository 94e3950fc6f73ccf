//! Metrics by rule: what an engine says its bytes were written for.
//!
//! A counter `written_X_bytes` among an instance's counters, which grows and is
//! never set back, makes the metric `X_kb_per_op`: the KB that it grew by per
//! operation. Which there are is each engine's own affair: `redo`, `compaction_level2`.

use std::collections::BTreeSet;

use crate::comparison::PhaseFigures;
use crate::metric::{Better, MetricInfo};
use crate::record::Record;

/// What any metric of this kind means.
pub const WRITTEN: MetricInfo = MetricInfo {
    name: "X_kb_per_op",
    unit: "KB/op",
    better: Better::Less,
    help: "KB by the engine's own counter, written_X_bytes, in warmup, loops and drain per operation of warmup and loops.",
};

/// What stands in place of the metric where an engine has no such counter.
pub const NOT_COUNTED: &str = "the engine does not count it";

/// The metric that a counter makes, if it makes one.
pub fn metric_of(counter: &str) -> Option<String> {
    let what = counter.strip_prefix("written_")?.strip_suffix("_bytes")?;
    is_word(what).then(|| format!("{what}_kb_per_op"))
}

/// The counter behind a metric of this kind; `None` for other metrics.
pub fn counter_of(metric: &str) -> Option<String> {
    written_for(metric).map(|what| format!("written_{what}_bytes"))
}

/// What a metric of this kind says that bytes were written for: `redo`.
pub fn written_for(metric: &str) -> Option<&str> {
    metric.strip_suffix("_kb_per_op").filter(|what| is_word(what))
}

fn is_word(what: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    what.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()) && what.bytes().all(is_inside)
}

/// The metrics of this kind that a trial's counters make.
pub fn metrics_of_record(record: &Record) -> BTreeSet<String> {
    let counters = record.phases.iter().flat_map(|phase| &phase.counters);
    counters.filter_map(|counter| metric_of(&counter.name)).collect()
}

/// The metrics of this kind among figures.
pub fn metrics_of_figures(figures: &PhaseFigures) -> impl Iterator<Item = &str> {
    figures.metrics.keys().map(String::as_str).filter(|name| written_for(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::METRICS;

    #[test]
    fn a_counter_and_its_metric_name_each_other() {
        let metric = metric_of("written_compaction_level2_bytes");
        assert_eq!(metric.as_deref(), Some("compaction_level2_kb_per_op"));
        assert_eq!(counter_of("compaction_level2_kb_per_op").as_deref(), Some("written_compaction_level2_bytes"));
        for other in ["written__bytes", "written_Redo_bytes", "level1_written_bytes", "written_redo"] {
            assert_eq!(metric_of(other), None, "{other}");
        }
    }

    /// Else a counter of an engine would stand in place of what was measured.
    #[test]
    fn no_measured_metric_is_taken_for_a_counted_one() {
        assert!(METRICS.iter().all(|info| counter_of(info.name).is_none()));
    }
}
