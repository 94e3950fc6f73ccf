//! What a database does with the workload's operations: the port, with an adapter for each family.

use std::ops::Range;

use rumba_core::error::EngineError;
use rumba_core::worker::StatementCounts;

use crate::keys::Key;

/// Which fields of a record are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All.
    All,
    /// This one.
    One(usize),
}

/// New content of some fields that follow each other, in one flat buffer that is reused.
#[derive(Clone, Debug, Default)]
pub struct Values {
    first: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    /// Nothing yet, with room for so many fields and bytes.
    pub fn with_room(fields: usize, bytes: usize) -> Self {
        Self { first: 0, bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(fields) }
    }

    /// Fills these fields with what `put` appends for each.
    pub fn fill(&mut self, fields: Range<usize>, mut put: impl FnMut(&mut Vec<u8>, usize)) {
        self.first = fields.start;
        self.bytes.clear();
        self.ends.clear();
        for field in fields {
            put(&mut self.bytes, field);
            self.ends.push(self.bytes.len());
        }
    }

    /// The fields.
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

/// What a write to a record came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whether the record was there; if not, nothing was done. `None` where the store does not look.
    pub found: Option<bool>,
    /// By how many bytes it grew, where the store learns it.
    pub growth: Option<i64>,
}

impl Written {
    /// It was written without a look at what was there.
    pub const UNREAD: Self = Self { found: None, growth: None };

    /// There was no such record.
    pub const NOTHING: Self = Self { found: Some(false), growth: Some(0) };
}

/// What is called with each field of a record that was read: its number and its content.
pub type VisitField<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// Remembers the first error that a visitor met; visitors cannot return one.
pub fn keep(first: &mut Option<EngineError>, result: Result<(), EngineError>) {
    if let Err(error) = result {
        first.get_or_insert(error);
    }
}

/// The operations on the table, each whole. After an error nothing of it is left, but after [`EngineError::CutOff`], when
/// that is not known.
pub trait Store {
    /// Reads the wanted fields of a record; false when it is not there.
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool, EngineError>;

    /// Writes some fields of a record that is there.
    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written, EngineError>;

    /// Inserts a record, all of its fields.
    async fn insert(&mut self, key: &Key, values: &Values) -> Result<(), EngineError>;

    /// Reads the wanted fields of up to so many records from this key on; how many there were. A record's fields are visited
    /// in their order before the next one's.
    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>)
    -> Result<u64, EngineError>;

    /// Reads the wanted fields of a record, and writes some of it: an update behind a read, where the engine has nothing better.
    async fn read_modify_write(
        &mut self,
        key: &Key,
        wanted: Wanted,
        values: &Values,
        visit: VisitField<'_>,
    ) -> Result<Written, EngineError> {
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
    /// Records that are written together at most where their keys are scattered over all of the table.
    const SCATTERED_TOGETHER: u64;

    /// Adds a record to the batch.
    fn stage(&mut self, key: &Key, values: &Values);

    /// Writes the batch, all or nothing.
    async fn load_staged(&mut self) -> Result<(), EngineError>;

    /// Forgets the batch.
    fn clear_staged(&mut self);

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts;
}

/// A whole record that was found: its key, and what field has which content, in order.
pub type VisitRecord<'a> = &'a mut dyn FnMut(&[u8], &dyn Fields);

/// The fields of a record that was found.
pub trait Fields {
    /// How many there are.
    fn count(&self) -> usize;
    /// The content of one.
    fn get(&self, field: usize) -> &[u8];
}

/// Reads the whole table, for whoever proves it.
pub trait Inspect {
    /// Visits up to `limit` records behind a key, in the order of their keys, from the first one on without it; how many
    /// there were.
    fn page(&mut self, after: Option<&[u8]>, limit: u64, visit: VisitRecord<'_>) -> Result<u64, EngineError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_the_number_of_their_field() {
        let mut values = Values::default();
        values.fill(3..6, |out, field| out.extend(std::iter::repeat_n(b'0' + field as u8, field)));
        assert_eq!((values.fields(), values.len()), (3..6, 12));
        let told: Vec<_> = (2..7).map(|field| values.get(field)).collect();
        assert_eq!(told, [None, Some(&b"333"[..]), Some(&b"4444"[..]), Some(&b"55555"[..]), None]);
    }
}
