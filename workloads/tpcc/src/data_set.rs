//! Data sets: copies of the nine tables next to each other in one database. Each has its own warehouses, orders and
//! verification, as in published tests (`10 × 100W`).

use std::borrow::Cow;

use crate::tables::Table;

/// Indexes in addition to the keys. Some databases keep their names in one list with those of the tables.
const INDEXES: [&str; 2] = ["customer_by_name", "orders_by_customer"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// From 0.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl DataSet {
    /// All sets of this number of sets.
    pub fn all(of: u32) -> impl Iterator<Item = Self> {
        (0..of).map(move |number| Self { number, of })
    }

    /// That of a client: they take turns.
    pub fn of_client(client: u32, of: u32) -> Self {
        Self { number: client % of, of }
    }

    /// The name of a table or an index in this set: `stock`, or `stock3` if there are several sets.
    pub fn name(self, name: &str) -> Cow<'_, str> {
        if self.of == 1 { Cow::Borrowed(name) } else { Cow::Owned(format!("{name}{}", self.number + 1)) }
    }

    /// A text of SQL with the tables and indexes of this set. No column has the name of one.
    pub fn sql(self, text: &str) -> Cow<'_, str> {
        if self.of == 1 {
            return Cow::Borrowed(text);
        }
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let (mut out, mut rest) = (String::with_capacity(text.len() + 16), text);
        while !rest.is_empty() {
            let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let is_named = Table::ALL.iter().any(|table| table.name() == word) || INDEXES.contains(&word);
            out += &if is_named { self.name(word) } else { Cow::Borrowed(word) };
            let next = after.find(is_part).unwrap_or(after.len());
            out += &after[..next];
            rest = &after[next..];
        }
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_and_indexes_of_a_data_set_carry_its_number() {
        let text = "SELECT s_quantity, d.d_id FROM stock, district d WHERE s_w_id = ? AND stock.s_i_id IN (?, ?){lock}";
        let third = DataSet { number: 2, of: 10 };
        assert_eq!(
            third.sql(text),
            "SELECT s_quantity, d.d_id FROM stock3, district3 d WHERE s_w_id = ? AND stock3.s_i_id IN (?, ?){lock}"
        );
        assert_eq!(third.sql("CREATE INDEX customer_by_name ON customer (c_w_id)").matches('3').count(), 2);
        assert_eq!(DataSet { number: 0, of: 1 }.sql(text), text);
        let columns = Table::ALL.iter().flat_map(|table| table.columns());
        assert!(columns.into_iter().all(|(column, _)| third.sql(column) == *column));
    }

    #[test]
    fn clients_take_turns() {
        let sets: Vec<u32> = (0..5).map(|client| DataSet::of_client(client, 3).number).collect();
        assert_eq!(sets, [0, 1, 2, 0, 1]);
    }
}
