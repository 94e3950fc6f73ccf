//! Verification: all acknowledged writes are present, and no others.

use rumba_engine_api::check::Check;
use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::RowCount;

use crate::keys::scattered;
use crate::profile::Kind;
use crate::recovered::RecoveryCheck;
use crate::settings::Config;
use crate::short_scans::Missed;
use crate::store::{Fields, Inspect};
use crate::tally::{Sums, Tallies};
use crate::value::{Author, ValueOrigin, reported};

/// Records that are read at once.
const PAGE: u64 = 1000;

/// The content that must be present.
pub struct Expected<'a> {
    pub config: &'a Config,
    /// The acknowledged writes.
    pub tallies: &'a Tallies,
    /// The first number that is not inserted yet; `None` if it is unknown, after a kill.
    pub next_record: Option<u64>,
}

/// The checks, as they are added up.
struct Proof<'a> {
    expected: &'a Expected<'a>,
    /// The ledger's findings, after a kill.
    left: Option<&'a mut RecoveryCheck>,
    records: u64,
    keys: Check,
    values: Check,
    updates: Check,
    /// The key of the last record.
    previous: Vec<u8>,
    scratch: Vec<u8>,
}

/// Reads the whole table and checks it; after a kill, also against the ledger's file.
pub fn verify(
    table: &mut impl Inspect,
    expected: &Expected<'_>,
    left: Option<&mut RecoveryCheck>,
) -> Result<Vec<Check>> {
    let mut proof = Proof {
        expected,
        left,
        records: 0,
        keys: Check::new("every record has the key of a number that was loaded or inserted, and all fields"),
        values: Check::new("every value was written to its field by whom it names"),
        updates: Check::new("no acknowledged update of a watched field is lost"),
        previous: Vec::new(),
        scratch: Vec::new(),
    };
    loop {
        let after = (proof.records > 0).then(|| proof.previous.clone());
        if table.page(after.as_deref(), PAGE, &mut |key, fields| proof.record(key, fields))? < PAGE {
            break;
        }
    }
    Ok(proof.end())
}

impl Proof<'_> {
    fn record(&mut self, key: &[u8], fields: &dyn Fields) {
        self.records += 1;
        self.keys.examined += 1;
        // A duplicate record would make up for a lost one in the count.
        if self.records > 1 && key <= self.previous.as_slice() {
            let previous = shown(&self.previous);
            self.keys.fail(|| format!("{} comes after {previous}", shown(key)));
        }
        self.previous.clear();
        self.previous.extend_from_slice(key);
        if let Some(left) = &mut self.left {
            left.found(key);
        }
        let config = self.expected.config;
        let Some(scatter) = scatter_of(config, key) else {
            return self.keys.fail(|| format!("{} is not a key of this workload", shown(key)));
        };
        if fields.count() != config.fields {
            let words = || format!("{} has {} fields and not {}", shown(key), fields.count(), config.fields);
            return self.keys.fail(words);
        }
        let mut number = None;
        for field in 0..config.fields {
            let reported = reported(fields.get(field), &config.lengths, scatter, field, &mut self.scratch);
            number = self.value(key, field, reported).or(number);
        }
        // A record with only short values does not show its number, but its key has the form of one.
        if let Some(number) = number
            && (self.expected.next_record.is_some_and(|next| number >= next) || config.keys.key(number).bytes() != key)
        {
            self.keys.fail(|| format!("{} holds record {number}, which is not its", shown(key)));
        }
    }

    /// Checks a value with this origin; returns the number of its record, if known.
    fn value(&mut self, key: &[u8], field: usize, reported: ValueOrigin) -> Option<u64> {
        self.values.examined += 1;
        let place = || format!("{}, field {field}", shown(key));
        let (number, author) = match reported {
            ValueOrigin::By(number, author) => (number, author),
            ValueOrigin::Short => return None,
            ValueOrigin::Foreign => {
                self.values.fail(|| format!("{} holds a value that no client wrote there", place()));
                return None;
            }
        };
        if !self.is_possible(number, author) {
            let Author { writer, version } = author;
            self.values.fail(|| format!("{} names writer {writer}'s write {version}, which there was not", place()));
        }
        if let Some(left) = &mut self.left {
            left.value(number, field, author);
        } else if let Some(slot) = self.expected.tallies.watched.slot(number) {
            self.updates.examined += 1;
            if let Some(why) = self.expected.tallies.why_lost(slot, field, author) {
                self.updates.fail(|| format!("{}: {why}", place()));
            }
        }
        Some(number)
    }

    fn is_possible(&self, record: u64, author: Author) -> bool {
        if author.writer == Author::LOADER.writer {
            return author == Author::LOADER && record < self.expected.config.records;
        }
        self.expected.tallies.has_begun(author) || self.left.as_ref().is_some_and(|left| left.may_have_written(author))
    }

    fn end(self) -> Vec<Check> {
        let Expected { config, tallies, .. } = self.expected;
        let mut sums = tallies.sums();
        if let Some(left) = self.left {
            let (in_doubt, inserted) = left.inserts();
            sums.inserts_in_doubt += in_doubt.cast_signed();
            sums.inserted += inserted.cast_signed();
            // Lost writes are counted elsewhere, and no operation has requested records.
            return vec![count(config.records, sums, self.records), self.keys, self.values];
        }
        let mut checks = vec![count(config.records, sums, self.records), self.keys, self.values];
        // Without updates, no update can be lost. The last updates of clients on other hosts are unknown here.
        if tallies.has_writers() && config.kinds().into_iter().any(Kind::updates) {
            checks.push(self.updates);
        }
        if config.kinds().into_iter().any(|kind| kind != Kind::Insert) {
            checks.push(requested(sums, &tallies.missed_by_scans()));
        }
        checks
    }
}

/// The scattered number of a record, from its key in any form.
pub fn scatter_of(config: &Config, key: &[u8]) -> Option<u64> {
    let digits = key.strip_prefix(b"user").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if config.keys.is_hashed { number } else { scattered(number) })
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// Whether clients found the records that they requested, by any operation. The check is needed because verification
/// only reads all records in order. `missed` lists the scans that missed records.
fn requested(sums: Sums, missed: &[Missed]) -> Check {
    let mut check = Check::new("every loaded record that a client requested was found");
    (check.examined, check.wrong) = (sums.requested.cast_unsigned(), sums.missing.cast_unsigned());
    if sums.missing > 0 {
        check.examples.push(format!("{} of {} operations found no record", sums.missing, sums.requested));
    }
    missed.iter().for_each(|scan| check.fail(|| scan.to_string()));
    check
}

/// Compares the number of records with those loaded and inserted.
fn count(loaded: u64, sums: Sums, found: u64) -> Check {
    let [added, adds_in_doubt] = [sums.inserted, sums.inserts_in_doubt].map(i64::cast_unsigned);
    let rows = RowCount { loaded, added, adds_in_doubt, ..RowCount::default() };
    rows.check("the records are as many as loaded and inserted", found)
}
