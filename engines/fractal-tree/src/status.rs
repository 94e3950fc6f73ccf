//! Parses the library's status (`engine status`) into counters and deferred work.

use rumba_engine_api::engine::Gauge;
use rumba_engine_api::units::show_bytes;

/// Messages in the buffers of inner nodes: added minus removed since the process started.
const MESSAGES: &str = "ft: bytes of messages currently in trees (estimate)";
/// The gauge of these messages as deferred work.
pub const WAITING: &str = "messages_in_trees_bytes";
/// Why the gauge is absent over older data: messages added by an earlier process are not counted, but their removal is.
const OVER_KEPT_DATA: &str = "PerconaFT counts messages since it was opened over this data";
/// From here on the difference is negative: the library prints it as unsigned.
const WRAPPED: f64 = (1u64 << 63) as f64;
/// Bytes of nodes in the cache.
const CACHED: &str = "cachetable: size current";
/// Bytes of cached nodes that are being written.
const WRITING: &str = "cachetable: size writing";
/// The next log sequence number and that of the last complete checkpoint. Both also increase without a log.
const NEXT: &str = "logger: next LSN";
const CHECKPOINT: &str = "checkpoint: last complete checkpoint LSN";

/// The reported counters, by the library's own names. Most others are useful only to the library's authors.
const COUNTED: &[&str] = &[
    CACHED,
    WRITING,
    "cachetable: cleaner executions",
    "cachetable: evictions",
    "cachetable: long time waiting on cache pressure",
    "cachetable: miss",
    "cachetable: miss time",
    "cachetable: number of waits on cache pressure",
    "cachetable: prefetches",
    "cachetable: size cachepressure",
    "cachetable: size currently cloned data for checkpoint",
    "cachetable: size leaf",
    "cachetable: size limit",
    "cachetable: size nonleaf",
    "cachetable: size rollback",
    "cachetable: time waiting on cache pressure",
    "checkpoint: checkpoints taken",
    "checkpoint: time spent during checkpoint (begin and end phases)",
    "checkpoint: time spent during last checkpoint (begin and end phases)",
    "dictionary deletes",
    "dictionary inserts",
    "dictionary updates",
    "filesystem: ENOSPC redzone state",
    "filesystem: fsync count",
    "filesystem: fsync time",
    "ft flusher: leaf node splits",
    "ft flusher: nonleaf node splits",
    "ft flusher: number of flushes that read something off disk",
    "ft flusher: total number of flushes done by flusher threads or cleaner threads",
    "ft: bytes of messages flushed from h1 nodes to leaves",
    "ft: bytes of messages injected at root (all trees)",
    "ft: leaf nodes flushed to disk (for checkpoint)",
    "ft: leaf nodes flushed to disk (for checkpoint) (bytes)",
    "ft: leaf nodes flushed to disk (not for checkpoint)",
    "ft: leaf nodes flushed to disk (not for checkpoint) (bytes)",
    "ft: messages injected at root",
    "ft: nonleaf nodes flushed to disk (for checkpoint)",
    "ft: nonleaf nodes flushed to disk (for checkpoint) (bytes)",
    "ft: nonleaf nodes flushed to disk (not for checkpoint)",
    "ft: nonleaf nodes flushed to disk (not for checkpoint) (bytes)",
    "locktree: memory size",
    "locktree: number of lock timeouts",
    "locktree: number of times lock escalation ran",
    "locktree: number of wait locks",
    "locktree: time waiting for locks",
    "locktree: time waiting on lock escalation",
    "logger: writes",
    "logger: writes (bytes)",
    "txn: aborts",
    "txn: begin",
    "txn: successful commits",
];

/// Counters that rumba turns into metrics (`crates/results/src/counted.rs`), each the sum of several of the library's. Bytes
/// written for log, checkpoints and evictions, and microseconds that clients waited.
const SUMS: [(&str, &[&str]); 5] = [
    ("written_log_bytes", &["logger: writes (bytes)"]),
    (
        "written_checkpoint_bytes",
        &[
            "ft: leaf nodes flushed to disk (for checkpoint) (bytes)",
            "ft: nonleaf nodes flushed to disk (for checkpoint) (bytes)",
        ],
    ),
    (
        "written_eviction_bytes",
        &[
            "ft: leaf nodes flushed to disk (not for checkpoint) (bytes)",
            "ft: nonleaf nodes flushed to disk (not for checkpoint) (bytes)",
        ],
    ),
    ("waited_row_locks_us", &["locktree: time waiting for locks"]),
    ("waited_cache_us", &["cachetable: time waiting on cache pressure"]),
];

/// Seconds spent fetching parts of nodes for waiting clients. The cache's own `miss time` counts only whole nodes, but
/// most reads fetch a part of a cached node.
const READ_SECONDS: [&str; 8] = [
    "ft: pivots fetched for query (seconds)",
    "ft: pivots fetched for write (seconds)",
    "ft: basements fetched as a target of a query (seconds)",
    "ft: basements fetched for prelocked range (seconds)",
    "ft: basements fetched for write (seconds)",
    "ft: buffers fetched as a target of a query (seconds)",
    "ft: buffers fetched for prelocked range (seconds)",
    "ft: buffers fetched for write (seconds)",
];

/// A parsed status.
pub struct Status(Vec<(String, f64)>);

impl Status {
    /// Parses the library's text: a name and a number on each line. A name may contain colons and end in blanks.
    pub fn of(text: &str) -> Self {
        let line = |line: &str| {
            let (name, value) = line.rsplit_once(": ")?;
            Some((name.trim().to_owned(), value.trim().parse().ok()?))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| *value)
    }

    /// The counters to report.
    pub fn counters(&self) -> Vec<Gauge> {
        let counted = COUNTED.iter().filter_map(|name| Some(Gauge::new(*name, self.value(name)?)));
        let sums = SUMS.iter().filter_map(|(name, of)| {
            let values = of.iter().map(|name| self.value(name));
            Some(Gauge::new(*name, values.sum::<Option<f64>>()?))
        });
        let read_s: Option<f64> = READ_SECONDS.iter().map(|name| self.value(name)).sum();
        let reads = read_s.map(|seconds| Gauge::new("waited_page_reads_us", seconds * 1e6));
        counted.chain(sums).chain(reads).collect()
    }

    /// Bytes of messages that wait above the leaves.
    ///
    /// # Errors
    /// Why the library's number is not valid.
    pub fn waiting(&self, is_new: bool) -> Result<f64, &'static str> {
        if !is_new {
            return Err(OVER_KEPT_DATA);
        }
        let bytes = self.value(MESSAGES).ok_or("PerconaFT does not report it")?;
        if (0.0..WRAPPED).contains(&bytes) { Ok(bytes) } else { Err("PerconaFT counted more that went than came") }
    }

    /// Describes work that a checkpoint leaves while messages wait above the leaves. The cost of flushing them is
    /// unknown. Messages of the load are also flushed during the run, so its bytes written are too high as well.
    pub fn unpaid(&self, is_new: bool) -> Option<String> {
        let waiting = match self.waiting(is_new) {
            Ok(bytes) if bytes < 1.0 => return None,
            Ok(bytes) => format!("{} of messages wait", show_bytes(bytes)),
            Err(reason) => format!("messages may wait ({reason})"),
        };
        Some(format!(
            "{waiting} above the leaves: what bringing them down will write is in no figure, and what bringing down \
             the load's has written is in this trial's; with hot_optimize = true load and drain pay for their own"
        ))
    }

    /// Deferred work: messages above the leaves, nodes being written, and changes since the last checkpoint, which a
    /// recovery repeats. Unknown values are omitted.
    pub fn debt(&self, is_new: bool) -> Vec<Gauge> {
        let gauge = |name: &str, value: Option<f64>| value.map(|value| Gauge::new(name, value));
        let age = self.value(NEXT).zip(self.value(CHECKPOINT)).map(|(next, checkpoint)| (next - checkpoint).max(0.0));
        [
            gauge(WAITING, self.waiting(is_new).ok()),
            gauge("writing_bytes", self.value(WRITING)),
            gauge("checkpoint_age_changes", age),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_colons_and_a_value_be_no_number() {
        let status = Status::of(
            "BUILD_ID = 0\ncheckpoint: checkpoints taken : 3\nft: bytes of messages currently in trees (estimate): 42\n\
             checkpoint: last checkpoint began: Thu Jan  1 00:00:00 1970\nlogger: writes (bytes): 17\n",
        );
        assert_eq!(status.value("checkpoint: checkpoints taken"), Some(3.0));
        assert_eq!(status.debt(true), [Gauge::new("messages_in_trees_bytes", 42.0)]);
        let counters = status.counters();
        assert!(counters.contains(&Gauge::new("written_log_bytes", 17.0)), "{counters:?}");
        assert_eq!(counters.len(), 3, "missing values are omitted, and a level is no counter: {counters:?}");
    }

    fn reported_messages(bytes: &str) -> Status {
        Status::of(&format!("{MESSAGES}: {bytes}\n"))
    }

    /// A warmup over kept data ended at 2^64 minus 2.6 MB, which rumba reported as deferred work.
    #[test]
    fn a_difference_below_zero_is_no_number() {
        for bytes in ["18446744073706911234", "9223372036854775808", "-42"] {
            let status = reported_messages(bytes);
            assert_eq!(status.waiting(true), Err("PerconaFT counted more that went than came"), "{bytes}");
            assert_eq!(status.debt(true), [], "{bytes}");
        }
        for (bytes, right) in [("0", 0.0), ("41795661", 41_795_661.0)] {
            assert_eq!(reported_messages(bytes).debt(true), [Gauge::new("messages_in_trees_bytes", right)]);
        }
        assert_eq!(Status::of("").waiting(true), Err("PerconaFT does not report it"));
    }

    /// rumba reported the bytes written, including deferred writes, as if a checkpoint had completed all work.
    #[test]
    fn messages_left_by_a_drain_are_reported_as_deferred() {
        let reported = reported_messages("41943040").unpaid(true).unwrap();
        assert!(reported.starts_with("40.0 MiB of messages wait above the leaves: "), "{reported}");
        assert_eq!(reported_messages("0").unpaid(true), None);
        let reported = reported_messages("0").unpaid(false).unwrap();
        assert!(reported.starts_with(&format!("messages may wait ({OVER_KEPT_DATA}) above")), "{reported}");
    }

    /// The library's count starts at 0 even if messages are pending, so it is wrong over older data.
    #[test]
    fn message_bytes_are_not_reported_for_preexisting_data() {
        for bytes in ["0", "42", "18446744073706911234"] {
            let status = reported_messages(bytes);
            assert_eq!(status.waiting(false), Err("PerconaFT counts messages since it was opened over this data"));
            assert_eq!(status.debt(false), [], "{bytes}");
        }
        let rest = Status::of(&format!("{MESSAGES}: 42\n{WRITING}: 7\n")).debt(false);
        assert_eq!(rest, [Gauge::new("writing_bytes", 7.0)], "all other gauges are reported as for new data");
    }

    #[test]
    fn read_wait_sums_all_parts_of_nodes() {
        let lines: String = READ_SECONDS.iter().map(|name| format!("{name}: 0.25\n")).collect();
        let counters = Status::of(&lines).counters();
        assert_eq!(counters, [Gauge::new("waited_page_reads_us", 2e6)]);
        let fewer = lines.split_once('\n').unwrap().1;
        assert!(Status::of(fewer).counters().is_empty(), "a sum without one of its parts is none");
    }

    /// The library's values after ten thousand transactions on one row, and after a checkpoint.
    #[test]
    fn checkpoint_age_is_reported_in_changes() {
        let age = |checkpoint: u32, next: u32| {
            Status::of(&format!("checkpoint: last complete checkpoint LSN: {checkpoint}\nlogger: next LSN: {next}\n"))
                .debt(true)
        };
        assert_eq!(age(8, 30_018), [Gauge::new("checkpoint_age_changes", 30_010.0)]);
        assert_eq!(age(30_019, 30_024), [Gauge::new("checkpoint_age_changes", 5.0)]);
        assert_eq!(Status::of("logger: next LSN: 30018\n").debt(true), [], "the checkpoint is unknown");
    }
}
