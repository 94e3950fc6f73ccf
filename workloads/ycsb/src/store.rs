//! The operations of a database for this workload: the port, with an adapter for each family.

use std::ops::Range;

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::StatementCounts;

use crate::keys::Key;

/// Which fields of a record are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    All,
    /// This one.
    One(usize),
}

/// New content of some adjacent fields, in one flat buffer that is reused.
#[derive(Clone, Debug, Default)]
pub struct Values {
    first: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    /// Empty, with room for this many fields and bytes.
    pub fn with_room(fields: usize, bytes: usize) -> Self {
        Self { first: 0, bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(fields) }
    }

    /// Fills these fields with the bytes that `put` appends for each.
    pub fn fill(&mut self, fields: Range<usize>, mut put: impl FnMut(&mut Vec<u8>, usize)) {
        self.first = fields.start;
        self.bytes.clear();
        self.ends.clear();
        for field in fields {
            put(&mut self.bytes, field);
            self.ends.push(self.bytes.len());
        }
    }

    pub fn fields(&self) -> Range<usize> {
        self.first..self.first + self.ends.len()
    }

    /// The content of a field, if it is among them.
    pub fn get(&self, field: usize) -> Option<&[u8]> {
        let place = field.checked_sub(self.first)?;
        let end = *self.ends.get(place)?;
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        Some(&self.bytes[start..end])
    }

    /// All bytes together.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The result of a write to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the record existed; if not, no write was done. `None` if the store does not check.
    pub found: Option<bool>,
    /// The bytes by which the record grew, if the store knows.
    pub growth: Option<i64>,
}

impl Written {
    /// Written without a check for the existing record.
    pub const UNREAD: Self = Self { found: None, growth: None };

    /// There was no such record.
    pub const NOTHING: Self = Self { found: Some(false), growth: Some(0) };
}

/// The callback for each field of a record that was read: its number and its content.
pub type VisitField<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// The operations on the table, each complete. After an error, an operation leaves no trace, except after
/// [`EngineError::CutOff`], when that is unknown.
pub trait Store {
    /// Reads the wanted fields of a record; false if it does not exist.
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool>;

    /// Writes some fields of an existing record.
    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written>;

    /// Inserts a record, all of its fields.
    async fn insert(&mut self, key: &Key, values: &Values) -> Result<()>;

    /// Reads the wanted fields of up to `count` records from this key on; returns how many there were. All fields of a
    /// record are visited, in order, before those of the next.
    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>) -> Result<u64>;

    /// Reads the wanted fields of a record, and writes some fields. By default this is a read followed by an update.
    async fn read_modify_write(
        &mut self,
        key: &Key,
        wanted: Wanted,
        values: &Values,
        visit: VisitField<'_>,
    ) -> Result<Written> {
        if !self.read(key, wanted, visit).await? {
            return Ok(Written::NOTHING);
        }
        self.update(key, values).await
    }

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts;
}

/// Loads records in batches.
pub trait Load {
    /// The maximum batch size if keys are scattered over the whole table.
    const SCATTERED_TOGETHER: u64;

    /// Adds a record to the batch.
    fn stage(&mut self, key: &Key, values: &Values);

    /// Writes the batch, all or nothing.
    async fn load_staged(&mut self) -> Result<()>;

    /// Forgets the batch.
    fn clear_staged(&mut self);

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts;
}

/// The callback for each record found: its key and its fields, in order.
pub type VisitRecord<'a> = &'a mut dyn FnMut(&[u8], &dyn Fields);

/// The fields of a record that was found.
pub trait Fields {
    /// How many there are.
    fn count(&self) -> usize;
    /// The content of one.
    fn get(&self, field: usize) -> &[u8];
}

/// Reads the whole table for verification.
pub trait Inspect {
    /// Visits up to `limit` records after a key in key order, or from the first one on without a key; returns how many
    /// there were.
    fn page(&mut self, after: Option<&[u8]>, limit: u64, visit: VisitRecord<'_>) -> Result<u64>;
}
