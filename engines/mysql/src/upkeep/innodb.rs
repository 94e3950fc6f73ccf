//! InnoDB: dirty pages, checkpoint age, history, buffered changes.

use rumba_engine_api::error::{EngineError, Result};

use super::globals::{self, Wanted};
use crate::counters::{Request, Server, debt, debt_status, purge_progress, query};
use crate::software::Brand;
use rumba_server_kit::wait::{self, BackgroundWork, Patience};

/// Pages that may stay dirty, because the server's own threads modify a few all the time.
const DIRTY_PAGES: f64 = 8.0;

/// Redo that may stay, because a checkpoint itself writes a record.
const AGE_BYTES: f64 = 65536.0;

/// Transactions whose old versions must be purged. All must be purged, unless purge is done and the list is not yet
/// updated.
pub(super) const HISTORY: &str = "history_list_length";

/// Pages a second that the server may write. With its default of 200 a drain would take a minute for every 190 MB.
const IO_CAPACITY: f64 = 20000.0;

/// Order matters: the maximum is set before the capacity below it, and the low-water mark before the limit above it.
const HURRY: [Wanted; 6] = [
    Wanted { name: "innodb_io_capacity_max", value: IO_CAPACITY, at_least: true },
    Wanted { name: "innodb_io_capacity", value: IO_CAPACITY, at_least: true },
    Wanted { name: "innodb_max_dirty_pages_pct_lwm", value: 0.0, at_least: false },
    Wanted { name: "innodb_max_dirty_pages_pct", value: 0.0, at_least: false },
    Wanted { name: "innodb_idle_flush_pct", value: 100.0, at_least: false },
    // Otherwise purged transactions leave the history only with every 128th batch.
    Wanted { name: "innodb_purge_rseg_truncate_frequency", value: 1.0, at_least: false },
];

/// Purges the history, merges buffered changes, writes dirty pages and makes a checkpoint. MariaDB merges a buffered
/// change only when its page is read, so there the change buffer stays as it is.
///
/// # Errors
/// The server's error; the remaining work if there is no progress.
pub(super) fn drain(admin: &mut dyn Request, server: &Server, patience: &Patience) -> Result<()> {
    globals::with(admin, &HURRY, |admin| {
        query(admin, "FLUSH ENGINE LOGS", "FLUSH LOCAL ENGINE LOGS")?;
        let mut woken = None;
        let outcome = wait::until_paid(patience, || look(admin, server, &mut woken));
        outcome.map_err(|left| {
            let hint = open_transactions(admin);
            left.into_error("draining InnoDB", &hint)
        })
    })
}

/// The remaining work. Counters that the server does not report are ignored; without any, the progress is unknown.
fn look(admin: &mut dyn Request, server: &Server, woken: &mut Option<u64>) -> Result<BackgroundWork> {
    let reading = debt(admin, server);
    let mut look = BackgroundWork::default();
    let mut waited_for = vec![
        ("dirty_pages", "dirty pages", DIRTY_PAGES),
        ("checkpoint_age_bytes", "bytes of redo since the last checkpoint", AGE_BYTES),
        (HISTORY, "transactions in the history list", 0.0),
    ];
    if server.brand == Brand::MySql {
        waited_for.push(("change_buffer_pages", "pages of the change buffer", 0.0));
    }
    for (gauge, name, floor) in waited_for {
        match reading.get(gauge) {
            Some(left) if gauge == HISTORY && left > floor && purge_has_ended(admin, woken)? => {
                look.owe(name, floor, floor);
            }
            Some(left) => look.owe(name, left, floor),
            None => {}
        }
    }
    if look.owed.is_empty() {
        // The same request again returns the reason.
        let reason = debt_status(admin).err();
        let reason =
            reason.unwrap_or_else(|| "this server has no status variable Innodb_buffer_pool_pages_dirty".into());
        return Err(EngineError::failed("reading InnoDB's debt", reason));
    }
    Ok(look)
}

/// Whether purge is done, or is idle past a change made to wake it, and so past all earlier commits.
///
/// A server started over data with a history continues from a number that no transaction has. Purge then stays idle
/// below that number forever, and up to MySQL 5.7.4 the history stays as it was. If there is no other work, this wakes
/// purge once.
fn purge_has_ended(admin: &mut dyn Request, woken: &mut Option<u64>) -> Result<bool> {
    let Some(purge) = purge_progress(admin).filter(|purge| purge.rests) else { return Ok(false) };
    if purge.is_done() {
        return Ok(true);
    }
    if let Some(before) = *woken {
        return Ok(purge.purged > before);
    }
    if !is_any_open(admin) {
        *woken = Some(purge.next);
        for sql in WAKING {
            query(admin, "waking purge", sql)?;
        }
    }
    Ok(false)
}

/// A row change that is visible to this session only.
const WAKING: [&str; 4] = [
    "CREATE TEMPORARY TABLE mysql.rumba_wakes_purge (id INT PRIMARY KEY, changed INT) ENGINE = InnoDB",
    "INSERT INTO mysql.rumba_wakes_purge VALUES (1, 0)",
    "UPDATE mysql.rumba_wakes_purge SET changed = 1",
    "DROP TEMPORARY TABLE mysql.rumba_wakes_purge",
];

/// Whether a transaction is open, which may block purge. Assumed if the server does not report it.
pub(super) fn is_any_open(admin: &mut dyn Request) -> bool {
    admin.fetch("SELECT 1 FROM information_schema.INNODB_TRX LIMIT 1").map_or(true, |rows| !rows.rows.is_empty())
}

/// Describes the open transactions that block purge, if any.
pub(super) fn open_transactions(admin: &mut dyn Request) -> String {
    const SQL: &str = "SELECT COUNT(*), MIN(trx_started), MIN(trx_mysql_thread_id) FROM information_schema.INNODB_TRX";
    let row = admin.fetch(SQL).ok().and_then(|rows| rows.rows.into_iter().next()).unwrap_or_default();
    let text = |column: usize| row.get(column).cloned().flatten();
    match (text(0).as_deref(), text(1), text(2)) {
        (Some("0") | None, _, _) => "no transaction is open; the server's error log may say why".to_owned(),
        (Some(count), since, thread) => format!(
            "{count} transactions are open, the oldest since {}, such as connection {}: an open transaction keeps \
             purge back; end it and run again",
            since.as_deref().unwrap_or("an unknown time"),
            thread.as_deref().unwrap_or("unknown"),
        ),
    }
}
