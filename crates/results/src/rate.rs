//! Metrics by rule: the rate that a workload's specification reports, under its own name, and the growth of the
//! database at that rate.
//!
//! A type of operation that has a [`Rate`](rumba_engine_api::rate::Rate) makes the metric of that name, in operations per minute. If the workload's
//! own pace limits the rate, a second metric `…_percent` reports the share of that limit. Two more report the growth on
//! disk: `…_growth_bytes_per_op`, and `…_growth_bytes_per_8h`, which is the growth in eight hours at that rate. Their
//! names begin with `tpm`, as such rates are called in TPC-C and later benchmarks.

use crate::metric::{Better, Class, MetricInfo};

/// The description that all such rates share.
pub const RATE: MetricInfo = MetricInfo {
    name: "tpmX",
    unit: "1/min",
    better: Better::More,
    class: Class::Rate,
    help: "Operations of one type per minute over all loops: the rate that the workload's specification reports.",
};

/// The description that all shares of a paced workload's limit share.
pub const RATE_PERCENT: MetricInfo = MetricInfo {
    name: "tpmX_percent",
    unit: "%",
    better: Better::More,
    class: Class::Rate,
    help: "The rate tpmX in percent of the most that the workload's own pace, its think times, allows.",
};

/// The description that all growths per operation share.
pub const RATE_GROWTH: MetricInfo = MetricInfo {
    name: "tpmX_growth_bytes_per_op",
    unit: "B/op",
    better: Better::Less,
    class: Class::Size,
    help: "Growth of the data on disk, without logs, from the end of the settle to that of the drain. It is per operation of the rate tpmX in warmup, loops and backlog, and negative if more was freed. Files grow in pieces, so short runs show little.",
};

/// The description that all growths in eight hours share.
pub const RATE_GROWTH_8H: MetricInfo = MetricInfo {
    name: "tpmX_growth_bytes_per_8h",
    unit: "B",
    better: Better::Neither,
    class: Class::Rate,
    help: "Bytes that eight hours at the rate tpmX would add to the data: tpmX_growth_bytes_per_op times tpmX times 480 minutes.",
};

const ADJACENT: [&MetricInfo; 3] = [&RATE_PERCENT, &RATE_GROWTH, &RATE_GROWTH_8H];

/// The suffix that a derived metric adds to the rate's name.
fn suffix(adjacent: &'static MetricInfo) -> &'static str {
    adjacent.name.strip_prefix(RATE.name).unwrap_or_default()
}

/// The description of a metric of this kind; `None` for other metrics.
pub fn rate_info(metric: &str) -> Option<&'static MetricInfo> {
    let adjacent = ADJACENT.into_iter().find_map(|info| Some((metric.strip_suffix(suffix(info))?, info)));
    let (name, info) = adjacent.unwrap_or((metric, &RATE));
    let what = name.strip_prefix("tpm")?;
    (!what.is_empty() && what.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rumba_engine_api::rate::Rate;

    use crate::metric::METRICS;

    #[test]
    fn workload_rate_and_its_derived_metrics_are_recognized() {
        let unit = |name| rate_info(name).map(|info| info.unit);
        assert_eq!((unit("tpmC"), unit("tpmC_percent")), (Some("1/min"), Some("%")));
        assert_eq!((unit("tpmC_growth_bytes_per_op"), unit("tpmC_growth_bytes_per_8h")), (Some("B/op"), Some("B")));
        for other in ["tpm", "tpm_percent", "tps", "tpm C", "host_cpu_percent", "growth_bytes_per_op"] {
            assert_eq!(unit(other), None, "{other}");
        }
        assert!(METRICS.iter().all(|info| rate_info(info.name).is_none()));
    }

    #[test]
    fn a_rate_makes_metrics_that_are_known_each_by_its_rule() {
        let rate = Rate { name: "tpmC".into(), most: Some(128.6) };
        let described: Vec<&str> = rate.metrics().filter_map(|name| Some(rate_info(&name)?.name)).collect();
        let expected = ["tpmX", "tpmX_growth_bytes_per_op", "tpmX_growth_bytes_per_8h", "tpmX_percent"];
        assert_eq!(described, expected);
        let boundless = Rate { most: None, ..rate };
        assert!(boundless.metrics().all(|name| name != boundless.percent()));
    }
}
