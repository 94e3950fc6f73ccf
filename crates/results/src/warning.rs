//! Warnings that reduce the trust in a number, each with its remedy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rate::{RATE_GROWTH, RATE_GROWTH_8H, rate_info};

/// A warning about a host, an experiment or a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "WarningJson", from = "WarningJson")]
pub struct Warning {
    /// A short stable name: `debt-at-end`.
    pub code: String,
    /// The observation, with figures.
    pub message: String,
    /// The remedy.
    pub remedy: String,
}

impl Warning {
    /// A warning with this code and its text for people: the observation, with figures, and the remedy.
    pub fn new(code: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), remedy: remedy.into() }
    }

    /// Its severity.
    pub fn rank(&self) -> Rank {
        kind(&self.code).map_or(Rank::Unsure, |kind| kind.rank)
    }

    /// The metrics that it undermines, by their stable names, the most important first; empty when it undermines all
    /// alike. Rates are listed by the name of their rule ([`rumba_engine_api::rate`]).
    pub fn undermines(&self) -> &'static [&'static str] {
        kind(&self.code).map_or(&[], |kind| kind.undermines)
    }

    /// Whether it undermines a metric, by its name or by that of its rule.
    pub fn undermines_metric(&self, metric: &str) -> bool {
        let rule = rate_info(metric).map(|info| info.name);
        self.undermines().iter().any(|name| *name == metric || Some(*name) == rule)
    }
}

/// The severity of a warning: its effect on the meaning of a figure, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The figures are void.
    Void,
    /// A figure is easily misunderstood: read it together with the warning, or read another one.
    Misleading,
    /// A figure is less exact or less certain than it appears.
    #[default]
    Unsure,
    /// Information that affects no figure.
    Note,
}

/// The properties of a warning code.
#[derive(Clone, Copy, Debug)]
pub struct WarningKind {
    /// The code.
    pub code: &'static str,
    /// Its severity.
    pub rank: Rank,
    /// See [`Warning::undermines`].
    pub undermines: &'static [&'static str],
}

/// The row of a code in [`WARNINGS`].
pub fn kind(code: &str) -> Option<&'static WarningKind> {
    WARNINGS.iter().find(|kind| kind.code == code)
}

const fn row(code: &'static str, rank: Rank, undermines: &'static [&'static str]) -> WarningKind {
    WarningKind { code, rank, undermines }
}

const READS: &[&str] = &["reads_per_op", "rkb_per_op", "reads_per_s", "read_mb_s"];
const WRITES: &[&str] = &["wkb_per_op", "wkb_per_op_with_drain", "writes_per_op", "writes_per_s", "write_mb_s"];
const DEVICE: &[&str] = &[
    "reads_per_op",
    "rkb_per_op",
    "wkb_per_op",
    "wkb_per_op_with_drain",
    "writes_per_op",
    "reads_per_s",
    "read_mb_s",
    "writes_per_s",
    "write_mb_s",
    "device_await_ms",
    "device_read_await_ms",
    "device_write_await_ms",
    "device_queue_length",
    "device_utilisation_percent",
    "device_busy_us_per_op",
    "device_request_us_per_op",
];
const CPU: &[&str] = &[
    "cpu_us_per_op",
    "cpu_us_per_op_with_drain",
    "host_cpu_us_per_op",
    "host_cpu_us_per_op_with_drain",
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
];
/// Metrics that compression reduces.
const COMPRESSED: &[&str] =
    &["data_bytes", "size_bytes", "space_amp", "wkb_per_op_with_drain", "wkb_per_op", "reads_per_op", "rkb_per_op"];
const SPEED: &[&str] = &["ops_per_s", "p99_ms"];

const ASSERTING: &[&str] =
    &["cpu_us_per_op", "cpu_us_per_op_with_drain", "host_cpu_us_per_op", "host_cpu_us_per_op_with_drain", "ops_per_s"];

/// Metrics that lack deferred work left after the drain.
const UNPAID: &[&str] = &["wkb_per_op_with_drain", "wkb_per_op", RATE_GROWTH.name, RATE_GROWTH_8H.name];

/// Metrics that lack files outside the data directory.
const ELSEWHERE: &[&str] = &[
    "wkb_per_op",
    "wkb_per_op_with_drain",
    "rkb_per_op",
    "reads_per_op",
    "writes_per_op",
    "data_bytes",
    "size_bytes",
    "log_bytes",
];

/// All codes in the order of their ranking, also within a severity. `p99_ms` means all response times.
pub const WARNINGS: &[WarningKind] = &[
    row("verification-failed", Rank::Void, &[]),
    row("suspended", Rank::Void, &[]),
    row("iops-not-divided", Rank::Void, SPEED),
    row("same-engine", Rank::Misleading, &[]),
    row("limit-not-enforced", Rank::Misleading, &[]),
    row("durability-differs", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain", "p99_ms"]),
    row("log-differs", Rank::Misleading, WRITES),
    row("page-cache", Rank::Misleading, READS),
    row("page-cache-differs", Rank::Misleading, READS),
    row("compression-differs", Rank::Misleading, COMPRESSED),
    row("memory-unused", Rank::Misleading, READS),
    row("no-cache", Rank::Misleading, &["rss_bytes", "reads_per_op", "rkb_per_op"]),
    row("cache-differs", Rank::Misleading, &["reads_per_op", "rkb_per_op", "rss_bytes"]),
    row("no-transactions", Rank::Misleading, SPEED),
    row("isolation-differs", Rank::Misleading, SPEED),
    row("writes-unsteady", Rank::Misleading, WRITES),
    row("unsteady", Rank::Misleading, &["ops_per_s"]),
    row("change-point", Rank::Misleading, &["ops_per_s", "wkb_per_op"]),
    row("warmup-not-steady", Rank::Misleading, WRITES),
    row("not-aged", Rank::Misleading, WRITES),
    row("stall", Rank::Misleading, SPEED),
    row("open-at-end", Rank::Misleading, SPEED),
    row("debt-at-end", Rank::Misleading, &["wkb_per_op", "cpu_us_per_op"]),
    row("debt-unpaid", Rank::Misleading, UNPAID),
    row("debt-deferred", Rank::Misleading, &["wkb_per_op_with_drain", "wkb_per_op"]),
    row("not-synced", Rank::Misleading, &["wkb_per_op_with_drain"]),
    row("data-elsewhere", Rank::Misleading, ELSEWHERE),
    row("client-errors", Rank::Misleading, &["ops_per_s"]),
    row("target-missed", Rank::Misleading, SPEED),
    row("cpu-uncharged", Rank::Misleading, &["cpu_us_per_op", "cpu_us_per_op_with_drain"]),
    row("built-with-assertions", Rank::Misleading, ASSERTING),
    row("throttled-latency", Rank::Misleading, &["p99_ms"]),
    row("storage-slower-than-asked", Rank::Misleading, &["ops_per_s"]),
    row("device-shared", Rank::Misleading, DEVICE),
    row("results-on-device", Rank::Misleading, WRITES),
    row("data-in-memory", Rank::Misleading, DEVICE),
    row("layered-filesystem", Rank::Misleading, DEVICE),
    row("network-filesystem", Rank::Misleading, DEVICE),
    row("lost-commits", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain"]),
    row("damaged-by-kill", Rank::Misleading, &["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain"]),
    row("cut-off", Rank::Misleading, &[]),
    row("warmup-levels-unknown", Rank::Unsure, WRITES),
    row("one-repeat", Rank::Unsure, &[]),
    row("parity-unknown", Rank::Unsure, &[]),
    row("loaded-again", Rank::Unsure, &[]),
    row("loads-differ", Rank::Unsure, &[]),
    row("host-changed", Rank::Unsure, &[]),
    row("stall-ended", Rank::Unsure, SPEED),
    row("memory-tight", Rank::Unsure, SPEED),
    row("few-repeats", Rank::Unsure, &[]),
    row("client-late", Rank::Unsure, &["p99_ms"]),
    row("receive-late", Rank::Unsure, &["p99_ms", "ops_per_s"]),
    row("client-shares-cpus", Rank::Unsure, SPEED),
    row("loops-embedded", Rank::Unsure, SPEED),
    row("stolen-cpu", Rank::Unsure, SPEED),
    row("strangers-cpu", Rank::Unsure, SPEED),
    row("busy-host", Rank::Unsure, SPEED),
    row("busy-device", Rank::Unsure, DEVICE),
    row("one-cpu", Rank::Unsure, SPEED),
    row("slow-clock", Rank::Unsure, CPU),
    row("governor", Rank::Unsure, SPEED),
    row("turbo-on", Rank::Unsure, SPEED),
    row("huge-pages-always", Rank::Unsure, &["rss_bytes", "p99_ms"]),
    row("swap", Rank::Unsure, SPEED),
    row("discard", Rank::Unsure, SPEED),
    row("device-full", Rank::Unsure, SPEED),
    row("few-samples", Rank::Unsure, &["p99_ms"]),
    row("response-limit", Rank::Note, &[]),
    row("scaling-ended", Rank::Note, &[]),
    row("no-device", Rank::Note, &[]),
    row("engine-left-out", Rank::Note, &[]),
    row("not-verified", Rank::Note, &[]),
    row("not-killed", Rank::Note, &[]),
    row("nothing-acknowledged", Rank::Note, &[]),
    row("not-calibrated", Rank::Note, &[]),
    row("throttle-not-lifted", Rank::Note, &[]),
    row("memory-not-lifted", Rank::Note, &[]),
    row("not-kept", Rank::Note, &[]),
    row("results-disk-full", Rank::Note, &[]),
    row("results-not-written", Rank::Note, &[]),
    row("few-intervals", Rank::Note, &[]),
    row("steadiness-undecided", Rank::Note, &[]),
    row("warmup-undecided", Rank::Note, &[]),
];

/// A warning in files and for programs, with the properties of its code from [`WARNINGS`], so that readers do not need
/// the table.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Warning")]
struct WarningJson {
    /// A short stable name: `debt-at-end`.
    code: String,
    /// The observation, with figures.
    message: String,
    /// The remedy.
    remedy: String,
    /// Its severity.
    #[serde(default)]
    rank: Rank,
    /// The metrics that it undermines, the most important first; `p99_ms` means all response times; empty when it
    /// undermines all alike.
    #[serde(default)]
    undermines: Vec<String>,
}

impl From<Warning> for WarningJson {
    fn from(warning: Warning) -> Self {
        let (rank, undermines) = (warning.rank(), warning.undermines().iter().map(|name| (*name).to_owned()).collect());
        let Warning { code, message, remedy } = warning;
        Self { code, message, remedy, rank, undermines }
    }
}

impl From<WarningJson> for Warning {
    /// Severity and metrics are those of the version that reads the file.
    fn from(WarningJson { code, message, remedy, .. }: WarningJson) -> Self {
        Self { code, message, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::metric_info;

    #[test]
    fn warning_ranking_has_unique_ordered_codes_and_known_metrics() {
        for pair in WARNINGS.windows(2) {
            assert!(pair[0].rank <= pair[1].rank, "{} stands before {}", pair[0].code, pair[1].code);
        }
        for (at, kind) in WARNINGS.iter().enumerate() {
            assert!(WARNINGS[at + 1..].iter().all(|other| other.code != kind.code), "{} is there twice", kind.code);
            for name in kind.undermines {
                assert!(*name == "p99_ms" || metric_info(name).is_some(), "{}: {name}", kind.code);
            }
        }
    }

    #[test]
    fn deferred_writes_after_drain_undermine_all_growth_metrics() {
        let unpaid = Warning::new("debt-unpaid", "seen", "do");
        for metric in ["wkb_per_op", "tpmC_growth_bytes_per_op", "tpmU_growth_bytes_per_8h"] {
            assert!(unpaid.undermines_metric(metric), "{metric}");
        }
        for metric in ["tpmC", "tpmC_percent", "growth_bytes_per_op", "cpu_us_per_op"] {
            assert!(!unpaid.undermines_metric(metric), "{metric}");
        }
        let paid = Warning::new("debt-at-end", "seen", "do");
        assert!(!paid.undermines_metric("tpmC_growth_bytes_per_op"));
    }

    #[test]
    fn warning_json_adds_rank_and_metrics_and_reads_without_them() {
        let warning = Warning::new("cpu-uncharged", "seen", "do");
        let json = serde_json::to_value(&warning).unwrap();
        assert_eq!(json["rank"], "misleading");
        assert_eq!(json["undermines"][0], "cpu_us_per_op");
        assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
        let older = serde_json::json!({ "code": "cpu-uncharged", "message": "seen", "remedy": "do" });
        assert_eq!(serde_json::from_value::<Warning>(older).unwrap(), warning);
    }
}
