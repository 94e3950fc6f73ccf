//! Statements in addition to the five transactions, with which tests inspect rows and interfere.

use rumba_engine_api::error::Result;
use rumba_engine_api::value::DateTime;

use crate::content::Row;
use crate::entry::Payment;
use crate::rules::missing;
use crate::tables::{NONE, Table, column};

/// The known facts of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub customer: u32,
    pub lines: u32,
    /// Its carrier; 0 before it is delivered.
    pub carrier: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub item: u32,
    pub quantity: u32,
    /// The sum of their amounts, in cents.
    pub cents: i64,
}

/// Reads committed rows, and changes some; each change is a separate transaction.
pub trait Inspect {
    /// These columns of the row with a key, as verification reads them ([`Rows`](crate::proof::Rows)); `None` if there is
    /// no such row.
    fn find<const N: usize>(&mut self, table: Table, key: &[u32], columns: [usize; N]) -> Result<Option<[i64; N]>>;

    /// These columns of a row that the load has written.
    fn row<const N: usize>(&mut self, table: Table, key: &[u32], columns: [usize; N]) -> Result<[i64; N]> {
        self.find(table, key, columns)?.ok_or_else(|| missing(table.name()))
    }

    /// An order by warehouse, district and number.
    fn order(&mut self, place: [u32; 3]) -> Result<Option<Order>> {
        let columns = [column::O_C_ID, column::O_OL_CNT, column::O_CARRIER_ID];
        let found = self.find(Table::Orders, &place, columns)?;
        Ok(found.map(|[customer, lines, carrier]| {
            let carrier = if carrier == NONE { 0 } else { carrier as u32 };
            Order { customer: customer as u32, lines: lines as u32, carrier }
        }))
    }

    /// Its lines, in their order.
    fn lines(&mut self, place: [u32; 3]) -> Result<Vec<Line>>;

    /// A customer's balance in cents.
    fn balance(&mut self, place: [u32; 3]) -> Result<i64> {
        self.row(Table::Customer, &place, [column::C_BALANCE]).map(|[cents]| cents)
    }

    /// The number that a district's next order gets.
    fn next_order(&mut self, place: [u32; 2]) -> Result<u32> {
        self.row(Table::District, &place, [column::D_NEXT_O_ID]).map(|[number]| number as u32)
    }

    /// The amounts that a district and its warehouse have received, in cents.
    fn taken(&mut self, place: [u32; 2]) -> Result<[i64; 2]> {
        let [of_district] = self.row(Table::District, &place, [column::D_YTD])?;
        let [of_warehouse] = self.row(Table::Warehouse, &place[..1], [column::W_YTD])?;
        Ok([of_district, of_warehouse])
    }

    /// The waiting orders of a district, oldest first.
    fn waiting(&mut self, place: [u32; 2]) -> Result<Vec<u32>>;

    /// The waiting orders of a district, oldest first.
    fn withdraw(&mut self, place: [u32; 2], orders: &[u32]) -> Result<()>;

    /// Lets them wait again.
    fn put_back(&mut self, place: [u32; 2], orders: &[u32]) -> Result<()>;

    /// The stock of an item in a warehouse: the quantity left, the quantity taken, the number of lines, and the number
    /// of lines for another warehouse.
    fn stock(&mut self, place: [u32; 2]) -> Result<[i64; 4]> {
        let columns = [column::S_QUANTITY, column::S_YTD, column::S_ORDER_CNT, column::S_REMOTE_CNT];
        self.row(Table::Stock, &place, columns)
    }

    /// An item's price in cents.
    fn price(&mut self, item: u32) -> Result<i64> {
        self.row(Table::Item, &[item], [column::I_PRICE]).map(|[cents]| cents)
    }

    /// Sets prices: items with their cents.
    fn set_prices(&mut self, prices: &[(u32, i64)]) -> Result<()>;

    fn content(&mut self, table: Table) -> Result<Vec<Row>>;

    fn payments(&mut self, since: DateTime, visit: &mut dyn FnMut(Payment)) -> Result<()>;
}
