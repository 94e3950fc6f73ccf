//! Types by their numbers (`pg_type.oid`; those of built-in types never change), and the format of their values.

use rumba_engine_api::sql::ParamType;

const BOOL: u32 = 16;
const BYTEA: u32 = 17;
const NAME: u32 = 19;
const INT8: u32 = 20;
const INT2: u32 = 21;
const INT4: u32 = 23;
const TEXT: u32 = 25;
const OID: u32 = 26;
const XID: u32 = 28;
const JSON: u32 = 114;
const FLOAT4: u32 = 700;
const FLOAT8: u32 = 701;
const UNKNOWN: u32 = 705;
const BPCHAR: u32 = 1042;
const VARCHAR: u32 = 1043;
const TIMESTAMP: u32 = 1114;
const TIMESTAMPTZ: u32 = 1184;
const NUMERIC: u32 = 1700;

/// The layout of a column's value in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// An integer of 2, 4 or 8 bytes, big-endian.
    Int {
        /// The number of bytes.
        width: u8,
        /// Whether it is unsigned.
        unsigned: bool,
    },
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// A byte, 0 or 1.
    Bool,
    /// Bytes, unchanged.
    Bytes,
    /// Characters, unchanged.
    Characters,
    /// Microseconds since the year 2000, 8 bytes.
    Timestamp,
    /// An exact number, as text.
    Decimal,
    /// Text, for a type whose binary format this client does not support.
    Text,
    /// `t` or `f`.
    TextBool,
    /// Bytes as text, in the format of the server's `bytea_output`.
    TextBytes,
}

impl Layout {
    /// The layout requested for a prepared statement's values: binary, if that format is simple.
    pub fn of(oid: u32) -> Self {
        match oid {
            BOOL => Layout::Bool,
            INT2 => Layout::Int { width: 2, unsigned: false },
            INT4 => Layout::Int { width: 4, unsigned: false },
            INT8 => Layout::Int { width: 8, unsigned: false },
            OID | XID => Layout::Int { width: 4, unsigned: true },
            FLOAT4 => Layout::Float,
            FLOAT8 => Layout::Double,
            BYTEA => Layout::Bytes,
            NAME | TEXT | JSON | UNKNOWN | BPCHAR | VARCHAR => Layout::Characters,
            TIMESTAMP | TIMESTAMPTZ => Layout::Timestamp,
            NUMERIC => Layout::Decimal,
            _ => Layout::Text,
        }
    }

    /// The layout of a type's values if the statement is sent as text.
    pub fn of_text(oid: u32) -> Self {
        match oid {
            BYTEA => Layout::TextBytes,
            BOOL => Layout::TextBool,
            _ => Layout::Text,
        }
    }

    /// The protocol's number for the format: 0 text, 1 binary.
    pub fn format(self) -> u16 {
        u16::from(!matches!(self, Layout::Decimal | Layout::Text | Layout::TextBool | Layout::TextBytes))
    }
}

/// The format of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamLayout {
    /// An integer with this many bytes, big-endian.
    Int(u8),
    /// Bytes, unchanged.
    Bytes,
    /// The value as text.
    Text,
}

impl ParamLayout {
    /// The format of parameters of a type.
    pub fn of(oid: u32) -> Self {
        match oid {
            INT2 => ParamLayout::Int(2),
            INT4 => ParamLayout::Int(4),
            INT8 => ParamLayout::Int(8),
            BYTEA | NAME | TEXT | JSON | UNKNOWN | BPCHAR | VARCHAR => ParamLayout::Bytes,
            _ => ParamLayout::Text,
        }
    }

    /// The protocol's number for the format: 0 text, 1 binary.
    pub fn format(self) -> u16 {
        u16::from(self != ParamLayout::Text)
    }
}

/// Whether a type's values are bytes that are never converted to another character set.
pub fn is_bytea(oid: u32) -> bool {
    oid == BYTEA
}

/// The type of a parameter that a client declares.
pub fn declared_oid(declared: ParamType) -> u32 {
    match declared {
        ParamType::Int => INT8,
        ParamType::Double => FLOAT8,
        ParamType::Text => VARCHAR,
    }
}

/// Whether a type's values are exact numbers of any length.
pub fn is_numeric(oid: u32) -> bool {
    oid == NUMERIC
}
