//! The orders that a delivery takes, the oldest of each district, and the updates that it makes to all at once.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, Param, Row};
use rumba_workload_kit::keep_first;

use super::{int, money};
use crate::draw::Delivery;
use crate::rules::missing;
use crate::scale::DISTRICTS;
use crate::stage::exact;
use crate::store::Delivered;

const MOST: usize = DISTRICTS as usize;

/// The oldest orders, as far as they are known.
pub(super) struct Waiting<'a> {
    delivery: &'a Delivery,
    dialect: Dialect,
    /// District and number of each.
    orders: [(u32, i64); MOST],
    /// How many there are.
    pub count: usize,
    /// The customer and the amount in cents of each district's order.
    customers: [(i64, i64); MOST + 1],
    /// The first amount that could not be read.
    unread: Option<EngineError>,
}

impl<'a> Waiting<'a> {
    /// None is known yet.
    pub fn new(delivery: &'a Delivery, dialect: Dialect) -> Self {
        let (orders, customers) = ([(0, 0); MOST], [(0, 0); MOST + 1]);
        Self { delivery, dialect, orders, count: 0, customers, unread: None }
    }

    /// The oldest order of a district, if one waits there.
    pub fn put(&mut self, district: u32, order: Option<i64>) {
        if let Some(order) = order {
            self.orders[self.count] = (district, order);
            self.count += 1;
        }
    }

    /// The keys of the maximum number of orders; the last key is repeated to fill up.
    pub fn keys(&self) -> [Param<'static>; 3 * MOST] {
        std::array::from_fn(|nth| {
            let (district, order) = self.orders[(nth / 3).min(self.count - 1)];
            [int(self.delivery.warehouse), int(district), Param::Int(order)][nth % 3]
        })
    }

    /// The same keys after the value that an update sets.
    pub fn keys_behind(&self, value: Param<'static>) -> [Param<'static>; 1 + 3 * MOST] {
        let keys = self.keys();
        std::array::from_fn(|nth| if nth == 0 { value } else { keys[nth - 1] })
    }

    /// The value that an update of the orders sets.
    pub fn carrier(&self) -> Param<'static> {
        int(self.delivery.carrier)
    }

    /// The value that an update of their lines sets.
    pub fn time(&self) -> Param<'static> {
        Param::Timestamp(self.delivery.delivered)
    }

    /// Checks that all of them were still there to delete.
    pub fn all_deleted(&self, deleted: u64) -> Result<()> {
        let is_all = deleted == self.count as u64;
        is_all.then_some(()).ok_or_else(|| EngineError::conflict("another delivery took an order"))
    }

    /// Reads the customer of a district's order.
    pub fn read_customer(&mut self, row: &dyn Row) {
        if let Some(place) = self.customers.get_mut(row.int(0) as usize) {
            place.0 = row.int(1);
        }
    }

    /// Reads the amount of a district's order.
    pub fn read_amount(&mut self, row: &dyn Row) {
        let Some(place) = self.customers.get_mut(row.int(0) as usize) else { return };
        keep_first(&mut self.unread, money(self.dialect, row, 1, "ol_amount").map(|cents| place.1 = cents));
    }

    /// The change of each customer's balance, and the customer's key.
    ///
    /// # Errors
    /// The order is missing, or has no amount.
    pub fn payments(&mut self) -> Result<[[Param<'static>; 4]; MOST]> {
        if let Some(error) = self.unread.take() {
            return Err(error);
        }
        let mut payments = [[Param::Null; 4]; MOST];
        for (&(district, _), values) in self.orders[..self.count].iter().zip(&mut payments) {
            let (customer, cents) = self.customers[district as usize];
            if customer == 0 {
                return Err(missing("an order that waits for its delivery"));
            }
            let place = [int(self.delivery.warehouse), int(district), Param::Int(customer)];
            *values = [exact(self.dialect, cents, 2), place[0], place[1], place[2]];
        }
        Ok(payments)
    }

    pub fn delivered(&self) -> Delivered {
        let mut delivered = Delivered::default();
        self.orders[..self.count].iter().for_each(|&(district, order)| delivered.put(district, order));
        delivered
    }
}
