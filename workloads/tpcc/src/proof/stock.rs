//! Checks the rows of stock against the lines that took from them. No condition of clause 3.3.2 covers them, and none
//! finds a lost update of theirs.
//! At the start every sum of a row is 0 (4.3.3.1). Each line of a new order adds its quantity to `s_ytd` and one to
//! `s_order_cnt`. It also adds one to `s_remote_cnt` if another warehouse supplies it (2.4.2.2).

use std::collections::HashMap;
use std::ops::RangeInclusive;

use rumba_engine_api::check::Check;

const NAME: &str = "tpcc_stock: a row of stock has counted the lines that took from it, and no other";

/// The range of the quantity in a row. It is 10 to 100 at the start, and later at least ten, or it is refilled by 91
/// ([`left`](crate::rules::left)). The initial quantity is not stored, so no sum can be checked against it.
const LEFT: RangeInclusive<i64> = 10..=100;

/// The quantity that lines took from a row of stock.
#[derive(Clone, Copy, Default)]
struct Taken {
    quantity: i64,
    lines: u32,
    remote: u32,
}

impl Taken {
    /// The row's expected counters: `s_ytd`, `s_order_cnt` and `s_remote_cnt`.
    fn counted(self) -> [i64; 3] {
        [self.quantity, self.lines.into(), self.remote.into()]
    }
}

/// The quantities that lines took, and the rows compared with them.
pub(super) struct Stock {
    /// The stock rows that lines took from and that are not yet read, by warehouse and item.
    taken: HashMap<[u32; 2], Taken>,
    wrong: Check,
}

impl Default for Stock {
    fn default() -> Self {
        Self { taken: HashMap::new(), wrong: Check::new(NAME) }
    }
}

impl Stock {
    /// A line of a new order of a warehouse took this many of an item from the supplying warehouse.
    pub(super) fn line(&mut self, home: u32, place: [u32; 2], quantity: i64) {
        let taken = self.taken.entry(place).or_default();
        // Wraps around, because the sum of damaged rows is wrong in any case.
        taken.quantity = taken.quantity.wrapping_add(quantity);
        taken.lines += 1;
        taken.remote += u32::from(place[0] != home);
    }

    /// A row, after all lines: the quantity left in it, and its counters.
    pub(super) fn row(&mut self, place: [u32; 2], left: i64, counted: [i64; 3]) {
        let taken = self.taken.remove(&place).unwrap_or_default();
        if LEFT.contains(&left) && counted == taken.counted() {
            return;
        }
        self.wrong.fail(|| {
            let ([warehouse, item], [sum, orders, remote]) = (place, counted);
            format!(
                "warehouse {warehouse}, item {item}: s_quantity {left}, s_ytd {sum}, s_order_cnt {orders}, \
                 s_remote_cnt {remote}; {}",
                reported(taken)
            )
        });
    }

    /// The condition, over this many rows. Entries that remain belong to lines that took from missing rows.
    pub(super) fn check(self, rows: i64) -> Check {
        let Self { taken, mut wrong } = self;
        let mut taken: Vec<_> = taken.into_iter().collect();
        taken.sort_unstable_by_key(|(place, _)| *place);
        for ([warehouse, item], taken) in taken {
            wrong.fail(|| format!("warehouse {warehouse}, item {item}: no such stock; {}", reported(taken)));
        }
        Check { examined: rows.cast_unsigned(), ..wrong }
    }
}

/// Describes the quantities that lines took.
fn reported(Taken { quantity, lines, remote }: Taken) -> String {
    format!("{lines} lines took {quantity} in all, {remote} of the lines for another warehouse")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::left;

    /// Two lines of warehouse 1 and one of warehouse 2 took from item 7 of warehouse 1.
    fn taken() -> Stock {
        let mut stock = Stock::default();
        for (home, quantity) in [(1, 3), (1, 10), (2, 4)] {
            stock.line(home, [1, 7], quantity);
        }
        stock
    }

    #[test]
    fn stock_row_counts_its_lines_and_an_unused_row_none() {
        let mut stock = taken();
        stock.row([1, 7], 50, [17, 3, 1]);
        // The same item of another warehouse is another row.
        stock.row([2, 7], 10, [0; 3]);
        stock.row([1, 8], 100, [0; 3]);
        let check = stock.check(3);
        assert!(check.wrong == 0 && check.examined == 3, "{check:?}");
    }

    #[test]
    fn each_wrong_row_counts_once() {
        let (low, high) = ((9, [17, 3, 1]), (101, [17, 3, 1]));
        for (left, counted) in [(50, [16, 3, 1]), (50, [17, 2, 1]), (50, [17, 3, 0]), low, high] {
            let mut stock = taken();
            stock.row([1, 7], left, counted);
            stock.row([1, 8], 30, [0; 3]);
            assert_eq!(stock.check(2).wrong, 1, "{left}, {counted:?}");
        }
        let mut stock = taken();
        stock.row([1, 8], 30, [0, 1, 0]);
        let check = stock.check(1);
        assert_eq!(check.wrong, 2, "no stock of item 7, and stock of item 8 without an order: {check:?}");
        let lines = "3 lines took 17 in all, 1 of the lines for another warehouse";
        assert_eq!(check.examples[1], format!("warehouse 1, item 7: no such stock; {lines}"));
    }

    #[test]
    fn remaining_stock_stays_in_range_for_every_order() {
        for (quantity, wanted) in LEFT.flat_map(|quantity| (1..=10).map(move |wanted| (quantity, wanted))) {
            assert!(LEFT.contains(&left(quantity, wanted)), "{wanted} of {quantity}");
        }
    }
}
