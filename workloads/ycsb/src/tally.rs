//! Counts the writes of clients and loaders to the table, and remembers those to watched records.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::workload::State;
use rumba_workload_kit::Partition;
use rumba_workload_kit::ledger::{self, Account, Ledger, Noted, entry_of, number_in, numbers_of};

use crate::keys::Key;
use crate::settings::Config;
use crate::short_scans::{Missed, Scans, ShortScans, missed};
use crate::value::Author;
use crate::watched::{Marks, Watched, Write, why_lost};

rumba_workload_kit::counters! {
    /// The sums over all clients and loaders, and over earlier work on the data.
    Sums at Of {
        /// Records that clients inserted.
        inserted: Inserted,
        /// Inserts that were begun, and are not known to have ended.
        inserts_in_doubt: InsertsInDoubt,
        /// Logical bytes in the table.
        bytes: Bytes,
        /// Operations that requested loaded records.
        requested: Requested,
        /// Those operations that found no record.
        missing: Missing,
    }
}

type ClientAccount = Account<{ Sums::NAMES.len() }>;

/// The kinds of writes in the ledger's file.
pub const UPDATE: u32 = 0;
pub const INSERT: u32 = 1;

/// A write in the ledger's file: its record, its fields, and its author with the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    pub record: u64,
    pub fields: Range<u32>,
    pub noted: Noted<Author>,
}

fn entry(record: u64, fields: Range<u32>, author: Author) -> ledger::Entry {
    let fields = u64::from(fields.start) | u64::from(fields.end) << 32;
    entry_of([record, author.version, fields, author.writer.into()])
}

impl Entered {
    /// From the ledger's file.
    pub fn of(write: &ledger::Write) -> Self {
        let [record, version, fields, writer, ..] = numbers_of(&write.entry);
        let mark = Author { writer: writer as u32, version };
        let noted = Noted { mark, began_ns: write.began_ns, ended_ns: write.ended_ns };
        Self { record, fields: fields as u32..(fields >> 32) as u32, noted }
    }
}

/// A client's record of its writes and scans.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Log {
    /// The last write that it has begun; only the client changes it.
    version: AtomicU64,
    marks: Marks,
    /// Present if the mix has scans.
    short_scans: Option<ShortScans>,
}

#[derive(Debug)]
pub struct Tallies {
    ledger: Ledger<{ Sums::NAMES.len() }>,
    pub watched: Arc<Watched>,
    scans: Option<Scans>,
    /// The first writer of this process.
    first_writer: AtomicU32,
    /// The highest version that a writer in an earlier process has begun.
    earlier_version: AtomicU64,
    /// The writers by number, from the first one on.
    writers: Mutex<Vec<Arc<Log>>>,
    /// This host's share of the writers.
    pub partition: Partition,
}

const NEXT_WRITER: &str = "next_writer";
const VERSION: &str = "version";

impl Tallies {
    /// No tallies yet, of clients of this workload.
    pub fn new(config: &Config) -> Self {
        Self {
            ledger: Ledger::new(Sums::NAMES),
            watched: Arc::new(Watched::new(config)),
            scans: Scans::of(config),
            first_writer: AtomicU32::new(Author::LOADER.writer + 1),
            earlier_version: AtomicU64::new(0),
            writers: Mutex::default(),
            partition: Partition::default(),
        }
    }

    pub fn loader(&self) -> LoadTally {
        LoadTally(self.ledger.open())
    }

    /// The tally of the client with this number, which also appends its writes to a file if there is one.
    pub fn client(&self, file: Option<&Arc<File>>, client: u32) -> Tally {
        let (marks, short_scans) = (Marks::new(&self.watched), self.scans.map(ShortScans::new));
        let log = Arc::new(Log { marks, short_scans, ..Log::default() });
        let mut writers = self.writers();
        let writer = self.first_writer() + self.partition.share().client(writers.len() as u32);
        writers.push(log.clone());
        let (account, watched) = (self.ledger.open_with(file, client), self.watched.clone());
        Tally { account, log, writer, watched, under_way: None, has_doubts: false }
    }

    fn writers(&self) -> MutexGuard<'_, Vec<Arc<Log>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sums as of now.
    pub fn sums(&self) -> Sums {
        self.ledger.sums()
    }

    /// The scans of this process's clients that missed loaded records; not all of them, but at least one if any did.
    pub fn missed_by_scans(&self) -> Vec<Missed> {
        let writers = self.writers();
        let short_scans = writers.iter().filter_map(|log| log.short_scans.as_ref());
        self.scans.map(|scans| missed(scans, short_scans)).unwrap_or_default()
    }

    /// The first writer that no earlier process had.
    pub fn first_writer(&self) -> u32 {
        self.first_writer.load(Relaxed)
    }

    /// The current sums by name, and the next writer.
    pub fn state(&self) -> State {
        let writers = self.writers();
        let next = self.first_writer() + writers.len() as u32;
        let versions = writers.iter().map(|log| log.version.load(Relaxed));
        let version = versions.max().unwrap_or(0).max(self.earlier_version.load(Relaxed));
        let mut state = self.ledger.state();
        state.extend([(NEXT_WRITER.to_owned(), u64::from(next)), (VERSION.to_owned(), version)]);
        state
    }

    /// Continues from another process's state, before the first client.
    ///
    /// # Errors
    /// The name of a missing entry; no entry is taken over then.
    pub fn restore(&self, state: &State) -> Result<()> {
        let (next, version) = (number_in(state, NEXT_WRITER)?, number_in(state, VERSION)?);
        self.ledger.restore(state)?;
        self.first_writer.store(next as u32, Relaxed);
        self.earlier_version.store(version, Relaxed);
        Ok(())
    }

    /// Whether the clients of the mix are in this process, so that their last writes are known here.
    pub fn has_writers(&self) -> bool {
        !self.writers().is_empty()
    }

    /// Whether any client has begun this write, to any record.
    pub fn has_begun(&self, author: Author) -> bool {
        let Some(place) = author.writer.checked_sub(self.first_writer()) else {
            return author.version <= self.earlier_version.load(Relaxed);
        };
        let writers = self.writers();
        writers.get(place as usize).is_some_and(|log| (1..=log.version.load(Relaxed)).contains(&author.version))
    }

    /// The acknowledged write to a field of a watched record that is lost, given the value found there.
    pub fn why_lost(&self, slot: usize, field: usize, found: Author) -> Option<String> {
        let writers = self.writers();
        let marks: Vec<&Marks> = writers.iter().map(|log| &log.marks).collect();
        why_lost(&marks, self.first_writer(), slot, field, found)
    }
}

/// One loader's tally: its only writer.
#[derive(Debug)]
pub struct LoadTally(ClientAccount);

impl LoadTally {
    /// A batch was loaded: its logical bytes.
    pub fn loaded(&mut self, bytes: u64) {
        self.0.add(Of::Bytes as usize, bytes as i64);
    }
}

/// One client's tally: its only writer.
#[derive(Debug)]
pub struct Tally {
    account: ClientAccount,
    log: Arc<Log>,
    writer: u32,
    watched: Arc<Watched>,
    /// The write to a watched record in progress.
    under_way: Option<Write>,
    /// Whether the outcome of a write is unknown, with no newer write known to its fields.
    has_doubts: bool,
}

impl Tally {
    fn add(&mut self, of: Of, change: i64) {
        self.account.add(of as usize, change);
    }

    fn version(&self) -> u64 {
        self.log.version.load(Relaxed)
    }

    /// The author of the next write: this writer, and the number of its write.
    #[inline]
    pub fn author(&mut self) -> Author {
        self.log.version.store(self.version() + 1, Relaxed);
        self.last_author()
    }

    fn last_author(&self) -> Author {
        Author { writer: self.writer, version: self.version() }
    }

    /// A record with these fields is about to be inserted by the last author.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    #[inline]
    pub fn inserts(&mut self, record: u64, fields: Range<usize>) -> Result<()> {
        let author = self.last_author();
        let entry = || entry(record, fields.start as u32..fields.end as u32, author);
        self.account.begin(INSERT, Some(Of::InsertsInDoubt as usize), entry)
    }

    /// The record was inserted, with this many logical bytes.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    #[inline]
    pub fn inserted(&mut self, bytes: u64) -> Result<()> {
        self.add(Of::Inserted, 1);
        self.add(Of::Bytes, bytes as i64);
        self.account.acknowledge(|_| ())
    }

    /// A record was requested: whether it was loaded, and whether it was found.
    #[inline]
    pub fn requested(&mut self, is_loaded: bool, found: bool) {
        if is_loaded {
            self.add(Of::Requested, 1);
            self.add(Of::Missing, i64::from(!found));
        }
    }

    /// A scan from this record with this key returned fewer records than requested.
    #[inline]
    pub fn came_short(&mut self, record: u64, key: &Key, returned: u64) {
        if let Some(short_scans) = &self.log.short_scans {
            short_scans.keep(record, key, returned);
        }
    }

    /// Fields of a record are about to be written, by the last author.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    #[inline]
    pub fn writes(&mut self, record: u64, fields: Range<usize>) -> Result<()> {
        if let Some(slot) = self.watched.slot(record) {
            self.under_way = Some(Write::new(slot, fields.clone(), self.version(), self.account.now_ns()));
        }
        let author = self.last_author();
        self.account.begin(UPDATE, None, || entry(record, fields.start as u32..fields.end as u32, author))
    }

    /// The fields were written, and the record grew by this many bytes.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    #[inline]
    pub fn wrote(&mut self, growth: i64) -> Result<()> {
        self.add(Of::Bytes, growth);
        if let Some(write) = self.under_way.take() {
            self.log.marks.acknowledged(write, self.account.now_ns());
            self.look_at_doubts();
        }
        self.account.acknowledge(|_| ())
    }

    /// The operation is known not to have been carried out.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    #[inline]
    pub fn nothing(&mut self) -> Result<()> {
        self.under_way = None;
        self.account.undo()
    }

    /// The operation in progress has failed: a conflict has undone it, and any other error leaves it in doubt.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    pub fn failed(&mut self, error: &EngineError) -> Result<()> {
        if error.is_conflict() {
            return self.nothing();
        }
        self.leave();
        Ok(())
    }

    /// The operation in progress becomes in doubt, if its outcome is still unknown.
    pub fn leave(&mut self) {
        if let Some(write) = self.under_way.take() {
            self.log.marks.in_doubt(write, self.account.now_ns());
            self.has_doubts = true;
        }
        self.account.leave();
    }

    /// The slot of a record whose values [`Tally::shown`] needs; none while no write is in doubt.
    #[inline]
    pub fn doubted(&self, record: u64) -> Option<usize> {
        if self.has_doubts { self.watched.slot(record) } else { None }
    }

    /// A field of a watched record was found with a value of this author: if it is this client's write in doubt, it has
    /// been carried out.
    pub fn shown(&mut self, slot: usize, field: usize, found: Author) {
        if found.writer == self.writer {
            self.log.marks.shown(slot, field, found.version, self.account.now_ns());
            self.look_at_doubts();
        }
    }

    /// Ends the search once newer writes are known for every field in doubt.
    #[inline]
    fn look_at_doubts(&mut self) {
        self.has_doubts = self.has_doubts && self.log.marks.are_in_doubt();
    }
}

/// A client that is stopped in the middle of a write leaves it in doubt.
impl Drop for Tally {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn tallies() -> Tallies {
        let config = Config::new(&[("recordcount", Value::Int(10))].into()).unwrap();
        Tallies::new(&config)
    }

    #[test]
    fn ledger_entry_of_a_write_round_trips() {
        let author = Author { writer: 7, version: u64::MAX - 3 };
        let (record, fields) = (5 << 40 | 9, 3..10);
        let entry = entry(record, fields.clone(), author);
        let noted = Noted { mark: author, began_ns: 1 << 33, ended_ns: Some((1 << 33) + 17) };
        let write = ledger::Write { kind: UPDATE, entry, began_ns: noted.began_ns, ended_ns: noted.ended_ns };
        assert_eq!(Entered::of(&write), Entered { record, fields, noted });
    }

    #[test]
    fn restored_writers_are_known_and_numbers_are_unique() {
        let (loaded, started) = (tallies(), tallies());
        let mut client = loaded.client(None, 0);
        let old = client.author();
        client.inserts(3, 0..1).unwrap();
        client.inserted(100).unwrap();
        let state = loaded.state();
        started.restore(&state).unwrap();
        assert_eq!(started.sums(), loaded.sums());
        assert!(started.has_begun(old) && !started.has_begun(Author { version: 2, ..old }));
        let new = started.client(None, 0).author();
        assert_eq!((old.writer, new.writer), (1, 2));
        assert!(started.has_begun(new) && !started.has_begun(Author { writer: 3, version: 1 }));
        for missing in state.keys() {
            let mut partial = state.clone();
            partial.remove(missing);
            assert!(tallies().restore(&partial).unwrap_err().to_string().contains(missing));
        }
    }

    /// Guards against an endless search: a client that lost its connection once used to check everything it read for
    /// the rest of the run.
    #[test]
    fn doubt_ends_once_newer_values_are_known_for_all_fields() {
        let tallies = tallies();
        let mut client = tallies.client(None, 0);
        let slot = tallies.watched.slot(3).unwrap();
        let in_doubt = client.author();
        client.writes(3, 4..6).unwrap();
        client.leave();
        assert_eq!(client.doubted(3), Some(slot));
        client.shown(slot, 4, in_doubt);
        assert_eq!(client.doubted(3), Some(slot), "of the other field nothing is known");
        client.author();
        client.writes(3, 5..6).unwrap();
        client.wrote(0).unwrap();
        assert_eq!(client.doubted(3), None, "its later write stands there");
        client.author();
        client.writes(3, 5..6).unwrap();
        client.leave();
        assert_eq!(client.doubted(3), Some(slot), "a new doubt is looked for");
    }

    #[test]
    fn a_write_is_lost_unless_it_was_in_doubt() {
        let tallies = tallies();
        let mut client = tallies.client(None, 0);
        let acknowledged = client.author();
        client.writes(3, 0..10).unwrap();
        client.wrote(0).unwrap();
        let slot = tallies.watched.slot(3).unwrap();
        assert_eq!(tallies.why_lost(slot, 7, acknowledged), None);
        assert!(tallies.why_lost(slot, 7, Author::LOADER).unwrap().contains("writer 1's write 1 is gone"));
        let in_doubt = client.author();
        client.writes(3, 7..8).unwrap();
        drop(client);
        for found in [acknowledged, in_doubt] {
            assert_eq!(tallies.why_lost(slot, 7, found), None);
        }
    }
}
