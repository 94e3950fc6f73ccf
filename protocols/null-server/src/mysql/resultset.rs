//! Encodes result sets: columns, rows in text and binary, and their ends.

use crate::mysql::packet::{packet, put_length, put_string, status};

/// A column's type, by the protocol's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// BIGINT.
    Int,
    /// VARCHAR of up to this many bytes.
    Text(u32),
}

/// A column's description in a result set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
}

impl Described {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: Kind::Text(1024) }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// An integer.
    Int(i64),
    /// Text.
    Text(String),
}

impl Value {
    /// The column type for the value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Int(_) => Kind::Int,
            Value::Null => Kind::Text(0),
            Value::Text(text) => Kind::Text(text.len() as u32),
        }
    }
}

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Answers to COM_QUERY.
    Text,
    /// Answers to COM_STMT_EXECUTE.
    Binary,
}

/// utf8mb4_general_ci, which every client knows, and the character set of numbers.
const UTF8MB4: u16 = 45;
const BINARY: u16 = 63;

/// Appends the payload of a column's description.
pub fn put_column(out: &mut Vec<u8>, column: &Described) {
    let (kind, charset, length, flags) = match column.kind {
        Kind::Int => (8u8, BINARY, 20, 0x80u16),
        Kind::Text(bytes) => (253, UTF8MB4, bytes.saturating_mul(4), 0),
    };
    for text in ["def", "", "", "", &column.name, ""] {
        put_string(out, text.as_bytes());
    }
    put_length(out, 12);
    out.extend_from_slice(&charset.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]);
}

fn put_text_row(out: &mut Vec<u8>, row: &[Value]) {
    for value in row {
        match value {
            Value::Null => out.push(0xFB),
            Value::Int(number) => put_string(out, number.to_string().as_bytes()),
            Value::Text(text) => put_string(out, text.as_bytes()),
        }
    }
}

fn put_binary_row(out: &mut Vec<u8>, row: &[Value]) {
    out.push(0);
    let nulls = out.len();
    // The NULL bits begin at the third bit, as the protocol requires.
    out.resize(nulls + (row.len() + 9) / 8, 0);
    for (index, value) in row.iter().enumerate() {
        match value {
            Value::Null => out[nulls + (index + 2) / 8] |= 1 << ((index + 2) % 8),
            Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Text(text) => put_string(out, text.as_bytes()),
        }
    }
}

/// Appends the end of columns or rows: an EOF packet, or the OK packet that replaces it. Returns the position of the
/// status.
pub fn put_end(out: &mut Vec<u8>, sequence: &mut u8, deprecate_eof: bool) -> usize {
    let mut at = 0;
    packet(out, sequence, |out| {
        // Two bytes of warnings in an EOF packet; affected rows and last id in an OK packet.
        out.extend_from_slice(&[0xFE, 0, 0]);
        at = out.len();
        out.extend_from_slice(&status::AUTOCOMMIT.to_le_bytes());
        if deprecate_eof {
            out.extend_from_slice(&[0, 0]);
        }
    });
    at
}

/// Appends a result set; returns the position of a status in `out`.
pub fn put_result_set(
    out: &mut Vec<u8>,
    sequence: &mut u8,
    columns: &[Described],
    rows: impl IntoIterator<Item = impl AsRef<[Value]>>,
    format: Format,
    deprecate_eof: bool,
) -> Vec<usize> {
    let mut statuses = Vec::new();
    packet(out, sequence, |out| put_length(out, columns.len() as u64));
    for column in columns {
        packet(out, sequence, |out| put_column(out, column));
    }
    if !deprecate_eof {
        statuses.push(put_end(out, sequence, false));
    }
    for row in rows {
        packet(out, sequence, |out| match format {
            Format::Text => put_text_row(out, row.as_ref()),
            Format::Binary => put_binary_row(out, row.as_ref()),
        });
    }
    statuses.push(put_end(out, sequence, deprecate_eof));
    statuses
}
