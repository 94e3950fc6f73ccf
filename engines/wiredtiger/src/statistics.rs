//! The connection statistics that rumba reports, by their descriptions, because their numbers change between versions.

use rumba_engine_api::engine::Gauge;

/// Dirty bytes in the cache, which the next checkpoint must write.
pub const DIRTY_BYTES: &str = "cache: tracked dirty bytes in the cache";
/// The effective cache size.
pub const CACHE_BYTES_MAX: &str = "cache: maximum bytes configured";

/// The reported statistics, including [`DIRTY_BYTES`] and [`CACHE_BYTES_MAX`].
pub const COUNTED: &[&str] = &[
    DIRTY_BYTES,
    CACHE_BYTES_MAX,
    "cache: bytes currently in the cache",
    "cache: bytes read into cache",
    "cache: bytes written from cache",
    "cache: pages requested from the cache",
    "cache: pages read into cache",
    "cache: pages written from cache",
    "cache: modified pages evicted",
    "cache: unmodified pages evicted",
    "cache: pages evicted by application threads",
    "cache: modified pages evicted by application threads",
    "cache: application threads page read from disk to cache time (usecs)",
    "cache: application threads page write from cache to disk time (usecs)",
    "cache: cache overflow table insert calls",
    "cache: cache overflow table on-disk size",
    "thread-yield: application thread time evicting (usecs)",
    "thread-yield: application thread time waiting for cache (usecs)",
    "block-manager: blocks read",
    "block-manager: blocks written",
    "block-manager: bytes read",
    "block-manager: bytes written",
    "block-manager: bytes written for checkpoint",
    "connection: total fsync I/Os",
    "connection: total read I/Os",
    "connection: total write I/Os",
    "cursor: cursor operation restarted",
    "log: log bytes of payload data",
    "log: log bytes written",
    "log: log sync operations",
    "log: log sync time duration (usecs)",
    "log: log write operations",
    "reconciliation: page reconciliation calls",
    "session: open session count",
    "transaction: transaction begins",
    "transaction: transaction checkpoint currently running",
    "transaction: transaction checkpoint most recent time (msecs)",
    "transaction: transaction checkpoint total time (msecs)",
    "transaction: transaction checkpoints",
    "transaction: transactions committed",
    "transaction: transactions rolled back",
    "transaction: update conflicts",
];

/// Total times that clients waited: names that rumba turns into metrics (`crates/results/src/counted.rs`), their
/// statistics, and those that WiredTiger includes in them.
const WAITED: [(&str, &str, Option<&str>); 3] = [
    ("waited_page_reads_us", "cache: application threads page read from disk to cache time (usecs)", None),
    ("waited_evicting_us", EVICTING, None),
    ("waited_cache_us", "thread-yield: application thread time waiting for cache (usecs)", Some(EVICTING)),
];

const EVICTING: &str = "thread-yield: application thread time evicting (usecs)";

/// The waits among these statistics, without overlap.
pub fn waited(values: &[(String, f64)]) -> Vec<Gauge> {
    let value = |name: &str| values.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    let waited = WAITED.iter().filter_map(|&(name, statistic, included)| {
        let included = included.and_then(value).unwrap_or_default();
        Some(Gauge::new(name, (value(statistic)? - included).max(0.0)))
    });
    waited.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_is_no_part_of_the_wait_for_cache() {
        let values = WAITED.iter().zip([5.0, 30.0, 100.0]).map(|((_, statistic, _), us)| ((*statistic).to_owned(), us));
        let waited: Vec<f64> = waited(&values.collect::<Vec<_>>()).iter().map(|gauge| gauge.value).collect();
        assert_eq!(waited, [5.0, 30.0, 70.0]);
    }
}
