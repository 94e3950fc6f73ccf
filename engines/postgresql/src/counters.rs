//! The server's counters, gauges and deferred work.
//!
//! Names from the server's views are kept. Names of the form `written_X_bytes` and those of deferred work are rumba's;
//! docs/engines/postgresql.md lists them. Counters that cannot be read are left out.

use rumba_server_kit::reading::Reading;

use crate::control::Control;

struct View {
    sql: &'static str,
    /// The releases that have the view: the first one, and the first without it.
    releases: std::ops::Range<u16>,
}

const LATER: u16 = u16::MAX;

const VIEWS: [View; 6] = [
    View { sql: "SELECT wal_records, wal_fpi, wal_bytes, wal_buffers_full FROM pg_stat_wal", releases: 14..LATER },
    View {
        sql: "SELECT checkpoints_timed, checkpoints_req, checkpoint_write_time, checkpoint_sync_time, \
              buffers_checkpoint, buffers_clean, maxwritten_clean, buffers_backend, buffers_backend_fsync, \
              buffers_alloc FROM pg_stat_bgwriter",
        releases: 0..17,
    },
    View {
        sql: "SELECT num_timed AS checkpoints_timed, num_requested AS checkpoints_req, \
              write_time AS checkpoint_write_time, sync_time AS checkpoint_sync_time, \
              buffers_written AS buffers_checkpoint FROM pg_stat_checkpointer",
        releases: 17..LATER,
    },
    View {
        sql: "SELECT buffers_clean, maxwritten_clean, buffers_alloc, \
              (SELECT sum(writes * op_bytes / current_setting('block_size')::bigint) FROM pg_stat_io \
               WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) \
              AS buffers_backend FROM pg_stat_bgwriter",
        releases: 17..18,
    },
    View {
        sql: "SELECT buffers_clean, maxwritten_clean, buffers_alloc, \
              (SELECT sum(write_bytes / current_setting('block_size')::bigint) FROM pg_stat_io \
               WHERE object = 'relation' AND backend_type NOT IN ('checkpointer', 'background writer')) \
              AS buffers_backend FROM pg_stat_bgwriter",
        releases: 18..LATER,
    },
    View {
        sql: "SELECT xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, tup_fetched, tup_inserted, \
              tup_updated, tup_deleted, temp_files, temp_bytes, deadlocks FROM pg_stat_database \
              WHERE datname = current_database()",
        releases: 0..LATER,
    },
];

/// Totals over all tables.
const TABLES: &str = "SELECT coalesce(sum(n_tup_hot_upd), 0) AS tup_hot_updated, \
    coalesce(sum(seq_scan), 0) AS seq_scan, coalesce(sum(idx_scan), 0) AS idx_scan, \
    coalesce(sum(n_live_tup), 0) AS live_tuples, coalesce(sum(vacuum_count), 0) AS vacuum_count, \
    coalesce(sum(autovacuum_count), 0) AS autovacuum_count, \
    coalesce(sum(autoanalyze_count), 0) AS autoanalyze_count FROM pg_stat_user_tables";

/// The query for deferred work.
const DEBT: &str = "SELECT \
    (SELECT coalesce(sum(n_dead_tup), 0) FROM pg_stat_user_tables) AS dead_tuples, \
    (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()) AS xid_age, \
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker') AS autovacuum_workers";

/// WAL that crash recovery must replay; the server reports it only to users with the privilege.
const SINCE_CHECKPOINT: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn) AS wal_since_checkpoint_bytes \
    FROM pg_control_checkpoint()";

/// Deferred work.
pub fn debt(control: &mut Control) -> Reading {
    let mut reading = Reading::default();
    take(control, DEBT, &mut reading);
    take(control, SINCE_CHECKPOINT, &mut reading);
    reading
}

/// All counters and gauges of a release, including bytes written.
pub fn counters(control: &mut Control, release: u16) -> Reading {
    let mut reading = Reading::default();
    let views = VIEWS.iter().filter(|view| view.releases.contains(&release));
    for sql in views.map(|view| view.sql).chain([TABLES]) {
        take(control, sql, &mut reading);
    }
    written(control, &mut reading);
    reading
}

/// Bytes written, by purpose. The name of a part begins with that of the whole, so that no explanation counts it twice.
fn written(control: &mut Control, reading: &mut Reading) {
    reading.put_any("written_wal_bytes", reading.get("wal_bytes"));
    let block = control.fetch("SELECT current_setting('block_size')");
    let block = block.ok().and_then(|rows| rows.rows.first()?.first()?.as_deref()?.parse::<f64>().ok());
    let pages = |name: &str| Some(reading.get(name)? * block?);
    let by = [
        ("written_pages_checkpointer_bytes", pages("buffers_checkpoint")),
        ("written_pages_background_writer_bytes", pages("buffers_clean")),
        ("written_pages_backends_bytes", pages("buffers_backend")),
    ];
    let all: Option<f64> = by.iter().map(|(_, bytes)| *bytes).sum();
    for (name, bytes) in by {
        reading.put_any(name, bytes);
    }
    reading.put_any("written_pages_bytes", all);
}

/// Reports the numbers of a query's first row under the names of their columns.
fn take(control: &mut Control, sql: &str, reading: &mut Reading) {
    let Ok(rows) = control.fetch(sql) else { return };
    for (column, cell) in rows.columns.iter().zip(rows.rows.first().into_iter().flatten()) {
        if let Some(value) = cell.as_deref().and_then(|cell| cell.parse().ok()) {
            reading.put(column.clone(), value);
        }
    }
}
