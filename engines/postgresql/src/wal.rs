//! The contents of a run's write-ahead log: bytes by kind of record, and the share of full pages.
//!
//! The server does not count this, but it can be read from the log itself (`pg_walinspect`, from release 15 on).
//! Reading costs the server work in proportion to the log's length. Within a loop that work would be measured too, and
//! at the end of a loop it would extend into the next. Therefore rumba reads once, between drain and verification,
//! everything logged since the settle. `wal_keep_size` prevents the drain's checkpoint from removing the log. If a
//! checkpoint within the loops has removed a part, rumba reports no counts, because half of a log says little about the
//! whole.

use std::time::Duration;

use rumba_protocol_postgresql::Rows;

use crate::control::Control;

/// The first release with the extension.
const FIRST: u16 = 15;
/// Kinds of records by the server's resource managers, and their counters. Other kinds are counted as `others`.
const KINDS: [(&str, &str); 5] = [
    ("Heap", "written_wal_heap_bytes"),
    ("Heap2", "written_wal_heap2_bytes"),
    ("Btree", "written_wal_btree_bytes"),
    ("Transaction", "written_wal_transaction_bytes"),
    ("", "written_wal_others_bytes"),
];
/// Pages logged in full, in any kind of record.
const FULL_PAGES: &str = "written_wal_full_pages_bytes";
/// The timeout of the reading, enough for a gigabyte or two.
const LONGEST: &str = "SET statement_timeout = '40s'";

/// Makes the server's processes reload the configuration.
const RELOAD: &str = "SELECT pg_reload_conf()";
/// How often to check for the reload, and the pause between two checks.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// The progress of a run.
#[derive(Debug, Default)]
enum Stage {
    /// No settle has ended yet, so there are no counts.
    #[default]
    Before,
    /// Settled at this log position; no client has connected since.
    Settled(String),
    /// Clients have worked since the settle at this position.
    Worked(String),
    /// Drained, from the first to the second position.
    Drained(String, String),
    /// The counts have been read.
    Read(Vec<(&'static str, f64)>),
}

/// The log of a server that rumba runs, since its last settle.
#[derive(Debug, Default)]
pub struct Wal {
    stage: Stage,
}

impl Wal {
    /// Records the end of a settle, and creates the extension in the database, which is rumba's own.
    pub fn settled(&mut self, control: &mut Control, release: u16) {
        let is_there = release >= FIRST && control.fetch("CREATE EXTENSION IF NOT EXISTS pg_walinspect").is_ok();
        self.stage = match is_there.then(|| position(control)).flatten() {
            Some(place) => Stage::Settled(place),
            None => Stage::Before,
        };
    }

    /// Records that a client connected.
    pub fn worked(&mut self) {
        if let Stage::Settled(place) = &mut self.stage {
            self.stage = Stage::Worked(std::mem::take(place));
        }
    }

    /// Records the begin of a drain, and keeps its checkpoint from removing the log.
    pub fn drains(&mut self, control: &mut Control) {
        if matches!(self.stage, Stage::Settled(_) | Stage::Worked(_)) && !keeps_log(control) {
            self.stage = Stage::Before;
        }
    }

    /// Records the end of a drain.
    pub fn drained(&mut self, control: &mut Control) {
        if let Stage::Settled(from) | Stage::Worked(from) = &mut self.stage {
            self.stage = match position(control) {
                Some(to) => Stage::Drained(std::mem::take(from), to),
                None => Stage::Before,
            };
        }
    }

    /// The counters, if known: none between the settle and the first client, all after the drain.
    pub fn counters(&mut self, control: &mut Control) -> Vec<(&'static str, f64)> {
        if let Stage::Drained(from, to) = &self.stage {
            let read = read(control, from, to);
            let _ = control.fetch("ALTER SYSTEM RESET wal_keep_size").and_then(|_| control.fetch(RELOAD));
            self.stage = read.map_or(Stage::Before, Stage::Read);
        }
        match &self.stage {
            Stage::Settled(_) => none(),
            Stage::Read(counters) => counters.clone(),
            Stage::Before | Stage::Worked(_) | Stage::Drained(..) => Vec::new(),
        }
    }
}

/// Makes the server keep its existing log. Returns whether it does.
fn keeps_log(control: &mut Control) -> bool {
    const IS_IN_FORCE: &str = "SELECT current_setting('wal_keep_size') = '1000GB'";
    let requested = control.fetch("ALTER SYSTEM SET wal_keep_size = '1000GB'").and_then(|_| control.fetch(RELOAD));
    // Server processes reload the configuration when idle, including the one that answers this query.
    requested.is_ok()
        && (0..LOOKS).any(|_| {
            std::thread::sleep(LOOK);
            control.firsts(IS_IN_FORCE).is_ok_and(|answer| answer == ["t"])
        })
}

/// The current write position of the log.
fn position(control: &mut Control) -> Option<String> {
    control.firsts("SELECT pg_current_wal_flush_lsn()").ok()?.into_iter().next()
}

fn none() -> Vec<(&'static str, f64)> {
    KINDS.iter().map(|(_, counter)| (*counter, 0.0)).chain([(FULL_PAGES, 0.0)]).collect()
}

fn read(control: &mut Control, from: &str, to: &str) -> Option<Vec<(&'static str, f64)>> {
    control.fetch(LONGEST).ok()?;
    let sql = format!(
        "SELECT \"resource_manager/record_type\", record_size, fpi_size FROM pg_get_wal_stats('{from}', '{to}')"
    );
    let answered = control.fetch(&sql);
    let _ = control.fetch("RESET statement_timeout");
    counted(&answered.ok()?)
}

/// Sums rows of kind, bytes of records without full pages, and bytes of full pages.
fn counted(rows: &Rows) -> Option<Vec<(&'static str, f64)>> {
    let mut counters = none();
    let mut add = |counter: &str, bytes: f64| {
        if let Some((_, sum)) = counters.iter_mut().find(|(name, _)| *name == counter) {
            *sum += bytes;
        }
    };
    for row in &rows.rows {
        let [Some(kind), Some(records), Some(full_pages)] = &row[..] else { return None };
        let (_, counter) = KINDS.iter().find(|(name, _)| name == kind).unwrap_or(&KINDS[KINDS.len() - 1]);
        add(counter, records.parse().ok()?);
        add(FULL_PAGES, full_pages.parse().ok()?);
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wal_bytes_are_summed_by_kind_and_full_pages_apart() {
        let row = |kind: &str, records: &str, pages: &str| [kind, records, pages].map(|cell| Some(cell.to_owned()));
        let rows = [row("Heap", "70", "8000"), row("XLOG", "5", "100"), row("CLOG", "6", "0")];
        let rows = Rows { rows: rows.map(Vec::from).into(), ..Rows::default() };
        let counters = counted(&rows).expect("numbers");
        let figure = |name: &str| counters.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes);
        assert_eq!(figure("written_wal_heap_bytes"), Some(70.0));
        assert_eq!(figure("written_wal_others_bytes"), Some(11.0));
        assert_eq!(figure("written_wal_btree_bytes"), Some(0.0));
        assert_eq!(figure("written_wal_full_pages_bytes"), Some(8100.0));
    }
}
