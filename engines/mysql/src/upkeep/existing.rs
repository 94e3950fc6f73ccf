//! Settling and draining an existing server, by statements that change none of its variables: whatever ends the
//! run, a kill among it, the server is as it was.
//!
//! What is paid is the debt of the schema's tables. A page of undo or of the system's stays dirty until the server
//! writes it by itself, as do other schemas' pages: nothing but a variable would hurry those.

use rumba_core::error::EngineError;

use super::innodb::{HISTORY, is_any_open, open_transactions};
use super::{analyze, rocksdb};
use crate::counters::{Ask, Kind, PurgeProgress, Server, debt, failed, purge_progress, query};
use crate::existing::quoted;
use rumba_server_kit::wait::{self, BackgroundWork, Patience};

/// Brings the tables of `schema` to the state in which reads after a load are representative.
///
/// # Errors
/// The server's words; what is left when nothing has moved for [`Patience::stuck_after`].
pub fn settle(admin: &mut dyn Ask, server: &Server, schema: &str, patience: &Patience) -> Result<(), EngineError> {
    match server.kind {
        // MyRocks takes its statistics from table files: it flushes first.
        Kind::RocksDb => {
            drain(admin, server, schema, patience)?;
            analyze::tables(admin, schema)
        }
        Kind::InnoDb | Kind::Other(_) => {
            analyze::tables(admin, schema)?;
            drain(admin, server, schema, patience)
        }
    }
}

/// Pays what the tables of `schema` have put off.
///
/// # Errors
/// See [`settle`].
pub fn drain(admin: &mut dyn Ask, server: &Server, schema: &str, patience: &Patience) -> Result<(), EngineError> {
    match &server.kind {
        Kind::InnoDb => {
            purge(admin, server, patience)?;
            write_pages(admin, schema, patience)?;
        }
        Kind::RocksDb => return rocksdb::drain(admin, patience),
        // Closing the tables writes what was cached of them.
        Kind::Other(_) => {
            if let Some(tables) = list(admin, schema)? {
                query(admin, "FLUSH TABLES", &format!("FLUSH LOCAL TABLES {tables}"))?;
            }
        }
    }
    query(admin, "FLUSH ENGINE LOGS", "FLUSH LOCAL ENGINE LOGS").map(|_| ())
}

/// Waits until everything that was committed by now is purged. What others commit meanwhile is not waited for.
fn purge(admin: &mut dyn Ask, server: &Server, patience: &Patience) -> Result<(), EngineError> {
    let began = purge_progress(admin).map(|purge| purge.next);
    let mut rested = false;
    let outcome = wait::until_paid(patience, || {
        let now = purge_progress(admin);
        // Old servers leave what is purged in the history for a while, and a number that was given to a transaction
        // without a history is never passed. Twice, because purge has yet to wake for what was committed just now.
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
    admin: &mut dyn Ask,
    server: &Server,
    began: Option<u64>,
    now: Option<PurgeProgress>,
) -> Result<BackgroundWork, EngineError> {
    let history = debt(admin, server).get(HISTORY);
    let mut look = BackgroundWork::default();
    match (history, began, now) {
        (Some(0.0), _, _) => {}
        (_, Some(began), Some(now)) => {
            look.owe("transactions to purge", began.saturating_sub(now.purged) as f64, 0.0);
        }
        (Some(history), _, _) => look.owe("transactions in the history list", history, 0.0),
        (None, _, _) => {
            let words = "the server does not tell this user how much is to be purged: grant PROCESS";
            return Err(EngineError::failed("reading InnoDB's debt", words));
        }
    }
    Ok(look)
}

/// Has the dirty pages of the schema's tables written, as for files that are about to be copied.
fn write_pages(admin: &mut dyn Ask, schema: &str, patience: &Patience) -> Result<(), EngineError> {
    const CALL: &str = "FLUSH TABLES … FOR EXPORT";
    /// `ER_TABLE_IN_SYSTEM_TABLESPACE`, a warning: the table's pages are not written.
    const NOT_ITS_OWN_FILE: &str = "1809";
    let Some(tables) = list(admin, schema)? else { return Ok(()) };
    // A lock that another session holds on a table is waited for no longer than anything else that does not move.
    let seconds = patience.stuck_after.as_secs().max(1);
    let flush = format!("SET SESSION lock_wait_timeout = {seconds}; FLUSH LOCAL TABLES {tables} FOR EXPORT");
    let warnings = admin.ask(&flush).and_then(|_| admin.ask("SHOW WARNINGS"));
    // While they are locked, nothing is purged.
    let unlocked = admin.ask("UNLOCK TABLES");
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

/// The schema's tables as a statement lists them; `None` where it has none.
fn list(admin: &mut dyn Ask, schema: &str) -> Result<Option<String>, EngineError> {
    let names = analyze::named(admin, "listing the tables", schema)?;
    let tables: Vec<String> = names.iter().map(|table| format!("{}.{}", quoted(schema), quoted(table))).collect();
    Ok((!tables.is_empty()).then(|| tables.join(", ")))
}
