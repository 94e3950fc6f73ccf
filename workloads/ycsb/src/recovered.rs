//! Checks which acknowledged writes remain after the database was killed.

use std::collections::{HashMap, HashSet};

use rumba_engine_api::check::keep_example;
use rumba_workload_kit::ledger::{self, Entries, Noted, lost};

use crate::keys::KeyForm;
use crate::tally::{Entered, INSERT};
use crate::value::Author;

type Write = Noted<Author>;

/// The writes that must be present by the ledger, and those found missing.
pub struct RecoveryCheck {
    /// The writers of the ledger's file have numbers from this one on.
    first_writer: u32,
    /// The updates of each field of a record.
    updates: HashMap<(u64, u32), Vec<Write>>,
    /// The inserts of records; each is a write to all fields.
    inserts: HashMap<u64, Write>,
    /// The acknowledged inserts that are not found yet, by key.
    missing: HashMap<Box<[u8]>, u64>,
    inserts_in_doubt: u64,
    inserted: u64,
    acknowledged: u64,
    lost: HashSet<Author>,
    examples: Vec<String>,
    /// The writes to the field being checked.
    writes: Vec<Write>,
}

impl RecoveryCheck {
    /// For the file of a ledger whose writers have numbers from `first_writer` on.
    pub fn new(entries: &Entries, first_writer: u32, keys: KeyForm) -> Self {
        let mut left = Self {
            first_writer,
            updates: HashMap::new(),
            inserts: HashMap::new(),
            missing: HashMap::new(),
            inserts_in_doubt: entries.in_doubt_of(INSERT),
            inserted: 0,
            acknowledged: entries.acknowledged.len() as u64,
            lost: HashSet::new(),
            examples: Vec::new(),
            writes: Vec::new(),
        };
        entries.all().for_each(|write| left.enter(write));
        let acknowledged = left.inserts.iter().filter(|(_, insert)| insert.ended_ns.is_some());
        left.missing = acknowledged.map(|(record, _)| (keys.key(*record).bytes().into(), *record)).collect();
        left.inserted = left.missing.len() as u64;
        left
    }

    fn enter(&mut self, write: &ledger::Write) {
        let Entered { record, fields, noted } = Entered::of(write);
        if write.kind == INSERT {
            self.inserts.insert(record, noted);
            return;
        }
        for field in fields {
            self.updates.entry((record, field)).or_default().push(noted);
        }
    }

    /// Whether the author may be one of the ledger's writers.
    pub fn may_have_written(&self, author: Author) -> bool {
        author.writer >= self.first_writer && author.version > 0
    }

    pub fn found(&mut self, key: &[u8]) {
        self.missing.remove(key);
    }

    pub fn value(&mut self, record: u64, field: usize, found: Author) {
        let updates = self.updates.get(&(record, field as u32)).into_iter().flatten();
        self.writes.clear();
        self.writes.extend(self.inserts.get(&record).into_iter().chain(updates));
        let authors: Vec<Author> = lost(&self.writes, &found).map(|write| write.mark).collect();
        for author in authors {
            self.lose(author, || {
                let Author { writer, version } = found;
                format!("of record {record}, field {field}: writer {writer}'s write {version} is there")
            });
        }
    }

    fn lose(&mut self, author: Author, what: impl FnOnce() -> String) {
        if self.lost.insert(author) {
            let Author { writer, version } = author;
            keep_example(&mut self.examples, || format!("writer {writer}'s write {version} {}", what()));
        }
    }

    /// Ends the check of all records: returns the number of acknowledged writes, the number of lost ones, and examples.
    pub fn end(&mut self) -> (u64, u64, Vec<String>) {
        let missing: HashSet<u64> = self.missing.drain().map(|(_, record)| record).collect();
        for record in &missing {
            if let Some(insert) = self.inserts.get(record) {
                self.lose(insert.mark, || format!("that inserted record {record}"));
            }
        }
        // Later updates of these records are lost with them.
        let updates = self.updates.iter().filter(|((record, _), _)| missing.contains(record));
        let acknowledged = updates.flat_map(|(_, updates)| updates).filter(|update| update.ended_ns.is_some());
        self.lost.extend(acknowledged.map(|update| update.mark));
        (self.acknowledged, self.lost.len() as u64, std::mem::take(&mut self.examples))
    }

    /// The number of inserts in doubt, and the number of acknowledged inserts that are present.
    pub fn inserts(&self) -> (u64, u64) {
        (self.inserts_in_doubt, self.inserted - self.missing.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::UPDATE;

    const FIRST: u32 = 5;
    const RECORD: u64 = 77;
    const LOADED: Author = Author::LOADER;
    const KEYS: KeyForm = KeyForm { is_hashed: true, digits: 1 };

    fn author(writer: u32, version: u64) -> Author {
        Author { writer, version }
    }

    /// A write of this kind to these fields of a record, in doubt if it has no end.
    fn write(
        kind: u32,
        (record, fields): (u64, (u32, u32)),
        author: Author,
        times: (u64, Option<u64>),
    ) -> ledger::Write {
        let fields = u64::from(fields.0) | u64::from(fields.1) << 32;
        let entry = ledger::entry_of([record, author.version, fields, author.writer.into()]);
        ledger::Write { kind, entry, began_ns: times.0, ended_ns: times.1 }
    }

    fn update(author: Author, began_ns: u64, ended_ns: Option<u64>) -> ledger::Write {
        write(UPDATE, (RECORD, (2, 3)), author, (began_ns, ended_ns))
    }

    #[test]
    fn update_is_lost_if_the_previous_value_is_found() {
        let (first, second, open) = (author(5, 1), author(6, 9), author(5, 2));
        let acknowledged = vec![update(first, 10, Some(20)), update(second, 30, Some(40))];
        let entries = Entries { acknowledged, in_doubt: vec![update(open, 25, None)] };
        let lost = |found| {
            let mut left = RecoveryCheck::new(&entries, FIRST, KEYS);
            left.value(RECORD, 2, found);
            // Another field has other writes.
            left.value(RECORD, 3, LOADED);
            left.end().1
        };
        assert_eq!((lost(second), lost(first), lost(LOADED)), (0, 1, 2));
        assert_eq!(lost(open), 0, "it was in doubt");
        assert_eq!(lost(author(4, 1000)), 2, "what was written before the kill's process");
    }

    #[test]
    fn missing_insert_is_lost_with_its_later_updates() {
        let insert = |record, author, ended_ns| write(INSERT, (record, (0, 10)), author, (1, ended_ns));
        let acknowledged = vec![
            insert(RECORD, author(5, 1), Some(2)),
            insert(78, author(5, 2), Some(2)),
            update(author(6, 1), 10, Some(20)),
        ];
        let in_doubt = vec![insert(79, author(7, 1), None), insert(80, author(8, 1), None)];
        let mut left = RecoveryCheck::new(&Entries { acknowledged, in_doubt }, FIRST, KEYS);
        left.found(KEYS.key(78).bytes());
        left.found(KEYS.key(79).bytes());
        assert_eq!(left.inserts(), (2, 1));
        let reported = "writer 5's write 1 that inserted record 77".to_owned();
        assert_eq!(left.end(), (3, 2, vec![reported]));
    }
}
