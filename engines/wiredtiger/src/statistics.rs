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

/// Total times that clients waited, under names that rumba turns into metrics (`crates/results/src/counted.rs`).
const WAITED: [(&str, &str); 3] = [
    ("waited_page_reads_us", "cache: application threads page read from disk to cache time (usecs)"),
    ("waited_evicting_us", EVICTING),
    ("waited_cache_us", "thread-yield: application thread time waiting for cache (usecs)"),
];

/// The time in which clients evicted pages. WiredTiger includes it in the time in which they waited for cache.
const EVICTING: &str = "thread-yield: application thread time evicting (usecs)";

/// The waits among these statistics, without overlap.
pub fn waited(values: &[(String, f64)]) -> Vec<Gauge> {
    let value = |name: &str| values.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
    let waited = WAITED.iter().filter_map(|&(name, statistic)| {
        let of_evicting = if name == "waited_cache_us" { value(EVICTING).unwrap_or_default() } else { 0.0 };
        Some(Gauge::new(name, (value(statistic)? - of_evicting).max(0.0)))
    });
    waited.collect()
}
