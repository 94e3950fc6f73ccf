//! The pieces of the load: chunks, each written at once, and runs of chunks, each written in order by one loader.
//!
//! Loaders that write neighbouring chunks insert into the same leaves of a tree. They wait for each other's latches,
//! and the tree splits a shared leaf in the middle, whereas appending fills leaves. The rows of a run are therefore
//! adjacent in each table, and meet those of other loaders only at its ends.

use std::ops::Range;

use rumba_engine_api::worker::OpKind;

use crate::scale::{DISTRICTS, Scale};

/// Rows of items, stock and customers that are written together.
pub const ROWS: u32 = 1000;
/// Orders that are written together, with some ten lines each.
pub const ORDERS: u32 = 100;

/// Runs of a warehouse: itself with its stock, and its districts.
const OF_WAREHOUSE: u64 = 1 + DISTRICTS as u64;

/// The rows that are loaded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    Items(u32),
    Warehouse(u32),
    /// Stock of a warehouse, from this item on.
    Stock(u32, u32),
    /// Customers of a warehouse's district from this one on, with their history.
    Customers(u32, u32, u32),
    /// Orders of a warehouse's district from this one on, with their lines.
    Orders(u32, u32, u32),
}

/// How many chunks there are of each kind.
struct Counts {
    /// The number of items, and of a warehouse's rows of stock.
    items: u64,
    customers: u32,
    orders: u32,
}

impl Counts {
    fn of(scale: &Scale) -> Self {
        Self {
            items: u64::from(scale.items.div_ceil(ROWS)),
            customers: scale.customers.div_ceil(ROWS),
            orders: scale.customers.div_ceil(ORDERS),
        }
    }

    fn district(&self) -> u64 {
        u64::from(self.customers + self.orders)
    }

    fn warehouse(&self) -> u64 {
        1 + self.items + u64::from(DISTRICTS) * self.district()
    }
}

impl Chunk {
    /// The operation type of the chunk, in the order of [`crate::bound::LOAD_OPS`].
    pub fn kind(self) -> OpKind {
        match self {
            Chunk::Items(_) => 0,
            Chunk::Warehouse(_) => 1,
            Chunk::Stock(..) => 2,
            Chunk::Customers(..) => 3,
            Chunk::Orders(..) => 4,
        }
    }

    /// How many there are in a data set.
    pub fn count(scale: &Scale) -> u64 {
        let counts = Counts::of(scale);
        counts.items + u64::from(scale.warehouses) * counts.warehouse()
    }

    /// The chunk with this number; `None` after the last.
    pub fn numbered(scale: &Scale, number: u64) -> Option<Self> {
        let counts = Counts::of(scale);
        let Some(number) = number.checked_sub(counts.items) else {
            return Some(Chunk::Items(number as u32 * ROWS + 1));
        };
        let of_warehouse = counts.warehouse();
        let warehouse = u32::try_from(number / of_warehouse + 1).ok().filter(|number| *number <= scale.warehouses)?;
        Some(match number % of_warehouse {
            0 => Chunk::Warehouse(warehouse),
            nth if nth <= counts.items => Chunk::Stock(warehouse, (nth as u32 - 1) * ROWS + 1),
            nth => {
                let nth = (nth - counts.items - 1) as u32;
                let of_district = counts.customers + counts.orders;
                let (district, nth) = (nth / of_district + 1, nth % of_district);
                match nth.checked_sub(counts.customers) {
                    None => Chunk::Customers(warehouse, district, nth * ROWS + 1),
                    Some(nth) => Chunk::Orders(warehouse, district, nth * ORDERS + 1),
                }
            }
        })
    }

    /// The number of runs in a data set: one for the items, and for each warehouse one with its stock and one for each
    /// district.
    pub fn runs(scale: &Scale) -> u64 {
        1 + u64::from(scale.warehouses) * OF_WAREHOUSE
    }

    /// The numbers of a run's chunks; `None` beyond the last run.
    pub fn run(scale: &Scale, run: u64) -> Option<Range<u64>> {
        let counts = Counts::of(scale);
        let Some(run) = run.checked_sub(1) else { return Some(0..counts.items) };
        let (warehouse, nth) = (run / OF_WAREHOUSE, run % OF_WAREHOUSE);
        if warehouse >= u64::from(scale.warehouses) {
            return None;
        }
        let first = counts.items + warehouse * counts.warehouse();
        let districts = first + 1 + counts.items;
        Some(match nth.checked_sub(1) {
            None => first..districts,
            Some(district) => {
                let start = districts + district * counts.district();
                start..start + counts.district()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { warehouses: 2, customers: 250, items: 1500 };

    /// Guards against a missing, duplicate or misplaced chunk: no other loader writes between two chunks of a run.
    #[test]
    fn runs_are_all_chunks_in_their_order_and_each_is_of_one_place() {
        let runs: Vec<Range<u64>> = (0..).map_while(|number| Chunk::run(&SCALE, number)).collect();
        assert_eq!(runs.len() as u64, Chunk::runs(&SCALE));
        assert_eq!(runs.len(), 1 + 2 * (1 + 10));
        let numbers: Vec<u64> = runs.iter().cloned().flatten().collect();
        assert_eq!(numbers, (0..Chunk::count(&SCALE)).collect::<Vec<u64>>());
        let place = |number: u64| match Chunk::numbered(&SCALE, number) {
            Some(Chunk::Items(_)) => (0, 0),
            Some(Chunk::Warehouse(home) | Chunk::Stock(home, _)) => (home, 0),
            Some(Chunk::Customers(home, district, _) | Chunk::Orders(home, district, _)) => (home, district),
            None => panic!("no chunk {number}"),
        };
        let places: Vec<Vec<(u32, u32)>> = runs.into_iter().map(|run| run.map(place).collect()).collect();
        assert!(places.iter().all(|run| run.iter().all(|place| *place == run[0])), "{places:?}");
    }
}
