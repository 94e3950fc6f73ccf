//! Maps each `:name` in a statement's text to the positions of its parameters.
//!
//! PostgreSQL numbers its parameters and may use one several times; MySQL knows only `?`, in the order of the text. A
//! text therefore names its parameters, and the order of the adapter's values is computed once.

use super::Sql;

/// The maximum number of parameters in a statement whose positions differ from the adapter's order.
pub const REORDERED_MOST: usize = 16;

/// How a dialect writes a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// `?`, in the order of the text.
    Questions,
    /// `$1`, by the number of the adapter's value.
    Numbered,
}

/// A statement's text with its parameters as its dialect writes them.
#[derive(Debug, PartialEq, Eq)]
pub struct Places {
    /// The text.
    pub sql: String,
    /// The value for each position; `None` if that is the adapter's order.
    pub order: Option<Box<[u8]>>,
}

impl Places {
    /// The positions in a text; unknown names stay in it.
    pub fn of(text: &str, statement: Sql, marks: Marks) -> Self {
        let values = statement.values();
        let mut parts = text.split(':');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        let mut order = Vec::new();
        let mut mark = |value: usize| {
            order.push(value);
            match marks {
                Marks::Questions => "?".to_owned(),
                Marks::Numbered => format!("${}", value + 1),
            }
        };
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            if name == "id2s" && statement.ids() > 0 {
                let ids: Vec<String> = (values.len()..values.len() + statement.ids()).map(&mut mark).collect();
                sql += &ids.join(",");
            } else if let Some(value) = values.iter().position(|value| *value == name) {
                sql += &mark(value);
            } else {
                sql.push(':');
                sql += name;
            }
            sql += rest;
        }
        let is_given_order = marks == Marks::Numbered || order.iter().copied().eq(0..values.len() + statement.ids());
        // There are at most 130 values.
        let order = (!is_given_order).then(|| order.into_iter().map(|value| value as u8).collect());
        Self { sql, order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_the_given_order_need_no_moving() {
        const TEXT: &str = "SELECT 1 WHERE id1 = :id1 AND link_type = :link_type AND id2 IN (:id2s)";
        let places = Places::of(TEXT, Sql::GetLinks4, Marks::Questions);
        assert_eq!(places.sql, "SELECT 1 WHERE id1 = ? AND link_type = ? AND id2 IN (?,?,?,?)");
        assert_eq!(places.order, None);
    }
}
