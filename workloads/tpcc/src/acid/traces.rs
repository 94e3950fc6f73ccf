//! The traces of a new order: its rows, the number that it took, and the stock that it took. A rolled-back order must
//! leave none (2.4.2.3).

use rumba_engine_api::error::Result;

use super::{Inspect, Order};
use crate::draw::NewOrder;
use crate::rules::left;

/// The rows of an order, and the rows that it changes.
#[derive(Clone, Debug)]
pub struct Traces {
    /// The number that the district's next order gets.
    pub next: u32,
    /// The customer's last order, as an order status reports it; 0 if there is none.
    pub last: i64,
    order: Option<Order>,
    lines: usize,
    waits: bool,
    /// The stock of each of its items: the quantity left, the quantity taken, the number of lines, and the number of
    /// lines for other warehouses.
    stock: Vec<[i64; 4]>,
}

impl Traces {
    /// The traces of the order with this number, or of the next order; `last` is the customer's last order as an order
    /// status reports it.
    pub fn of(inspector: &mut impl Inspect, order: &NewOrder, number: Option<u32>, last: i64) -> Result<Self> {
        let place = [order.warehouse, order.district];
        let next = inspector.next_order(place)?;
        let number = number.unwrap_or(next);
        let key = [order.warehouse, order.district, number];
        let stock = order.lines().iter().map(|line| inspector.stock([line.supply, line.item]));
        Ok(Self {
            stock: stock.collect::<Result<_, _>>()?,
            next,
            last,
            order: inspector.order(key)?,
            lines: inspector.lines(key)?.len(),
            waits: inspector.waiting(place)?.contains(&number),
        })
    }

    /// The expected traces after this many such orders with different items; the first of them took the number.
    pub fn after(&self, orders: u32, order: &NewOrder) -> Self {
        let mut after = self.clone();
        for _ in 0..orders {
            after.last = i64::from(after.next);
            after.next += 1;
            let lines = order.lines();
            after.order = Some(Order { customer: order.customer, lines: lines.len() as u32, carrier: 0 });
            (after.lines, after.waits) = (lines.len(), true);
            for ([quantity, taken, counted, _], line) in after.stock.iter_mut().zip(lines) {
                let wanted = i64::from(line.quantity);
                *quantity = left(*quantity, wanted);
                *taken += wanted;
                *counted += 1;
            }
        }
        after
    }

    /// The differences from the expected traces, as the end of a sentence; empty if there are none.
    pub fn unlike(&self, expected: &Self) -> String {
        let both = |of: &dyn Fn(&Self) -> String| (of(self), of(expected));
        let parts = [
            ("the district's next order", both(&|traces| traces.next.to_string())),
            ("the customer's last order", both(&|traces| traces.last.to_string())),
            ("the row of the order", both(&|traces| format!("{:?}", traces.order))),
            ("its lines", both(&|traces| traces.lines.to_string())),
            ("whether it waits", both(&|traces| traces.waits.to_string())),
            ("stock of its items", both(&|traces| format!("{:?}", traces.stock))),
        ];
        let unlike = parts.into_iter().filter(|(_, (found, expected))| found != expected);
        unlike.map(|(what, (found, expected))| format!("; {what}: {found}, expected {expected}")).collect()
    }
}
