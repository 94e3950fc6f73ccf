//! What the write-ahead log of a run is made of: bytes by kind of record, and those of whole pages among them.
//!
//! The server does not count this; it can be read out of the log itself (`pg_walinspect`, from release 15 on). That is
//! work of the server's, as much as the log is long: within a loop it would be measured with it, and at the end of each
//! loop it would go on into the next. So it is done once, after the drain has ended and before the verification begins,
//! over all that was logged since the settle. The drain's own checkpoint removes none of it (`wal_keep_size`); if a
//! checkpoint within the loops has, nothing is told: half of a log says little of the whole.

use std::time::Duration;

use rumba_protocol_postgresql::Rows;

use crate::control::Control;

/// The first release that has the extension.
const FIRST: u16 = 15;
/// Kinds of records by the server's names for who writes them, and their counters. What is in no other is `others`.
const KINDS: [(&str, &str); 5] = [
    ("Heap", "written_wal_heap_bytes"),
    ("Heap2", "written_wal_heap2_bytes"),
    ("Btree", "written_wal_btree_bytes"),
    ("Transaction", "written_wal_transaction_bytes"),
    ("", "written_wal_others_bytes"),
];
/// Pages that were logged whole, whoever wrote the record.
const FULL_PAGES: &str = "written_wal_full_pages_bytes";
/// How long the reading may take: a gigabyte or two.
const LONGEST: &str = "SET statement_timeout = '40s'";

/// Has the server's processes read its configuration again.
const RELOAD: &str = "SELECT pg_reload_conf()";
/// How often it is looked whether they have, and how long between two looks.
const LOOKS: u32 = 50;
const LOOK: Duration = Duration::from_millis(10);

/// How far a run is.
#[derive(Debug, Default)]
enum Stage {
    /// No settle has ended: nothing is told.
    #[default]
    Before,
    /// Settled here in the log; no client has come since.
    Settled(String),
    /// Clients have worked since it was settled there.
    Worked(String),
    /// Drained: from there to there.
    Drained(String, String),
    /// Read.
    Read(Vec<(&'static str, f64)>),
}

/// The log of a server that rumba runs, since its last settle.
#[derive(Debug, Default)]
pub struct Wal {
    stage: Stage,
}

impl Wal {
    /// A settle has ended. The extension is made in the database, which is rumba's own.
    pub fn settled(&mut self, control: &mut Control, release: u16) {
        let is_there = release >= FIRST && control.ask("CREATE EXTENSION IF NOT EXISTS pg_walinspect").is_ok();
        self.stage = match is_there.then(|| position(control)).flatten() {
            Some(place) => Stage::Settled(place),
            None => Stage::Before,
        };
    }

    /// A client comes.
    pub fn worked(&mut self) {
        if let Stage::Settled(place) = &mut self.stage {
            self.stage = Stage::Worked(std::mem::take(place));
        }
    }

    /// A drain begins. Its checkpoint would remove the log that is to be read.
    pub fn drains(&mut self, control: &mut Control) {
        if matches!(self.stage, Stage::Settled(_) | Stage::Worked(_)) && !keeps_log(control) {
            self.stage = Stage::Before;
        }
    }

    /// A drain has ended.
    pub fn drained(&mut self, control: &mut Control) {
        if let Stage::Settled(from) | Stage::Worked(from) = &mut self.stage {
            self.stage = match position(control) {
                Some(to) => Stage::Drained(std::mem::take(from), to),
                None => Stage::Before,
            };
        }
    }

    /// The counters, where they are known: nothing between the settle and the first client, all after the drain.
    pub fn counters(&mut self, control: &mut Control) -> Vec<(&'static str, f64)> {
        if let Stage::Drained(from, to) = &self.stage {
            let read = read(control, from, to);
            let _ = control.ask("ALTER SYSTEM RESET wal_keep_size").and_then(|_| control.ask(RELOAD));
            self.stage = read.map_or(Stage::Before, Stage::Read);
        }
        match &self.stage {
            Stage::Settled(_) => none(),
            Stage::Read(counters) => counters.clone(),
            Stage::Before | Stage::Worked(_) | Stage::Drained(..) => Vec::new(),
        }
    }
}

/// Has the server keep what it has of the log; whether it does.
fn keeps_log(control: &mut Control) -> bool {
    let asked = control.ask("ALTER SYSTEM SET wal_keep_size = '1000GB'").and_then(|_| control.ask(RELOAD));
    // Its processes look at the configuration when they come to it: so does the one that asks here.
    let is_in_force = |control: &mut Control| {
        let rows = control.ask("SELECT current_setting('wal_keep_size') = '1000GB'");
        rows.is_ok_and(|rows| {
            rows.rows.first().is_some_and(|row| row.first().is_some_and(|it| it.as_deref() == Some("t")))
        })
    };
    asked.is_ok()
        && (0..LOOKS).any(|_| {
            std::thread::sleep(LOOK);
            is_in_force(control)
        })
}

/// How far the log is written.
fn position(control: &mut Control) -> Option<String> {
    let rows = control.ask("SELECT pg_current_wal_flush_lsn()").ok()?;
    rows.rows.into_iter().next()?.into_iter().next()?
}

fn none() -> Vec<(&'static str, f64)> {
    KINDS.iter().map(|(_, counter)| (*counter, 0.0)).chain([(FULL_PAGES, 0.0)]).collect()
}

fn read(control: &mut Control, from: &str, to: &str) -> Option<Vec<(&'static str, f64)>> {
    control.ask(LONGEST).ok()?;
    let sql = format!(
        "SELECT \"resource_manager/record_type\", record_size, fpi_size FROM pg_get_wal_stats('{from}', '{to}')"
    );
    let answered = control.ask(&sql);
    let _ = control.ask("RESET statement_timeout");
    counted(&answered.ok()?)
}

/// The sums over rows of kind, bytes of records without whole pages, bytes of these.
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
    fn what_was_logged_is_summed_by_kind_and_whole_pages_apart() {
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
