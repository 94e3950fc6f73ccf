//! What is in the tables, in one form whatever keeps them.

use rumba_core::sql::Param;

use crate::tables::Type;

/// What a column holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// NULL.
    None,
    /// A whole number; of exact ones in their smallest unit.
    Number(i64),
    /// A text, without blanks at its end, which some databases add and others take off.
    Text(Vec<u8>),
    /// A time. Which is not told: some databases keep microseconds, others seconds.
    Time,
}

impl Value {
    /// What is loaded into a column of this type, exact numbers in their smallest unit.
    pub fn of(kind: Type, value: &Param<'_>) -> Self {
        match kind {
            _ if value.is_null() => Value::None,
            Type::Time => Value::Time,
            kind if kind.is_text() => Value::text(value.bytes()),
            _ => Value::Number(value.int()),
        }
    }

    /// A text.
    pub fn text(bytes: &[u8]) -> Self {
        Value::Text(bytes.trim_ascii_end().to_vec())
    }
}

/// A row, in the order of the table's columns.
pub type Row = Vec<Value>;
