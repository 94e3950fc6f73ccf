//! What is left of acknowledged writes after the database was killed.

use std::collections::{HashMap, HashSet};

use rumba_core::acid::Journaled;

use crate::journal::{Entered, Write};
use crate::keys::KeyForm;
use crate::value::Author;

/// Losses that are told in words.
const EXAMPLES: usize = 5;

/// Fields of records, each with the acknowledged updates of it, in the order of their ends.
type Updates = HashMap<(u64, u32), Vec<Entered>>;

/// What a journal says that must be there, and what of it is found missing.
///
/// A write that another one may have replaced is not missed: one that was acknowledged after it, or that met it, or that
/// was in doubt when the database was killed.
pub struct Left {
    /// The writers of the journal have this number and higher ones.
    first_writer: u32,
    updates: Updates,
    /// Of records that were inserted: a write to all of their fields.
    inserts: HashMap<u64, Entered>,
    /// Those that were not found yet, by their keys.
    missing: HashMap<Box<[u8]>, u64>,
    inserts_in_doubt: u64,
    acknowledged: u64,
    lost: HashSet<Author>,
    examples: Vec<String>,
}

impl Left {
    /// Of a journal whose writers have numbers from `first_writer` on.
    pub fn new(journaled: &Journaled, first_writer: u32, keys: KeyForm) -> Self {
        let (mut updates, mut inserts) = (Updates::new(), HashMap::new());
        for (kind, words) in &journaled.acknowledged {
            let entered = Entered::of_words(words);
            if *kind == Write::Insert.kind() {
                inserts.insert(entered.record, entered);
                continue;
            }
            for field in entered.fields.0..entered.fields.1 {
                updates.entry((entered.record, field)).or_default().push(entered);
            }
        }
        let in_doubt = journaled.in_doubt.get(&Write::Insert.kind()).copied().unwrap_or_default();
        let missing = inserts.keys().map(|record| (keys.key(*record).bytes().into(), *record)).collect();
        Self {
            first_writer,
            updates,
            inserts,
            missing,
            inserts_in_doubt: in_doubt,
            acknowledged: journaled.acknowledged.len() as u64,
            lost: HashSet::new(),
            examples: Vec::new(),
        }
    }

    /// Whether it may be one of the journal's writers.
    pub fn may_have_written(&self, author: Author) -> bool {
        author.writer >= self.first_writer && author.version > 0
    }

    /// A record was found.
    pub fn found(&mut self, key: &[u8]) {
        self.missing.remove(key);
    }

    /// A field of a record was found, and its value is this writer's.
    pub fn value(&mut self, record: u64, field: usize, found: Author) {
        let updates = self.updates.get(&(record, field as u32)).map_or(&[][..], Vec::as_slice);
        let writes = || self.inserts.get(&record).into_iter().chain(updates);
        // From when on others' writes have come after it: always, if it was there before all of them.
        let since = match writes().find(|write| write.author == found) {
            Some(own) => own.ended_ns,
            // In doubt, and so perhaps the last.
            None if self.may_have_written(found) => return,
            None => 0,
        };
        let is_missing = |write: &&Entered| {
            let is_own = write.author.writer == found.writer;
            if is_own { write.author.version > found.version } else { write.began_ns > since }
        };
        let missing: Vec<Author> = writes().filter(is_missing).map(|write| write.author).collect();
        for author in missing {
            self.miss(author, || {
                let Author { writer, version } = found;
                format!("of record {record}, field {field}: writer {writer}'s write {version} is there")
            });
        }
    }

    fn miss(&mut self, author: Author, what: impl FnOnce() -> String) {
        if self.lost.insert(author) && self.examples.len() < EXAMPLES {
            self.examples.push(format!("writer {}'s write {} {}", author.writer, author.version, what()));
        }
    }

    /// All records have been looked at: how many writes were looked for, how many of them are not there, and which.
    pub fn end(&mut self) -> (u64, u64, Vec<String>) {
        let missing: HashSet<u64> = self.missing.drain().map(|(_, record)| record).collect();
        for record in &missing {
            if let Some(insert) = self.inserts.get(record) {
                self.miss(insert.author, || format!("that inserted record {record}"));
            }
        }
        // What was written to them since is gone with them.
        let updates = self.updates.iter().filter(|((record, _), _)| missing.contains(record));
        self.lost.extend(updates.flat_map(|(_, updates)| updates).map(|update| update.author));
        (self.acknowledged, self.lost.len() as u64, std::mem::take(&mut self.examples))
    }

    /// Of the inserts: how many were in doubt, and how many of the acknowledged are there.
    pub fn inserts(&self) -> (u64, u64) {
        (self.inserts_in_doubt, (self.inserts.len() - self.missing.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: u32 = 5;
    const RECORD: u64 = 77;
    const LOADED: Author = Author::LOADER;
    const KEYS: KeyForm = KeyForm { is_hashed: true, digits: 1 };

    fn author(writer: u32, version: u64) -> Author {
        Author { writer, version }
    }

    fn write(author: Author, began_ns: u64, ended_ns: u64) -> Entered {
        Entered { record: RECORD, fields: (2, 3), author, began_ns, ended_ns }
    }

    /// Which writes are missed when this is what is found in their field.
    fn missed(writes: &[Entered], found: Author) -> Vec<Author> {
        let mut left = Left::new(&Journaled::default(), FIRST, KEYS);
        left.updates.insert((RECORD, 2), writes.to_vec());
        left.value(RECORD, 2, found);
        let mut lost: Vec<Author> = left.lost.iter().copied().collect();
        lost.sort_unstable();
        lost
    }

    #[test]
    fn a_write_that_no_later_one_may_have_replaced_is_missed() {
        let (first, second, met) = (author(5, 1), author(5, 2), author(6, 9));
        // The third begins before the second has ended.
        let writes = [write(first, 10, 20), write(second, 30, 50), write(met, 40, 60)];
        assert_eq!(missed(&writes, second), [], "of two that met either may be last");
        assert_eq!(missed(&writes, met), []);
        assert_eq!(missed(&writes, first), [second, met]);
        assert_eq!(missed(&writes, LOADED), [first, second, met]);
        assert_eq!(
            missed(&writes, author(4, 1000)),
            [first, second, met],
            "what was written before the kill's process"
        );
        assert_eq!(missed(&writes, author(6, 10)), [], "it was in doubt");
        assert_eq!(missed(&writes, author(5, 3)), [], "likewise");
    }

    #[test]
    fn an_insert_that_is_not_there_is_lost_with_what_was_written_to_it() {
        let insert = |record, author| {
            let entered = Entered { record, fields: (0, 10), author, began_ns: 1, ended_ns: 2 };
            (Write::Insert.kind(), entered.words())
        };
        let journaled = Journaled {
            acknowledged: vec![
                insert(RECORD, author(5, 1)),
                insert(78, author(5, 2)),
                (Write::Update.kind(), write(author(6, 1), 10, 20).words()),
            ],
            in_doubt: [(Write::Insert.kind(), 3)].into(),
        };
        let mut left = Left::new(&journaled, FIRST, KEYS);
        left.found(KEYS.key(78).bytes());
        assert_eq!(left.inserts(), (3, 1));
        let told = "writer 5's write 1 that inserted record 77".to_owned();
        assert_eq!(left.end(), (3, 2, vec![told]));
    }
}
