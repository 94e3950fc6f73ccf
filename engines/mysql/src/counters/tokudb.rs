//! TokuDB's counters and deferred work.

use rumba_engine_api::units::show_bytes;

use super::{Reading, Request, Status};

/// Status variables by their own names; times are microseconds.
#[rustfmt::skip]
const STATUS: [&str; 46] = [
    "Tokudb_cachetable_size_current", "Tokudb_cachetable_size_limit", "Tokudb_cachetable_size_writing",
    "Tokudb_cachetable_size_leaf", "Tokudb_cachetable_size_nonleaf", "Tokudb_cachetable_size_rollback",
    "Tokudb_cachetable_size_cachepressure", "Tokudb_cachetable_size_cloned", "Tokudb_cachetable_miss",
    "Tokudb_cachetable_miss_time", "Tokudb_cachetable_prefetches", "Tokudb_cachetable_evictions",
    "Tokudb_cachetable_cleaner_executions", "Tokudb_cachetable_wait_pressure_count",
    "Tokudb_cachetable_wait_pressure_time", "Tokudb_cachetable_long_wait_pressure_time",
    "Tokudb_checkpoint_taken", "Tokudb_checkpoint_failed", "Tokudb_checkpoint_duration",
    "Tokudb_checkpoint_duration_last", "Tokudb_filesystem_fsync_num", "Tokudb_filesystem_fsync_time",
    "Tokudb_flusher_flush_total", "Tokudb_flusher_flush_needed_io", "Tokudb_flusher_split_leaf",
    "Tokudb_flusher_split_nonleaf", "Tokudb_leaf_nodes_flushed_checkpoint",
    "Tokudb_leaf_nodes_flushed_not_checkpoint", "Tokudb_nonleaf_nodes_flushed_to_disk_checkpoint",
    "Tokudb_nonleaf_nodes_flushed_to_disk_not_checkpoint", "Tokudb_overall_node_compression_ratio",
    "Tokudb_locktree_memory_size", "Tokudb_locktree_escalation_num", "Tokudb_locktree_timeout_count",
    "Tokudb_locktree_wait_count", "Tokudb_locktree_wait_time", "Tokudb_locktree_wait_escalation_time",
    "Tokudb_logger_writes", "Tokudb_messages_injected_at_root", "Tokudb_messages_injected_at_root_bytes",
    "Tokudb_messages_flushed_from_h1_to_leaves_bytes", "Tokudb_basements_fetched_target_query_bytes",
    "Tokudb_buffers_fetched_target_query_bytes", "Tokudb_txn_begin", "Tokudb_txn_commits", "Tokudb_txn_aborts",
];

/// Bytes written for the log, for checkpoints and for evictions, with their names among the counters. The zeros that
/// extend a file, and the bulk loader's files, are in none of them.
const WRITTEN: [(&str, &[&str]); 3] = [
    ("written_log_bytes", &["Tokudb_logger_writes_bytes"]),
    (
        "written_checkpoint_bytes",
        &["Tokudb_leaf_nodes_flushed_checkpoint_bytes", "Tokudb_nonleaf_nodes_flushed_to_disk_checkpoint_bytes"],
    ),
    (
        "written_eviction_bytes",
        &[
            "Tokudb_leaf_nodes_flushed_not_checkpoint_bytes",
            "Tokudb_nonleaf_nodes_flushed_to_disk_not_checkpoint_bytes",
        ],
    ),
];

/// Microseconds that clients waited.
const WAITED: [(&str, &str); 2] =
    [("waited_row_locks_us", "Tokudb_locktree_wait_time"), ("waited_cache_us", "Tokudb_cachetable_wait_pressure_time")];

/// Seconds spent fetching parts of nodes for waiting clients. The cache's own `miss_time` counts only whole nodes.
const READ_SECONDS: [&str; 8] = [
    "Tokudb_pivots_fetched_for_query_seconds",
    "Tokudb_pivots_fetched_for_write_seconds",
    "Tokudb_basements_fetched_target_query_seconds",
    "Tokudb_basements_fetched_prelocked_range_seconds",
    "Tokudb_basements_fetched_for_write_seconds",
    "Tokudb_buffers_fetched_target_query_seconds",
    "Tokudb_buffers_fetched_prelocked_range_seconds",
    "Tokudb_buffers_fetched_for_write_seconds",
];

/// The deferred work of messages in the buffers of inner nodes.
pub(crate) const MESSAGES: &str = "messages_in_trees_bytes";
const MESSAGES_ESTIMATE: &str = "Tokudb_messages_in_trees_estimate_bytes";
/// Why it is absent over older data: messages added by an earlier process are not counted, but their removal is.
pub(crate) const OVER_OLDER_DATA: &str = "TokuDB counts messages since the server's start";
/// From here on the estimate is negative: the server prints it as unsigned.
const WRAPPED: f64 = (1u64 << 63) as f64;

/// Deferred work: messages above the leaves, nodes being written, and changes since the last checkpoint, which a
/// recovery repeats.
pub(super) fn debt(admin: &mut dyn Request) -> Reading {
    const WRITING: &str = "Tokudb_cachetable_size_writing";
    const NEXT: &str = "Tokudb_logger_next_lsn";
    const CHECKPOINT: &str = "Tokudb_checkpoint_last_lsn";
    let mut reading = Reading::default();
    if let Ok(status) = Status::read_some(admin, &[MESSAGES_ESTIMATE, WRITING, NEXT, CHECKPOINT]) {
        reading.put_any(MESSAGES, status.get(MESSAGES_ESTIMATE).filter(|bytes| (0.0..WRAPPED).contains(bytes)));
        reading.put_any("writing_bytes", status.get(WRITING));
        let age = status.get(NEXT).zip(status.get(CHECKPOINT)).map(|(next, checkpoint)| (next - checkpoint).max(0.0));
        reading.put_any("checkpoint_age_changes", age);
    }
    reading
}

/// Describes the work that a checkpoint leaves while messages wait above the leaves. `bytes` is unknown over older data.
pub(crate) fn unpaid(bytes: Option<f64>) -> Option<String> {
    let waiting = match bytes {
        Some(bytes) if bytes < 1.0 => return None,
        Some(bytes) => format!("{} of messages wait", show_bytes(bytes)),
        None => format!("messages may wait ({OVER_OLDER_DATA})"),
    };
    Some(format!(
        "{waiting} above the leaves: what bringing them down will write is in no figure, and what bringing down the \
         load's has written is in this trial's"
    ))
}

/// All counters except deferred work and bytes written.
pub(super) fn counters(status: &Status, reading: &mut Reading) {
    status.copy(&STATUS, reading);
    for (name, variable) in WAITED {
        reading.put_any(name, status.get(variable));
    }
    reading.put_any("waited_page_reads_us", sum(status, &READ_SECONDS).map(|seconds| seconds * 1e6));
}

/// Bytes written, by purpose.
pub(super) fn written(status: &Status, reading: &mut Reading) {
    for (name, variables) in WRITTEN {
        reading.put_any(name, sum(status, variables));
    }
}

fn sum(status: &Status, names: &[&str]) -> Option<f64> {
    names.iter().map(|name| status.get(name)).sum()
}
