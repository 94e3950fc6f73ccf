//! Scans that returned fewer records than requested: they reached the end of the table, or missed some of it.
//!
//! No operation deletes records. A short scan must therefore return at least all records loaded from its key on. If two
//! scans returned equally many, the one from the smaller key had more records ahead, so it breaks this rule if the
//! other one does. It is therefore enough to keep the smallest key for each number of returned records.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::keys::{Key, KeyForm};
use crate::profile::Kind;
use crate::settings::Config;

/// The maximum number of scans that a client keeps, one for each number of returned records. With more numbers than
/// this, neighbours share a place.
const MOST_PLACES: u64 = 1000;

#[derive(Clone, Copy, Debug)]
pub struct Scans {
    keys: KeyForm,
    records: u64,
    /// The maximum number of records that a scan requests.
    longest: u64,
}

impl Scans {
    /// The scans of a workload, if its mix has any.
    pub fn of(config: &Config) -> Option<Self> {
        let scans = Self { keys: config.keys, records: config.records, longest: config.scans.longest() };
        config.does(Kind::Scan).then_some(scans)
    }

    fn places(self) -> u64 {
        self.longest.min(MOST_PLACES)
    }

    /// The place of a scan that returned this many records, fewer than requested.
    fn place(self, returned: u64) -> usize {
        (returned * self.places() / self.longest) as usize
    }

    /// The maximum number of records that a scan of this place has returned.
    fn most_returned(self, place: u64) -> u64 {
        ((place + 1) * self.longest).div_ceil(self.places()) - 1
    }
}

/// The start of a scan.
#[derive(Debug, Default)]
struct Start {
    /// The number of its record plus one; 0 if there is none.
    record: AtomicU64,
    /// The beginning of its key, which distinguishes most keys.
    beginning: AtomicU64,
}

impl Start {
    fn record(&self) -> Option<u64> {
        self.record.load(Relaxed).checked_sub(1)
    }
}

/// The scans that a client remembers. Only the client writes them.
#[derive(Debug)]
pub struct ShortScans {
    scans: Scans,
    starts: Box<[Start]>,
}

impl ShortScans {
    /// Without any scan.
    pub fn new(scans: Scans) -> Self {
        Self { scans, starts: (0..scans.places()).map(|_| Start::default()).collect() }
    }

    /// Keeps a scan from this record with this key, which returned fewer records than requested.
    #[inline]
    pub fn keep(&self, record: u64, key: &Key, returned: u64) {
        let Some(start) = self.starts.get(self.scans.place(returned)) else { return };
        if self.is_before(key, start) {
            start.record.store(record + 1, Relaxed);
            start.beginning.store(key.beginning(), Relaxed);
        }
    }

    fn is_before(&self, key: &Key, start: &Start) -> bool {
        let Some(record) = start.record() else { return true };
        let (beginning, kept) = (key.beginning(), start.beginning.load(Relaxed));
        beginning < kept || beginning == kept && key.bytes() < self.scans.keys.key(record).bytes()
    }
}

/// A scan that missed records.
#[derive(Debug)]
pub struct Missed {
    key: Key,
    most_returned: u64,
    loaded: u64,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, most_returned, loaded } = self;
        let key = String::from_utf8_lossy(key.bytes());
        write!(f, "a scan from {key} returned at most {most_returned}, where {loaded} records were loaded from there")
    }
}

/// The remembered scans that missed records, in the order of their keys; empty if no scan missed any.
pub fn missed<'a>(scans: Scans, clients: impl Iterator<Item = &'a ShortScans>) -> Vec<Missed> {
    let all = ShortScans::new(scans);
    for (start, place) in clients.flat_map(|client| client.starts.iter().zip(0..)) {
        if let Some(record) = start.record() {
            all.keep(record, &scans.keys.key(record), scans.most_returned(place));
        }
    }
    let of_place = |(start, place): (&Start, u64)| {
        let key = scans.keys.key(start.record()?);
        Some(Missed { key, most_returned: scans.most_returned(place), loaded: 0 })
    };
    let mut kept: Vec<Missed> = all.starts.iter().zip(0..).filter_map(of_place).collect();
    count_loaded(scans, &mut kept);
    kept.retain(|scan| scan.loaded > scan.most_returned);
    kept
}

fn count_loaded(scans: Scans, kept: &mut [Missed]) {
    if kept.is_empty() {
        return;
    }
    kept.sort_unstable_by(|one, other| one.key.bytes().cmp(other.key.bytes()));
    // By the number of the scans' keys that are not above it.
    let mut records = vec![0; kept.len() + 1];
    for record in 0..scans.records {
        let key = scans.keys.key(record);
        records[kept.partition_point(|scan| scan.key.bytes() <= key.bytes())] += 1;
    }
    let mut loaded = 0;
    for (scan, more) in kept.iter_mut().zip(&records[1..]).rev() {
        loaded += more;
        scan.loaded = loaded;
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rumba_engine_api::setting::Value;
    use rumba_workload_kit::{Random, below};

    use super::*;

    const RECORDS: u64 = 60;

    fn scans(insertorder: &str) -> Scans {
        let text = |text: &str| Value::Text(text.to_owned());
        let pairs =
            [("profile", text("e")), ("recordcount", Value::Int(RECORDS as i64)), ("insertorder", text(insertorder))];
        Scans::of(&Config::new(&pairs.into()).unwrap()).unwrap()
    }

    #[test]
    fn kept_scan_summary_reveals_any_missed_record() {
        for insertorder in ["hashed", "ordered"] {
            let (scans, mut random) = (scans(insertorder), Random::seed_from_u64(1));
            let mut rounds = [0; 2];
            for _ in 0..1000 {
                let clients = [ShortScans::new(scans), ShortScans::new(scans)];
                let mut has_missed = false;
                for _ in 0..20 {
                    // From a record that was loaded, or inserted since.
                    let record = below(&mut random, RECORDS + 20);
                    let key = scans.keys.key(record);
                    let is_there = |record: &u64| scans.keys.key(*record).bytes() >= key.bytes();
                    let loaded = (0..RECORDS).filter(is_there).count() as u64;
                    // One in twenty misses a record; an inserted record may make up for it.
                    let missed = u64::from(below(&mut random, 20) == 0);
                    let returned = (loaded + below(&mut random, 3)).saturating_sub(missed);
                    has_missed |= returned < loaded;
                    clients[below(&mut random, 2) as usize].keep(record, &key, returned);
                }
                let reported = missed(scans, clients.iter());
                assert_eq!(!reported.is_empty(), has_missed, "{reported:?}");
                rounds[usize::from(has_missed)] += 1;
            }
            assert!(rounds.iter().all(|count| *count > 100), "{rounds:?}");
        }
    }

    /// Guards against an engine that reads the first row of a scan and stops.
    #[test]
    fn short_scan_is_reported_with_its_key_and_expected_count() {
        let (scans, clients) = (scans("ordered"), [ShortScans::new(scans("ordered"))]);
        // The keys of numbers from 50 to 59 and from 6 to 9 come last.
        for record in [9, 50, 59] {
            clients[0].keep(record, &scans.keys.key(record), 1);
        }
        let reported: Vec<String> = missed(scans, clients.iter()).iter().map(Missed::to_string).collect();
        assert_eq!(reported, ["a scan from user50 returned at most 1, where 14 records were loaded from there"]);
    }

    #[test]
    fn every_row_count_maps_to_one_slot_bounded_by_its_maximum() {
        for longest in [1, 7, 100, 1000, 1001, 2500, 1_000_000] {
            let scans = Scans { longest, ..scans("hashed") };
            for returned in (0..longest).step_by(1 + longest as usize / 5000) {
                let place = scans.place(returned) as u64;
                assert!(place < scans.places() && returned <= scans.most_returned(place), "{returned} of {longest}");
                assert_eq!(scans.place(scans.most_returned(place)) as u64, place, "{returned} of {longest}");
                assert!(longest > MOST_PLACES || scans.most_returned(place) == returned, "{returned} of {longest}");
            }
        }
    }
}
