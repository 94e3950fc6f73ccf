//! MyRocks: memtables, level 0, pending compaction.

use rumba_engine_api::error::{EngineError, Result};

use crate::counters::{Levels, Request, Status, family_sums, query};
use rumba_server_kit::wait::{self, BackgroundWork, Patience};

const TRIGGER: &str = "LEVEL0_FILE_NUM_COMPACTION_TRIGGER";

/// A column family and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Family {
    name: String,
    /// The number of level-0 files that starts a compaction.
    trigger: String,
    /// Whether the family compacts automatically.
    compacts: bool,
    /// Whether the family uses leveled compaction, without which level 0 cannot be emptied.
    leveled: bool,
}

/// Flushes the memtables, waits for compaction and compacts level 0, so that a run starts without the load's deferred
/// work. A manual compaction would rewrite every level, which is not deferred work. Families without automatic or
/// leveled compaction stay unchanged, because the experiment requested that.
///
/// # Errors
/// The server's error; the remaining work if there is no progress.
pub(super) fn settle(admin: &mut dyn Request, patience: &Patience) -> Result<()> {
    flush(admin)?;
    let families = families(admin)?;
    let eager: Vec<&Family> = families.iter().filter(|family| family.compacts && family.leveled).collect();
    let outcome = triggers(admin, eager.iter().map(|family| (family.name.as_str(), "1"))).and_then(|()| {
        let all_compact = families.iter().all(|family| family.compacts);
        let all_eager = families.iter().all(|family| family.compacts && family.leveled);
        quiet(admin, all_compact, all_eager, patience)
    });
    let back = triggers(admin, eager.iter().map(|family| (family.name.as_str(), family.trigger.as_str())));
    match (outcome, back) {
        (outcome, Ok(())) => outcome,
        (Ok(()), Err(error)) => Err(error),
        (Err(cause), Err(error)) => {
            let message = format!("{cause}; then {TRIGGER} could not be set back: {error}");
            Err(EngineError::failed("settling MyRocks", message))
        }
    }
}

/// Flushes the memtables and waits for the compactions that MyRocks' own triggers demand. Level-0 files stay if they
/// are too few for a compaction. Changes no option.
///
/// # Errors
/// The server's error; the remaining work if there is no progress.
pub(super) fn drain(admin: &mut dyn Request, patience: &Patience) -> Result<()> {
    flush(admin)?;
    let all_compact = families(admin)?.iter().all(|family| family.compacts);
    quiet(admin, all_compact, false, patience)
}

/// Flushes with a command in the form of a variable, which changes no setting.
fn flush(admin: &mut dyn Request) -> Result<()> {
    const SQL: &str = "SET GLOBAL rocksdb_force_flush_memtable_now = 1";
    query(admin, "SET GLOBAL rocksdb_force_flush_memtable_now", SQL).map(|_| ())
}

/// Waits until no compaction runs or is pending, and every level 0 that can be emptied is empty.
fn quiet(admin: &mut dyn Request, all_compact: bool, all_eager: bool, patience: &Patience) -> Result<()> {
    // One sample is not enough: a compaction may begin between its statements, and then be neither due nor running.
    let mut was_quiet = false;
    let outcome = wait::until_paid(patience, || {
        let mut look = look(admin, all_compact, all_eager)?;
        let is_quiet = look.is_paid();
        if is_quiet && !was_quiet {
            look.owe("second sample", 1.0, 0.0);
        }
        was_quiet = is_quiet;
        Ok(look)
    });
    outcome.map_err(|left| {
        left.into_error(
            "draining MyRocks",
            "SHOW ENGINE ROCKSDB STATUS lists what its threads do, and #rocksdb/LOG in the data directory has the \
             cause",
        )
    })
}

fn look(admin: &mut dyn Request, all_compact: bool, all_eager: bool) -> Result<BackgroundWork> {
    let failed = |words| EngineError::failed("reading MyRocks' debt", words);
    let levels = Levels::read(admin).map_err(failed)?;
    let sums = family_sums(admin).map_err(failed)?;
    let status =
        Status::read_some(admin, &["Rocksdb_compact_write_bytes", "Rocksdb_flush_write_bytes"]).map_err(failed)?;
    let of_families = |name: &str| sums.get(name).copied().unwrap_or(0.0);
    let mut look = BackgroundWork {
        // These bytes grow during a compaction; files change only at its end.
        work: status.get("Rocksdb_compact_write_bytes").unwrap_or(0.0)
            + status.get("Rocksdb_flush_write_bytes").unwrap_or(0.0),
        ..BackgroundWork::default()
    };
    look.owe("flushes due", of_families("MEM_TABLE_FLUSH_PENDING"), 0.0);
    look.owe("files being compacted", levels.sum(0, |level| level.compacting_files), 0.0);
    if all_compact {
        look.owe("column families with a compaction due", of_families("COMPACTION_PENDING"), 0.0);
    }
    if all_eager {
        look.owe("files in level 0", levels.l0().files, 0.0);
    }
    Ok(look)
}

/// The column families and their options.
fn families(admin: &mut dyn Request) -> Result<Vec<Family>> {
    const SQL: &str = "SELECT CF_NAME, OPTION_TYPE, VALUE FROM information_schema.ROCKSDB_CF_OPTIONS \
        WHERE OPTION_TYPE IN ('LEVEL0_FILE_NUM_COMPACTION_TRIGGER', 'DISABLE_AUTO_COMPACTIONS', 'COMPACTION_STYLE') \
        AND CF_NAME IN (SELECT CF_NAME FROM information_schema.ROCKSDB_CFSTATS)";
    let rows = query(admin, "reading ROCKSDB_CF_OPTIONS", SQL)?.rows;
    let mut families: Vec<Family> = Vec::new();
    for row in &rows {
        let [Some(name), Some(option), Some(value)] = row.as_slice() else { continue };
        let index = families.iter().position(|family| family.name == *name).unwrap_or_else(|| {
            families.push(Family { name: name.clone(), trigger: String::new(), compacts: true, leveled: true });
            families.len() - 1
        });
        let family = &mut families[index];
        match option.as_str() {
            TRIGGER => family.trigger.clone_from(value),
            "DISABLE_AUTO_COMPACTIONS" => family.compacts = !matches!(value.as_str(), "ON" | "1" | "true"),
            _ => family.leveled = value == "kCompactionStyleLevel",
        }
    }
    families.retain(|family| !family.trigger.is_empty());
    Ok(families)
}

/// Sets the number of level-0 files that starts a compaction. The server would create a family for an unknown name, so
/// only names read from the server are used.
fn triggers<'a>(admin: &mut dyn Request, wanted: impl Iterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let options: Vec<String> =
        wanted.map(|(name, trigger)| format!("{name}={{level0_file_num_compaction_trigger={trigger};}}")).collect();
    if options.is_empty() {
        return Ok(());
    }
    let value = options.join(";").replace('\'', "''");
    query(admin, "SET GLOBAL rocksdb_update_cf_options", &format!("SET GLOBAL rocksdb_update_cf_options = '{value}'"))
        .map(|_| ())
}
