//! Settles and drains an existing server without changing any of its variables. The server therefore stays as it was
//! even if the run is killed.
//!
//! Only the deferred work of the schema's tables is completed. Pages of undo, system tables and other schemas stay
//! dirty until the server writes them, because only a variable could make it write them sooner.

use rumba_engine_api::error::{EngineError, Result};
use rumba_protocol_mysql::WireError;

use super::innodb::{HISTORY, is_any_open, open_transactions};
use super::{analyze, rocksdb};
use crate::counters::{Kind, PurgeProgress, Request, Server, debt, failed, is_denied, purge_progress, query};
use crate::sql::quoted;
use rumba_server_kit::wait::{self, BackgroundWork, Patience};

/// Brings the tables of `schema` to the state in which reads after a load are representative. Without `flushes` it only
/// collects statistics, because the user may lack the privileges to make the server write.
///
/// # Errors
/// The server's error; the remaining work if there is no progress for [`Patience::stuck_after`].
pub fn settle(
    admin: &mut dyn Request,
    server: &Server,
    schema: &str,
    patience: &Patience,
    flushes: bool,
) -> Result<()> {
    match server.kind {
        _ if !flushes => analyze::tables(admin, schema),
        // Flush first, because MyRocks takes its statistics from table files.
        Kind::RocksDb => {
            drain(admin, server, schema, patience)?;
            analyze::tables(admin, schema)
        }
        Kind::InnoDb | Kind::TokuDb | Kind::Other(_) => {
            analyze::tables(admin, schema)?;
            drain(admin, server, schema, patience)
        }
    }
}

/// Completes the deferred work of the tables of `schema`.
pub fn drain(admin: &mut dyn Request, server: &Server, schema: &str, patience: &Patience) -> Result<()> {
    match &server.kind {
        Kind::InnoDb => {
            purge(admin, server, patience)?;
            write_pages(admin, schema, patience)?;
        }
        Kind::RocksDb => return rocksdb::drain(admin, patience),
        // Closing the tables writes their cached data.
        Kind::TokuDb | Kind::Other(_) => {
            if let Some(tables) = list(admin, schema)? {
                query(admin, "FLUSH TABLES", &format!("FLUSH LOCAL TABLES {tables}"))?;
            }
        }
    }
    match admin.fetch("FLUSH LOCAL ENGINE LOGS") {
        // In MySQL the right to flush tables is enough for the pages, and the redo of each page is written before it.
        // The server itself writes the rest within a second.
        Err(WireError::Server { code, .. }) if server.kind == Kind::InnoDb && is_denied(code) => Ok(()),
        answered => answered.map(|_| ()).map_err(|error| failed("FLUSH ENGINE LOGS", &error)),
    }
}

/// Waits until everything committed so far is purged. It does not wait for later commits of other clients.
fn purge(admin: &mut dyn Request, server: &Server, patience: &Patience) -> Result<()> {
    let began = purge_progress(admin).map(|purge| purge.next);
    let mut rested = false;
    let outcome = wait::until_paid(patience, || {
        let now = purge_progress(admin);
        // Old servers keep purged transactions in the history for a while, and never pass the number of a transaction
        // without history. Check twice, because purge may not have woken yet for the latest commits.
        let rests = now.is_some_and(|purge| purge.rests) && !is_any_open(admin);
        let rested_before = std::mem::replace(&mut rested, rests);
        if rests && rested_before { Ok(BackgroundWork::default()) } else { left_to_purge(admin, server, began, now) }
    });
    outcome.map_err(|left| {
        let hint = open_transactions(admin);
        left.into_error("draining InnoDB", &hint)
    })
}

fn left_to_purge(
    admin: &mut dyn Request,
    server: &Server,
    began: Option<u64>,
    now: Option<PurgeProgress>,
) -> Result<BackgroundWork> {
    let history = debt(admin, server).get(HISTORY);
    let mut look = BackgroundWork::default();
    match (history, began, now) {
        (Some(0.0), _, _) => {}
        (_, Some(began), Some(now)) => {
            look.owe("transactions to purge", began.saturating_sub(now.purged) as f64, 0.0);
        }
        (Some(history), _, _) => look.owe("transactions in the history list", history, 0.0),
        (None, _, _) => {
            let words = "the server does not show this user the purge backlog: grant PROCESS";
            return Err(EngineError::failed("reading InnoDB's debt", words));
        }
    }
    Ok(look)
}

/// Makes the server write the dirty pages of the schema's tables, as it does before a file copy.
fn write_pages(admin: &mut dyn Request, schema: &str, patience: &Patience) -> Result<()> {
    const CALL: &str = "FLUSH TABLES … FOR EXPORT";
    /// `ER_TABLE_IN_SYSTEM_TABLESPACE`, a warning: the table's pages are not written.
    const NOT_ITS_OWN_FILE: &str = "1809";
    let Some(tables) = list(admin, schema)? else { return Ok(()) };
    // The wait for another session's table lock has the same limit as any other stall.
    let seconds = patience.stuck_after.as_secs().max(1);
    let flush = format!("SET SESSION lock_wait_timeout = {seconds}; FLUSH LOCAL TABLES {tables} FOR EXPORT");
    let warnings = admin.fetch(&flush).and_then(|_| admin.fetch("SHOW WARNINGS"));
    // Purge is blocked while the tables are locked.
    let unlocked = admin.fetch("UNLOCK TABLES");
    let warnings = warnings.and_then(|warnings| unlocked.map(|_| warnings)).map_err(|error| failed(CALL, &error))?;
    let is_refused =
        |row: &&Vec<Option<String>>| row.get(1).is_some_and(|code| code.as_deref() == Some(NOT_ITS_OWN_FILE));
    match warnings.rows.iter().find(is_refused) {
        Some(row) => {
            let words = row.get(2).cloned().flatten().unwrap_or_default();
            let remedy = "its pages cannot be written by themselves: set innodb_file_per_table = ON on the server";
            Err(EngineError::failed(CALL, format!("{words}; {remedy}")))
        }
        None => Ok(()),
    }
}

/// The schema's tables as a list for a statement, or `None` without tables.
fn list(admin: &mut dyn Request, schema: &str) -> Result<Option<String>> {
    let names = analyze::named(admin, "listing the tables", schema)?;
    let tables: Vec<String> = names.iter().map(|table| format!("{}.{}", quoted(schema), quoted(table))).collect();
    Ok((!tables.is_empty()).then(|| tables.join(", ")))
}
