//! The tables and statements of TPC-C in each dialect.

use rumba_engine_api::sql::Dialect;
use rumba_workload_kit::marked;
use strum::VariantArray;

use crate::data_set::DataSet;
use crate::tables::{Table, Type};

/// The statements of the five transactions, one row at a time (*plain*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Sql {
    /// New order.
    CustomerAndTax,
    TakeOrderNumber,
    SetOrderNumber,
    InsertOrder,
    InsertNewOrder,
    Item,
    UpdateStock,
    InsertLine,
    /// Payment.
    PayWarehouse,
    Warehouse,
    PayDistrict,
    District,
    CustomersByName,
    CustomerToPay,
    CustomerData,
    PayCustomer,
    PayCustomerWithData,
    InsertHistory,
    /// Order status.
    Balance,
    LastOrder,
    Lines,
    /// Delivery.
    OldestNewOrder,
    DeleteNewOrder,
    CustomerOfOrder,
    DeliverOrder,
    DeliverLines,
    Amount,
    PayFromOrder,
    /// Stock level.
    NextOrder,
    LowStock,
}

impl Sql {
    /// The text: `?` are its values, and `{lock}` locks the rows for a change.
    fn text(self) -> &'static str {
        match self {
            Sql::CustomerAndTax => {
                "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
                 WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?"
            }
            Sql::TakeOrderNumber => "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ?{lock}",
            Sql::SetOrderNumber => "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?",
            Sql::InsertOrder => {
                "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
                 VALUES (?, ?, ?, ?, ?, ?, ?)"
            }
            Sql::InsertNewOrder => "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
            Sql::Item => "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
            Sql::UpdateStock => {
                "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
                 s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"
            }
            Sql::InsertLine => {
                "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, \
                 ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
            }
            Sql::PayWarehouse => "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            Sql::Warehouse => {
                "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?"
            }
            Sql::PayDistrict => "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            Sql::District => {
                "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district WHERE d_w_id = ? AND d_id = ?"
            }
            Sql::CustomersByName => {
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first"
            }
            Sql::CustomerToPay => {
                "SELECT c_balance, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
                 c_phone, c_credit_lim, c_discount, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}"
            }
            // The customer's row is already locked. Without a lock here, a transaction older than another's note would
            // read the data from before it, and overwrite it.
            Sql::CustomerData => "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?{lock}",
            Sql::PayCustomer => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Sql::PayCustomerWithData => {
                "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
                 c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Sql::InsertHistory => {
                "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            }
            Sql::Balance => {
                "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Sql::LastOrder => {
                "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
                 ORDER BY o_id DESC LIMIT 1"
            }
            Sql::Lines => {
                "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            // A delivery that waits for a row taken by another delivery gets the next row, because rows count for the
            // LIMIT once they are locked. PostgreSQL does so since 9.0, where plans have LockRows below Limit.
            // In PostgreSQL the candidates are the rows committed when the statement began. If no row is returned, all
            // of these are taken, and newer orders are left to the next delivery.
            Sql::OldestNewOrder => {
                "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1{lock}"
            }
            Sql::DeleteNewOrder => "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            // Its transaction may be older than the order, and without a lock would not see it.
            Sql::CustomerOfOrder => "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?{lock}",
            Sql::DeliverOrder => "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            Sql::DeliverLines => {
                "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
            }
            Sql::Amount => "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            Sql::PayFromOrder => {
                "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
                 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
            }
            Sql::NextOrder => "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            Sql::LowStock => {
                "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? \
                 AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
            }
        }
    }

    pub fn of(self, set: DataSet, dialect: Dialect) -> String {
        in_dialect(self.text(), set, dialect)
    }
}

/// The column of stock that an order reads; each district has its own text there.
pub fn stock_of(district: u32, set: DataSet, dialect: Dialect) -> String {
    let text =
        format!("SELECT s_quantity, s_data, s_dist_{district:02} FROM stock WHERE s_w_id = ? AND s_i_id = ?{{lock}}");
    in_dialect(&text, set, dialect)
}

pub fn in_dialect(text: &str, set: DataSet, dialect: Dialect) -> String {
    // SQLite's transactions lock the whole database.
    let lock = if dialect == Dialect::Sqlite { "" } else { " FOR UPDATE" };
    marked(&set.sql(text).replace("{lock}", lock), dialect)
}

pub fn columns(table: Table) -> Vec<&'static str> {
    table.columns().iter().map(|(name, _)| *name).collect()
}

pub fn create(table: Table, set: DataSet, dialect: Dialect, options: &str) -> String {
    let of_type = |kind: &Type| match (kind, dialect) {
        (Type::Key, _) => "INTEGER NOT NULL".to_owned(),
        // In their smallest units, because SQLite has only integers and floating-point numbers.
        (Type::Int, _) | (Type::Money | Type::Rate, Dialect::Sqlite) => "INTEGER".to_owned(),
        (Type::Money, _) => "DECIMAL(12,2)".to_owned(),
        (Type::Rate, _) => "DECIMAL(4,4)".to_owned(),
        (Type::Time, Dialect::Sqlite) => "TEXT".to_owned(),
        (Type::Time, Dialect::PostgreSql) => "TIMESTAMP".to_owned(),
        (Type::Time, _) => "DATETIME".to_owned(),
        (Type::Text(most), _) => format!("VARCHAR({most})"),
        (Type::Letters(length), _) => format!("CHAR({length})"),
    };
    let mut lines: Vec<String> =
        table.columns().iter().map(|(name, kind)| format!("{name} {}", of_type(kind))).collect();
    let key: Vec<&str> = table.columns().iter().filter(|(_, kind)| *kind == Type::Key).map(|(name, _)| *name).collect();
    if !key.is_empty() {
        lines.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {} ({}) {options}", set.name(table.name()), lines.join(", "))
}

/// The lookups of transactions besides the keys: customers by name, and a customer's last order.
pub const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

#[cfg(test)]
mod tests {
    use super::*;

    const ONLY: DataSet = DataSet { number: 0, of: 1 };

    #[test]
    fn each_dialect_has_its_places_and_its_locks() {
        let text = |dialect| Sql::TakeOrderNumber.of(ONLY, dialect);
        assert!(text(Dialect::MySql).ends_with("d_w_id = ? AND d_id = ? FOR UPDATE"));
        assert!(text(Dialect::PostgreSql).ends_with("d_w_id = $1 AND d_id = $2 FOR UPDATE"));
        assert!(text(Dialect::Sqlite).ends_with("d_w_id = ? AND d_id = ?"));
        // Without the lock, the note of a payment committed meanwhile would be overwritten.
        assert!(Sql::CustomerData.of(ONLY, Dialect::MySql).ends_with("AND c_id = ? FOR UPDATE"));
        assert!(stock_of(3, ONLY, Dialect::Sqlite).contains("s_dist_03 FROM stock WHERE s_w_id = ? AND s_i_id = ?"));
        assert!(
            create(Table::Item, ONLY, Dialect::Sqlite, "")
                .contains("i_price INTEGER, i_data VARCHAR(50), PRIMARY KEY (i_id))")
        );
    }
}
