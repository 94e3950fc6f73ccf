//! The rows of an answer, until the script fetches them or sends the next statement.

use std::ffi::c_char;
use std::io::Write;
use std::ptr::null;
use std::slice::from_raw_parts_mut;

use rumba_engine_api::sql::{Row, SqlSession, Statement};
use rumba_engine_api::value::SqlValue;

/// A value of a row: `sql_value` of api.lua.
#[repr(C)]
pub(crate) struct ValueHead {
    len: u32,
    ptr: *const c_char,
}

/// The destination of a copied row: `rumba_row` of api.lua, which Lua owns. After the head there is room for values,
/// and for the text that they point to.
#[repr(C)]
pub(crate) struct RowRoom {
    /// The bytes after the head.
    room_bytes: u32,
    /// The bytes that the next row needs; 0 if there is none.
    row_bytes: u32,
}

/// The rows of an answer, as text.
#[derive(Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`. The highest bit marks a NULL, because no length in memory has it.
    ends: Vec<usize>,
    pub(crate) columns: usize,
    /// The row that is fetched next.
    next: usize,
}

const NULL: usize = 1 << (usize::BITS - 1);

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
            // If one text has several answers, only the last can be fetched.
            self.clear();
            self.columns = row.columns();
        }
        for column in 0..self.columns {
            let value = row.value(column);
            match value {
                // In readable form; parameters are written so that no bit is lost.
                SqlValue::Double(number) => drop(write!(self.bytes, "{number}")),
                other => other.write_text(&mut self.bytes),
            }
            let null = if value.is_null() { NULL } else { 0 };
            self.ends.push(self.bytes.len() | null);
        }
    }

    /// The start of the next row in `bytes` and the ends of its values; `None` after the last row.
    fn next_row(&self) -> Option<(usize, &[usize])> {
        let first = self.next * self.columns;
        let ends = self.ends.get(first..first + self.columns).filter(|ends| !ends.is_empty())?;
        let start = first.checked_sub(1).map_or(0, |before| self.ends[before] & !NULL);
        Some((start, ends))
    }

    /// Whether there is a row to be fetched.
    pub(crate) fn has_next(&self) -> bool {
        self.next_row().is_some()
    }

    /// Copies the next row if the room is large enough, and stores the size that the row needs. Returns the number of
    /// columns, or 0 after the last row. The copy belongs to Lua, so a `__gc` that sends a statement of this connection
    /// while a script's row is being made does not affect it.
    ///
    /// # Safety
    /// The room is as large as it says, and has no other user.
    pub(crate) unsafe fn fetch(&mut self, room: *mut RowRoom) -> u32 {
        // SAFETY: the head exists, and the memory after it is not part of it.
        let (head, values) = unsafe { (&mut *room, room.add(1).cast::<ValueHead>()) };
        let Some((start, ends)) = self.next_row() else {
            head.row_bytes = 0;
            return 0;
        };
        let columns = ends.len();
        let text = &self.bytes[start..ends[columns - 1] & !NULL];
        let row_bytes = columns * size_of::<ValueHead>() + text.len();
        head.row_bytes = u32::try_from(row_bytes).unwrap_or(u32::MAX);
        if row_bytes <= head.room_bytes as usize {
            // SAFETY: there is this much room after the head: the values, and the text after them.
            unsafe {
                let copied = values.add(columns).cast::<u8>();
                copied.copy_from_nonoverlapping(text.as_ptr(), text.len());
                point_to(from_raw_parts_mut(values, columns), copied, start, ends);
            }
            self.next += 1;
        }
        columns as u32
    }
}

/// Sets the values' pointers to the present position of their text; the first value begins at its start.
fn point_to(values: &mut [ValueHead], text: *const u8, start: usize, ends: &[usize]) {
    let mut from = start;
    for (value, &end) in values.iter_mut().zip(ends) {
        let (is_null, end) = (end & NULL != 0, end & !NULL);
        let ptr = if is_null { null() } else { text.wrapping_add(from - start).cast() };
        // The row was copied, so it is no longer than its room, whose length has 32 bits.
        *value = ValueHead { len: (end - from) as u32, ptr };
        from = end;
    }
}

/// The rows of a prepared statement in their original form. Few scripts fetch them, so until then each is copied in one
/// piece without decoding.
#[derive(Default)]
pub(crate) struct RawRows {
    /// The statement that the rows belong to; `None` if there are no rows here.
    of: Option<Statement>,
    bytes: Vec<u8>,
    /// The end of each row in `bytes`.
    ends: Vec<usize>,
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
        self.ends.push(self.bytes.len());
    }

    /// Replaces the row in `rows` by the next one; does nothing if these rows are of another kind.
    pub(crate) fn read_next(&mut self, session: &mut dyn SqlSession, rows: &mut Rows) {
        let Some(of) = self.of else { return };
        rows.clear();
        if let Some(raw) = self.next_row() {
            session.reread(of, raw, &mut |row| rows.keep(row));
        }
    }

    /// The next row in its original form; `None` after the last.
    fn next_row(&mut self) -> Option<&[u8]> {
        let end = *self.ends.get(self.next)?;
        let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.next += 1;
        Some(&self.bytes[start..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A room with this many bytes after its head, as Lua makes it.
    fn room(bytes: u32) -> Vec<u64> {
        let mut room = vec![0; 1 + bytes as usize / size_of::<u64>()];
        // SAFETY: it is as large as its head, and aligned as it is.
        unsafe { room.as_mut_ptr().cast::<RowRoom>().write(RowRoom { room_bytes: bytes, row_bytes: 0 }) };
        room
    }

    /// The next row's number of columns, its number of bytes, and its values if they were copied.
    fn fetch(rows: &mut Rows, room: &mut [u64]) -> (u32, u32, Vec<Option<String>>) {
        let head: *mut RowRoom = room.as_mut_ptr().cast();
        // SAFETY: the room is as large as it says; values are there where it was large enough.
        unsafe {
            let columns = rows.fetch(head);
            let (room_bytes, row_bytes) = ((*head).room_bytes, (*head).row_bytes);
            let copied = if row_bytes <= room_bytes { columns as usize } else { 0 };
            let values = std::slice::from_raw_parts(head.add(1).cast::<ValueHead>(), copied);
            let text = |value: &ValueHead| {
                let bytes = std::slice::from_raw_parts(value.ptr.cast::<u8>(), value.len as usize);
                String::from_utf8(bytes.to_vec()).unwrap()
            };
            (columns, row_bytes, values.iter().map(|value| (!value.ptr.is_null()).then(|| text(value))).collect())
        }
    }

    #[test]
    fn row_is_copied_when_it_fits_and_outlives_its_result() {
        let ends = vec![2, 2, 2 | NULL, 5, 5 | NULL, 9];
        let mut rows = Rows { bytes: b"ab123wxyz".to_vec(), ends, columns: 3, next: 0 };
        let (mut small, mut large) = (room(48), room(56));
        assert_eq!(fetch(&mut rows, &mut small), (3, 50, Vec::new()), "nothing is copied, and nothing taken");
        let first = vec![Some("ab".to_owned()), Some(String::new()), None];
        assert_eq!(fetch(&mut rows, &mut large), (3, 50, first));
        let second = vec![Some("123".to_owned()), None, Some("wxyz".to_owned())];
        let mut other = room(56);
        assert_eq!(fetch(&mut rows, &mut other), (3, 55, second));
        assert_eq!(fetch(&mut rows, &mut other), (0, 0, Vec::new()));
        rows.bytes.fill(b'!');
        drop(rows);
        let head: *const RowRoom = large.as_ptr().cast();
        // SAFETY: the first row was copied there.
        let value = unsafe { &*head.add(1).cast::<ValueHead>() };
        let text = unsafe { std::slice::from_raw_parts(value.ptr.cast::<u8>(), value.len as usize) };
        assert_eq!(text, b"ab");
    }

    /// A row of one text.
    struct OneText(&'static [u8]);

    impl Row for OneText {
        fn columns(&self) -> usize {
            1
        }

        fn value(&self, _: usize) -> SqlValue<'_> {
            SqlValue::Text(self.0)
        }

        fn raw(&self) -> &[u8] {
            self.0
        }
    }

    /// Guards against 32-bit positions: after 2 GiB of other rows a value was NULL, and after 4 GiB a row was one of
    /// the first.
    #[test]
    fn rows_after_gibibytes_of_data_are_intact() {
        for before in [1_usize << 31, 1 << 32] {
            // These zeros are never touched, so they use no memory. The room after them is for one more row.
            let mut bytes = vec![0; before + 64];
            bytes.truncate(before);
            let mut rows = Rows { bytes, ends: vec![before], columns: 1, next: 1 };
            rows.keep(&OneText(b"behind"));
            assert_eq!(fetch(&mut rows, &mut room(56)), (1, 22, vec![Some("behind".to_owned())]));

            let mut bytes = rows.bytes;
            bytes.truncate(before);
            let mut raw_rows = RawRows { of: None, bytes, ends: vec![before], columns: 1, next: 1 };
            raw_rows.keep(&OneText(b"behind"));
            assert_eq!(raw_rows.next_row(), Some(&b"behind"[..]));
            assert_eq!(raw_rows.next_row(), None);
        }
    }
}
