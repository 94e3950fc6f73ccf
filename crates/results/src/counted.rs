//! Metrics by rule, from an engine's counters: bytes written by purpose, and clients' waits by reason.
//!
//! A counter of an instance that only grows makes a metric, by the form of its name. `written_X_bytes` makes
//! `X_kb_per_op`, and `waited_X_us`, the time of all clients together, makes `X_wait_us_per_op`. Each engine defines
//! its own X: `redo`, `compaction_level2`; `row_locks`, `stalls`.

use std::collections::BTreeSet;

use crate::metric::{Better, Class, MetricInfo};
use crate::record::Record;

/// A rule that makes metrics from counters.
#[derive(Debug)]
pub struct Counted {
    /// The prefix and suffix of the counter's name around X.
    counter: (&'static str, &'static str),
    /// The suffix of the metric's name after X.
    metric: &'static str,
    /// The counter's value for one unit of the metric: 1024 bytes per KB.
    pub per: f64,
    /// The description that all metrics of this kind share.
    pub info: MetricInfo,
}

/// Bytes written by purpose.
pub const WRITTEN: Counted = Counted {
    counter: ("written_", "_bytes"),
    metric: "_kb_per_op",
    per: 1024.0,
    info: MetricInfo {
        name: "X_kb_per_op",
        unit: "KB/op",
        better: Better::Less,
        class: Class::Io,
        help: "KB by the engine's own counter, written_X_bytes, in warmup, loops and drain per operation of warmup and loops.",
    },
};

/// Clients' waiting time by reason.
pub const WAITED: Counted = Counted {
    counter: ("waited_", "_us"),
    metric: "_wait_us_per_op",
    per: 1.0,
    info: MetricInfo {
        name: "X_wait_us_per_op",
        unit: "µs/op",
        better: Better::Less,
        class: Class::Time,
        help: "Microseconds that clients waited for X by the engine's own counter, waited_X_us, in warmup, loops and drain per operation of warmup and loops.",
    },
};

const RULES: [&Counted; 2] = [&WRITTEN, &WAITED];

/// The reason for an absent metric when the engine has no such counter.
pub const NOT_COUNTED: &str = "the engine does not count it";

impl Counted {
    /// The metric that a counter makes, if it makes one.
    pub fn metric_of(&self, counter: &str) -> Option<String> {
        let (before, after) = self.counter;
        let what = counter.strip_prefix(before)?.strip_suffix(after)?;
        is_word(what).then(|| format!("{what}{}", self.metric))
    }

    /// The counter behind a metric of this kind; `None` for other metrics.
    pub fn counter_of(&self, metric: &str) -> Option<String> {
        let (before, after) = self.counter;
        self.what(metric).map(|what| format!("{before}{what}{after}"))
    }

    /// The X of a metric of this kind: `redo`.
    pub fn what<'a>(&self, metric: &'a str) -> Option<&'a str> {
        metric.strip_suffix(self.metric).filter(|what| is_word(what))
    }
}

/// The rule of a metric; `None` for metrics that are not made from counters.
pub fn rule_of(metric: &str) -> Option<&'static Counted> {
    RULES.into_iter().find(|rule| rule.what(metric).is_some())
}

fn is_word(what: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    what.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()) && what.bytes().all(is_inside)
}

/// The metrics made from a trial's counters.
pub fn metrics_of_record(record: &Record) -> BTreeSet<String> {
    let counters = || record.phases.iter().flat_map(|phase| &phase.counters);
    RULES.into_iter().flat_map(|rule| counters().filter_map(|counter| rule.metric_of(&counter.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::METRICS;

    #[test]
    fn a_counter_and_its_metric_name_each_other() {
        let metric = WRITTEN.metric_of("written_compaction_level2_bytes");
        assert_eq!(metric.as_deref(), Some("compaction_level2_kb_per_op"));
        assert_eq!(
            WRITTEN.counter_of("compaction_level2_kb_per_op").as_deref(),
            Some("written_compaction_level2_bytes")
        );
        assert_eq!(WAITED.metric_of("waited_row_locks_us").as_deref(), Some("row_locks_wait_us_per_op"));
        assert_eq!(WAITED.counter_of("row_locks_wait_us_per_op").as_deref(), Some("waited_row_locks_us"));
        for other in
            ["written__bytes", "written_Redo_bytes", "level1_written_bytes", "written_redo", "waited_redo_bytes"]
        {
            assert!(RULES.iter().all(|rule| rule.metric_of(other).is_none()), "{other}");
        }
        assert_eq!(rule_of("row_locks_wait_us_per_op").map(|rule| rule.info.unit), Some("µs/op"));
    }

    /// Otherwise an engine's counter could replace a measured metric.
    #[test]
    fn no_measured_metric_is_taken_for_a_counted_one() {
        assert!(METRICS.iter().all(|info| rule_of(info.name).is_none()));
    }
}
