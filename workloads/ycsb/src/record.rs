//! A record as the value of its key: the lengths of its fields, four bytes each, and their content.

use rumba_engine_api::error::{EngineError, Result};

use crate::store::{Fields, Values, VisitField, Wanted};

const LENGTH: usize = 4;

/// Replaces `out` by a new record of all fields.
pub fn put(out: &mut Vec<u8>, values: &Values) {
    out.clear();
    let fields = values.fields();
    for field in fields.clone() {
        let length = values.get(field).unwrap_or_default().len();
        out.extend_from_slice(&(length as u32).to_le_bytes());
    }
    for field in fields {
        out.extend_from_slice(values.get(field).unwrap_or_default());
    }
}

/// A record with this many fields, as read.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    lengths: &'a [u8],
    content: &'a [u8],
}

impl<'a> Record<'a> {
    /// Without fields, for bytes that are no record of this workload.
    pub const NONE: Self = Self { lengths: &[], content: &[] };

    /// Reads a record that a client received.
    ///
    /// # Errors
    /// The record is shorter than its fields. Bytes after the fields are left to verification.
    pub fn of(bytes: &'a [u8], fields: usize) -> Result<Self> {
        let record = bytes.split_at_checked(fields * LENGTH).map(|(lengths, content)| Self { lengths, content });
        let record = record.ok_or_else(|| broken(bytes, fields))?;
        let total: usize = (0..fields).map(|field| record.length(field)).sum();
        if total <= record.content.len() { Ok(record) } else { Err(broken(bytes, fields)) }
    }

    /// Whether nothing lies behind the fields.
    pub fn is_exact(&self) -> bool {
        (0..self.count()).map(|field| self.length(field)).sum::<usize>() == self.content.len()
    }

    fn length(&self, field: usize) -> usize {
        let bytes = self.lengths.get(field * LENGTH..(field + 1) * LENGTH).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u32::from_le_bytes(bytes) as usize)
    }

    pub fn visit(&self, wanted: Wanted, visit: VisitField<'_>) {
        let mut rest = self.content;
        for field in 0..self.count() {
            let (content, behind) = rest.split_at(self.length(field));
            rest = behind;
            if wanted == Wanted::All || wanted == Wanted::One(field) {
                visit(field, content);
            }
        }
    }

    /// Makes the same record with new content in some fields; returns the bytes by which it has grown.
    pub fn put_with(&self, values: &Values, out: &mut Vec<u8>) -> i64 {
        out.clear();
        let changed = values.fields();
        out.extend_from_slice(self.lengths);
        let mut rest = self.content;
        let mut growth = 0;
        for field in 0..self.count() {
            let (content, behind) = rest.split_at(self.length(field));
            rest = behind;
            let Some(new) = values.get(field).filter(|_| changed.contains(&field)) else {
                out.extend_from_slice(content);
                continue;
            };
            out[field * LENGTH..(field + 1) * LENGTH].copy_from_slice(&(new.len() as u32).to_le_bytes());
            out.extend_from_slice(new);
            growth += new.len() as i64 - content.len() as i64;
        }
        growth
    }
}

impl Fields for Record<'_> {
    fn count(&self) -> usize {
        self.lengths.len() / LENGTH
    }

    fn get(&self, field: usize) -> &[u8] {
        let start: usize = (0..field).map(|before| self.length(before)).sum();
        &self.content[start..start + self.length(field)]
    }
}

#[cold]
fn broken(bytes: &[u8], fields: usize) -> EngineError {
    let words = format!(
        "a record of {} bytes is shorter than its {fields} fields, so it is not from this workload",
        bytes.len()
    );
    EngineError::failed("reading a record", words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_records_fail_and_longer_ones_are_noticed() {
        let (mut bytes, mut values) = (Vec::new(), Values::default());
        values.fill(0..4, |out, field| out.extend(std::iter::repeat_n(b'a', field + 1)));
        put(&mut bytes, &values);
        for end in 0..bytes.len() {
            assert!(Record::of(&bytes[..end], 4).is_err(), "{end} bytes");
        }
        bytes.push(0);
        assert!(!Record::of(&bytes, 4).unwrap().is_exact());
        // The answer of an engine that stores no data.
        let zeros = Record::of(&[0; 128], 10).unwrap();
        assert!((0..10).all(|field| zeros.get(field).is_empty()));
    }
}
