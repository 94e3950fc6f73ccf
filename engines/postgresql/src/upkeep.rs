//! Settles a server after the load, and drains its deferred work after the loops.
//!
//! Settle vacuums every table. A drain vacuums only the tables that are due by autovacuum's own formula. Both write a
//! checkpoint, on an existing server too, and neither changes a setting. The checkpoint also writes dirty pages of
//! other tables, because a server has only one checkpoint for all.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::error::Result;

use crate::control::Control;
use crate::failure::{failed, is_denied};

const CHECKPOINT: &str = "CHECKPOINT";

/// How long a drain waits for vacuums that the server has begun, and the pause between two samples. A vacuum that takes
/// longer remains in the deferred work (`autovacuum_workers`).
const AUTOVACUUM_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);

/// How long to wait for the statistics of a checkpoint, and the pause between two samples.
const REPORT_MAX: Duration = Duration::from_secs(5);
const REPORT_POLL: Duration = Duration::from_millis(5);

/// rumba's tables with their dead rows and autovacuum's threshold (`dead_max`, absent while autovacuum is off). Also
/// whether a vacuum is due now, for dead or for inserted rows. The formula is the server's
/// (`relation_needs_vacanalyze`); a table's own options override the server's settings. Releases before 13 do not
/// vacuum for inserts, and those before 18 have no maximum threshold. `{condition}` is replaced by the condition of
/// the trial's tables.
const TABLES: &str = "WITH options AS ( \
        SELECT s.*, c.reltuples, c.oid, \
            (SELECT jsonb_object_agg(option_name, option_value) FROM pg_options_to_table(c.reloptions)) AS own \
        FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid WHERE {condition}), \
    limits AS ( \
        SELECT quote_ident(schemaname) || '.' || quote_ident(relname) AS name, n_dead_tup, greatest(reltuples, 0) AS rows, \
            coalesce((to_jsonb(options) ->> 'n_ins_since_vacuum')::float8, 0) AS inserted, \
            current_setting('autovacuum')::bool AND current_setting('track_counts')::bool \
                AND coalesce(own ->> 'autovacuum_enabled', 'true')::bool AS is_on, \
            coalesce(own ->> 'autovacuum_vacuum_threshold', current_setting('autovacuum_vacuum_threshold'))::float8 AS base, \
            coalesce(own ->> 'autovacuum_vacuum_scale_factor', current_setting('autovacuum_vacuum_scale_factor'))::float8 \
                AS scale, \
            nullif(coalesce(own ->> 'autovacuum_vacuum_max_threshold', \
                current_setting('autovacuum_vacuum_max_threshold', true))::float8, -1) AS most, \
            nullif(coalesce(own ->> 'autovacuum_vacuum_insert_threshold', \
                current_setting('autovacuum_vacuum_insert_threshold', true))::float8, -1) AS insert_base, \
            coalesce(own ->> 'autovacuum_vacuum_insert_scale_factor', \
                current_setting('autovacuum_vacuum_insert_scale_factor', true))::float8 AS insert_scale \
        FROM options), \
    due AS (SELECT *, CASE WHEN is_on THEN least(base + scale * rows, most) END AS dead_max FROM limits) \
    SELECT name, n_dead_tup, dead_max, coalesce(n_dead_tup > dead_max, false) \
        OR coalesce(is_on AND inserted > insert_base + insert_scale * rows, false) \
    FROM due ORDER BY name";

/// The condition for the tables on a server that rumba runs, where no other program creates any. On an existing server it is
/// [`crate::marker::condition`].
pub const OWN_TABLES: &str = "s.schemaname = 'public'";

/// One of rumba's tables.
struct Table {
    name: String,
    dead: f64,
    /// The number of dead rows at which autovacuum begins; `None` while it is off.
    dead_max: Option<f64>,
    is_due: bool,
}

/// Brings the tables to the state in which reads after a load are representative: dead rows removed, all-visible pages
/// marked, statistics collected, and everything written. May take minutes. `condition` selects the tables; without
/// `flushes`, the user may lack the privilege for a checkpoint, and none is requested.
pub fn settle(control: &mut Control, condition: &str, flushes: bool) -> Result<()> {
    let tables = tables(control, condition)?;
    vacuum(control, "VACUUM (ANALYZE)", tables.iter())?;
    written(control, flushes)
}

/// Completes the server's deferred work, and no more. May take minutes.
pub fn drain(control: &mut Control, condition: &str, flushes: bool) -> Result<()> {
    await_autovacuum(control)?;
    let tables = tables(control, condition)?;
    vacuum(control, "VACUUM", tables.iter().filter(|table| table.is_due))?;
    written(control, flushes)
}

/// Describes the vacuum that is not due yet: how close the fullest table is to its threshold. `None` with few dead
/// rows.
pub fn unpaid(control: &mut Control, condition: &str) -> Option<String> {
    let tables = tables(control, condition).ok()?;
    let dead: f64 = tables.iter().map(|table| table.dead).sum();
    let share = |table: &Table| table.dead_max.map_or(0.0, |dead_max| table.dead / dead_max.max(1.0));
    let fullest = tables.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
    match fullest.dead_max {
        None if dead > 0.0 => {
            Some(format!("{dead} dead rows wait for a vacuum that no setting starts (autovacuum is off)"))
        }
        Some(dead_max) if share(fullest) >= UNPAID_SHARE => Some(format!(
            "{dead} dead rows wait for a vacuum: {} has {} of the {dead_max:.0} that start autovacuum. The bytes of \
             that vacuum are in no figure",
            fullest.name, fullest.dead
        )),
        _ => None,
    }
}

/// The share of autovacuum's threshold below which dead rows cause no warning.
const UNPAID_SHARE: f64 = 0.01;

/// Waits for vacuums that the server has begun, because a `VACUUM` of the same table would cancel them, and their work
/// would be done and counted twice. Skipped if the user may not see them.
fn await_autovacuum(control: &mut Control) -> Result<()> {
    const WORKERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'autovacuum worker' \
        AND datname = current_database()";
    let until = Instant::now() + AUTOVACUUM_MAX;
    loop {
        let rows = control.run("looking for vacuums", WORKERS)?.rows;
        let is_over = rows.first().and_then(|row| row.first()?.as_deref()).is_none_or(|count| count == "0");
        if is_over || Instant::now() > until {
            return Ok(());
        }
        sleep(POLL);
    }
}

/// Lists rumba's tables.
fn tables(control: &mut Control, condition: &str) -> Result<Vec<Table>> {
    let rows = control.run("listing the tables", &TABLES.replace("{condition}", condition))?.rows;
    let table = |row: &Vec<Option<String>>| {
        let number = |column: usize| row.get(column)?.as_deref()?.parse().ok();
        Some(Table {
            name: row.first()?.clone()?,
            dead: number(1).unwrap_or_default(),
            dead_max: number(2),
            is_due: row.get(3)?.as_deref() == Some("t"),
        })
    };
    Ok(rows.iter().filter_map(table).collect())
}

/// Vacuums tables one by one, because `VACUUM` without names would include the server's own and other users' tables.
fn vacuum<'a>(control: &mut Control, how: &'static str, mut tables: impl Iterator<Item = &'a Table>) -> Result<()> {
    tables.try_for_each(|table| control.run(how, &format!("{how} {}", table.name)).map(drop))
}

/// Ends upkeep: writes a checkpoint if the user may request one. Then the session reports its own log records, which
/// the server otherwise does once a second, from release 15 on.
fn written(control: &mut Control, flushes: bool) -> Result<()> {
    const IS_THERE: &str = "SELECT 1 FROM pg_proc WHERE proname = 'pg_stat_force_next_flush'";
    if flushes {
        checkpoint(control)?;
    }
    if control.firsts(IS_THERE).is_ok_and(|found| !found.is_empty()) {
        // If this fails, counters are at most a second old.
        let _ = control.fetch("SELECT pg_stat_force_next_flush()");
    }
    Ok(())
}

/// Writes a checkpoint, and waits until the server's statistics contain it. The checkpointer answers before it reports
/// its pages, so counters read at once would assign them to the next phase. It sleeps only after the report.
fn checkpoint(control: &mut Control) -> Result<()> {
    // Only members of that role see what the checkpointer waits for.
    const IS_ASLEEP: &str = "SELECT wait_event = 'CheckpointerMain' OR NOT pg_has_role('pg_read_all_stats', 'USAGE') \
        FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    control.fetch(CHECKPOINT).map_err(|error| {
        let reported = failed(CHECKPOINT, &error);
        if is_denied(&error) { reported.followed_by(&format!("; {REMEDY}")) } else { reported }
    })?;
    let until = Instant::now() + REPORT_MAX;
    while Instant::now() < until && control.firsts(IS_ASLEEP).is_ok_and(|asleep| asleep != ["t"]) {
        sleep(REPORT_POLL);
    }
    Ok(())
}

/// How to allow a user to write a checkpoint.
pub const REMEDY: &str = "have an administrator run: GRANT pg_checkpoint TO the user (from release 15 on; before, only \
    a superuser may)";
