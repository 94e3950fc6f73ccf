//! Rows, parsed in place.

use rumba_engine_api::sql::Row;
use rumba_engine_api::value::{DateTime, Decimal, SqlValue, leading_int};

use super::column::Layout;
use super::reader::{Malformed, Reader};

/// The position of a column's value in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    start: u32,
    length: u32,
}

const NULL: ValueRange = ValueRange { start: u32::MAX, length: 0 };

/// A column of a prepared statement's rows: its layout, and its position in the current row.
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

/// Finds the columns of a binary row.
///
/// # Errors
/// The row is truncated.
#[inline]
pub fn find_binary(packet: &[u8], columns: &mut [Column]) -> Result<(), Malformed> {
    const CUT_OFF: Malformed = Malformed("binary row");
    // The bitmap's first two bits are unused.
    let mut at = 1 + (columns.len() + 9) / 8;
    let nulls = packet.get(1..at).ok_or(CUT_OFF)?;
    let some_null = nulls.iter().any(|&bits| bits != 0);
    for (number, Column { layout, place }) in columns.iter_mut().enumerate() {
        if some_null && nulls[(number + 2) / 8] & (1 << ((number + 2) % 8)) != 0 {
            *place = NULL;
            continue;
        }
        let length = match packet.get(at) {
            Some(&short @ 0..=0xfa) if layout.is_string() => {
                at += 1;
                usize::from(short)
            }
            _ => {
                let (start, length) = long_or_fixed(*layout, packet, at)?;
                at = start;
                length
            }
        };
        // Both fit into the packet; the check of the last column below covers all of them.
        *place = ValueRange { start: at as u32, length: length as u32 };
        at += length;
    }
    if at > packet.len() || packet.len() > u32::MAX as usize { Err(CUT_OFF) } else { Ok(()) }
}

/// The start of a value at `at` after its length prefix, and that length.
fn long_or_fixed(layout: Layout, packet: &[u8], at: usize) -> Result<(usize, usize), Malformed> {
    const CUT_OFF: Malformed = Malformed("binary row");
    let length = match layout {
        Layout::Bytes | Layout::Text | Layout::Decimal | Layout::Time | Layout::Span => {
            let mut reader = Reader::new(packet.get(at..).ok_or(CUT_OFF)?);
            let length = reader.bytes(CUT_OFF.0)?.len();
            return Ok((packet.len() - reader.len() - length, length));
        }
        Layout::Int { width, .. } => usize::from(width),
        Layout::Float => 4,
        Layout::Double => 8,
        Layout::Null => 0,
    };
    Ok((at, length))
}

/// Finds the columns of a text row.
///
/// # Errors
/// The row is truncated.
pub fn find_text(packet: &[u8], columns: usize, places: &mut Vec<ValueRange>) -> Result<(), Malformed> {
    const WHAT: &str = "text row";
    places.clear();
    if packet.len() > u32::MAX as usize {
        return Err(Malformed("a row of 4 GiB or more"));
    }
    let mut reader = Reader::new(packet);
    for _ in 0..columns {
        let mut ahead = reader;
        if ahead.u8(WHAT)? == 0xfb {
            reader = ahead;
            places.push(NULL);
            continue;
        }
        let bytes = reader.bytes(WHAT)?;
        let start = packet.len() - reader.len() - bytes.len();
        places.push(ValueRange { start: start as u32, length: bytes.len() as u32 });
    }
    Ok(())
}

/// The bytes of a column; `None` is NULL.
#[inline]
fn value(packet: &[u8], place: ValueRange) -> Option<&[u8]> {
    let start = place.start as usize;
    // The range of NULL starts beyond any packet, so this returns `None` for it.
    packet.get(start..start + place.length as usize)
}

/// A row of a prepared statement. Requested as bytes, numbers and times are in the protocol's little-endian binary
/// format; intervals always are. An invalid date, such as 0000-00-00, is NULL.
#[derive(Clone, Copy, Debug)]
pub struct BinaryRow<'a> {
    /// The row's packet.
    pub packet: &'a [u8],
    /// Its columns, found in this packet.
    pub columns: &'a [Column],
}

impl Row for BinaryRow<'_> {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        let Some(&Column { layout, place }) = self.columns.get(column) else { return SqlValue::Null };
        let Some(bytes) = value(self.packet, place) else { return SqlValue::Null };
        match layout {
            Layout::Int { unsigned: true, .. } => SqlValue::Unsigned(integer(bytes, true).cast_unsigned()),
            Layout::Int { unsigned: false, .. } => SqlValue::Int(integer(bytes, false)),
            Layout::Float => {
                bytes.try_into().map_or(SqlValue::Null, |bytes| SqlValue::Double(f64::from(f32::from_le_bytes(bytes))))
            }
            Layout::Double => {
                bytes.try_into().map_or(SqlValue::Null, |bytes| SqlValue::Double(f64::from_le_bytes(bytes)))
            }
            Layout::Decimal => Decimal::parse(bytes).map_or(SqlValue::Text(bytes), SqlValue::Decimal),
            Layout::Text => SqlValue::Text(bytes),
            Layout::Bytes | Layout::Span => SqlValue::Bytes(bytes),
            Layout::Time => time(bytes).map_or(SqlValue::Null, SqlValue::Timestamp),
            Layout::Null => SqlValue::Null,
        }
    }

    #[inline]
    fn int(&self, column: usize) -> i64 {
        let Some(&Column { layout, place }) = self.columns.get(column) else { return 0 };
        let Some(bytes) = value(self.packet, place) else { return 0 };
        match layout {
            Layout::Int { unsigned, .. } => integer(bytes, unsigned),
            Layout::Float => bytes.try_into().map_or(0, |bytes| f32::from_le_bytes(bytes) as i64),
            Layout::Double => bytes.try_into().map_or(0, |bytes| f64::from_le_bytes(bytes) as i64),
            Layout::Bytes | Layout::Text | Layout::Decimal => leading_int(bytes),
            Layout::Null | Layout::Time | Layout::Span => 0,
        }
    }

    #[inline]
    fn bytes(&self, column: usize) -> &[u8] {
        self.columns.get(column).and_then(|column| value(self.packet, column.place)).unwrap_or_default()
    }

    #[inline]
    fn raw(&self) -> &[u8] {
        self.packet
    }
}

/// A row of a statement that was sent as text, in which all values are text.
#[derive(Clone, Copy, Debug)]
pub struct TextRow<'a> {
    /// The row's packet.
    pub packet: &'a [u8],
    /// The positions of its columns.
    pub places: &'a [ValueRange],
}

impl Row for TextRow<'_> {
    fn columns(&self) -> usize {
        self.places.len()
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        self.places.get(column).and_then(|&place| value(self.packet, place)).map_or(SqlValue::Null, SqlValue::Text)
    }

    fn int(&self, column: usize) -> i64 {
        leading_int(self.bytes(column))
    }

    fn bytes(&self, column: usize) -> &[u8] {
        self.places.get(column).and_then(|&place| value(self.packet, place)).unwrap_or_default()
    }
}

/// An integer of 1, 2, 4 or 8 bytes, little-endian. A value above `i64::MAX` keeps its bits and so becomes negative.
#[inline]
fn integer(bytes: &[u8], unsigned: bool) -> i64 {
    if let Ok(bytes) = bytes.try_into() {
        return i64::from_le_bytes(bytes);
    }
    if let Ok(bytes) = bytes.try_into() {
        return if unsigned { i64::from(u32::from_le_bytes(bytes)) } else { i64::from(i32::from_le_bytes(bytes)) };
    }
    if let Ok(bytes) = bytes.try_into() {
        return if unsigned { i64::from(u16::from_le_bytes(bytes)) } else { i64::from(i16::from_le_bytes(bytes)) };
    }
    match bytes {
        [byte] if unsigned => i64::from(*byte),
        [byte] => i64::from(*byte as i8),
        _ => 0,
    }
}

/// A date and time: year, month, day, and if not zero hour, minute, second, microseconds.
fn time(bytes: &[u8]) -> Option<DateTime> {
    let (&[low, high, month, day], rest) = bytes.split_first_chunk()?;
    let [hour, minute, second] = rest.first_chunk().copied().unwrap_or_default();
    let micros = rest.get(3..7).and_then(|micros| micros.try_into().ok()).map_or(0, i32::from_le_bytes);
    let year = i16::from_le_bytes([low, high]);
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(|field| field as i8);
    DateTime::new(year, month, day, hour, minute, second, micros.checked_mul(1000)?).ok()
}
