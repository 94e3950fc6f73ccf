//! The records of which every client remembers its last write to each field, so that a lost one is found.
//!
//! Of all records that would be as much memory as the data. Watched are those that are asked for most often, where clients
//! meet, and as many that are spread over all.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use rumba_workload_kit::journal::{Noted, lost};

use crate::choice::hottest;
use crate::settings::Config;
use crate::value::Author;

/// About how many records are watched at most, and fields of them: a hundred kilobytes for a client.
const MOST_RECORDS: usize = 256;
const MOST_FIELDS: usize = 4096;

/// Which records are watched; shared by all clients, and never changed.
#[derive(Debug)]
pub struct Watched {
    /// A hash table of the records' numbers, each with one added, and of their slots.
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

    /// Where a record's fields are remembered, if it is watched.
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

/// Where a record's search begins in a table of a power of two.
#[inline]
fn start(record: u64, size: usize) -> usize {
    (record.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (size - 1)
}

/// A client's last acknowledged write to a field; the version is 0 where there is none. Times are in nanoseconds.
#[derive(Debug, Default)]
struct Mark {
    version: AtomicU64,
    began: AtomicU64,
    ended: AtomicU64,
}

/// Writes of which it is not known whether they were carried out.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    slot: usize,
    fields: (usize, usize),
    version: u64,
}

/// What one client has written to watched records. The client alone writes it.
#[derive(Debug, Default)]
pub struct Marks {
    marks: Box<[Mark]>,
    fields: usize,
    doubts: Mutex<Vec<Doubt>>,
}

/// A write to a watched record that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    slot: usize,
    fields: (usize, usize),
    version: u64,
    began_ns: u64,
}

impl Write {
    /// Of these fields, with this version, begun now.
    pub fn new(slot: usize, fields: std::ops::Range<usize>, version: u64, began_ns: u64) -> Self {
        Self { slot, fields: (fields.start, fields.end), version, began_ns }
    }
}

impl Marks {
    /// Of nothing yet.
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

    /// The write was acknowledged.
    pub fn acknowledged(&self, write: Write, ended_ns: u64) {
        for field in write.fields.0..write.fields.1 {
            let Some(mark) = self.mark(write.slot, field) else { continue };
            mark.version.store(write.version, Relaxed);
            mark.began.store(write.began_ns, Relaxed);
            mark.ended.store(ended_ns, Relaxed);
        }
    }

    /// What became of the write is not known.
    pub fn in_doubt(&self, write: Write) {
        let Write { slot, fields, version, .. } = write;
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner).push(Doubt { slot, fields, version });
    }

    fn doubts(&self, slot: usize, field: usize, version: u64) -> bool {
        let doubts = self.doubts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |doubt: &Doubt| {
            doubt.slot == slot && doubt.version == version && (doubt.fields.0..doubt.fields.1).contains(&field)
        };
        doubts.iter().any(is_it)
    }
}

/// Holds what was found in a field of a watched record against what all clients remember; why an acknowledged write is lost,
/// in words. Clients have numbers from `first` on.
pub fn why_lost(clients: &[&Marks], first: u32, slot: usize, field: usize, found: Author) -> Option<String> {
    let Author { writer, version } = found;
    if let Some(finder) = writer.checked_sub(first).and_then(|place| clients.get(place as usize)) {
        if finder.doubts(slot, field, version) {
            // It may have been carried out at any time.
            return None;
        }
        match finder.last(slot, field, writer).map(|own| own.mark.version) {
            Some(own) if own == version => {}
            Some(own) if own > version => {
                return Some(format!("writer {writer}'s write {own} is gone, its write {version} is there"));
            }
            _ => return Some(format!("writer {writer}'s write {version} is there, which it was told has failed")),
        }
    }
    // What a client wrote before its last write, that write has replaced.
    let last = clients.iter().zip(first..).filter_map(|(marks, writer)| marks.last(slot, field, writer));
    let last: Vec<Noted<Author>> = last.collect();
    let Author { writer: other, version } = lost(&last, &found).next()?.mark;
    Some(format!("writer {other}'s write {version} is gone, what was there before it is writer {writer}'s"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::setting::Value;

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
        assert!(lost(7, 1).unwrap().contains("has failed"));
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
    fn what_is_in_doubt_may_be_there_and_may_not() {
        let watched = Watched::new(&config(10));
        let clients = [client(&watched, &[(1, 10, 20)]), client(&watched, &[(3, 50, 60)])];
        clients[0].in_doubt(Write::new(SLOT, 0..10, 2, 30));
        assert_eq!(lost_of(&clients, 5, 2), None);
        assert_eq!(lost_of(&clients, 6, 3), None);
        assert!(lost_of(&clients, 5, 1).is_some());
    }
}
