//! Waits for RocksDB's background work, and empties L0.

use std::ffi::{CStr, CString};
use std::thread::sleep;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};

use crate::db::Database;

/// Pause between two samples: short compared with any compaction, and 50 property reads a second have no measurable
/// cost.
const POLL: Duration = Duration::from_millis(20);

/// Consecutive samples with work pending but none running after which it counts as stuck (10 s). RocksDB starts pending
/// work within milliseconds.
const STUCK: u32 = 500;

const TRIGGER: &CStr = c"level0_file_num_compaction_trigger";

/// Flushes all memtables to L0 and waits for it.
pub fn flush(db: &Database) -> Result<()> {
    (0..db.names().len()).try_for_each(|space| db.flush(space))
}

/// Waits until two consecutive samples find that no flush and no compaction runs or is pending. One sample is not enough,
/// because a compaction may begin between its two readings. `compacts` says whether RocksDB compacts automatically;
/// otherwise this waits for running work only.
///
/// # Errors
/// RocksDB's error from failed background work, or a stall.
pub fn wait(db: &Database, compacts: bool) -> Result<()> {
    let (mut idle, mut was_quiet) = (0, false);
    let mut failures = db.int_of_all(c"rocksdb.background-errors");
    loop {
        let running = running(db);
        let is_quiet = running == 0 && !(compacts && pending(db));
        if is_quiet && was_quiet {
            return Ok(());
        }
        was_quiet = is_quiet;
        let now = db.int_of_all(c"rocksdb.background-errors");
        if now > failures {
            // A flush returns the error that stopped background work. If it succeeds, RocksDB has recovered
            // automatically.
            flush(db)?;
            failures = now;
        }
        idle = if running == 0 { idle + 1 } else { 0 };
        if idle > STUCK {
            return Err(EngineError::failed(
                "rocksdb.compaction-pending",
                "work is pending and RocksDB does not start it; with `info_log_level = \"INFO_LEVEL\"` its LOG has \
                 the cause",
            ));
        }
        sleep(POLL);
    }
}

/// The number of running flushes and compactions.
pub fn running(db: &Database) -> u64 {
    [c"rocksdb.num-running-flushes", c"rocksdb.num-running-compactions"]
        .iter()
        .filter_map(|property| db.int_of_all(property))
        .sum()
}

/// Whether a key space has a pending flush or compaction.
fn pending(db: &Database) -> bool {
    [c"rocksdb.mem-table-flush-pending", c"rocksdb.compaction-pending"]
        .iter()
        .any(|property| db.sum(property).unwrap_or(0) > 0)
}

/// Table files in L0, over all key spaces.
pub fn l0_files(db: &Database) -> u64 {
    (0..db.names().len()).filter_map(|space| db.levels(space).first().map(|level| level.files)).sum()
}

/// Compacts the remaining L0 files as part of settle. With a trigger of one file RocksDB's own picker compacts into the
/// level it would choose and no deeper. A manual compaction would rewrite every level. `trigger` is the setting to
/// restore.
///
/// # Errors
/// RocksDB's error, or the number of files left.
pub fn empty_l0(db: &Database, trigger: &str) -> Result<()> {
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
