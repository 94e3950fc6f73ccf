//! Faults of stock rows.

use rumba_engine_api::kv::SpaceId;

use super::{Fault, Keys, ORDER_LINE, ORDERS, fault, key, sql_forget};

const BROKEN: &[&str] = &["tpcc_stock"];

const STOCK: SpaceId = 8;

/// The positions of numbers in the values of tables, without keys and texts.
const OL_I_ID: usize = 0;
const OL_QUANTITY: usize = 3;
const S_QUANTITY: usize = 0;
const S_YTD: usize = 1;
const S_ORDER_CNT: usize = 2;
const S_REMOTE_CNT: usize = 3;

/// The item in the first line of a district's first new order: for twenty customers, twenty orders were loaded.
const ORDERED: &str = "(SELECT ol_i_id FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 21 AND ol_number = 1)";

impl Keys {
    /// The key of the stock row that this line took from.
    fn ordered(&mut self) -> Vec<u8> {
        let item = self.number(ORDER_LINE, &key(&[1, 1, 21, 1]), OL_I_ID);
        key(&[1, item as u32])
    }

    fn add_to_ordered(&mut self, nth: usize, number: i64) {
        let stock = self.ordered();
        self.add(STOCK, &stock, nth, number);
    }

    /// Puts the items of a district's last order back into stock.
    pub(super) fn put_back(&mut self, district: u32) {
        let last = *self.orders(ORDERS, district).last().unwrap();
        for line in self.of(ORDER_LINE, &[1, district, last]) {
            let [item, quantity] = [OL_I_ID, OL_QUANTITY].map(|nth| self.number(ORDER_LINE, &line, nth));
            let stock = key(&[1, item as u32]);
            self.add(STOCK, &stock, S_YTD, -quantity);
            self.add(STOCK, &stock, S_ORDER_CNT, -1);
        }
    }
}

/// The same over SQL.
pub(super) fn sql_put_back(district: u32) -> String {
    let last = format!("(SELECT MAX(o_id) FROM orders WHERE o_d_id = {district})");
    let lines = format!("FROM order_line WHERE ol_d_id = {district} AND ol_o_id = {last} AND ol_i_id = s_i_id");
    format!(
        "UPDATE stock SET s_ytd = s_ytd - (SELECT COALESCE(SUM(ol_quantity), 0) {lines}), \
         s_order_cnt = s_order_cnt - (SELECT COUNT(*) {lines})"
    )
}

/// Adds to a number of the stock row with orders.
pub fn sql_add(column: &str, number: i64) -> String {
    format!("UPDATE stock SET {column} = {column} + {number} WHERE s_i_id = {ORDERED}")
}

/// Faults in stock rows with orders, each number separately.
pub(super) fn of_stock() -> Vec<Fault> {
    vec![
        fault(sql_add("s_ytd", -1), |keys| keys.add_to_ordered(S_YTD, -1), BROKEN),
        fault(sql_add("s_order_cnt", -1), |keys| keys.add_to_ordered(S_ORDER_CNT, -1), BROKEN),
        // There is no other warehouse.
        fault(sql_add("s_remote_cnt", 1), |keys| keys.add_to_ordered(S_REMOTE_CNT, 1), BROKEN),
        // A quantity below ten is refilled by 91: here it was not.
        fault(sql_add("s_quantity", -91), |keys| keys.add_to_ordered(S_QUANTITY, -91), BROKEN),
        fault(
            format!("DELETE FROM stock WHERE s_i_id = {ORDERED}"),
            |keys| {
                let stock = keys.ordered();
                keys.delete(STOCK, &stock);
            },
            &["tables have the rows of the scale", "tpcc_stock"],
        ),
        // An order whose end was lost, except for the stock it took.
        fault(sql_forget(6), |keys| keys.forget(6), &["every new order that was acknowledged is there", "tpcc_stock"]),
    ]
}
