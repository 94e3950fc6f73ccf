//! Rows, parsed in place.

use jiff::SignedDuration;
use rumba_engine_api::sql::Row;
use rumba_engine_api::value::{DateTime, Decimal, SqlValue, leading_int};

use super::Malformed;
use super::types::Layout;

/// The position of a column's value in its row; NULL starts beyond any row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueRange {
    start: u32,
    length: u32,
}

const NULL: ValueRange = ValueRange { start: u32::MAX, length: 0 };

/// A column of an answer's rows: its layout, and its position in the current row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    layout: Layout,
    place: ValueRange,
}

impl From<Layout> for Column {
    fn from(layout: Layout) -> Self {
        Self { layout, place: NULL }
    }
}

impl Column {
    /// The column's layout.
    pub fn layout(self) -> Layout {
        self.layout
    }
}

/// Finds the columns of a row.
///
/// # Errors
/// The row is truncated, or has another number of columns.
#[inline]
pub fn find(body: &[u8], columns: &mut [Column]) -> Result<(), Malformed> {
    const CUT_OFF: Malformed = Malformed("DataRow");
    let (&count, mut rest) = body.split_first_chunk::<2>().ok_or(CUT_OFF)?;
    if usize::from(u16::from_be_bytes(count)) != columns.len() {
        return Err(Malformed("a row of other columns than were described"));
    }
    for Column { place, .. } in columns {
        let (&length, after) = rest.split_first_chunk::<4>().ok_or(CUT_OFF)?;
        let length = u32::from_be_bytes(length);
        if length == u32::MAX {
            *place = NULL;
            rest = after;
            continue;
        }
        // A message's length always fits in these numbers.
        *place = ValueRange { start: (body.len() - after.len()) as u32, length };
        rest = after.get(length as usize..).ok_or(CUT_OFF)?;
    }
    Ok(())
}

/// The error for text that is in neither of `bytea`'s formats.
const NOT_BYTEA: Malformed = Malformed("bytea as text");

/// Decodes bytes received as text, in place. The server's `bytea_output` determines the format: hexadecimal digits, or
/// escapes. The text shows which one it is, because escapes double each backslash.
///
/// # Errors
/// The text is in neither format.
pub fn decode(body: &mut [u8], columns: &mut [Column]) -> Result<(), Malformed> {
    for Column { place, .. } in columns.iter_mut().filter(|column| column.layout == Layout::TextBytes) {
        if *place == NULL {
            continue;
        }
        let start = place.start as usize;
        let text = body.get_mut(start..start + place.length as usize).ok_or(NOT_BYTEA)?;
        let bytes = if text.starts_with(b"\\x") { decode_digits(text)? } else { decode_escapes(text)? };
        place.length = bytes as u32;
    }
    Ok(())
}

/// Decodes `\x` and two digits for each byte, and returns the number of bytes.
fn decode_digits(text: &mut [u8]) -> Result<usize, Malformed> {
    if !text.len().is_multiple_of(2) {
        return Err(NOT_BYTEA);
    }
    let bytes = text.len() / 2 - 1;
    for at in 0..bytes {
        let digit = |place: usize| char::from(text[place]).to_digit(16).ok_or(NOT_BYTEA);
        text[at] = (digit(2 + 2 * at)? << 4 | digit(3 + 2 * at)?) as u8;
    }
    Ok(bytes)
}

/// Decodes the older format, and returns the number of bytes. A backslash is doubled, and a byte that is not printable
/// is a backslash and three octal digits.
fn decode_escapes(text: &mut [u8]) -> Result<usize, Malformed> {
    let (mut from, mut bytes) = (0, 0);
    while from < text.len() {
        let (byte, length) = match text[from..] {
            [b'\\', b'\\', ..] => (b'\\', 2),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                ((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'), 4)
            }
            [byte, ..] if byte != b'\\' => (byte, 1),
            _ => return Err(NOT_BYTEA),
        };
        text[bytes] = byte;
        from += length;
        bytes += 1;
    }
    Ok(bytes)
}

/// A row of an answer. Requested as bytes, the numbers of a prepared statement are in the protocol's big-endian binary
/// format.
#[derive(Clone, Copy, Debug)]
pub struct PgRow<'a> {
    /// The row's message, without its header.
    pub body: &'a [u8],
    /// Its columns, found in this message.
    pub columns: &'a [Column],
}

impl PgRow<'_> {
    #[inline]
    fn at(&self, place: ValueRange) -> Option<&[u8]> {
        let start = place.start as usize;
        self.body.get(start..start + place.length as usize)
    }
}

impl Row for PgRow<'_> {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        let Some(&Column { layout, place }) = self.columns.get(column) else { return SqlValue::Null };
        let Some(bytes) = self.at(place) else { return SqlValue::Null };
        match layout {
            Layout::Int { .. } | Layout::Bool | Layout::TextBool => SqlValue::Int(self.int(column)),
            Layout::Float => {
                bytes.try_into().map_or(SqlValue::Null, |bytes| SqlValue::Double(f64::from(f32::from_be_bytes(bytes))))
            }
            Layout::Double => {
                bytes.try_into().map_or(SqlValue::Null, |bytes| SqlValue::Double(f64::from_be_bytes(bytes)))
            }
            Layout::Decimal => Decimal::parse(bytes).map_or(SqlValue::Text(bytes), SqlValue::Decimal),
            Layout::Timestamp => timestamp(bytes).map_or(SqlValue::Null, SqlValue::Timestamp),
            Layout::Characters | Layout::Text => SqlValue::Text(bytes),
            Layout::Bytes | Layout::TextBytes => SqlValue::Bytes(bytes),
        }
    }

    #[inline]
    fn int(&self, column: usize) -> i64 {
        let Some(&Column { layout, place }) = self.columns.get(column) else { return 0 };
        let Some(bytes) = self.at(place) else { return 0 };
        match layout {
            Layout::Int { unsigned, .. } => integer(bytes, unsigned),
            Layout::Float => bytes.try_into().map_or(0, |bytes| f32::from_be_bytes(bytes) as i64),
            Layout::Double => bytes.try_into().map_or(0, |bytes| f64::from_be_bytes(bytes) as i64),
            Layout::Bool => i64::from(bytes == [1]),
            Layout::TextBool => i64::from(bytes == b"t"),
            Layout::Bytes | Layout::Characters | Layout::Decimal | Layout::Text | Layout::TextBytes => {
                leading_int(bytes)
            }
            Layout::Timestamp => 0,
        }
    }

    #[inline]
    fn bytes(&self, column: usize) -> &[u8] {
        self.columns.get(column).and_then(|column| self.at(column.place)).unwrap_or_default()
    }

    #[inline]
    fn raw(&self) -> &[u8] {
        self.body
    }
}

/// An integer of 2, 4 or 8 bytes, big-endian.
#[inline]
fn integer(bytes: &[u8], unsigned: bool) -> i64 {
    if let Ok(bytes) = bytes.try_into() {
        return i64::from_be_bytes(bytes);
    }
    if let Ok(bytes) = bytes.try_into() {
        return if unsigned { i64::from(u32::from_be_bytes(bytes)) } else { i64::from(i32::from_be_bytes(bytes)) };
    }
    bytes.try_into().map_or(0, |bytes| i64::from(i16::from_be_bytes(bytes)))
}

/// A date and time from microseconds since the year 2000; `None` for values outside the calendar, such as infinity.
fn timestamp(bytes: &[u8]) -> Option<DateTime> {
    const EPOCH: DateTime = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
    let micros = i64::from_be_bytes(bytes.try_into().ok()?);
    EPOCH.checked_add(SignedDuration::from_micros(micros)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_bytea_text_is_refused() {
        for wrong in [&b"\\x0"[..], b"\\xzz"] {
            assert!(decode_digits(&mut wrong.to_vec()).is_err(), "{}", wrong.escape_ascii());
        }
        for wrong in [&b"a\\"[..], b"\\9", b"\\12", b"\\400"] {
            assert!(decode_escapes(&mut wrong.to_vec()).is_err(), "{}", wrong.escape_ascii());
        }
    }
}
