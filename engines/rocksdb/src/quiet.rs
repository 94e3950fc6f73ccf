//! Waiting until RocksDB's background work is done, and emptying L0.

use std::ffi::{CStr, CString};
use std::thread::sleep;
use std::time::Duration;

use rumba_core::error::EngineError;

use crate::db::Database;

/// Between two looks at the database: short against any compaction, and 50
/// property reads a second cost nothing that can be measured.
const POLL: Duration = Duration::from_millis(20);

/// Looks in a row at which work is pending and none runs before that is called
/// stuck (10 s). RocksDB starts pending work within milliseconds.
const STUCK: u32 = 500;

const TRIGGER: &CStr = c"level0_file_num_compaction_trigger";

/// Writes all memtables to L0 and waits for it.
///
/// # Errors
/// RocksDB's words.
pub fn flush(db: &Database) -> Result<(), EngineError> {
    (0..db.names().len()).try_for_each(|space| db.flush(space))
}

/// Waits until no flush and no compaction runs or is pending. `compacts` says
/// whether RocksDB compacts by itself; otherwise only running work is waited for.
///
/// # Errors
/// RocksDB's words about background work that failed, or that nothing moves.
pub fn wait(db: &Database, compacts: bool) -> Result<(), EngineError> {
    let mut idle = 0;
    let mut failures = db.int_of_all(c"rocksdb.background-errors");
    loop {
        let running = running(db);
        if running == 0 && !(compacts && pending(db)) {
            return Ok(());
        }
        let now = db.int_of_all(c"rocksdb.background-errors");
        if now > failures {
            // A flush passes on the error that stopped the background; if it
            // succeeds, RocksDB has recovered by itself and goes on.
            flush(db)?;
            failures = now;
        }
        idle = if running == 0 { idle + 1 } else { 0 };
        if idle > STUCK {
            return Err(EngineError::failed(
                "rocksdb.compaction-pending",
                "work is pending and RocksDB does not start it; with `info_log_level = \"INFO_LEVEL\"` its LOG says why",
            ));
        }
        sleep(POLL);
    }
}

/// Flushes and compactions that run now.
fn running(db: &Database) -> u64 {
    [c"rocksdb.num-running-flushes", c"rocksdb.num-running-compactions"]
        .iter()
        .filter_map(|property| db.int_of_all(property))
        .sum()
}

/// Whether a key space has a flush or a compaction due.
fn pending(db: &Database) -> bool {
    [c"rocksdb.mem-table-flush-pending", c"rocksdb.compaction-pending"]
        .iter()
        .any(|property| db.sum(property).unwrap_or(0) > 0)
}

/// Table files in L0, over all key spaces.
pub fn l0_files(db: &Database) -> u64 {
    (0..db.names().len()).filter_map(|space| db.levels(space).first().map(|level| level.files)).sum()
}

/// Has RocksDB compact what is left in L0, as settling does: with a trigger of one file its own
/// picker does it, into the level it would choose and no deeper. A manual
/// compaction would rewrite every level. `trigger` is the setting to go back to.
///
/// # Errors
/// RocksDB's words, or that files are left.
pub fn empty_l0(db: &Database, trigger: &str) -> Result<(), EngineError> {
    if l0_files(db) == 0 {
        return Ok(());
    }
    let back = CString::new(trigger).map_err(|_| EngineError::failed("rocksdb_set_options_cf", "a zero byte"))?;
    let set = |value: &CStr| (0..db.names().len()).try_for_each(|space| db.set_option(space, TRIGGER, value));
    let outcome = set(c"1").and_then(|()| wait(db, true));
    set(&back)?;
    outcome?;
    match l0_files(db) {
        0 => Ok(()),
        left => {
            Err(EngineError::failed("level0_file_num_compaction_trigger", format!("RocksDB leaves {left} files in L0")))
        }
    }
}
