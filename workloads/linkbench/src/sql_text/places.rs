//! From `:name` in a statement's text to the places of its parameters.
//!
//! SQLite could number its parameters and name one twice; MySQL knows only `?`,
//! in the order of the text. So a text says what it wants by name, and the
//! order in which the adapter's values go to its places is worked out once.

use super::Sql;

/// The most parameters of a statement whose places differ from the adapter's order.
pub const REORDERED_MOST: usize = 16;

/// A statement's text with `?` for its parameters.
#[derive(Debug, PartialEq, Eq)]
pub struct Places {
    /// The text.
    pub sql: String,
    /// Which value goes to each place; `None` when that is the adapter's order.
    pub order: Option<Box<[u8]>>,
}

impl Places {
    /// The places of a text; a name that the statement is not given stays in it.
    pub fn of(text: &str, statement: Sql) -> Self {
        let values = statement.values();
        let mut parts = text.split(':');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        let mut order = Vec::new();
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            if name == "id2s" && statement.ids() > 0 {
                sql += &vec!["?"; statement.ids()].join(",");
                order.extend(values.len()..values.len() + statement.ids());
            } else if let Some(value) = values.iter().position(|value| *value == name) {
                sql.push('?');
                order.push(value);
            } else {
                sql.push(':');
                sql += name;
            }
            sql += rest;
        }
        let is_given_order = order.iter().copied().eq(0..values.len() + statement.ids());
        // There are at most 130 values.
        let order = (!is_given_order).then(|| order.into_iter().map(|value| value as u8).collect());
        Self { sql, order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_places_in_the_order_of_the_text() {
        let places = Places::of("UPDATE n SET data = :data, time=:time WHERE id = :id AND id <> :id", Sql::UpdateNode);
        assert_eq!(places.sql, "UPDATE n SET data = ?, time=? WHERE id = ? AND id <> ?");
        assert_eq!(places.order.as_deref(), Some([4, 3, 0, 0].as_slice()));
    }

    #[test]
    fn values_in_the_given_order_need_no_moving() {
        let places =
            Places::of("SELECT 1 WHERE id1 = :id1 AND link_type = :link_type AND id2 IN (:id2s)", Sql::GetLinks4);
        assert_eq!(places.sql, "SELECT 1 WHERE id1 = ? AND link_type = ? AND id2 IN (?,?,?,?)");
        assert_eq!(places.order, None);
    }

    #[test]
    fn a_name_that_is_not_given_stays_for_the_server_to_refuse() {
        assert_eq!(Places::of("SELECT :idx", Sql::GetNode).sql, "SELECT :idx");
    }
}
