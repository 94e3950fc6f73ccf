//! Column definitions: what of them is needed to read rows.

use super::reader::{Malformed, Reader};

/// How a column's value is laid out in a binary row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Never anything.
    Null,
    /// An integer of so many bytes.
    Int {
        /// 1, 2, 4 or 8.
        width: u8,
        /// Whether it has no sign.
        unsigned: bool,
    },
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// A date, with or without the time of day: a byte of length, then its fields.
    Time,
    /// A span of time: a byte of length, then its fields.
    Span,
    /// Bytes with their length before them.
    Bytes,
    /// The same, and they are characters.
    Text,
    /// The same, and they are the digits of an exact number.
    Decimal,
}

impl Layout {
    /// Whether a value has its length before it, in the form that strings have.
    #[inline]
    pub fn is_string(self) -> bool {
        matches!(self, Layout::Bytes | Layout::Text | Layout::Decimal)
    }

    /// The layout of a type, by its number in the protocol and that of its character set.
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

/// The length of a definition's fields of fixed length, and of all of them with their length.
const LENGTH: u8 = 12;
const FIXED: usize = LENGTH as usize + 1;
/// In the lower byte of a column's flags: it has no sign.
const UNSIGNED: u8 = 0x20;
/// The character set of what has none.
const BINARY: u16 = 63;
/// The number of a type whose characters are said to be of the binary set.
const JSON: u8 = 0xf5;

/// A column's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name as the statement gives it.
    pub name: &'a [u8],
    /// How its values are laid out.
    pub layout: Layout,
}

/// Reads a column's definition.
///
/// # Errors
/// The packet is cut off.
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

/// Reads of a column's definition only how its values are laid out.
///
/// # Errors
/// The packet is cut off.
#[inline]
pub fn layout(packet: &[u8]) -> Result<Layout, Malformed> {
    // The fields of fixed length are the last, so nothing before them need be looked at.
    match packet.last_chunk::<FIXED>() {
        Some(fixed @ [LENGTH, ..]) => {
            Ok(Layout::of(fixed[7], fixed[8] & UNSIGNED != 0, u16::from_le_bytes([fixed[1], fixed[2]])))
        }
        _ => Ok(column(packet)?.layout),
    }
}

/// What a server answers to the preparing of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The server's number for it.
    pub id: u32,
    /// How many columns its rows have; their definitions come after those of the parameters.
    pub columns: u16,
    /// How many parameters it has; as many definitions follow.
    pub params: u16,
}

/// Reads the answer to the preparing of a statement, errors apart.
///
/// # Errors
/// The packet is cut off, or is something else.
pub fn prepared(packet: &[u8]) -> Result<Prepared, Malformed> {
    const WHAT: &str = "answer to the preparing of a statement";
    let mut reader = Reader::new(packet);
    if reader.u8(WHAT)? != 0 {
        return Err(Malformed(WHAT));
    }
    Ok(Prepared { id: reader.u32(WHAT)?, columns: reader.u16(WHAT)?, params: reader.u16(WHAT)? })
}
