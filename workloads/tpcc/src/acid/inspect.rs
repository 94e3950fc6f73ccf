//! Statements beside the five transactions, by which tests look at rows and interfere.

use rumba_core::error::EngineError;
use rumba_core::value::DateTime;

use crate::content::Row;
use crate::entry::Payment;
use crate::tables::Table;

/// What is known of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its customer.
    pub customer: u32,
    /// How many lines it says it has.
    pub lines: u32,
    /// Its carrier; 0 before it is delivered.
    pub carrier: u32,
}

/// A line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The item.
    pub item: u32,
    /// How many.
    pub quantity: u32,
    /// What they cost together.
    pub cents: i64,
}

/// Looks at committed rows, and changes some; each change is a transaction of its own.
pub trait Inspect {
    /// An order by warehouse, district and number.
    fn order(&mut self, place: [u32; 3]) -> Result<Option<Order>, EngineError>;

    /// Its lines, in their order.
    fn lines(&mut self, place: [u32; 3]) -> Result<Vec<Line>, EngineError>;

    /// A customer's balance in cents.
    fn balance(&mut self, place: [u32; 3]) -> Result<i64, EngineError>;

    /// The number that a district's next order gets.
    fn next_order(&mut self, place: [u32; 2]) -> Result<u32, EngineError>;

    /// What a district and its warehouse have taken, in cents.
    fn taken(&mut self, place: [u32; 2]) -> Result<[i64; 2], EngineError>;

    /// The orders of a district that wait, from the oldest.
    fn waiting(&mut self, place: [u32; 2]) -> Result<Vec<u32>, EngineError>;

    /// Lets orders of a district wait no more.
    fn withdraw(&mut self, place: [u32; 2], orders: &[u32]) -> Result<(), EngineError>;

    /// Lets them wait again.
    fn put_back(&mut self, place: [u32; 2], orders: &[u32]) -> Result<(), EngineError>;

    /// What is left of a warehouse's item, how many were taken, by how many lines, and by how many of these for another
    /// warehouse.
    fn stock(&mut self, place: [u32; 2]) -> Result<[i64; 4], EngineError>;

    /// An item's price in cents.
    fn price(&mut self, item: u32) -> Result<i64, EngineError>;

    /// Sets prices: items with their cents.
    fn set_prices(&mut self, prices: &[(u32, i64)]) -> Result<(), EngineError>;

    /// All rows of a table.
    fn content(&mut self, table: Table) -> Result<Vec<Row>, EngineError>;

    /// Visits the payments since a time.
    fn payments(&mut self, since: DateTime, visit: &mut dyn FnMut(Payment)) -> Result<(), EngineError>;
}
