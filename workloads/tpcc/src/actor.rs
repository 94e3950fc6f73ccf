//! An actor performs transactions and tallies the answers.

use rumba_engine_api::error::{EngineError, Result};

use crate::draw::{Delivery, Input, NewOrder, OrderStatus, Payment, StockLevel};
use crate::entry::{Done, Write};
use crate::rules::missing;
use crate::store::{Delivered, Ordered, Paid, Status, Store};
use crate::tally::Tally;

/// A store, and the tally of its answers.
pub struct Actor<S> {
    pub store: S,
    tally: Tally,
}

impl<S: Store> Actor<S> {
    pub fn new(store: S, tally: Tally) -> Self {
        Self { store, tally }
    }

    /// Performs an input once; returns the number of rows read or written.
    pub async fn perform(&mut self, input: &Input) -> Result<u64> {
        match input {
            Input::NewOrder(order) => {
                let is_rolled_back = self.new_order(order).await? == Ordered::RolledBack;
                // Otherwise it would count as done, although it leaves no row whose loss could be detected.
                if is_rolled_back && !order.rolls_back {
                    return Err(missing("an item"));
                }
                Ok(order.lines().len() as u64)
            }
            Input::Payment(payment) => self.payment(payment).await.map(|_| 1),
            Input::OrderStatus(requested) => self.order_status(requested).await.map(|status| status.lines),
            Input::Delivery(delivery) => self.delivery(delivery).await.map(|delivered| u64::from(delivered.count())),
            Input::StockLevel(requested) => self.stock_level(requested).await.map(|_| 1),
        }
    }

    pub async fn new_order(&mut self, order: &NewOrder) -> Result<Ordered> {
        self.tally.begins(Write::Order)?;
        let ordered = self.store.new_order(order).await;
        let done = match ordered {
            Ok(Ordered::Committed { order: number, .. }) => Some(Done::Order(order, number)),
            _ => None,
        };
        self.ended(ordered, done)
    }

    pub async fn payment(&mut self, payment: &Payment) -> Result<Paid> {
        self.tally.begins(Write::Payment)?;
        let paid = self.store.payment(payment).await;
        let done = paid.as_ref().ok().map(|paid| Done::Payment(payment, paid.customer));
        self.ended(paid, done)
    }

    pub async fn delivery(&mut self, delivery: &Delivery) -> Result<Delivered> {
        self.tally.begins(Write::Delivery)?;
        let delivered = self.store.delivery(delivery).await;
        let done = delivered.as_ref().ok().map(|delivered| Done::Delivery(delivery, *delivered));
        self.ended(delivered, done)
    }

    pub async fn order_status(&mut self, requested: &OrderStatus) -> Result<Status> {
        self.store.order_status(requested).await
    }

    pub async fn stock_level(&mut self, requested: &StockLevel) -> Result<i64> {
        self.store.stock_level(requested).await
    }

    /// Tallies a known outcome; an unknown one stays in doubt.
    fn ended<T>(&mut self, result: Result<T>, done: Option<Done<'_>>) -> Result<T> {
        if !matches!(result, Err(EngineError::CutOff(_) | EngineError::Lost(_))) {
            self.tally.ended(done)?;
        }
        result
    }
}
