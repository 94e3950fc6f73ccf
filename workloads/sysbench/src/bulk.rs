//! Rows that a script inserts one by one, sent many at a time.

use rumba_engine_api::value::SqlValue;

/// The approximate size of a statement: below the packet size that every server accepts.
const STATEMENT_BYTES: usize = 512 << 10;

/// An INSERT of many rows in the making.
#[derive(Debug)]
pub(crate) struct Bulk {
    /// The beginning of every statement.
    opening: Vec<u8>,
    statement: Vec<u8>,
    /// The buffer for a row of numbers.
    row: Vec<u8>,
}

impl Bulk {
    /// Rows after this text: `INSERT INTO t (k) VALUES`.
    pub(crate) fn new(opening: &[u8]) -> Self {
        Self { opening: opening.to_vec(), statement: Vec::with_capacity(STATEMENT_BYTES + 4096), row: Vec::new() }
    }

    /// Adds a row, `(1, 'a')`; returns a full statement without it, if there is one.
    pub(crate) fn add(&mut self, row: &[u8]) -> Option<Vec<u8>> {
        let mut full = None;
        if self.statement.len() > self.opening.len() && self.statement.len() + row.len() >= STATEMENT_BYTES {
            let next = Vec::with_capacity(STATEMENT_BYTES + 4096);
            full = Some(std::mem::replace(&mut self.statement, next));
        }
        if self.statement.is_empty() {
            self.statement.extend_from_slice(&self.opening);
            self.statement.push(b' ');
        } else {
            self.statement.push(b',');
        }
        self.statement.extend_from_slice(row);
        full
    }

    /// Adds a row of two integers, `(1,2)`, in the same way; also returns its number of bytes.
    pub(crate) fn add_numbers(&mut self, numbers: [i64; 2]) -> (usize, Option<Vec<u8>>) {
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        for (before, number) in [b'(', b','].into_iter().zip(numbers) {
            row.push(before);
            SqlValue::Int(number).write_text(&mut row);
        }
        row.push(b')');
        let full = self.add(&row);
        self.row = row;
        (self.row.len(), full)
    }

    /// The last statement, if rows are left.
    pub(crate) fn rest(self) -> Option<Vec<u8>> {
        (!self.statement.is_empty()).then_some(self.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_joined_until_the_statement_is_full() {
        let mut bulk = Bulk::new(b"INSERT INTO t VALUES");
        assert_eq!(bulk.add(b"(1)"), None);
        assert_eq!(bulk.add(b"(2)"), None);
        let long = vec![b'x'; STATEMENT_BYTES];
        assert_eq!(bulk.add(&long).unwrap(), b"INSERT INTO t VALUES (1),(2)");
        let full = bulk.add(b"(3)").unwrap();
        assert!(full.ends_with(b"x") && full.starts_with(b"INSERT INTO t VALUES x"));
        assert_eq!(bulk.rest().unwrap(), b"INSERT INTO t VALUES (3)");
        assert_eq!(Bulk::new(b"INSERT").rest(), None);
    }
}
