//! Bulk loading with COPY, in its binary format if the columns' types allow it.
//!
//! The rows are sent after the statement without waiting for the server's request. A server that refuses the statement
//! ignores them, as the protocol requires.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::Param;
use rumba_transport::{call_failed, quoted_name};

use super::literal::put_hex;
use super::statement::Described;
use crate::PgError;
use crate::codec::frame;
use crate::codec::types::{self, ParamLayout};
use crate::connection::Connection;
use crate::query::put_query;

/// The number of bytes of rows in one message.
const CHUNK: usize = 64 << 10;
/// The start of binary rows: a signature, flags, and no extension.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Marks the end of the rows, in place of a row's number of columns.
const TRAILER: [u8; 2] = [0xff, 0xff];

/// How the rows of a table are loaded.
#[derive(Debug)]
pub(super) struct Rows {
    /// The statement in the text format, which accepts any value.
    sql: String,
    /// The same in the binary format, if each column has a simple binary format.
    binary: Option<String>,
    columns: Vec<CopyColumn>,
}

#[derive(Clone, Copy, Debug)]
struct CopyColumn {
    layout: CopyLayout,
    bytea: bool,
}

/// The binary format of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyLayout {
    /// The format of a parameter.
    Param(ParamLayout),
    /// Integers as `numeric`; the server needs half as much work for them as for their digits as text.
    Numeric,
    /// No supported binary format.
    None,
}

impl CopyLayout {
    fn of(oid: u32) -> Self {
        match ParamLayout::of(oid) {
            ParamLayout::Text if types::is_numeric(oid) => CopyLayout::Numeric,
            ParamLayout::Text => CopyLayout::None,
            layout => CopyLayout::Param(layout),
        }
    }
}

impl Rows {
    /// Prepares bulk loading, blocking.
    pub(super) fn prepare(connection: &mut Connection, table: &str, columns: &[&str]) -> Result<Self, PgError> {
        if columns.is_empty() {
            return Err(PgError::Unable("rows without columns cannot be loaded".into()));
        }
        let names: Vec<String> = columns.iter().map(|column| quoted_name(column, "\"")).collect();
        let (table, names) = (quoted_name(table, "\""), names.join(", "));
        // Parsed only for its types, and never executed.
        let select = format!("SELECT {names} FROM {table}");
        let described = Described::fetch(connection, "", select.as_bytes(), &[], None)?;
        let columns: Vec<CopyColumn> = described
            .columns
            .into_iter()
            .map(|oid| CopyColumn { layout: CopyLayout::of(oid), bytea: types::is_bytea(oid) })
            .collect();
        let is_plain = columns.iter().all(|column| column.layout != CopyLayout::None);
        let sql = |format| format!("COPY {table} ({names}) FROM STDIN (FORMAT {format})");
        Ok(Self { sql: sql("text"), binary: is_plain.then(|| sql("binary")), columns })
    }

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// Appends the messages that load these rows; false if there are none.
    pub(super) fn write(&self, out: &mut Vec<u8>, values: &[Param<'_>]) -> Result<bool> {
        if !values.len().is_multiple_of(self.columns.len()) {
            return Err(call_failed("submit_rows", "the values do not fill their last row"));
        }
        if values.is_empty() {
            return Ok(false);
        }
        let start = out.len();
        match self.binary.as_ref().map(|sql| self.write_binary(out, sql, values)) {
            Some(Ok(())) => {}
            Some(Err(column)) if self.columns[column].layout != CopyLayout::Numeric => {
                out.truncate(start);
                let problem = format!("a value of column {} is not of its type, in: {}", column + 1, self.sql);
                return Err(call_failed("submit_rows", &problem));
            }
            // Values with decimals, and digits as text, are sent in the text format.
            Some(Err(_)) | None => {
                out.truncate(start);
                self.write_text(out, values);
            }
        }
        let done = frame::start(out, b'c');
        frame::finish(out, done);
        Ok(true)
    }

    /// Appends rows in the binary format. On failure, returns the column with a value of another type.
    fn write_binary(&self, out: &mut Vec<u8>, sql: &str, values: &[Param<'_>]) -> Result<(), usize> {
        put_query(out, sql.as_bytes());
        let mut at = frame::start(out, b'd');
        out.extend_from_slice(SIGNATURE);
        let count = (self.columns.len() as u16).to_be_bytes();
        for row in values.chunks_exact(self.columns.len()) {
            if out.len() - at > CHUNK {
                frame::finish(out, at);
                at = frame::start(out, b'd');
            }
            out.extend_from_slice(&count);
            for (number, (value, column)) in row.iter().zip(&self.columns).enumerate() {
                put_binary(out, value, column.layout).ok_or(number)?;
            }
        }
        out.extend_from_slice(&TRAILER);
        frame::finish(out, at);
        Ok(())
    }

    /// Appends rows in the text format, which accepts any value.
    fn write_text(&self, out: &mut Vec<u8>, values: &[Param<'_>]) {
        put_query(out, self.sql.as_bytes());
        let mut at = frame::start(out, b'd');
        for row in values.chunks_exact(self.columns.len()) {
            if out.len() - at > CHUNK {
                frame::finish(out, at);
                at = frame::start(out, b'd');
            }
            for (number, (value, column)) in row.iter().zip(&self.columns).enumerate() {
                if number > 0 {
                    out.push(b'\t');
                }
                put_text(out, value, column.bytea);
            }
            out.push(b'\n');
        }
        frame::finish(out, at);
    }
}

/// Appends a value in its column's format; `None` if its type does not match.
#[inline]
fn put_binary(out: &mut Vec<u8>, value: &Param<'_>, layout: CopyLayout) -> Option<()> {
    use ParamLayout::{Bytes, Int};
    match (value, layout) {
        (Param::Null, _) => out.extend_from_slice(&u32::MAX.to_be_bytes()),
        (Param::Int(value), CopyLayout::Numeric) => put_numeric(out, *value < 0, value.unsigned_abs()),
        (Param::Unsigned(value), CopyLayout::Numeric) => put_numeric(out, false, *value),
        (Param::Int(value), CopyLayout::Param(Int(8))) => frame::put_value(out, &value.to_be_bytes()),
        (Param::Int(value), CopyLayout::Param(Int(4))) => {
            frame::put_value(out, &i32::try_from(*value).ok()?.to_be_bytes());
        }
        (Param::Int(value), CopyLayout::Param(Int(_))) => {
            frame::put_value(out, &i16::try_from(*value).ok()?.to_be_bytes());
        }
        (Param::Text(bytes) | Param::Bytes(bytes), CopyLayout::Param(Bytes)) => frame::put_value(out, bytes),
        _ => return None,
    }
    Some(())
}

/// Appends an integer in the format of `numeric`. Its fields are the number of base-10,000 digits, the exponent of the
/// first, the sign, the number of decimal places, and the digits.
fn put_numeric(out: &mut Vec<u8>, is_negative: bool, size: u64) {
    // 2^64 has five digits.
    const MOST: u32 = 5;
    let (mut digits, mut count, mut left) = (0, 0_u32, size);
    while left > 0 {
        digits |= u128::from(left % 10_000) << (16 * count);
        left /= 10_000;
        count += 1;
    }
    let head = [8 + 2 * count, (count << 16) | count.saturating_sub(1), if is_negative { 0x4000_0000 } else { 0 }];
    out.extend_from_slice(head.map(u32::to_be_bytes).as_flattened());
    // Appends the maximum number of digits and truncates, which avoids a variable-length copy.
    digits <<= 16 * (MOST - count);
    out.extend_from_slice(&digits.to_be_bytes()[16 - 2 * MOST as usize..]);
    out.truncate(out.len() - 2 * (MOST - count) as usize);
}

fn put_text(out: &mut Vec<u8>, value: &Param<'_>, bytea: bool) {
    match value {
        Param::Null => out.extend_from_slice(b"\\N"),
        Param::Bytes(bytes) if bytea => {
            // COPY requires two backslashes; the value contains one.
            out.push(b'\\');
            put_hex(out, bytes);
        }
        Param::Text(bytes) | Param::Bytes(bytes) => put_escaped(out, bytes),
        number => number.write_text(out),
    }
}

/// Appends characters in COPY's text format: those that would end a value or a row become a backslash and a letter.
fn put_escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let (mut start, mut at) = (0, suspect_from(bytes, 0));
    while let Some(&byte) = bytes.get(at) {
        let letter = match byte {
            b'\\' => Some(b'\\'),
            b'\t' => Some(b't'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            _ => None,
        };
        if let Some(letter) = letter {
            out.extend_from_slice(&bytes[start..at]);
            out.extend_from_slice(&[b'\\', letter]);
            start = at + 1;
        }
        at = suspect_from(bytes, at + 1);
    }
    out.extend_from_slice(&bytes[start..]);
}

/// The position of the first backslash or control character from `at` on, or the end if there is none. Most rows have
/// none, so this checks eight bytes in the time of one.
fn suspect_from(bytes: &[u8], mut at: usize) -> usize {
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*eight);
        let other = word ^ BACKSLASHES;
        // A byte that borrows has its highest bit set, and so may those above it, so only the lowest one counts.
        let found = (word.wrapping_sub(SPACES) & !word | other.wrapping_sub(ONES) & !other) & HIGHEST;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte < b' ' || byte == b'\\').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_escaped_at_every_position() {
        // Tests all bytes at all positions of a word, next to bytes that differ only slightly from special ones.
        for length in [1, 7, 8, 9, 20] {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b"\x20[]\x7f\x80\xa0\xdc"[place % 7]; length];
                    bytes[place] = byte;
                    let mut out = Vec::new();
                    put_escaped(&mut out, &bytes);
                    let escaped: &[u8] = match byte {
                        b'\\' => b"\\\\",
                        b'\t' => b"\\t",
                        b'\n' => b"\\n",
                        b'\r' => b"\\r",
                        other => &[other],
                    };
                    assert_eq!(out, [&bytes[..place], escaped, &bytes[place + 1..]].concat(), "{byte} at {place}");
                }
            }
        }
        let mut out = Vec::new();
        put_escaped(&mut out, b"\\\\\t\x01a\n\\01234567\\");
        assert_eq!(out, b"\\\\\\\\\\t\x01a\\n\\\\01234567\\\\");
    }
}
