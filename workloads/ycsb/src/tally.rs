//! Counts the writes of clients and loaders to the table.
//!
//! Each number has one writer, which stores it without a read-modify-write and on a separate cache line. A reader
//! between two operations sees exact numbers, so the sums also hold when clients are stopped.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rumba_engine_api::workload::State;

use crate::keys::Key;
use crate::settings::Config;
use crate::short_scans::{Missed, Scans, ShortScans, missed};
use crate::value::Author;
use crate::watched::{Marks, Watched, Write, why_lost};

/// A number with one writer; it wraps, so that it can also decrease.
#[derive(Debug, Default)]
struct Number(AtomicU64);

impl Number {
    #[inline]
    fn add(&self, change: i64) {
        self.0.store(self.0.load(Relaxed).wrapping_add_signed(change), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counts of one client or loader.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Log {
    /// The last write that it has begun.
    version: Number,
    inserted: Number,
    inserts_in_doubt: Number,
    bytes: Number,
    requested: Number,
    missing: Number,
    marks: Marks,
    /// Present if the mix has scans.
    short_scans: Option<ShortScans>,
}

/// The sums over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Records that clients inserted.
    pub inserted: u64,
    /// Inserts that were begun, and are not known to have ended.
    pub inserts_in_doubt: u64,
    /// Logical bytes in the table.
    pub bytes: u64,
    /// Operations of this process that requested loaded records.
    pub requested: u64,
    /// Those operations that found no record.
    pub missing: u64,
}

/// The known facts about writers to the same data in other processes.
#[derive(Debug)]
struct Earlier {
    /// The first writer of this process.
    first_writer: AtomicU32,
    /// The highest version that any of them has begun.
    version: AtomicU64,
    inserted: AtomicU64,
    inserts_in_doubt: AtomicU64,
    bytes: AtomicU64,
}

/// The tallies of one instance.
#[derive(Debug)]
pub struct Tallies {
    watched: Arc<Watched>,
    scans: Option<Scans>,
    began: Instant,
    earlier: Earlier,
    loaders: Mutex<Vec<Arc<Log>>>,
    /// The writers by number, from the first one on.
    writers: Mutex<Vec<Arc<Log>>>,
}

const INSERTED: &str = "inserted";
const IN_DOUBT: &str = "inserts_in_doubt";
const BYTES: &str = "bytes";
const NEXT_WRITER: &str = "next_writer";
const VERSION: &str = "version";

impl Tallies {
    /// No tallies yet, of clients of this workload.
    pub fn new(config: &Config) -> Self {
        let earlier = Earlier {
            first_writer: AtomicU32::new(Author::LOADER.writer + 1),
            version: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
            inserts_in_doubt: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        };
        let (loaders, writers) = (Mutex::default(), Mutex::default());
        let (watched, scans) = (Arc::new(Watched::new(config)), Scans::of(config));
        Self { watched, scans, began: Instant::now(), earlier, loaders, writers }
    }

    /// How many records are watched.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// A tally for one loader.
    pub fn loader(&self) -> LoadTally {
        let log = Arc::<Log>::default();
        all(&self.loaders).push(log.clone());
        LoadTally { log }
    }

    /// A tally for one client.
    pub fn client(&self) -> Tally {
        let (marks, short_scans) = (Marks::new(&self.watched), self.scans.map(ShortScans::new));
        let log = Arc::new(Log { marks, short_scans, ..Log::default() });
        let mut writers = all(&self.writers);
        let writer = self.earlier.first_writer.load(Relaxed) + writers.len() as u32;
        writers.push(log.clone());
        let (watched, began) = (self.watched.clone(), self.began);
        Tally { log, writer, watched, began, under_way: UnderWay::Nothing, has_doubts: false }
    }

    /// The sums as of now.
    pub fn sums(&self) -> Sums {
        let (loaders, writers) = (all(&self.loaders), all(&self.writers));
        let here = |of: fn(&Log) -> &Number| {
            let logs = loaders.iter().chain(writers.iter());
            logs.fold(0u64, |sum, log| sum.wrapping_add(of(log).get()))
        };
        let sum = |earlier: &AtomicU64, of| earlier.load(Relaxed).wrapping_add(here(of));
        let earlier = &self.earlier;
        Sums {
            inserted: sum(&earlier.inserted, |log| &log.inserted),
            inserts_in_doubt: sum(&earlier.inserts_in_doubt, |log| &log.inserts_in_doubt),
            bytes: (sum(&earlier.bytes, |log| &log.bytes) as i64).max(0) as u64,
            requested: here(|log| &log.requested),
            missing: here(|log| &log.missing),
        }
    }

    /// The scans of this process's clients that missed loaded records; not all of them, but at least one if any did.
    pub fn missed_by_scans(&self) -> Vec<Missed> {
        let writers = all(&self.writers);
        let short_scans = writers.iter().filter_map(|log| log.short_scans.as_ref());
        self.scans.map(|scans| missed(scans, short_scans)).unwrap_or_default()
    }

    /// When this process began, for all of its clients.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The first writer that no earlier process had.
    pub fn first_writer(&self) -> u32 {
        self.earlier.first_writer.load(Relaxed)
    }

    /// The current sums by name, and the next writer.
    pub fn state(&self) -> State {
        let sums = self.sums();
        let writers = all(&self.writers);
        let next = self.earlier.first_writer.load(Relaxed) + writers.len() as u32;
        let versions = writers.iter().map(|log| log.version.get());
        let version = versions.max().unwrap_or(0).max(self.earlier.version.load(Relaxed));
        let named = [
            (INSERTED, sums.inserted),
            (IN_DOUBT, sums.inserts_in_doubt),
            (BYTES, sums.bytes),
            (NEXT_WRITER, u64::from(next)),
            (VERSION, version),
        ];
        named.map(|(name, number)| (name.to_owned(), number)).into()
    }

    /// Continues from another process's state, before the first client.
    ///
    /// # Errors
    /// The name of a missing entry; no entry is taken over then.
    pub fn restore(&self, state: &State) -> Result<(), &'static str> {
        let named = [INSERTED, IN_DOUBT, BYTES, NEXT_WRITER, VERSION].map(|name| state.get(name).copied().ok_or(name));
        let [inserted, in_doubt, bytes, next, version] = named;
        let (inserted, in_doubt, bytes, next, version) = (inserted?, in_doubt?, bytes?, next?, version?);
        let earlier = &self.earlier;
        earlier.inserted.store(inserted, Relaxed);
        earlier.inserts_in_doubt.store(in_doubt, Relaxed);
        earlier.bytes.store(bytes, Relaxed);
        earlier.first_writer.store(next as u32, Relaxed);
        earlier.version.store(version, Relaxed);
        Ok(())
    }

    /// Whether any client has begun this write, to any record.
    pub fn has_begun(&self, author: Author) -> bool {
        let first = self.earlier.first_writer.load(Relaxed);
        let Some(place) = author.writer.checked_sub(first) else {
            return author.version <= self.earlier.version.load(Relaxed);
        };
        let writers = all(&self.writers);
        writers.get(place as usize).is_some_and(|log| (1..=log.version.get()).contains(&author.version))
    }

    /// The acknowledged write to a field of a watched record that is lost, given the value found there.
    pub fn why_lost(&self, slot: usize, field: usize, found: Author) -> Option<String> {
        let writers = all(&self.writers);
        let marks: Vec<&Marks> = writers.iter().map(|log| &log.marks).collect();
        why_lost(&marks, self.earlier.first_writer.load(Relaxed), slot, field, found)
    }
}

fn all(logs: &Mutex<Vec<Arc<Log>>>) -> std::sync::MutexGuard<'_, Vec<Arc<Log>>> {
    logs.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One loader's tally: its only writer.
#[derive(Debug)]
pub struct LoadTally {
    log: Arc<Log>,
}

impl LoadTally {
    /// A batch was loaded: its logical bytes.
    pub fn loaded(&mut self, bytes: u64) {
        self.log.bytes.add(bytes as i64);
    }
}

/// The operation in progress.
#[derive(Clone, Copy, Debug)]
enum UnderWay {
    Nothing,
    Insert,
    Write(Write),
}

/// One client's tally: its only writer.
#[derive(Debug)]
pub struct Tally {
    log: Arc<Log>,
    writer: u32,
    watched: Arc<Watched>,
    began: Instant,
    under_way: UnderWay,
    /// Whether the outcome of a write is unknown, with no newer write known to its fields.
    has_doubts: bool,
}

impl Tally {
    /// The author of the next write: this writer, and the number of its write.
    #[inline]
    pub fn author(&mut self) -> Author {
        self.log.version.add(1);
        Author { writer: self.writer, version: self.log.version.get() }
    }

    fn now_ns(&self) -> u64 {
        1 + self.began.elapsed().as_nanos() as u64
    }

    /// A record is about to be inserted: until [`Tally::inserted`] or [`Tally::nothing`] it is in doubt.
    #[inline]
    pub fn inserts(&mut self) {
        self.log.inserts_in_doubt.add(1);
        self.under_way = UnderWay::Insert;
    }

    /// The record was inserted, with this many logical bytes.
    #[inline]
    pub fn inserted(&mut self, bytes: u64) {
        self.log.inserts_in_doubt.add(-1);
        self.log.inserted.add(1);
        self.log.bytes.add(bytes as i64);
        self.under_way = UnderWay::Nothing;
    }

    /// A record was requested: whether it was loaded, and whether it was found.
    #[inline]
    pub fn requested(&mut self, is_loaded: bool, found: bool) {
        if is_loaded {
            self.log.requested.add(1);
            self.log.missing.add(i64::from(!found));
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
    #[inline]
    pub fn writes(&mut self, record: u64, fields: std::ops::Range<usize>) {
        if let Some(slot) = self.watched.slot(record) {
            let write = Write::new(slot, fields, self.log.version.get(), self.now_ns());
            self.under_way = UnderWay::Write(write);
        }
    }

    /// The fields were written, and the record grew by this many bytes.
    #[inline]
    pub fn wrote(&mut self, growth: i64) {
        self.log.bytes.add(growth);
        if let UnderWay::Write(write) = self.under_way {
            self.log.marks.acknowledged(write, self.now_ns());
            self.under_way = UnderWay::Nothing;
            self.look_at_doubts();
        }
    }

    /// The operation is known not to have been carried out.
    #[inline]
    pub fn nothing(&mut self) {
        if let UnderWay::Insert = self.under_way {
            self.log.inserts_in_doubt.add(-1);
        }
        self.under_way = UnderWay::Nothing;
    }

    /// The operation in progress becomes in doubt, if its outcome is still unknown.
    pub fn leave(&mut self) {
        if let UnderWay::Write(write) = self.under_way {
            self.log.marks.in_doubt(write, self.now_ns());
            self.has_doubts = true;
        }
        self.under_way = UnderWay::Nothing;
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
            self.log.marks.shown(slot, field, found.version, self.now_ns());
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
    #![allow(clippy::unwrap_used)]
    use rumba_engine_api::setting::Value;

    use super::*;

    fn tallies() -> Tallies {
        let config = Config::new(&[("recordcount", Value::Int(10))].into()).unwrap();
        Tallies::new(&config)
    }

    #[test]
    fn sums_outlive_the_clients_that_they_are_of() {
        let tallies = tallies();
        let (mut loader, mut client) = (tallies.loader(), tallies.client());
        loader.loaded(5000);
        client.inserts();
        client.inserted(300);
        client.inserts();
        client.nothing();
        client.writes(3, 0..1);
        client.wrote(-20);
        client.inserts();
        drop((loader, client));
        let sums = Sums { inserted: 1, inserts_in_doubt: 1, bytes: 5280, ..Sums::default() };
        assert_eq!(tallies.sums(), sums);
    }

    #[test]
    fn restored_writers_are_known_and_numbers_are_unique() {
        let (loaded, started) = (tallies(), tallies());
        let mut client = loaded.client();
        let old = client.author();
        client.inserts();
        client.inserted(100);
        let state = loaded.state();
        started.restore(&state).unwrap();
        assert_eq!(started.sums(), loaded.sums());
        assert!(started.has_begun(old) && !started.has_begun(Author { version: 2, ..old }));
        let new = started.client().author();
        assert_eq!((old.writer, new.writer), (1, 2));
        assert!(started.has_begun(new) && !started.has_begun(Author { writer: 3, version: 1 }));
        for missing in state.keys() {
            let mut partial = state.clone();
            partial.remove(missing);
            assert_eq!(tallies().restore(&partial), Err(missing.as_str()));
        }
    }

    /// Guards against an endless search: a client that lost its connection once used to check everything it read for
    /// the rest of the run.
    #[test]
    fn doubt_ends_once_newer_values_are_known_for_all_fields() {
        let tallies = tallies();
        let mut client = tallies.client();
        let slot = tallies.watched().slot(3).unwrap();
        let in_doubt = client.author();
        client.writes(3, 4..6);
        client.leave();
        assert_eq!(client.doubted(3), Some(slot));
        client.shown(slot, 4, in_doubt);
        assert_eq!(client.doubted(3), Some(slot), "of the other field nothing is known");
        client.author();
        client.writes(3, 5..6);
        client.wrote(0);
        assert_eq!(client.doubted(3), None, "its later write stands there");
        client.author();
        client.writes(3, 5..6);
        client.leave();
        assert_eq!(client.doubted(3), Some(slot), "a new doubt is looked for");
    }

    #[test]
    fn a_write_is_lost_unless_it_was_in_doubt() {
        let tallies = tallies();
        let mut client = tallies.client();
        let acknowledged = client.author();
        client.writes(3, 0..10);
        client.wrote(0);
        let slot = tallies.watched().slot(3).unwrap();
        assert_eq!(tallies.why_lost(slot, 7, acknowledged), None);
        assert!(tallies.why_lost(slot, 7, Author::LOADER).unwrap().contains("writer 1's write 1 is gone"));
        let in_doubt = client.author();
        client.writes(3, 7..8);
        drop(client);
        for found in [acknowledged, in_doubt] {
            assert_eq!(tallies.why_lost(slot, 7, found), None);
        }
    }
}
