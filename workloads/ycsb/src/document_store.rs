//! The table over documents: one collection with a document per record, whose `_id` is its key. The other fields are
//! those of YCSB's binding (`field0` and on, each of bytes). As in YCSB, each command is its own transaction: a
//! read-modify-write is two.

use rumba_engine_api::bson::{Document, DocumentBuf, Documents, Malformed, Value};
use rumba_engine_api::document::{Command, DocumentSession, Find, Update};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::{StatementCounts, block_on};
use rumba_workload_kit::{CountedDocuments, keep_first, limited};

use crate::keys::Key;
use crate::load::BATCH;
use crate::store::{Fields, Inspect, Load, Store, Values, VisitField, VisitRecord, Wanted, Written};

const TABLE: &str = "usertable";
const ID: &str = "_id";
const FIELD: &str = "field";

/// The command that creates the collection. On older servers, a transaction cannot create it.
pub fn collection() -> DocumentBuf {
    DocumentBuf::of(|of| of.text("create", TABLE))
}

fn named(field: usize) -> String {
    format!("{FIELD}{field}")
}

fn number(name: &[u8]) -> Option<usize> {
    let digits = name.strip_prefix(FIELD.as_bytes()).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// In the order of the keys.
fn rising() -> DocumentBuf {
    DocumentBuf::of(|of| of.small(ID, 1))
}

#[cold]
fn broken(document: Document<'_>, error: Malformed) -> EngineError {
    EngineError::failed("find", format!("{document:?} is not a record: {error}"))
}

/// Visits the fields of a document, in order.
fn visit_fields(document: Document<'_>, visit: VisitField<'_>) -> Result<()> {
    let mut each = || -> Result<(), Malformed> {
        for element in document.iter() {
            let (name, value) = element?;
            if name == ID.as_bytes() {
                continue;
            }
            let field = number(name).ok_or(Malformed("a value that is not a field"))?;
            visit(field, value.bytes().ok_or(Malformed("a field without bytes"))?);
        }
        Ok(())
    };
    each().map_err(|error| broken(document, error))
}

/// The adapter of clients and of the proof.
pub struct DocumentStore {
    session: CountedDocuments,
    /// The fields' names, and the projection for each single field.
    names: Vec<String>,
    one: Vec<DocumentBuf>,
    rising: DocumentBuf,
    /// Buffers that are rewritten for each command.
    filter: DocumentBuf,
    update: DocumentBuf,
    record: Documents,
}

impl DocumentStore {
    /// A store of records with this many fields.
    pub fn new(session: Box<dyn DocumentSession>, fields: usize) -> Self {
        let names: Vec<String> = (0..fields).map(named).collect();
        Self {
            session: CountedDocuments::new(session),
            one: names.iter().map(|name| DocumentBuf::of(|of| of.small(name, 1))).collect(),
            names,
            rising: rising(),
            filter: DocumentBuf::default(),
            update: DocumentBuf::default(),
            record: Documents::default(),
        }
    }

    /// Visits the wanted fields of the records that match the filter; returns how many there were.
    async fn find(&mut self, limit: u32, is_sorted: bool, wanted: Wanted, visit: VisitField<'_>) -> Result<u64> {
        let projection = match wanted {
            Wanted::All => Document::EMPTY,
            Wanted::One(field) => self.one.get(field).map_or(Document::EMPTY, DocumentBuf::get),
        };
        let sort = if is_sorted { self.rising.get() } else { Document::EMPTY };
        let find = Find { projection, sort, limit, ..Find::by(self.filter.get()) };
        let mut first = None;
        let mut each = |document: Document<'_>| keep_first(&mut first, visit_fields(document, visit));
        let done = self.session.execute(Command::Find { of: TABLE, find }, &mut each).await?;
        first.map_or(Ok(done.documents), Err)
    }
}

fn push(records: &mut Documents, names: &[String], key: &Key, values: &Values) {
    records.push(|of| {
        of.value(ID, Value::Text(key.bytes()));
        for (field, name) in values.fields().zip(names) {
            of.binary(name, values.get(field).unwrap_or_default());
        }
    });
}

impl Store for DocumentStore {
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool> {
        self.filter.write(|of| of.value(ID, Value::Text(key.bytes())));
        Ok(self.find(1, false, wanted, visit).await? > 0)
    }

    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written> {
        let Self { session, names, filter, update, .. } = self;
        let update = Update {
            filter: filter.write(|of| of.value(ID, Value::Text(key.bytes()))),
            update: update.write(|of| {
                of.document("$set", |of| {
                    for field in values.fields() {
                        of.binary(&names[field], values.get(field).unwrap_or_default());
                    }
                });
            }),
            upsert: false,
        };
        let done = session.change(Command::Update { of: TABLE, update }).await?;
        Ok(Written { found: Some(done.matched > 0), growth: None })
    }

    async fn insert(&mut self, key: &Key, values: &Values) -> Result<()> {
        self.record.clear();
        push(&mut self.record, &self.names, key, values);
        self.session.change(Command::Insert { into: TABLE, documents: &self.record }).await.map(drop)
    }

    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>) -> Result<u64> {
        self.filter.write(|of| of.document(ID, |of| of.value("$gte", Value::Text(from.bytes()))));
        self.find(limited(count), true, wanted, visit).await
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

/// The adapter of loaders: batches, each one command, and one transaction if the server has transactions.
pub struct DocumentLoader {
    session: CountedDocuments,
    names: Vec<String>,
    records: Documents,
}

impl DocumentLoader {
    /// A loader of records with this many fields.
    pub fn new(session: Box<dyn DocumentSession>, fields: usize) -> Self {
        let names = (0..fields).map(named).collect();
        Self { session: CountedDocuments::new(session), names, records: Documents::default() }
    }
}

impl Load for DocumentLoader {
    /// As large as other batches, because smaller ones would need more round trips.
    const SCATTERED_TOGETHER: u64 = BATCH;

    fn stage(&mut self, key: &Key, values: &Values) {
        push(&mut self.records, &self.names, key, values);
    }

    async fn load_staged(&mut self) -> Result<()> {
        self.session.begin().await?;
        let loaded = self.session.add(TABLE, &self.records).await;
        self.session.end(loaded).await
    }

    fn clear_staged(&mut self) {
        self.records.clear();
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }
}

/// A whole record: its fields by number. It is empty unless the document has all fields, once each and without gaps.
struct WholeRecord<'a>(Vec<&'a [u8]>);

impl<'a> WholeRecord<'a> {
    fn of(document: Document<'a>) -> Self {
        let numbered = |(name, value): (&[u8], Value<'a>)| Some((number(name)?, value.bytes()?));
        let values = document.iter().filter(|element| !matches!(element, Ok((name, _)) if *name == ID.as_bytes()));
        let fields: Option<Vec<(usize, &[u8])>> = values.map(|element| numbered(element.ok()?)).collect();
        let mut fields = fields.unwrap_or_default();
        fields.sort_by_key(|(number, _)| *number);
        let is_whole = (0..).zip(&fields).all(|(place, (number, _))| place == *number);
        Self(if is_whole { fields.into_iter().map(|(_, bytes)| bytes).collect() } else { Vec::new() })
    }
}

impl Fields for WholeRecord<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, field: usize) -> &[u8] {
        self.0.get(field).copied().unwrap_or_default()
    }
}

impl Inspect for DocumentStore {
    fn page(&mut self, after: Option<&[u8]>, limit: u64, visit: VisitRecord<'_>) -> Result<u64> {
        let filter = self.filter.write(|of| {
            if let Some(key) = after {
                of.document(ID, |of| of.value("$gt", Value::Text(key)));
            }
        });
        let find = Find { sort: self.rising.get(), limit: limited(limit), ..Find::by(filter) };
        let mut first = None;
        let mut each = |document: Document<'_>| {
            // Pages continue after a key, so a document whose key is not of bytes cannot be skipped.
            let key = document.blob(ID).map_err(|error| broken(document, error));
            keep_first(&mut first, key.map(|key| visit(key, &WholeRecord::of(document))));
        };
        let done = block_on(self.session.execute(Command::Find { of: TABLE, find }, &mut each))?;
        first.map_or(Ok(done.documents), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_record_has_each_field_exactly_once() {
        let count = |names: &[&str]| {
            let document = DocumentBuf::of(|of| {
                of.text(ID, "user1");
                names.iter().for_each(|name| of.binary(name, b"x"));
            });
            WholeRecord::of(document.get()).count()
        };
        assert_eq!(count(&["field0", "field1"]), 2);
        assert_eq!(count(&["field1", "field0"]), 2, "in any order");
        for broken in [&["field0", "field2"][..], &["field0", "field0"], &["field0", "other"], &["field0", "field+1"]] {
            assert_eq!(count(broken), 0, "{broken:?}");
        }
        let text = DocumentBuf::of(|of| of.int("field0", 7));
        assert_eq!(WholeRecord::of(text.get()).count(), 0, "a number is no field's content");
    }
}
