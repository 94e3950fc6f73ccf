//! The records for which every client remembers its last write to each field, so that a lost one is found.
//!
//! For all records, that would take as much memory as the data. Watched are the most requested records, where clients
//! collide, and as many others, spread over all records.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rumba_workload_kit::ledger::{Noted, lost};

use crate::requests::hottest;
use crate::settings::Config;
use crate::value::Author;

/// The approximate maximum of watched records, and of their fields: a hundred kilobytes for a client.
const MOST_RECORDS: usize = 256;
const MOST_FIELDS: usize = 4096;

/// The watched records; shared by all clients, and never changed.
#[derive(Debug)]
pub struct Watched {
    /// A hash table of the records' numbers plus one, and of their slots.
    table: Box<[(u64, u32)]>,
    slots: usize,
    fields: usize,
}

impl Watched {
    /// Those of a workload.
    pub fn new(config: &Config) -> Self {
        let most = (MOST_FIELDS / config.fields).clamp(16, MOST_RECORDS) as u64;
        let step = (config.records / (most / 2)).max(1);
        let spread = (0..config.records).step_by(step as usize).take(most as usize);
        let hottest = hottest(config.requests, most / 2).filter(|record| *record < config.records);
        let mut records: Vec<u64> = spread.chain(hottest).collect();
        records.sort_unstable();
        records.dedup();
        let mut table = vec![(0, 0); (4 * records.len()).next_power_of_two()].into_boxed_slice();
        for (record, slot) in records.iter().zip(0..) {
            let mut at = start(*record, table.len());
            while table[at].0 != 0 {
                at = (at + 1) % table.len();
            }
            table[at] = (record + 1, slot);
        }
        Self { table, slots: records.len(), fields: config.fields }
    }

    /// The slot of a record's fields, if it is watched.
    #[inline]
    pub fn slot(&self, record: u64) -> Option<usize> {
        let mut at = start(record, self.table.len());
        loop {
            match self.table[at] {
                (0, _) => return None,
                (found, slot) if found == record + 1 => return Some(slot as usize),
                _ => at = (at + 1) % self.table.len(),
            }
        }
    }
}

/// The start of a record's search in a table whose size is a power of two.
#[inline]
fn start(record: u64, size: usize) -> usize {
    (record.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (size - 1)
}

/// A client's last acknowledged write to a field; the version is 0 if there is none. Times are in nanoseconds.
#[derive(Debug, Default)]
struct Mark {
    version: AtomicU64,
    began: AtomicU64,
    ended: AtomicU64,
}

impl Mark {
    #[inline]
    fn set(&self, write: Write, ended_ns: u64) {
        self.version.store(write.version, Relaxed);
        self.began.store(write.began_ns, Relaxed);
        self.ended.store(ended_ns, Relaxed);
    }
}

/// How long a server may continue with a write after its connection was cut off, in nanoseconds from the client's next
/// connection. The server answers by then, so the write only waits for the locks of others, each of which is held for
/// milliseconds.
const LINGERS_NS: u64 = 10_000_000_000;

/// A write that may or may not have been carried out.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    write: Write,
    /// If it was carried out, it was before this time: a write that began later has come after it.
    until_ns: u64,
}

/// The writes of one client to watched records. Only the client writes them.
#[derive(Debug, Default)]
pub struct Marks {
    marks: Box<[Mark]>,
    fields: usize,
    doubts: Mutex<Vec<Doubt>>,
}

/// A write to a watched record in progress.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    slot: usize,
    fields: (usize, usize),
    version: u64,
    began_ns: u64,
}

impl Write {
    /// To these fields, with this version, begun now.
    pub fn new(slot: usize, fields: std::ops::Range<usize>, version: u64, began_ns: u64) -> Self {
        Self { slot, fields: (fields.start, fields.end), version, began_ns }
    }
}

impl Marks {
    /// Without any write.
    pub fn new(watched: &Watched) -> Self {
        let marks = (0..watched.slots * watched.fields).map(|_| Mark::default()).collect();
        Self { marks, fields: watched.fields, doubts: Mutex::default() }
    }

    fn mark(&self, slot: usize, field: usize) -> Option<&Mark> {
        self.marks.get(slot * self.fields + field)
    }

    /// The last acknowledged write to a field, if there is one; the client has this number.
    fn last(&self, slot: usize, field: usize, writer: u32) -> Option<Noted<Author>> {
        let mark = self.mark(slot, field)?;
        let [version, began_ns, ended_ns] = [&mark.version, &mark.began, &mark.ended].map(|of| of.load(Relaxed));
        (version > 0).then_some(Noted { mark: Author { writer, version }, began_ns, ended_ns: Some(ended_ns) })
    }

    pub fn acknowledged(&self, write: Write, ended_ns: u64) {
        for field in write.fields.0..write.fields.1 {
            let Some(mark) = self.mark(write.slot, field) else { continue };
            mark.set(write, ended_ns);
        }
    }

    /// The outcome of the write is unknown; its client continues, or ends, now.
    pub fn in_doubt(&self, write: Write, now_ns: u64) {
        let doubt = Doubt { write, until_ns: now_ns + LINGERS_NS };
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push(doubt);
    }

    /// A write was seen in its field: if it was in doubt, it now counts as acknowledged.
    pub fn shown(&self, slot: usize, field: usize, version: u64, now_ns: u64) {
        let (doubt, mark) = (self.doubt(slot, field, version), self.mark(slot, field));
        if let Some((Doubt { write, .. }, mark)) = doubt.zip(mark)
            && mark.version.load(Relaxed) < version
        {
            mark.set(write, now_ns);
        }
    }

    /// Whether a field has no acknowledged write of this client that is newer than a write in doubt.
    pub fn are_in_doubt(&self) -> bool {
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        doubts.iter().any(|Doubt { write, .. }| {
            let marks = (write.fields.0..write.fields.1).filter_map(|field| self.mark(write.slot, field));
            marks.map(|mark| mark.version.load(Relaxed)).any(|version| version < write.version)
        })
    }

    fn doubt(&self, slot: usize, field: usize, version: u64) -> Option<Doubt> {
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |Doubt { write, .. }: &&Doubt| {
            write.slot == slot && write.version == version && (write.fields.0..write.fields.1).contains(&field)
        };
        doubts.iter().find(is_it).copied()
    }
}

/// Compares a value found in a field of a watched record with the writes that all clients remember. Returns the reason
/// if an acknowledged write is lost. Clients have numbers from `first` on.
pub fn why_lost(clients: &[&Marks], first: u32, slot: usize, field: usize, found: Author) -> Option<String> {
    let Author { writer, version } = found;
    // A client's last write has replaced its earlier ones.
    let last = clients.iter().zip(first..).filter_map(|(marks, writer)| marks.last(slot, field, writer));
    let mut writes: Vec<Noted<Author>> = last.collect();
    if let Some(finder) = writer.checked_sub(first).and_then(|place| clients.get(place as usize)) {
        let own = finder.last(slot, field, writer).map(|own| own.mark.version);
        match (own, finder.doubt(slot, field, version)) {
            (Some(own), _) if own == version => {}
            // It may have been carried out until then.
            (_, Some(Doubt { write, until_ns })) => {
                writes.push(Noted { mark: found, began_ns: write.began_ns, ended_ns: Some(until_ns) });
            }
            (Some(own), None) if own > version => {
                return Some(format!("writer {writer}'s write {own} is gone, its write {version} is there"));
            }
            _ => {
                return Some(format!("writer {writer}'s write {version} is there, although it was reported as failed"));
            }
        }
    }
    let Author { writer: other, version } = lost(&writes, &found).next()?.mark;
    Some(format!("writer {other}'s write {version} is gone, what was there before it is writer {writer}'s"))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn config(records: i64) -> Config {
        Config::new(&[("recordcount", Value::Int(records))].into()).unwrap()
    }

    #[test]
    fn the_hottest_records_and_some_of_all_are_watched() {
        let config = config(1_000_000);
        let watched = Watched::new(&config);
        assert!((200..=400).contains(&watched.slots), "{}", watched.slots);
        assert!(hottest(config.requests, 100).all(|record| watched.slot(record).is_some()));
        let mut slots: Vec<usize> = (0..config.records).filter_map(|record| watched.slot(record)).collect();
        assert_eq!(slots.len(), watched.slots);
        slots.sort_unstable();
        assert_eq!(slots, (0..watched.slots).collect::<Vec<_>>());
        let few = self::config(10);
        assert_eq!(Watched::new(&few).slots, 10);
    }

    const SLOT: usize = 3;
    const FIELD: usize = 2;

    fn client(watched: &Watched, writes: &[(u64, u64, u64)]) -> Marks {
        let marks = Marks::new(watched);
        for &(version, began, ended) in writes {
            marks.acknowledged(Write::new(SLOT, FIELD..FIELD + 1, version, began), ended);
        }
        marks
    }

    #[test]
    fn a_write_that_a_later_one_did_not_replace_is_lost() {
        let watched = Watched::new(&config(10));
        // Writers 5, 6 and 7; the second begins before the first has ended, the third after both.
        let clients = [
            client(&watched, &[(1, 10, 20), (4, 100, 120)]),
            client(&watched, &[(9, 110, 130)]),
            client(&watched, &[]),
        ];
        let all: Vec<&Marks> = clients.iter().collect();
        let lost = |writer, version| why_lost(&all, 5, SLOT, FIELD, Author { writer, version });
        assert_eq!(lost(5, 4), None, "of two that meet either may be last");
        assert_eq!(lost(6, 9), None);
        assert!(lost(5, 1).unwrap().contains("write 4 is gone"));
        assert!(lost(0, 0).unwrap().contains("writer 5's write 4 is gone"));
        assert!(lost(4, 77).is_some(), "an earlier process's");
        assert!(lost(7, 1).unwrap().contains("reported as failed"));
        clients[0].acknowledged(Write::new(SLOT, FIELD..FIELD + 1, 5, 200), 210);
        assert!(lost_of(&clients, 6, 9).unwrap().contains("writer 5's write 5 is gone"));
        assert_eq!(lost_of(&clients, 5, 5), None);
        // Another field has other writes.
        assert_eq!(why_lost(&all, 5, SLOT, FIELD + 1, Author::LOADER), None);
    }

    fn lost_of(clients: &[Marks], writer: u32, version: u64) -> Option<String> {
        why_lost(&clients.iter().collect::<Vec<_>>(), 5, SLOT, FIELD, Author { writer, version })
    }

    #[test]
    fn doubtful_field_writes_may_be_present_or_absent() {
        let watched = Watched::new(&config(10));
        let clients = [client(&watched, &[(1, 10, 20)]), client(&watched, &[(3, 50, 60)])];
        clients[0].in_doubt(Write::new(SLOT, 0..10, 2, 30), 40);
        assert_eq!(lost_of(&clients, 5, 2), None);
        assert_eq!(lost_of(&clients, 6, 3), None);
        assert!(lost_of(&clients, 5, 1).is_some());
    }

    /// Guards against an endless excuse: a write that was cut off once excused the loss of every write acknowledged
    /// after it.
    #[test]
    fn late_acknowledged_write_ends_an_earlier_doubt() {
        const ENDS: u64 = 40 + LINGERS_NS;
        let write = |version, began| Write::new(SLOT, FIELD..FIELD + 1, version, began);
        for writer in [0, 1] {
            let watched = Watched::new(&config(10));
            let clients = [client(&watched, &[(1, 10, 20)]), client(&watched, &[])];
            clients[0].in_doubt(write(2, 30), 40);
            clients[writer].acknowledged(write(3, ENDS), ENDS + 1);
            assert_eq!(lost_of(&clients, 5, 2), None, "it may have come after that");
            clients[writer].acknowledged(write(4, ENDS + 1), ENDS + 2);
            let lost = lost_of(&clients, 5, 2).unwrap();
            assert!(lost.contains(&format!("writer {}'s write 4 is gone", 5 + writer)), "{lost}");
            assert_eq!(lost_of(&clients, 5 + writer as u32, 4), None);
        }
    }

    #[test]
    fn a_write_in_doubt_that_was_seen_is_missed_when_it_is_gone() {
        let watched = Watched::new(&config(10));
        let clients = [client(&watched, &[(1, 10, 20)]), client(&watched, &[])];
        clients[0].in_doubt(Write::new(SLOT, FIELD..FIELD + 1, 2, 30), 40);
        assert_eq!(lost_of(&clients, 5, 1), None, "it may not have been carried out");
        // The first was never in doubt, and the second is of another field.
        clients[0].shown(SLOT, FIELD, 9, 50);
        clients[0].shown(SLOT, FIELD + 1, 2, 50);
        assert_eq!(lost_of(&clients, 5, 1), None);
        clients[0].shown(SLOT, FIELD, 2, 50);
        assert!(lost_of(&clients, 5, 1).unwrap().contains("write 2 is gone, its write 1 is there"));
        assert_eq!(lost_of(&clients, 5, 2), None);
        // A later write of the client remains in effect.
        clients[0].acknowledged(Write::new(SLOT, FIELD..FIELD + 1, 3, 60), 70);
        clients[0].shown(SLOT, FIELD, 2, 80);
        assert_eq!(lost_of(&clients, 5, 3), None);
    }
}
