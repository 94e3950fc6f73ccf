//! Column definitions, as far as parsing rows needs them.

use super::reader::{Malformed, Reader};

/// The layout of a column's value in a binary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Always NULL.
    Null,
    /// An integer with this many bytes.
    Int {
        /// 1, 2, 4 or 8.
        width: u8,
        /// Whether it is unsigned.
        unsigned: bool,
    },
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// A date, with or without the time of day: a byte of length, then its fields.
    Time,
    /// An interval: a byte of length, then its fields.
    Span,
    /// Bytes with a length prefix.
    Bytes,
    /// The same, containing characters.
    Text,
    /// The same, containing the digits of an exact number.
    Decimal,
}

impl Layout {
    /// Whether a value has a length prefix in the format of strings.
    #[inline]
    pub fn is_string(self) -> bool {
        matches!(self, Layout::Bytes | Layout::Text | Layout::Decimal)
    }

    /// The layout of a type, by the protocol's numbers of the type and of its character set.
    pub fn of(type_number: u8, unsigned: bool, character_set: u16) -> Self {
        match type_number {
            0x00 | 0xf6 => Layout::Decimal,
            0x01 => Layout::Int { width: 1, unsigned },
            0x02 | 0x0d => Layout::Int { width: 2, unsigned },
            0x03 | 0x09 => Layout::Int { width: 4, unsigned },
            0x08 => Layout::Int { width: 8, unsigned },
            0x04 => Layout::Float,
            0x05 => Layout::Double,
            0x06 => Layout::Null,
            0x07 | 0x0a | 0x0c | 0x0e => Layout::Time,
            0x0b => Layout::Span,
            JSON => Layout::Text,
            _ if character_set == BINARY => Layout::Bytes,
            _ => Layout::Text,
        }
    }
}

/// The length of the fixed-length fields, and their total length including the length byte.
const LENGTH: u8 = 12;
const FIXED: usize = LENGTH as usize + 1;
/// Flag in the lower byte of a column's flags: it is unsigned.
const UNSIGNED: u8 = 0x20;
/// The character set of binary data.
const BINARY: u16 = 63;
/// The number of a type whose characters are reported with the binary character set.
const JSON: u8 = 0xf5;

/// A column's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name in the statement's result.
    pub name: &'a [u8],
    /// The layout of its values.
    pub layout: Layout,
}

/// Parses a column's definition.
///
/// # Errors
/// The packet is truncated.
pub fn column(packet: &[u8]) -> Result<Column<'_>, Malformed> {
    const WHAT: &str = "column definition";
    let mut reader = Reader::new(packet);
    for _catalog_schema_table_original_table in 0..4 {
        reader.bytes(WHAT)?;
    }
    let name = reader.bytes(WHAT)?;
    let _original_name = reader.bytes(WHAT)?;
    let mut fixed = Reader::new(reader.bytes(WHAT)?);
    let character_set = fixed.u16(WHAT)?;
    let _width = fixed.u32(WHAT)?;
    let type_number = fixed.u8(WHAT)?;
    let [flags, _] = fixed.array(WHAT)?;
    Ok(Column { name, layout: Layout::of(type_number, flags & UNSIGNED != 0, character_set) })
}

/// Parses only the layout of a column's values from its definition.
///
/// # Errors
/// The packet is truncated.
#[inline]
pub fn layout(packet: &[u8]) -> Result<Layout, Malformed> {
    // The fixed-length fields are the last, so nothing before them needs parsing.
    match packet.last_chunk::<FIXED>() {
        Some(fixed @ [LENGTH, ..]) => {
            Ok(Layout::of(fixed[7], fixed[8] & UNSIGNED != 0, u16::from_le_bytes([fixed[1], fixed[2]])))
        }
        _ => Ok(column(packet)?.layout),
    }
}

/// A server's answer to preparing a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The server's number of the statement.
    pub id: u32,
    /// The number of result columns; their definitions follow those of the parameters.
    pub columns: u16,
    /// The number of parameters; as many definitions follow.
    pub params: u16,
}

/// Parses the answer to preparing a statement, except errors.
///
/// # Errors
/// The packet is truncated, or is of another kind.
pub fn prepared(packet: &[u8]) -> Result<Prepared, Malformed> {
    const WHAT: &str = "answer to the preparing of a statement";
    let mut reader = Reader::new(packet);
    if reader.u8(WHAT)? != 0 {
        return Err(Malformed(WHAT));
    }
    Ok(Prepared { id: reader.u32(WHAT)?, columns: reader.u16(WHAT)?, params: reader.u16(WHAT)? })
}
