//! Settling a server after the load, and having it pay what it has put off.
//!
//! Both vacuum the tables and write a checkpoint, on whosever server: neither changes a setting. What others' tables
//! have put off on an existing server, the checkpoint writes too, since there is one for all.

use rumba_core::error::EngineError;

use crate::control::Control;
use crate::failure::{failed, is_denied};

const CHECKPOINT: &str = "CHECKPOINT";

/// Brings the tables to the state in which reads after a load are representative: dead rows removed, what every
/// transaction sees marked as such, statistics gathered, all of it written. May take minutes.
///
/// # Errors
/// The server's words.
pub fn settle(control: &mut Control) -> Result<(), EngineError> {
    vacuum(control, "VACUUM (ANALYZE)")?;
    checkpoint(control)
}

/// Pays what was put off, and no more. May take minutes.
///
/// # Errors
/// See [`settle`].
pub fn drain(control: &mut Control) -> Result<(), EngineError> {
    vacuum(control, "VACUUM")?;
    checkpoint(control)
}

/// Vacuums the tables of rumba's one by one: without names a server's own and others' would be.
fn vacuum(control: &mut Control, how: &'static str) -> Result<(), EngineError> {
    const TABLES: &str = "SELECT quote_ident(schemaname) || '.' || quote_ident(relname) FROM pg_stat_user_tables \
        WHERE schemaname = 'public' ORDER BY 1";
    let tables = control.run("listing the tables", TABLES)?.rows;
    for table in tables.into_iter().filter_map(|row| row.into_iter().next()?) {
        control.run(how, &format!("{how} {table}"))?;
    }
    Ok(())
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
