//! What the library says of itself (`engine status`), as counters and debt.

use rumba_core::engine::Gauge;
use rumba_core::units::show_bytes;

/// The messages that wait in the buffers of inner nodes: those that came less those that went, since the process began.
const MESSAGES: &str = "ft: bytes of messages currently in trees (estimate)";
/// The debt that they are.
pub const WAITING: &str = "messages_in_trees_bytes";
/// Why it is not told where the data was there before: what waits in it from earlier is not counted when it comes, and is when
/// it goes.
const OVER_KEPT_DATA: &str = "PerconaFT counts messages since it was opened over this data";
/// From here on the difference is below zero: the library prints it without a sign.
const WRAPPED: f64 = (1u64 << 63) as f64;
/// What the cache holds of nodes.
const CACHED: &str = "cachetable: size current";
/// What of it is being written.
const WRITING: &str = "cachetable: size writing";
/// The number of the change that comes next, and that of the last complete checkpoint; both go on without a log, too.
const NEXT: &str = "logger: next LSN";
const CHECKPOINT: &str = "checkpoint: last complete checkpoint LSN";

/// What is counted, by the library's own words; much of what it says besides is of use to its authors alone.
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

/// Counters by the names that make metrics of them (`rumba_core::counted`), each the sum of some of the library's: bytes
/// that were written for the log, checkpoints and evictions, and microseconds that clients waited.
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

/// Seconds in which parts of nodes were fetched for somebody who waited. The cache's own `miss time` is of whole nodes alone,
/// and most reads are of one part of a node that is there.
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

/// A status, taken apart.
pub struct Status(Vec<(String, f64)>);

impl Status {
    /// Takes the library's text apart: a name and a number on each line. The name itself has colons, and blanks at its end.
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

    /// What is counted.
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
    /// Why the library's number is not that.
    pub fn waiting(&self, is_new: bool) -> Result<f64, &'static str> {
        if !is_new {
            return Err(OVER_KEPT_DATA);
        }
        let bytes = self.value(MESSAGES).ok_or("PerconaFT does not tell it")?;
        if (0.0..WRAPPED).contains(&bytes) { Ok(bytes) } else { Err("PerconaFT counted more that went than came") }
    }

    /// What a checkpoint leaves to be done, as long as messages wait above the leaves: what bringing them down will write is
    /// not known. Those of the load come down meanwhile, so that bytes written have too much as well.
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

    /// What is put off: messages that wait above the leaves, nodes on their way to the device, and the changes since the
    /// last checkpoint, which a recovery makes again. What is not known is left out.
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
        assert_eq!(counters.len(), 3, "what is not told is left out, and what waits is no counter: {counters:?}");
    }

    fn told_messages(bytes: &str) -> Status {
        Status::of(&format!("{MESSAGES}: {bytes}\n"))
    }

    /// A warmup over kept data ended at 2^64 less 2.6 MB, and that was taken for a debt.
    #[test]
    fn a_difference_below_zero_is_no_number() {
        for bytes in ["18446744073706911234", "9223372036854775808", "-42"] {
            let status = told_messages(bytes);
            assert_eq!(status.waiting(true), Err("PerconaFT counted more that went than came"), "{bytes}");
            assert_eq!(status.debt(true), [], "{bytes}");
        }
        for (bytes, right) in [("0", 0.0), ("41795661", 41_795_661.0)] {
            assert_eq!(told_messages(bytes).debt(true), [Gauge::new("messages_in_trees_bytes", right)]);
        }
        assert_eq!(Status::of("").waiting(true), Err("PerconaFT does not tell it"));
    }

    /// The bytes written, debt charged, stood there as if a checkpoint had paid for everything.
    #[test]
    fn messages_left_by_a_drain_are_reported_as_deferred() {
        let told = told_messages("41943040").unpaid(true).unwrap();
        assert!(told.starts_with("40.0 MiB of messages wait above the leaves: "), "{told}");
        assert_eq!(told_messages("0").unpaid(true), None);
        let told = told_messages("0").unpaid(false).unwrap();
        assert!(told.starts_with(&format!("messages may wait ({OVER_KEPT_DATA}) above")), "{told}");
    }

    /// It begins at 0 whatever waits there, so that no number of it is right.
    #[test]
    fn of_data_that_was_there_before_the_messages_are_not_told() {
        for bytes in ["0", "42", "18446744073706911234"] {
            let status = told_messages(bytes);
            assert_eq!(status.waiting(false), Err("PerconaFT counts messages since it was opened over this data"));
            assert_eq!(status.debt(false), [], "{bytes}");
        }
        let rest = Status::of(&format!("{MESSAGES}: 42\n{WRITING}: 7\n")).debt(false);
        assert_eq!(rest, [Gauge::new("writing_bytes", 7.0)], "all else is told as of new data");
    }

    #[test]
    fn what_was_waited_for_reads_is_the_sum_over_all_parts_of_nodes() {
        let lines: String = READ_SECONDS.iter().map(|name| format!("{name}: 0.25\n")).collect();
        let counters = Status::of(&lines).counters();
        assert_eq!(counters, [Gauge::new("waited_page_reads_us", 2e6)]);
        let fewer = lines.split_once('\n').unwrap().1;
        assert!(Status::of(fewer).counters().is_empty(), "a sum without one of its parts is none");
    }

    /// As the library told them after ten thousand transactions of one row, and after a checkpoint.
    #[test]
    fn the_age_of_a_checkpoint_is_told_in_changes() {
        let age = |checkpoint: u32, next: u32| {
            Status::of(&format!("checkpoint: last complete checkpoint LSN: {checkpoint}\nlogger: next LSN: {next}\n"))
                .debt(true)
        };
        assert_eq!(age(8, 30_018), [Gauge::new("checkpoint_age_changes", 30_010.0)]);
        assert_eq!(age(30_019, 30_024), [Gauge::new("checkpoint_age_changes", 5.0)]);
        assert_eq!(Status::of("logger: next LSN: 30018\n").debt(true), [], "of which checkpoint is not told");
    }
}
