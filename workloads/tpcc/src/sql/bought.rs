//! The purchase of an order: its items and its rows of stock, each read at once, and its lines, which are written at
//! once.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, Param, Row};

use super::{int, money};
use crate::draw::{Line, MOST_LINES, NewOrder, is_original};
use crate::rules::{DISTRICT_TEXT, left, missing};
use crate::stage::exact;

/// A row of stock, as an order finds it.
#[derive(Clone, Copy, Default)]
struct Stock {
    quantity: i64,
    is_original: bool,
    text: [u8; DISTRICT_TEXT],
    length: usize,
}

/// The known facts of a line's item: its price in cents, and whether it is original.
type Item = (i64, bool);

/// The lines of an order, as far as they are known.
pub(super) struct Bought<'a> {
    order: &'a NewOrder,
    dialect: Dialect,
    items: [Option<Item>; MOST_LINES],
    stock: [Stock; MOST_LINES],
    /// The number of lines whose stock has been read.
    found: usize,
    /// The first price that could not be read.
    unread: Option<EngineError>,
}

/// The effect of an order on stock.
pub(super) struct Taken {
    /// The quantity left of each line's stock.
    pub left: [i64; MOST_LINES],
    amounts: [i64; MOST_LINES],
    /// The amount of all lines, in cents.
    pub cents: i64,
    /// The number of lines whose item and stock are original.
    pub original: u32,
}

/// The values of the rows of stock that an order takes from.
pub(super) struct Restocked {
    values: [[Param<'static>; 6]; MOST_LINES],
    /// How many there are.
    pub count: usize,
}

impl Restocked {
    /// Row by row.
    pub fn values(&self) -> &[Param<'static>] {
        self.values[..self.count].as_flattened()
    }
}

pub(super) struct Values<'a>([Param<'a>; 9 * MOST_LINES]);

impl Values<'_> {
    /// Those of as many lines as the order has.
    pub fn of(&self, order: &NewOrder) -> &[Param<'_>] {
        &self.0[..9 * order.lines().len()]
    }
}

impl<'a> Bought<'a> {
    /// Without any row read yet.
    pub fn new(order: &'a NewOrder, dialect: Dialect) -> Self {
        let (items, stock) = ([None; MOST_LINES], [Stock::default(); MOST_LINES]);
        Self { order, dialect, items, stock, found: 0, unread: None }
    }

    /// The items, as many as there may be.
    pub fn items(&self) -> [Param<'static>; MOST_LINES] {
        let lines = self.order.lines();
        std::array::from_fn(|nth| int(lines[nth.min(lines.len() - 1)].item))
    }

    /// The keys of the rows of stock, filled up to the maximum number.
    pub fn places(&self) -> [Param<'static>; 2 * MOST_LINES] {
        let lines = self.order.lines();
        std::array::from_fn(|nth| {
            let line = &lines[(nth / 2).min(lines.len() - 1)];
            int(if nth % 2 == 0 { line.supply } else { line.item })
        })
    }

    pub fn read_item(&mut self, row: &dyn Row) {
        let price = match money(self.dialect, row, 1, "i_price") {
            Ok(price) => price,
            Err(error) => {
                self.unread.get_or_insert(error);
                return;
            }
        };
        let (number, item) = (row.int(0), (price, is_original(row.bytes(2))));
        for (line, found) in self.order.lines().iter().zip(&mut self.items) {
            if i64::from(line.item) == number {
                *found = Some(item);
            }
        }
    }

    pub fn read_stock(&mut self, row: &dyn Row) {
        let place = (row.int(0), row.int(1));
        for (line, stock) in self.order.lines().iter().zip(&mut self.stock) {
            if (i64::from(line.supply), i64::from(line.item)) == place {
                let text = row.bytes(4);
                stock.length = text.len().min(DISTRICT_TEXT);
                stock.text[..stock.length].copy_from_slice(&text[..stock.length]);
                (stock.quantity, stock.is_original) = (row.int(2), is_original(row.bytes(3)));
                self.found += 1;
            }
        }
    }

    /// Whether all items exist.
    ///
    /// # Errors
    /// An item's price cannot be read.
    pub fn all_exist(&mut self) -> Result<bool> {
        let all_exist = self.items[..self.order.lines().len()].iter().all(Option::is_some);
        self.unread.take().map_or(Ok(all_exist), Err)
    }

    /// The price of the first item, in cents.
    pub fn first_price(&self) -> i64 {
        self.items[0].unwrap_or_default().0
    }

    /// The quantities that the order takes from the rows that were read.
    pub fn take(&self) -> Result<Taken> {
        let lines = self.order.lines();
        if self.found != lines.len() {
            return Err(missing("stock"));
        }
        let mut there = self.stock.map(|stock| stock.quantity);
        let mut taken = Taken { left: [0; MOST_LINES], amounts: [0; MOST_LINES], cents: 0, original: 0 };
        for (nth, line) in lines.iter().enumerate() {
            let (price, is_item_original) = self.items[nth].unwrap_or_default();
            taken.amounts[nth] = i64::from(line.quantity) * price;
            taken.cents += taken.amounts[nth];
            taken.original += u32::from(is_item_original && self.stock[nth].is_original);
            let left = left(there[nth], i64::from(line.quantity));
            taken.left[nth] = left;
            // Another line with the same item takes from the remaining quantity.
            for (later, other) in lines.iter().enumerate().skip(nth + 1) {
                if (other.supply, other.item) == (line.supply, line.item) {
                    there[later] = left;
                }
            }
        }
        Ok(taken)
    }

    /// The values to write to the rows of stock, each row once: the quantity left, and the amounts that the lines add
    /// to its sums.
    pub fn restocked(&self, taken: &Taken) -> Restocked {
        let lines = self.order.lines();
        let mut stock = Restocked { values: [[Param::Null; 6]; MOST_LINES], count: 0 };
        for (nth, line) in lines.iter().enumerate() {
            let is_same = |other: &Line| (other.supply, other.item) == (line.supply, line.item);
            if lines[..nth].iter().any(is_same) {
                continue;
            }
            let of_row = || lines.iter().zip(taken.left).filter(|(other, _)| is_same(other));
            let quantity = of_row().map(|(other, _)| other.quantity).sum();
            let orders = of_row().count() as u32;
            let left = of_row().next_back().map_or(0, |(_, left)| left);
            let remote = if line.supply == self.order.warehouse { 0 } else { orders };
            let sums = [int(quantity), int(orders), int(remote)];
            stock.values[stock.count] = [int(line.supply), int(line.item), Param::Int(left), sums[0], sums[1], sums[2]];
            stock.count += 1;
        }
        stock
    }

    pub fn lines(&self, key: [Param<'static>; 3], taken: &Taken) -> Values<'_> {
        let mut values = [Param::Null; 9 * MOST_LINES];
        for (nth, (line, row)) in self.order.lines().iter().zip(values.chunks_mut(9)).enumerate() {
            let (number, amount) = (int(nth as u32 + 1), exact(self.dialect, taken.amounts[nth], 2));
            let text = Param::Text(&self.stock[nth].text[..self.stock[nth].length]);
            let (item, supply, quantity) = (int(line.item), int(line.supply), int(line.quantity));
            row.copy_from_slice(&[key[0], key[1], key[2], number, item, supply, quantity, amount, text]);
        }
        Values(values)
    }
}
