//! The orders that a delivery takes, the oldest of each district, and what becomes of them at once.

use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Param, Row};

use super::money;
use super::store::int;
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
    count: usize,
    /// Of each district the customer and the cents.
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

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The keys of as many orders as there may be; what is less repeats the last.
    pub fn keys(&self) -> [Param<'static>; 3 * MOST] {
        std::array::from_fn(|nth| {
            let (district, order) = self.orders[(nth / 3).min(self.count - 1)];
            [int(self.delivery.warehouse), int(district), Param::Int(order)][nth % 3]
        })
    }

    /// The same behind what an update sets.
    pub fn keys_behind(&self, value: Param<'static>) -> [Param<'static>; 1 + 3 * MOST] {
        let keys = self.keys();
        std::array::from_fn(|nth| if nth == 0 { value } else { keys[nth - 1] })
    }

    /// What an update of the orders sets.
    pub fn carrier(&self) -> Param<'static> {
        int(self.delivery.carrier)
    }

    /// What an update of their lines sets.
    pub fn time(&self) -> Param<'static> {
        Param::Timestamp(self.delivery.delivered)
    }

    /// Whether all of them were still there to be deleted.
    pub fn all_deleted(&self, deleted: u64) -> Result<(), EngineError> {
        let is_all = deleted == self.count as u64;
        is_all.then_some(()).ok_or_else(|| EngineError::conflict("another delivery took an order"))
    }

    /// Whose order a district's is.
    pub fn read_customer(&mut self, row: &dyn Row) {
        if let Some(place) = self.customers.get_mut(row.int(0) as usize) {
            place.0 = row.int(1);
        }
    }

    /// What a district's order costs.
    pub fn read_amount(&mut self, row: &dyn Row) {
        let Some(place) = self.customers.get_mut(row.int(0) as usize) else { return };
        match money(self.dialect, row, 1, "ol_amount") {
            Ok(cents) => place.1 = cents,
            Err(error) => {
                self.unread.get_or_insert(error);
            }
        }
    }

    /// What each customer's balance is changed by, and whose it is.
    ///
    /// # Errors
    /// The order is not there, or does not tell what it costs.
    pub fn payments(&mut self) -> Result<[[Param<'static>; 4]; MOST], EngineError> {
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

    /// What was delivered.
    pub fn delivered(&self) -> Delivered {
        let mut delivered = Delivered::default();
        self.orders[..self.count].iter().for_each(|&(district, order)| delivered.put(district, order));
        delivered
    }
}
