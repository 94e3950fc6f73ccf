//! The content of the tables in one form for all engines.

use rumba_engine_api::sql::Param;

use crate::tables::Type;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// NULL.
    None,
    /// An integer; exact numbers are in their smallest unit.
    Number(i64),
    /// A text without trailing blanks, which some databases add and others remove.
    Text(Vec<u8>),
    /// A time, without its value: some databases keep microseconds, others seconds.
    Time,
}

impl Value {
    /// The value loaded into a column of this type; exact numbers are in their smallest unit.
    pub fn of(kind: Type, value: &Param<'_>) -> Self {
        match kind {
            _ if value.is_null() => Value::None,
            Type::Time => Value::Time,
            kind if kind.is_text() => Value::text(value.bytes()),
            _ => Value::Number(value.int()),
        }
    }

    pub fn text(bytes: &[u8]) -> Self {
        Value::Text(bytes.trim_ascii_end().to_vec())
    }
}

/// A row, in the order of the table's columns.
pub type Row = Vec<Value>;
