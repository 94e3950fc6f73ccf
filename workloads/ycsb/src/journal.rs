//! A store that records acknowledged writes outside of the database and of the process that will be killed.

use std::sync::Arc;

use rumba_engine_api::acid::Entry;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::journal::{End, Notes, entry_of, numbers_of};

use crate::keys::Key;
use crate::settings::Config;
use crate::store::{Store, Values, VisitField, Wanted, Written};
use crate::value::{Author, ValueOrigin, reported};
use crate::verify::scatter_of;

/// The kind of write in a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Update,
    Insert,
}

impl Write {
    /// Its number in a journal.
    pub fn number(self) -> u32 {
        self as u32
    }
}

/// A write: the fields of a record, the author, and the times in nanoseconds since the clients' process began. An end
/// of 0 means that it has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    pub record: u64,
    pub fields: (u32, u32),
    pub author: Author,
    pub began_ns: u64,
    pub ended_ns: u64,
}

impl Entered {
    /// As a journal keeps it.
    pub fn words(&self) -> Entry {
        let Self { record, fields, author, began_ns, ended_ns } = *self;
        let fields = u64::from(fields.0) | u64::from(fields.1) << 32;
        entry_of([record, author.version, began_ns, ended_ns, fields, author.writer.into()])
    }

    /// From a journal.
    pub fn of_words(words: &Entry) -> Self {
        let [record, version, began_ns, ended_ns, fields, writer, _] = numbers_of(words);
        let fields = (fields as u32, (fields >> 32) as u32);
        Self { record, fields, author: Author { writer: writer as u32, version }, began_ns, ended_ns }
    }
}

/// A store for a client whose database will be killed.
pub struct Journaling<S> {
    store: S,
    config: Arc<Config>,
    notes: Notes,
    scratch: Vec<u8>,
}

/// A write in progress: its kind, and its journal entry if its values identify their author.
struct UnderWay {
    write: Write,
    entered: Option<Entered>,
}

impl<S: Store> Journaling<S> {
    /// Wraps a store.
    pub fn new(store: S, config: Arc<Config>, notes: Notes) -> Self {
        Self { store, config, notes, scratch: Vec::new() }
    }

    /// The author of these values. Values too short for one are only noted as begun, and so stay in doubt.
    fn owner(&mut self, key: &Key, values: &Values) -> Option<(u64, Author)> {
        let scatter = scatter_of(&self.config, key.bytes())?;
        values.fields().find_map(|field| {
            let value = values.get(field)?;
            match reported(value, &self.config.lengths, scatter, field, &mut self.scratch) {
                ValueOrigin::By(record, author) => Some((record, author)),
                ValueOrigin::Short | ValueOrigin::Foreign => None,
            }
        })
    }

    fn begin(&mut self, write: Write, key: &Key, values: &Values) -> Result<UnderWay, EngineError> {
        let (owner, fields) = (self.owner(key, values), values.fields());
        let fields = (fields.start as u32, fields.end as u32);
        let began_ns = self.notes.now_ns();
        let entered = owner.map(|(record, author)| Entered { record, fields, author, began_ns, ended_ns: 0 });
        let words = entered.map(|entered| entered.words()).unwrap_or_default();
        self.notes.begin(write.number(), words)?;
        Ok(UnderWay { write, entered })
    }

    fn end<T>(
        &mut self,
        UnderWay { write, entered }: UnderWay,
        ended: Result<T, EngineError>,
        is_done: impl Fn(&T) -> bool,
    ) -> Result<T, EngineError> {
        self.notes.end(write.number(), ended, |reported, ended_ns| match entered {
            _ if !is_done(reported) => End::Undone,
            Some(entered) => End::Acknowledged(Entered { ended_ns, ..entered }.words()),
            None => End::InDoubt,
        })
    }
}

/// Whether the record to write existed.
fn is_written(written: &Written) -> bool {
    written.found != Some(false)
}

impl<S: Store> Store for Journaling<S> {
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool, EngineError> {
        self.store.read(key, wanted, visit).await
    }

    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written, EngineError> {
        let under_way = self.begin(Write::Update, key, values)?;
        let written = self.store.update(key, values).await;
        self.end(under_way, written, is_written)
    }

    async fn insert(&mut self, key: &Key, values: &Values) -> Result<(), EngineError> {
        let under_way = self.begin(Write::Insert, key, values)?;
        let inserted = self.store.insert(key, values).await;
        self.end(under_way, inserted, |()| true)
    }

    async fn scan(
        &mut self,
        from: &Key,
        count: u64,
        wanted: Wanted,
        visit: VisitField<'_>,
    ) -> Result<u64, EngineError> {
        self.store.scan(from, count, wanted, visit).await
    }

    async fn read_modify_write(
        &mut self,
        key: &Key,
        wanted: Wanted,
        values: &Values,
        visit: VisitField<'_>,
    ) -> Result<Written, EngineError> {
        let under_way = self.begin(Write::Update, key, values)?;
        let written = self.store.read_modify_write(key, wanted, values, visit).await;
        self.end(under_way, written, is_written)
    }

    fn statements(&mut self) -> StatementCounts {
        self.store.statements()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_is_read_back() {
        let author = Author { writer: 7, version: u64::MAX - 3 };
        let entered =
            Entered { record: 5 << 40 | 9, fields: (3, 10), author, began_ns: 1 << 33, ended_ns: (1 << 33) + 17 };
        assert_eq!(Entered::of_words(&entered.words()), entered);
    }
}
