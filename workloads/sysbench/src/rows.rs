//! The rows of an answer, until the script fetches them or sends the next statement.

use std::ffi::c_char;
use std::io::Write;
use std::ptr::null;

use rumba_core::sql::{Row, SqlSession, Statement};
use rumba_core::value::SqlValue;

/// A value of a row: `sql_value` of api.lua.
#[repr(C)]
pub(crate) struct ValueHead {
    len: u32,
    ptr: *const c_char,
}

/// The rows of an answer, as text.
#[derive(Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
    /// Where each value ends in `bytes`; NULLs are told by the highest bit.
    ends: Vec<u32>,
    pub(crate) columns: usize,
    /// The row that is fetched next.
    next: usize,
    values: Vec<ValueHead>,
}

const NULL: u32 = 1 << 31;

impl Rows {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.columns = 0;
        self.next = 0;
    }

    #[inline]
    pub(crate) fn keep(&mut self, row: &dyn Row) {
        if self.columns != row.columns() {
            // Of several answers to one text it is the last that can be fetched.
            self.clear();
            self.columns = row.columns();
        }
        for column in 0..self.columns {
            let value = row.value(column);
            match value {
                // As people write them; parameters are written so that no bit is lost.
                SqlValue::Double(number) => drop(write!(self.bytes, "{number}")),
                other => other.write_text(&mut self.bytes),
            }
            let null = if value.is_null() { NULL } else { 0 };
            self.ends.push(self.bytes.len() as u32 | null);
        }
    }

    /// The next row; null after the last.
    pub(crate) fn fetch(&mut self) -> *const ValueHead {
        let first = self.next * self.columns;
        if self.columns == 0 || first >= self.ends.len() {
            return null();
        }
        self.next += 1;
        self.values.clear();
        let mut start = if first == 0 { 0 } else { self.ends[first - 1] & !NULL };
        for &end in &self.ends[first..first + self.columns] {
            let (is_null, end) = (end & NULL != 0, end & !NULL);
            let ptr = if is_null { null() } else { self.bytes[start as usize..].as_ptr().cast() };
            self.values.push(ValueHead { len: end - start, ptr });
            start = end;
        }
        self.values.as_ptr()
    }
}

/// The rows of a prepared statement as they came. Few scripts fetch them: until one does, they are copied in one piece
/// each, and no value is looked at.
#[derive(Default)]
pub(crate) struct RawRows {
    /// Whose they are; with none there are no rows here.
    of: Option<Statement>,
    bytes: Vec<u8>,
    /// Where each ends in `bytes`.
    ends: Vec<u32>,
    columns: usize,
    next: usize,
}

impl RawRows {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.of = None;
        self.bytes.clear();
        self.ends.clear();
        (self.columns, self.next) = (0, 0);
    }

    /// Whether rows are kept here.
    #[inline]
    pub(crate) fn are_kept(&self) -> bool {
        self.of.is_some()
    }

    /// Rows of this statement follow.
    #[inline]
    pub(crate) fn begin(&mut self, of: Statement) {
        self.of = Some(of);
    }

    #[inline]
    pub(crate) fn keep(&mut self, row: &dyn Row) {
        if self.columns != row.columns() {
            self.bytes.clear();
            self.ends.clear();
            (self.columns, self.next) = (row.columns(), 0);
        }
        self.bytes.extend_from_slice(row.raw());
        self.ends.push(self.bytes.len() as u32);
    }

    #[inline]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Puts the next row into `rows`, where there was another; nothing if these are not its kind of rows.
    pub(crate) fn read_next(&mut self, session: &mut dyn SqlSession, rows: &mut Rows) {
        let Some(of) = self.of else { return };
        rows.clear();
        let Some(&end) = self.ends.get(self.next) else { return };
        let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.next += 1;
        session.reread(of, &self.bytes[start as usize..end as usize], &mut |row| rows.keep(row));
    }
}
