//! What is in the tables, in one form whatever keeps them.

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
    /// A text.
    pub fn text(bytes: &[u8]) -> Self {
        Value::Text(bytes.trim_ascii_end().to_vec())
    }
}

/// A row, in the order of the table's columns.
pub type Row = Vec<Value>;
