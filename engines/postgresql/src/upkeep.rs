//! Settling a server after the load, and draining its deferred work after the loops.
//!
//! Settling vacuums every table. A drain vacuums only those that the server's own autovacuum owes a vacuum, by its own
//! formula. Both write a checkpoint, on an existing server too: neither changes a setting. That checkpoint also writes what is
//! dirty of other tables, because a server has one for all.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::error::EngineError;

use crate::control::Control;
use crate::failure::{failed, is_denied};

const CHECKPOINT: &str = "CHECKPOINT";

/// How long a drain waits for vacuums that the server has begun, and how long between two looks. One that takes longer stays
/// in the debt (`autovacuum_workers`).
const AUTOVACUUM_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);

/// Each table of rumba's with its dead rows, with how many of them autovacuum begins (`dead_max`, absent while autovacuum is
/// off), and whether it owes a vacuum now, for dead rows or for inserted ones. The formula is that of the server
/// (`relation_needs_vacanalyze`); a table's own options come before the server's settings. Releases before 13 vacuum for no
/// inserts, those before 18 have no largest threshold.
const TABLES: &str = "WITH options AS ( \
        SELECT s.*, c.reltuples, c.oid, \
            (SELECT jsonb_object_agg(option_name, option_value) FROM pg_options_to_table(c.reloptions)) AS own \
        FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid WHERE s.schemaname = 'public'), \
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

/// A table of rumba's.
struct Table {
    name: String,
    dead: f64,
    /// With how many dead rows autovacuum begins; `None` while it is off.
    dead_max: Option<f64>,
    is_due: bool,
}

/// Brings the tables to the state in which reads after a load are representative: dead rows removed, what every
/// transaction sees marked as such, statistics gathered, all of it written. May take minutes.
///
/// # Errors
/// The server's words.
pub fn settle(control: &mut Control) -> Result<(), EngineError> {
    let tables = tables(control)?;
    vacuum(control, "VACUUM (ANALYZE)", tables.iter())?;
    checkpoint(control)
}

/// Does the work that the server owes, and no more. May take minutes.
///
/// # Errors
/// See [`settle`].
pub fn drain(control: &mut Control) -> Result<(), EngineError> {
    await_autovacuum(control)?;
    let tables = tables(control)?;
    vacuum(control, "VACUUM", tables.iter().filter(|table| table.is_due))?;
    checkpoint(control)
}

/// The vacuum that has not come round: how near its trigger the fullest table is. `None` without dead rows to speak of.
pub fn unpaid(control: &mut Control) -> Option<String> {
    let tables = tables(control).ok()?;
    let dead: f64 = tables.iter().map(|table| table.dead).sum();
    let share = |table: &Table| table.dead_max.map_or(0.0, |dead_max| table.dead / dead_max.max(1.0));
    let fullest = tables.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
    match fullest.dead_max {
        None if dead > 0.0 => {
            Some(format!("{dead} dead rows wait for a vacuum that no setting starts (autovacuum is off)"))
        }
        Some(dead_max) if share(fullest) >= UNPAID_SHARE => Some(format!(
            "{dead} dead rows wait for a vacuum: {} has {} of the {dead_max:.0} with which autovacuum begins. What a vacuum \
             would write is in no figure",
            fullest.name, fullest.dead
        )),
        _ => None,
    }
}

/// The share of autovacuum's threshold below which dead rows are not worth a warning.
const UNPAID_SHARE: f64 = 0.01;

/// Waits for the vacuums that the server has begun: a `VACUUM` of the same table would cancel them, and their work would be
/// done and charged twice. Where the user may not see them, they are not waited for.
fn await_autovacuum(control: &mut Control) -> Result<(), EngineError> {
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

/// The tables of rumba's.
fn tables(control: &mut Control) -> Result<Vec<Table>, EngineError> {
    let rows = control.run("listing the tables", TABLES)?.rows;
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

/// Vacuums tables one by one: `VACUUM` without names would take the server's own and others' too.
fn vacuum<'a>(
    control: &mut Control,
    how: &'static str,
    mut tables: impl Iterator<Item = &'a Table>,
) -> Result<(), EngineError> {
    tables.try_for_each(|table| control.run(how, &format!("{how} {}", table.name)).map(drop))
}

fn checkpoint(control: &mut Control) -> Result<(), EngineError> {
    control.ask(CHECKPOINT).map(drop).map_err(|error| {
        let told = failed(CHECKPOINT, &error);
        if is_denied(&error) { told.followed_by(&format!("; {REMEDY}")) } else { told }
    })
}

/// What lets a user write a checkpoint.
pub const REMEDY: &str = "have an administrator run: GRANT pg_checkpoint TO the user (from release 15 on; before, only \
    a superuser may)";
