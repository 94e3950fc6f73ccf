//! Metrics by rule, from the workload's own counters, such as those of a script's `rumba.count`.
//!
//! A counter X makes two metrics: `X_counted_per_op` and `X_counted_per_s`.

use std::collections::BTreeSet;

use crate::metric::{Better, Class, MetricInfo};
use crate::record::Record;

/// The description that all counts per operation share.
pub const PER_OP: MetricInfo = MetricInfo {
    name: "X_counted_per_op",
    unit: "1/op",
    better: Better::Neither,
    class: Class::Count,
    help: "The workload's own counter X per operation over all loops: what a script adds by rumba.count(\"X\", n).",
};

/// The description that all counts per second share.
pub const PER_S: MetricInfo = MetricInfo {
    name: "X_counted_per_s",
    unit: "1/s",
    better: Better::Neither,
    class: Class::Rate,
    help: "The workload's own counter X per second over all loops: what a script adds by rumba.count(\"X\", n).",
};

/// The names of a counter's metrics: per operation and per second.
pub fn metrics_of(counter: &str) -> [String; 2] {
    [&PER_OP, &PER_S].map(|info| format!("{counter}{}", suffix(info)))
}

/// The description of a metric of this kind; `None` for other metrics.
pub fn tally_info(metric: &str) -> Option<&'static MetricInfo> {
    [&PER_OP, &PER_S].into_iter().find(|info| counter_of(metric, info).is_some())
}

/// The counter behind a metric of this kind.
pub fn counter_of<'a>(metric: &'a str, kind: &'static MetricInfo) -> Option<&'a str> {
    metric.strip_suffix(suffix(kind)).filter(|counter| !counter.is_empty())
}

/// The suffix that a metric of this kind adds to its counter's name.
fn suffix(kind: &'static MetricInfo) -> &'static str {
    kind.name.strip_prefix('X').unwrap_or_default()
}

/// The metrics made from a trial's counters.
pub fn tallies_of_record(record: &Record) -> BTreeSet<String> {
    record.phases.iter().flat_map(|phase| phase.counted.keys()).flat_map(|counter| metrics_of(counter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::rule_of;
    use crate::metric::METRICS;
    use crate::rate::rate_info;

    /// A script's counter could otherwise replace a measured metric, or be taken for an engine's counter.
    #[test]
    fn counters_make_metrics_that_no_other_rule_makes() {
        assert_eq!(metrics_of("rows"), ["rows_counted_per_op", "rows_counted_per_s"]);
        for counter in ["rows", "reads", "x_kb", "x_wait_us", "tpm"] {
            for (metric, kind) in metrics_of(counter).iter().zip([&PER_OP, &PER_S]) {
                assert_eq!(tally_info(metric).map(|info| info.name), Some(kind.name));
                assert_eq!(counter_of(metric, kind), Some(counter));
                assert!(rule_of(metric).is_none() && rate_info(metric).is_none(), "{metric}");
            }
        }
        assert!(METRICS.iter().all(|info| tally_info(info.name).is_none()));
    }
}
