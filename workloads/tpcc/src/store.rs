//! The operations of a database on a transaction's input: the port, with an adapter for each family.

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::StatementCounts;

use crate::draw::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::scale::DISTRICTS;
use crate::stop::Stop;

/// The outcome of a new order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ordered {
    Committed {
        /// Its number in its district.
        order: i64,
        /// The amount in cents, with tax and discount (clause 2.4.2.2).
        total: i64,
        /// The number of lines with an original item and original stock: the terminal's letter `B`.
        original: u32,
    },
    /// An item was missing and the order was rolled back, as one in a hundred must be (clause 2.4.1.4).
    RolledBack,
}

/// The result of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paid {
    /// The customer's number, also if it was selected by name.
    pub customer: i64,
    /// Its balance after it, in cents.
    pub balance: i64,
}

/// The known facts of a customer's last order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The customer's number.
    pub customer: i64,
    /// Its balance, in cents.
    pub balance: i64,
    /// The last order; 0 if there is none.
    pub order: i64,
    pub lines: u64,
}

/// The delivered orders: one for each district, or 0 if none was waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered(pub [u32; DISTRICTS as usize]);

impl Delivered {
    /// How many orders there were.
    pub fn count(&self) -> u32 {
        self.0.iter().filter(|order| **order > 0).count() as u32
    }

    pub fn put(&mut self, district: u32, order: i64) {
        if let Some(place) = self.0.get_mut(district as usize - 1) {
            *place = order as u32;
        }
    }
}

/// The transactions of clause 2, each complete. After an error, a transaction leaves no trace, except after
/// `EngineError::CutOff`, when that is unknown.
pub trait Store {
    /// Orders 5 to 15 items (2.4).
    async fn new_order(&mut self, order: &NewOrder) -> Result<Ordered>;

    /// Takes a customer's payment (2.5).
    async fn payment(&mut self, payment: &Payment) -> Result<Paid>;

    /// Reports a customer's last order (2.6).
    async fn order_status(&mut self, requested: &OrderStatus) -> Result<Status>;

    /// Delivers the oldest order of each district of a warehouse (2.7).
    async fn delivery(&mut self, delivery: &Delivery) -> Result<Delivered>;

    /// The number of a district's recently sold items that are low in stock (2.8).
    async fn stock_level(&mut self, requested: &StockLevel) -> Result<i64>;

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts {
        StatementCounts::NONE
    }

    /// Sets the callback that the transactions call at each point.
    fn stop_with(&mut self, stop: Stop);
}
