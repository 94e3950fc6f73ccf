//! Percentiles of service or response times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Percentiles of one kind of time, milliseconds. A percentile that too few
/// samples support (fewer than ten beyond it) is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Mean of all times, including those of operations that were still open.
    pub mean_ms: Metric,
    /// 50th percentile, the median.
    pub p50_ms: Metric,
    /// 95th percentile.
    pub p95_ms: Metric,
    /// 99th percentile.
    pub p99_ms: Metric,
    /// 99.9th percentile.
    pub p999_ms: Metric,
    /// The largest, exact and not rounded to a histogram's bucket.
    pub max_ms: Metric,
}

/// The stable name of a percentile, and its value.
pub type NamedPercentile = (&'static str, fn(&Percentiles) -> &Metric);

impl Percentiles {
    /// Each, by its stable name.
    pub const NAMED: [NamedPercentile; 6] = [
        ("mean_ms", |p| &p.mean_ms),
        ("p50_ms", |p| &p.p50_ms),
        ("p95_ms", |p| &p.p95_ms),
        ("p99_ms", |p| &p.p99_ms),
        ("p999_ms", |p| &p.p999_ms),
        ("max_ms", |p| &p.max_ms),
    ];
}
