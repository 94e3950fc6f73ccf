//! Checks which acknowledged writes remain after the database was killed.

use std::collections::{HashMap, HashSet};

use rumba_engine_api::acid::{Entry, Journaled};
use rumba_engine_api::check::keep_example;
use rumba_workload_kit::journal::{Noted, lost};

use crate::journal::{Entered, Write as Kind};
use crate::keys::KeyForm;
use crate::value::Author;

/// A write with its author.
type Write = Noted<Author>;

/// The writes that must be present by the journal, and those found missing.
pub struct RecoveryCheck {
    /// The writers of the journal have numbers from this one on.
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
    /// For a journal whose writers have numbers from `first_writer` on.
    pub fn new(journaled: &Journaled, first_writer: u32, keys: KeyForm) -> Self {
        let mut left = Self {
            first_writer,
            updates: HashMap::new(),
            inserts: HashMap::new(),
            missing: HashMap::new(),
            inserts_in_doubt: journaled.in_doubt_of(Kind::Insert.number()),
            inserted: 0,
            acknowledged: journaled.acknowledged.len() as u64,
            lost: HashSet::new(),
            examples: Vec::new(),
            writes: Vec::new(),
        };
        journaled.acknowledged.iter().chain(journaled.in_doubt()).for_each(|(kind, words)| left.enter(*kind, words));
        let acknowledged = left.inserts.iter().filter(|(_, insert)| insert.ended_ns.is_some());
        left.missing = acknowledged.map(|(record, _)| (keys.key(*record).bytes().into(), *record)).collect();
        left.inserted = left.missing.len() as u64;
        left
    }

    fn enter(&mut self, kind: u32, words: &Entry) {
        let Entered { record, fields, author, began_ns, ended_ns } = Entered::of_words(words);
        if author == Author::LOADER {
            // The write is in doubt, and its values do not identify their author.
            return;
        }
        let write = Write { mark: author, began_ns, ended_ns: (ended_ns > 0).then_some(ended_ns) };
        if kind == Kind::Insert.number() {
            self.inserts.insert(record, write);
            return;
        }
        for field in fields.0..fields.1 {
            self.updates.entry((record, field)).or_default().push(write);
        }
    }

    /// Whether the author may be one of the journal's writers.
    pub fn may_have_written(&self, author: Author) -> bool {
        author.writer >= self.first_writer && author.version > 0
    }

    /// A record was found.
    pub fn found(&mut self, key: &[u8]) {
        self.missing.remove(key);
    }

    /// A field of a record was found, and its value is this writer's.
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
    use rumba_engine_api::acid::Note;

    use super::*;

    const FIRST: u32 = 5;
    const RECORD: u64 = 77;
    const LOADED: Author = Author::LOADER;
    const KEYS: KeyForm = KeyForm { is_hashed: true, digits: 1 };

    fn author(writer: u32, version: u64) -> Author {
        Author { writer, version }
    }

    fn update(author: Author, began_ns: u64, ended_ns: u64) -> (u32, Entry) {
        (Kind::Update.number(), Entered { record: RECORD, fields: (2, 3), author, began_ns, ended_ns }.words())
    }

    /// A journal with acknowledged writes, and writes in doubt that another client had begun.
    fn journaled(acknowledged: Vec<(u32, Entry)>, in_doubt: &[(u32, Entry)]) -> Journaled {
        let mut journaled = Journaled::default();
        journaled.acknowledged = acknowledged;
        (0..).zip(in_doubt).for_each(|(client, (kind, entry))| journaled.take(client, Note::Begun(*kind, *entry)));
        journaled
    }

    #[test]
    fn an_update_is_lost_where_what_was_there_before_it_is_found() {
        let (first, second, open) = (author(5, 1), author(6, 9), author(5, 2));
        let writes = vec![update(first, 10, 20), update(second, 30, 40)];
        let lost = |found| {
            let mut left = RecoveryCheck::new(&journaled(writes.clone(), &[update(open, 25, 0)]), FIRST, KEYS);
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
        let insert = |record, author, ended_ns| {
            let entered = Entered { record, fields: (0, 10), author, began_ns: 1, ended_ns };
            (Kind::Insert.number(), entered.words())
        };
        let acknowledged =
            vec![insert(RECORD, author(5, 1), 2), insert(78, author(5, 2), 2), update(author(6, 1), 10, 20)];
        // The values of the second write in doubt do not identify their author.
        let in_doubt = [insert(79, author(7, 1), 0), (Kind::Insert.number(), Entry::default())];
        let mut left = RecoveryCheck::new(&journaled(acknowledged, &in_doubt), FIRST, KEYS);
        left.found(KEYS.key(78).bytes());
        left.found(KEYS.key(79).bytes());
        assert_eq!(left.inserts(), (2, 1));
        let reported = "writer 5's write 1 that inserted record 77".to_owned();
        assert_eq!(left.end(), (3, 2, vec![reported]));
    }
}
