//! InnoDB's counters and deferred work.

use rumba_server_kit::version::Version;

use super::{Reading, Request, Server, Status};
use crate::software::Brand;

/// InnoDB counters that are off by default (`innodb_monitor_enable`). They give the checkpoint age where no status
/// variable does, and the work of adaptive hash index and page compression.
pub(super) const MONITORS: [&str; 9] = [
    "log_lsn_checkpoint_age",
    "adaptive_hash_searches",
    "adaptive_hash_searches_btree",
    "compress_pages_compressed",
    "compress_pages_decompressed",
    "compress_saved",
    "compress_pages_page_compressed",
    "compress_pages_page_decompressed",
    "log_padded",
];

/// The MySQL version since which the doublewrite buffer has its own files and counters.
const DOUBLEWRITE_APART: Version = Version(8, 0, 20);

/// Metrics that are on by default.
const METRICS: [&str; 2] = ["trx_rseg_history_len", "ibuf_size"];

/// Status variables by their own names. `pages` are pages of `Innodb_page_size`, `Innodb_data_*` are bytes, times are
/// milliseconds.
#[rustfmt::skip]
const STATUS: [&str; 41] = [
    "Innodb_page_size", "Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads", "Innodb_buffer_pool_read_ahead",
    "Innodb_buffer_pool_read_ahead_evicted", "Innodb_buffer_pool_write_requests", "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_pages_total", "Innodb_buffer_pool_pages_data", "Innodb_buffer_pool_pages_free",
    "Innodb_buffer_pool_pages_dirty", "Innodb_buffer_pool_bytes_dirty", "Innodb_buffer_pool_pages_flushed",
    "Innodb_buffer_pool_pages_lru_flushed", "Innodb_pages_created", "Innodb_pages_read", "Innodb_pages_written",
    "Innodb_data_read", "Innodb_data_reads", "Innodb_data_written", "Innodb_data_writes", "Innodb_data_fsyncs",
    "Innodb_dblwr_pages_written", "Innodb_dblwr_writes", "Innodb_os_log_written", "Innodb_log_writes",
    "Innodb_log_write_requests", "Innodb_log_waits", "Innodb_row_lock_waits", "Innodb_row_lock_time",
    "Innodb_row_lock_time_max", "Innodb_row_lock_current_waits", "Innodb_deadlocks", "Innodb_ibuf_merges",
    "Innodb_adaptive_hash_hash_searches", "Innodb_adaptive_hash_non_hash_searches",
    "Innodb_num_pages_page_compressed", "Innodb_num_pages_page_decompressed", "Innodb_page_compression_saved",
    "Innodb_num_page_compressed_trim_op", "Innodb_num_pages_page_compression_error",
];

/// Performance-schema instruments for the latches of index trees and of the lock system. Patterns, because their kinds
/// and the lock system's parts differ between servers.
pub(crate) const LATCHES: [&str; 2] = ["wait/synch/%/innodb/index_tree_rw_lock", "wait/synch/%/innodb/lock_%"];

/// All instruments of mutexes, locks and conditions, which include the latches.
pub(crate) const WAITS: [&str; 1] = ["wait/synch/%"];

/// Status variables that give the checkpoint age.
const CHECKPOINT: [&str; 3] =
    ["Innodb_checkpoint_age", "Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"];

/// The status variables that [`debt`] needs.
pub(crate) fn debt_status(admin: &mut dyn Request) -> Result<Status, String> {
    let mut names = vec!["Innodb_buffer_pool_pages_dirty", "Innodb_buffer_pool_bytes_dirty"];
    names.extend(CHECKPOINT);
    names.push("Innodb_history_list_length");
    Status::read_some(admin, &names)
}

/// Deferred work: dirty pages, redo that crash recovery must apply, history to purge, and buffered changes.
pub(super) fn debt(admin: &mut dyn Request) -> Reading {
    let mut reading = Reading::default();
    let status = debt_status(admin).ok();
    let metrics = metrics(admin);
    let of_status = |name| status.as_ref()?.get(name);
    let of_metrics = |name| metrics.as_ref()?.get(name);
    reading.put_any("dirty_pages", of_status("Innodb_buffer_pool_pages_dirty"));
    reading.put_any("dirty_bytes", of_status("Innodb_buffer_pool_bytes_dirty"));
    let age = status.as_ref().and_then(|status| checkpoint_age(admin, status, of_metrics("log_lsn_checkpoint_age")));
    reading.put_any("checkpoint_age_bytes", age);
    let history = of_status("Innodb_history_list_length").or_else(|| of_metrics("trx_rseg_history_len"));
    reading.put_any("history_list_length", history);
    // The count includes the tree's root page, which always exists.
    reading.put_any("change_buffer_pages", of_metrics("ibuf_size").map(|pages| (pages - 1.0).max(0.0)));
    reading
}

/// All counters except deferred work and bytes written.
pub(super) fn counters(admin: &mut dyn Request, status: &Status, reading: &mut Reading) {
    status.copy(&STATUS, reading);
    let requests = status.get("Innodb_buffer_pool_read_requests").filter(|requests| *requests > 0.0);
    let hits = requests.zip(status.get("Innodb_buffer_pool_reads")).map(|(requests, reads)| 1.0 - reads / requests);
    reading.put_any("buffer_pool_hit_ratio", hits);
    let metrics = metrics(admin);
    for name in MONITORS.iter().filter(|name| !name.starts_with("log_lsn")) {
        reading.put_any(name, metrics.as_ref().and_then(|metrics| metrics.get(name)));
    }
    compressed_tables(admin, reading);
    latches(admin, reading);
    if reading.get("waited_index_us").is_some() {
        wait_events(admin, reading);
    }
}

/// Total time that clients and the server's own threads took to acquire these latches. It includes the few dozen
/// nanoseconds of an uncontended one. The performance schema counts in picoseconds.
fn latches(admin: &mut dyn Request, reading: &mut Reading) {
    // No join and no `NAME = EVENT_NAME`: MySQL 8.0.15 finds no shared-exclusive lock in setup_instruments by its name,
    // and these include the latches of indexes.
    let sum = |name: &str, latches: &str| {
        format!(
            "SELECT '{name}', SUM(SUM_TIMER_WAIT) / 1000000 \
             FROM performance_schema.events_waits_summary_global_by_event_name WHERE EVENT_NAME LIKE '{latches}' \
             HAVING EXISTS (SELECT 1 FROM performance_schema.setup_instruments \
             WHERE ENABLED = 'YES' AND TIMED = 'YES' AND NAME LIKE '{latches}')"
        )
    };
    let [index, lock_system] = LATCHES;
    let names = ["waited_index_us", "waited_lock_sys_us"];
    let sums = Status::read(admin, &format!("{} UNION ALL {}", sum(names[0], index), sum(names[1], lock_system)));
    for name in names {
        reading.put_any(name, sums.as_ref().ok().and_then(|sums| sums.get(name)));
    }
}

/// Total time that sessions waited for each event, by its name in the performance schema without `wait/`. The server's
/// own threads have no user. Waits for clients and for whole statements' table accesses are left out.
fn wait_events(admin: &mut dyn Request, reading: &mut Reading) {
    const SQL: &str = "SELECT SUBSTRING(EVENT_NAME, 6), SUM(SUM_TIMER_WAIT) / 1000000 \
        FROM performance_schema.events_waits_summary_by_user_by_event_name WHERE USER IS NOT NULL AND COUNT_STAR > 0 \
        AND (EVENT_NAME LIKE 'wait/synch/%' OR EVENT_NAME LIKE 'wait/io/file/%' OR EVENT_NAME LIKE 'wait/lock/%') \
        GROUP BY EVENT_NAME";
    if let Ok(waits) = Status::read(admin, SQL) {
        waits.numbers().for_each(|(event, us)| reading.put(format!("wait_event_{event}_us"), us));
    }
}

/// Counters of `ROW_FORMAT=COMPRESSED`, summed over all page sizes.
fn compressed_tables(admin: &mut dyn Request, reading: &mut Reading) {
    const SQL: &str = "SELECT 'compress_ops', SUM(compress_ops) FROM information_schema.INNODB_CMP \
        UNION ALL SELECT 'compress_ops_ok', SUM(compress_ops_ok) FROM information_schema.INNODB_CMP \
        UNION ALL SELECT 'compress_time_s', SUM(compress_time) FROM information_schema.INNODB_CMP \
        UNION ALL SELECT 'uncompress_ops', SUM(uncompress_ops) FROM information_schema.INNODB_CMP \
        UNION ALL SELECT 'uncompress_time_s', SUM(uncompress_time) FROM information_schema.INNODB_CMP";
    if let Ok(sums) = Status::read(admin, SQL) {
        let names = ["compress_ops", "compress_ops_ok", "compress_time_s", "uncompress_ops", "uncompress_time_s"];
        sums.copy(&names, reading);
    }
}

/// Bytes written, by purpose, and the total time that clients waited for row locks.
pub(super) fn written(server: &Server, status: &Status, reading: &mut Reading) {
    let redo = status.get("Innodb_os_log_written");
    let doublewrite =
        status.get("Innodb_dblwr_pages_written").zip(status.get("Innodb_page_size")).map(|(pages, size)| pages * size);
    reading.put_any("written_redo_bytes", redo);
    reading.put_any("written_doublewrite_bytes", doublewrite);
    reading.put_any("written_pages_bytes", pages_written(server, status, redo, doublewrite));
    reading.put_any("waited_row_locks_us", status.get("Innodb_row_lock_time").map(|ms| 1000.0 * ms));
}

/// Bytes of pages written to data files. MariaDB counts a page that page compression has compressed at its compressed
/// size, and MySQL at its full size. `Innodb_data_written` includes more: the doublewrite buffer in MariaDB, the redo log
/// in MySQL, and both before 8.0.20.
fn pages_written(server: &Server, status: &Status, redo: Option<f64>, doublewrite: Option<f64>) -> Option<f64> {
    let others = match server.brand {
        Brand::MariaDb => doublewrite?,
        Brand::MySql if server.version >= DOUBLEWRITE_APART => redo?,
        Brand::MySql => doublewrite? + redo?,
    };
    Some((status.get("Innodb_data_written")? - others).max(0.0))
}

/// Bytes of redo written since the last checkpoint; `counted` is InnoDB's own metric.
fn checkpoint_age(admin: &mut dyn Request, status: &Status, counted: Option<f64>) -> Option<f64> {
    if let Some(age) = status.get("Innodb_checkpoint_age") {
        return Some(age);
    }
    if let (Some(now), Some(then)) =
        (status.get("Innodb_redo_log_current_lsn"), status.get("Innodb_redo_log_checkpoint_lsn"))
    {
        return Some((now - then).max(0.0));
    }
    counted.or_else(|| age_in_monitor(&monitor(admin)?))
}

/// The text of InnoDB's monitor.
fn monitor(admin: &mut dyn Request) -> Option<String> {
    admin.fetch("SHOW ENGINE INNODB STATUS").ok()?.rows.first()?.last()?.clone()
}

/// The progress of purge, if the server reports it to this user.
pub(crate) fn purge_progress(admin: &mut dyn Request) -> Option<PurgeProgress> {
    progress_in(&monitor(admin)?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgeProgress {
    /// The next transaction number.
    pub next: u64,
    /// The number below which purge is complete for every transaction.
    pub purged: u64,
    /// Whether purge is idle because it may not purge anything.
    pub rests: bool,
}

impl PurgeProgress {
    /// Whether purge is idle and past every transaction, regardless of the history list's length. Purged transactions
    /// leave the list later: up to MySQL 5.7.4 only with every 128th batch.
    pub(crate) fn is_done(self) -> bool {
        self.rests && self.purged >= self.next
    }
}

/// Parses `Trx id counter 1322` and `Purge done for trx's n:o < 1322 undo n:o < 0 state: running but idle`.
pub(super) fn progress_in(text: &str) -> Option<PurgeProgress> {
    let number = |label: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(label))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let rests = text.lines().any(|line| line.starts_with("Purge done for") && line.ends_with("running but idle"));
    Some(PurgeProgress { next: number("Trx id counter ")?, purged: number("Purge done for trx's n:o < ")?, rests })
}

/// Computes the age from two lines of InnoDB's monitor text.
pub(super) fn age_in_monitor(text: &str) -> Option<f64> {
    let lsn = |label: &str| text.lines().find_map(|line| line.strip_prefix(label)?.trim().parse::<f64>().ok());
    Some((lsn("Log sequence number")? - lsn("Last checkpoint at")?).max(0.0))
}

/// Metrics of `information_schema.INNODB_METRICS`: the value if the counter is on, else `off`.
fn metrics(admin: &mut dyn Request) -> Option<Status> {
    let names: Vec<&str> = MONITORS.iter().chain(&METRICS).copied().collect();
    // The column that says whether a counter is on is STATUS or ENABLED. For a counter that is on it holds the time of
    // enabling.
    let sql = format!(
        "SELECT NAME, IF(TIME_ENABLED IS NULL OR TIME_DISABLED > TIME_ENABLED, 'off', COUNT) \
         FROM information_schema.INNODB_METRICS WHERE NAME IN ('{}')",
        names.join("','")
    );
    Status::read(admin, &sql).ok()
}
