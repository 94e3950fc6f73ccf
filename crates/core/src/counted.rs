//! Metrics by rule: what an engine says its bytes were written for, and what its clients' time was waited for.
//!
//! A counter among an instance's counters that grows and is never set back makes a metric, by the form of its name:
//! `written_X_bytes` makes `X_kb_per_op`, and `waited_X_us`, the time of all clients together, `X_wait_us_per_op`. Which
//! there are is each engine's own affair: `redo`, `compaction_level2`; `row_locks`, `stalls`.

use std::collections::BTreeSet;

use crate::metric::{Better, Class, MetricInfo};
use crate::record::Record;

/// A rule by which counters make metrics.
#[derive(Debug)]
pub struct Counted {
    /// What stands before and after the X of a counter.
    counter: (&'static str, &'static str),
    /// What stands after that of a metric.
    metric: &'static str,
    /// How much of the counter makes one of the metric: 1024 bytes a KB.
    pub per: f64,
    /// What any metric of this kind means.
    pub info: MetricInfo,
}

/// Bytes by what they were written for.
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

/// Clients' time by what they waited for in the engine.
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

/// What stands in place of the metric where an engine has no such counter.
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

    /// What a metric of this kind is about: `redo`.
    pub fn what<'a>(&self, metric: &'a str) -> Option<&'a str> {
        metric.strip_suffix(self.metric).filter(|what| is_word(what))
    }
}

/// The rule that a metric follows; `None` for those that no counter makes.
pub fn rule_of(metric: &str) -> Option<&'static Counted> {
    RULES.into_iter().find(|rule| rule.what(metric).is_some())
}

fn is_word(what: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    what.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase()) && what.bytes().all(is_inside)
}

/// The metrics that a trial's counters make.
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

    /// Else a counter of an engine would stand in place of what was measured.
    #[test]
    fn no_measured_metric_is_taken_for_a_counted_one() {
        assert!(METRICS.iter().all(|info| rule_of(info.name).is_none()));
    }
}
