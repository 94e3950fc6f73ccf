//! Statements over several rows.

use rumba_engine_api::sql::Dialect;

use super::text::in_dialect;
use crate::data_set::DataSet;
use crate::draw::MOST_LINES;
use crate::scale::{DISTRICTS, LINES};

/// The number of possible line counts of an order.
const COUNTS: usize = (LINES.2 - LINES.0 + 1) as usize;

/// The statements. Those that look up several rows always take the maximum number of keys; the last key is repeated to
/// fill up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Several {
    Items,
    /// For an order in this district.
    Stock(u32),
    /// An insert of this many lines.
    Lines(usize),
    /// An update of this many rows of stock.
    Restock(usize),
    Delete,
    Customers,
    DeliverOrders,
    DeliverLines,
    Amounts,
}

/// `(a = ? AND b = ?) OR (a = ? AND b = ?)`, this many times.
fn any_of(columns: &[&str], times: usize) -> String {
    let one: Vec<String> = columns.iter().map(|column| format!("{column} = ?")).collect();
    vec![format!("({})", one.join(" AND ")); times].join(" OR ")
}

/// Updates existing rows of stock: the quantity left, and the amounts added to the sums. No dialect has an UPDATE of
/// several rows with different values, but each has this statement.
fn restock(count: usize, dialect: Dialect) -> String {
    let rows = vec!["(?, ?, ?, ?, ?, ?)"; count].join(", ");
    let (there, new): (_, fn(&str) -> String) = match dialect {
        Dialect::MySql => ("ON DUPLICATE KEY UPDATE", |column| format!("VALUES({column})")),
        _ => ("ON CONFLICT (s_w_id, s_i_id) DO UPDATE SET", |column| format!("excluded.{column}")),
    };
    let sums = ["s_ytd", "s_order_cnt", "s_remote_cnt"].map(|sum| format!("{sum} = stock.{sum} + {}", new(sum)));
    format!(
        "INSERT INTO stock (s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt) VALUES {rows} {there} \
         s_quantity = {}, {}",
        new("s_quantity"),
        sums.join(", ")
    )
}

impl Several {
    /// How many there are.
    pub const ALL: usize = 6 + DISTRICTS as usize + COUNTS + MOST_LINES;

    /// All, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Several> {
        use Several::{Amounts, Customers, Delete, DeliverLines, DeliverOrders, Items, Lines, Restock, Stock};
        let single = [Items, Delete, Customers, DeliverOrders, DeliverLines, Amounts];
        let lines = (LINES.0 as usize..=LINES.2 as usize).map(Lines);
        single.into_iter().chain((1..=DISTRICTS).map(Stock)).chain(lines).chain((1..=MOST_LINES).map(Restock))
    }

    /// Its place among all.
    pub fn number(self) -> usize {
        match self {
            Several::Items => 0,
            Several::Delete => 1,
            Several::Customers => 2,
            Several::DeliverOrders => 3,
            Several::DeliverLines => 4,
            Several::Amounts => 5,
            Several::Stock(district) => 6 + district as usize - 1,
            Several::Lines(count) => 6 + DISTRICTS as usize + count - LINES.0 as usize,
            Several::Restock(count) => 6 + DISTRICTS as usize + COUNTS + count - 1,
        }
    }

    fn text(self, dialect: Dialect) -> String {
        let of_districts = |columns: &[&str]| any_of(columns, DISTRICTS as usize);
        let waiting = || of_districts(&["no_w_id", "no_d_id", "no_o_id"]);
        let orders = || of_districts(&["o_w_id", "o_d_id", "o_id"]);
        let order_lines = || of_districts(&["ol_w_id", "ol_d_id", "ol_o_id"]);
        match self {
            Several::Items => {
                let places = ["?"; MOST_LINES].join(",");
                format!("SELECT i_id, i_price, i_data, i_name FROM item WHERE i_id IN ({places})")
            }
            Several::Stock(district) => format!(
                "SELECT s_w_id, s_i_id, s_quantity, s_data, s_dist_{district:02} FROM stock WHERE {}{{lock}}",
                any_of(&["s_w_id", "s_i_id"], MOST_LINES)
            ),
            Several::Lines(count) => format!(
                "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES {}",
                vec!["(?, ?, ?, ?, ?, ?, ?, ?, ?)"; count].join(", ")
            ),
            Several::Restock(count) => restock(count, dialect),
            Several::Delete => format!("DELETE FROM new_order WHERE {}", waiting()),
            Several::Customers => format!("SELECT o_d_id, o_c_id FROM orders WHERE {}{{lock}}", orders()),
            Several::DeliverOrders => format!("UPDATE orders SET o_carrier_id = ? WHERE {}", orders()),
            Several::DeliverLines => format!("UPDATE order_line SET ol_delivery_d = ? WHERE {}", order_lines()),
            Several::Amounts => {
                format!("SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE {} GROUP BY ol_d_id", order_lines())
            }
        }
    }

    pub fn of(self, set: DataSet, dialect: Dialect) -> String {
        in_dialect(&self.text(dialect), set, dialect)
    }
}
