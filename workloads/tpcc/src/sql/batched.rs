//! The transactions over SQL with lookups combined (*batched*): all items of an order in one statement, all rows of stock,
//! all lines; and what a delivery does in ten districts. The work on rows is the same, the round trips are a third.

use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Param, Row, Visit};

use super::store::{SqlStore, int};
use super::text::{Sql, in_dialect};
use super::units;
use crate::data_set::DataSet;
use crate::draw::{Delivery, MOST_LINES, NewOrder, is_original};
use crate::rules::{DISTRICT_TEXT, left, missing};
use crate::scale::{DISTRICTS, LINES};
use crate::stop::Point;
use crate::store::Delivered;

/// How many numbers of lines an order may have.
const COUNTS: usize = (LINES.2 - LINES.0 + 1) as usize;

/// The statements. Those that look several rows up take as many as there may be: what is less repeats the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Several {
    Items,
    /// For an order in this district.
    Stock(u32),
    /// So many of them.
    Lines(usize),
    Delete,
    Customers,
    DeliverOrders,
    DeliverLines,
    Amounts,
}

/// `(a = ? AND b = ?) OR (a = ? AND b = ?)`, so many times.
fn any_of(columns: &[&str], times: usize) -> String {
    let one: Vec<String> = columns.iter().map(|column| format!("{column} = ?")).collect();
    vec![format!("({})", one.join(" AND ")); times].join(" OR ")
}

impl Several {
    /// How many there are.
    pub const ALL: usize = 6 + DISTRICTS as usize + COUNTS;

    /// All, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Several> {
        use Several::{Amounts, Customers, Delete, DeliverLines, DeliverOrders, Items, Lines, Stock};
        let single = [Items, Delete, Customers, DeliverOrders, DeliverLines, Amounts];
        let lines = (LINES.0 as usize..=LINES.2 as usize).map(Lines);
        single.into_iter().chain((1..=DISTRICTS).map(Stock)).chain(lines)
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
        }
    }

    fn text(self) -> String {
        let of_districts = |columns: &[&str]| any_of(columns, DISTRICTS as usize);
        let waiting = || of_districts(&["no_w_id", "no_d_id", "no_o_id"]);
        let orders = || of_districts(&["o_w_id", "o_d_id", "o_id"]);
        let order_lines = || of_districts(&["ol_w_id", "ol_d_id", "ol_o_id"]);
        match self {
            Several::Items => {
                let places = ["?"; MOST_LINES].join(",");
                format!("SELECT i_id, i_price, i_data FROM item WHERE i_id IN ({places})")
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
            Several::Delete => format!("DELETE FROM new_order WHERE {}", waiting()),
            Several::Customers => format!("SELECT o_d_id, o_c_id FROM orders WHERE {}{{lock}}", orders()),
            Several::DeliverOrders => format!("UPDATE orders SET o_carrier_id = ? WHERE {}", orders()),
            Several::DeliverLines => format!("UPDATE order_line SET ol_delivery_d = ? WHERE {}", order_lines()),
            Several::Amounts => {
                format!("SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE {} GROUP BY ol_d_id", order_lines())
            }
        }
    }

    /// Its text over a data set, in a dialect.
    pub fn of(self, set: DataSet, dialect: Dialect) -> String {
        in_dialect(&self.text(), set, dialect)
    }
}

/// A row of stock, as an order finds it and leaves it.
#[derive(Clone, Copy, Default)]
struct Stock {
    quantity: i64,
    is_original: bool,
    text: [u8; DISTRICT_TEXT],
    length: usize,
}

/// What is known of a line's item: its price in cents, and whether it is original.
type Item = (i64, bool);

impl SqlStore {
    /// The lines of an order, and with them the rest of it.
    pub(super) async fn lines_at_once(
        &mut self,
        order: &NewOrder,
        key: [Param<'static>; 3],
    ) -> Result<Option<(i64, u32)>, EngineError> {
        let lines = order.lines();
        let mut items = [None; MOST_LINES];
        self.read_items(order, &mut items).await?;
        if items[..lines.len()].iter().any(Option::is_none) {
            return Ok(None);
        }
        self.stops().again(Point::Price, items[0].unwrap_or_default().0);
        let mut stock = [Stock::default(); MOST_LINES];
        self.read_stock(order, &mut stock).await?;
        let (mut cents, mut original) = (0, 0);
        let mut amounts = [0; MOST_LINES];
        for (nth, line) in lines.iter().enumerate() {
            let (price, is_item_original) = items[nth].unwrap_or_default();
            amounts[nth] = i64::from(line.quantity) * price;
            cents += amounts[nth];
            original += u32::from(is_item_original && stock[nth].is_original);
            let left = left(stock[nth].quantity, i64::from(line.quantity));
            self.take_stock(order, line, left).await?;
            // The same item again is taken from what is left.
            for (later, other) in lines.iter().enumerate().skip(nth + 1) {
                if (other.supply, other.item) == (line.supply, line.item) {
                    stock[later].quantity = left;
                }
            }
        }
        let mut values = [Param::Null; 9 * MOST_LINES];
        for (nth, (line, row)) in lines.iter().zip(values.chunks_mut(9)).enumerate() {
            let (number, amount) = (int(nth as u32 + 1), self.cents(amounts[nth]));
            let text = Param::Text(&stock[nth].text[..stock[nth].length]);
            let (item, supply, quantity) = (int(line.item), int(line.supply), int(line.quantity));
            row.copy_from_slice(&[key[0], key[1], key[2], number, item, supply, quantity, amount, text]);
        }
        self.run(Several::Lines(lines.len()), &values[..9 * lines.len()], &mut |_| {}).await?;
        Ok(Some((cents, original)))
    }

    async fn read_items(
        &mut self,
        order: &NewOrder,
        items: &mut [Option<Item>; MOST_LINES],
    ) -> Result<(), EngineError> {
        let (dialect, lines) = (self.dialect(), order.lines());
        let mut wanted = [Param::Null; MOST_LINES];
        for (nth, place) in wanted.iter_mut().enumerate() {
            *place = int(lines[nth.min(lines.len() - 1)].item);
        }
        let read: Visit<'_> = &mut |row: &dyn Row| {
            let (number, item) = (row.int(0), (units(dialect, row, 1, 2), is_original(row.bytes(2))));
            for (line, found) in lines.iter().zip(items.iter_mut()) {
                if i64::from(line.item) == number {
                    *found = Some(item);
                }
            }
        };
        self.run(Several::Items, &wanted, read).await.map(drop)
    }

    async fn read_stock(&mut self, order: &NewOrder, stock: &mut [Stock; MOST_LINES]) -> Result<(), EngineError> {
        let lines = order.lines();
        let mut wanted = [Param::Null; 2 * MOST_LINES];
        for (nth, place) in wanted.chunks_mut(2).enumerate() {
            let line = &lines[nth.min(lines.len() - 1)];
            place.copy_from_slice(&[int(line.supply), int(line.item)]);
        }
        let mut found = 0;
        let read: Visit<'_> = &mut |row: &dyn Row| {
            let place = (row.int(0), row.int(1));
            for (line, stock) in lines.iter().zip(stock.iter_mut()) {
                if (i64::from(line.supply), i64::from(line.item)) == place {
                    let text = row.bytes(4);
                    stock.length = text.len().min(DISTRICT_TEXT);
                    stock.text[..stock.length].copy_from_slice(&text[..stock.length]);
                    (stock.quantity, stock.is_original) = (row.int(2), is_original(row.bytes(3)));
                    found += 1;
                }
            }
        };
        self.run(Several::Stock(order.district), &wanted, read).await?;
        if found == lines.len() { Ok(()) } else { Err(missing("stock")) }
    }

    /// A delivery: the oldest orders one by one, and what becomes of them at once.
    pub(super) async fn deliver_at_once(&mut self, delivery: &Delivery) -> Result<Delivered, EngineError> {
        let warehouse = int(delivery.warehouse);
        let (mut orders, mut count) = ([(0_u32, 0_i64); DISTRICTS as usize], 0);
        for district in 1..=DISTRICTS {
            if let Some(order) = self.oldest(delivery, district).await? {
                orders[count] = (district, order);
                count += 1;
            }
        }
        if count == 0 {
            return Ok(Delivered::default());
        }
        // Behind the place of what an update sets.
        let mut values = [Param::Null; 1 + 3 * DISTRICTS as usize];
        for (nth, place) in values[1..].chunks_mut(3).enumerate() {
            let (district, order) = orders[nth.min(count - 1)];
            place.copy_from_slice(&[warehouse, int(district), Param::Int(order)]);
        }
        let deleted = self.run(Several::Delete, &values[1..], &mut |_| {}).await?.affected;
        if deleted != count as u64 {
            return Err(EngineError::conflict("another delivery took an order"));
        }
        let mut of_districts = [(0_i64, 0_i64); DISTRICTS as usize + 1];
        let read: Visit<'_> = &mut |row: &dyn Row| {
            if let Some(place) = of_districts.get_mut(row.int(0) as usize) {
                place.0 = row.int(1);
            }
        };
        self.run(Several::Customers, &values[1..], read).await?;
        values[0] = int(delivery.carrier);
        self.run(Several::DeliverOrders, &values, &mut |_| {}).await?;
        values[0] = Param::Timestamp(delivery.delivered);
        self.run(Several::DeliverLines, &values, &mut |_| {}).await?;
        let dialect = self.dialect();
        let read: Visit<'_> = &mut |row: &dyn Row| {
            if let Some(place) = of_districts.get_mut(row.int(0) as usize) {
                place.1 = units(dialect, row, 1, 2);
            }
        };
        self.run(Several::Amounts, &values[1..], read).await?;
        for &(district, _) in &orders[..count] {
            let (customer, amount) = of_districts[district as usize];
            if customer == 0 {
                return Err(missing("an order that waits for its delivery"));
            }
            let values = [self.cents(amount), warehouse, int(district), Param::Int(customer)];
            self.change(Sql::PayFromOrder, &values).await?;
        }
        let mut delivered = Delivered::default();
        orders[..count].iter().for_each(|&(district, order)| delivered.put(district, order));
        Ok(delivered)
    }
}
