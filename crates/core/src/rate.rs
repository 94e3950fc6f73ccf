//! Metrics by rule: the rate that a workload's specification reports, under its own name.
//!
//! A type of operation that has a [`Rate`] makes the metric of that name, operations per minute; where the workload's
//! own pace allows no more than so many, a second one beside it, `…_percent`, tells how much of that was reached. Their
//! names begin with `tpm`, as such rates have been called since TPC-C's.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Better, MetricInfo};

/// What any metric of this kind means.
pub const RATE: MetricInfo = MetricInfo {
    name: "tpmX",
    unit: "1/min",
    better: Better::More,
    help: "Operations of one type per minute over all loops: the rate that the workload's specification reports.",
};

/// What any share of the most that a workload's pace allows means.
pub const RATE_PERCENT: MetricInfo = MetricInfo {
    name: "tpmX_percent",
    unit: "%",
    better: Better::More,
    help: "The rate tpmX in percent of the most that the workload's own pace, its think times, allows.",
};

/// The rate of one type of operation, operations per minute, under the name by which it is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// The metric's name: `tpm` and what follows it.
    pub name: Cow<'static, str>,
    /// The most that the workload's own pace allows, where it sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
}

impl Rate {
    /// The name of the metric that tells how much of the most was reached.
    pub fn percent(&self) -> String {
        format!("{}_percent", self.name)
    }
}

/// The description of a metric of this kind; `None` for other metrics.
pub fn rate_info(metric: &str) -> Option<&'static MetricInfo> {
    let (name, info) = match metric.strip_suffix("_percent") {
        Some(name) => (name, &RATE_PERCENT),
        None => (metric, &RATE),
    };
    let what = name.strip_prefix("tpm")?;
    (!what.is_empty() && what.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::METRICS;

    #[test]
    fn a_rate_and_its_share_are_told_apart_and_nothing_else_is_taken_for_one() {
        let unit = |name| rate_info(name).map(|info| info.unit);
        assert_eq!((unit("tpmC"), unit("tpmC_percent")), (Some("1/min"), Some("%")));
        for other in ["tpm", "tpm_percent", "tps", "tpm C", "host_cpu_percent"] {
            assert_eq!(unit(other), None, "{other}");
        }
        assert!(METRICS.iter().all(|info| rate_info(info.name).is_none()));
    }
}
