//! The ledger's entry for an acknowledged transaction.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rumba_engine_api::value::DateTime;
use rumba_workload_kit::ledger::Entry;

use crate::draw::{self, Delivery, NewOrder};
use crate::scale::DISTRICTS;
use crate::store::Delivered;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Order,
    Payment,
    Delivery,
}

/// The result of an acknowledged transaction.
pub enum Done<'a> {
    Order(&'a NewOrder, i64),
    /// A payment, and its customer's number.
    Payment(&'a draw::Payment, i64),
    Delivery(&'a Delivery, Delivered),
}

/// The number of a transaction's type in a data set.
pub fn kind(set: u32, write: Write) -> u32 {
    set << 2 | write as u32
}

/// The data set and the type of a number.
pub fn of_kind(kind: u32) -> Option<(u32, Write)> {
    let write = [Write::Order, Write::Payment, Write::Delivery].into_iter().find(|write| *write as u32 == kind & 3)?;
    Some((kind >> 2, write))
}

/// A payment: warehouse and district, customer, amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Payment {
    /// Warehouse and district.
    pub place: [u32; 2],
    /// The customer's warehouse, district and number.
    pub customer: [u32; 3],
    /// The amount.
    pub cents: u32,
}

/// A transaction that was acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    Order {
        /// Warehouse, district and number.
        order: [u32; 3],
        /// The customer's number.
        customer: u32,
        lines: u32,
    },
    /// A payment, entered this many seconds after the epoch.
    Payment(Payment, u32),
    Delivery {
        warehouse: u32,
        carrier: u32,
        /// The order of each district; 0 if none was waiting.
        orders: [u32; DISTRICTS as usize],
    },
}

impl Entered {
    /// The entry for a completed transaction.
    pub fn of(done: &Done<'_>) -> Self {
        match done {
            Done::Order(order, number) => Entered::Order {
                order: [order.warehouse, order.district, *number as u32],
                customer: order.customer,
                lines: order.lines().len() as u32,
            },
            Done::Payment(payment, customer) => {
                let paid = Payment {
                    place: [payment.warehouse, payment.district],
                    customer: [payment.customer_warehouse, payment.customer_district, *customer as u32],
                    cents: payment.cents as u32,
                };
                Entered::Payment(paid, seconds(payment.entered))
            }
            Done::Delivery(delivery, delivered) => {
                Entered::Delivery { warehouse: delivery.warehouse, carrier: delivery.carrier, orders: delivered.0 }
            }
        }
    }

    /// As the ledger's file keeps it.
    pub fn words(&self) -> Entry {
        let mut entry = Entry::default();
        let mut put = |words: &[u32]| entry[..words.len()].copy_from_slice(words);
        match self {
            Entered::Order { order: [warehouse, district, order], customer, lines } => {
                put(&[*warehouse, *district, *order, *customer, *lines]);
            }
            Entered::Payment(Payment { place, customer, cents }, entered_s) => {
                put(&[place[0], place[1], customer[0], customer[1], customer[2], *cents, *entered_s]);
            }
            Entered::Delivery { warehouse, carrier, orders } => {
                put(&[*warehouse, *carrier]);
                entry[2..2 + orders.len()].copy_from_slice(orders);
            }
        }
        entry
    }

    /// From the ledger's file.
    pub fn from_words(write: Write, entry: &Entry) -> Self {
        let word = |place: usize| entry[place];
        match write {
            Write::Order => Entered::Order { order: [word(0), word(1), word(2)], customer: word(3), lines: word(4) },
            Write::Payment => {
                let (place, customer) = ([word(0), word(1)], [word(2), word(3), word(4)]);
                Entered::Payment(Payment { place, customer, cents: word(5) }, word(6))
            }
            Write::Delivery => {
                let mut orders = [0; DISTRICTS as usize];
                orders.copy_from_slice(&entry[2..2 + DISTRICTS as usize]);
                Entered::Delivery { warehouse: word(0), carrier: word(1), orders }
            }
        }
    }
}

/// Seconds since the epoch.
fn seconds(time: DateTime) -> u32 {
    let zoned = TimeZone::UTC.to_ambiguous_zoned(time).compatible();
    zoned.map_or(0, |zoned| zoned.timestamp().as_second().clamp(0, i64::from(u32::MAX)) as u32)
}

/// A time by its seconds since the epoch.
pub fn time(seconds: u32) -> DateTime {
    Timestamp::from_second(i64::from(seconds)).map_or(DateTime::default(), |stamp| TimeZone::UTC.to_datetime(stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_words_of_each_write_round_trip() {
        let paid = Payment { place: [7, 10], customer: [9, 3, 2999], cents: 499_999 };
        let orders = [1, 2, 3, 4, 0, 6, 7, 8, 9, 4_000_000_000];
        for (write, entered) in [
            (Write::Order, Entered::Order { order: [1, 2, 3001], customer: 17, lines: 15 }),
            (Write::Payment, Entered::Payment(paid, 1_790_000_000)),
            (Write::Delivery, Entered::Delivery { warehouse: 4, carrier: 10, orders }),
        ] {
            assert_eq!(Entered::from_words(write, &entered.words()), entered);
            for set in [0, 1, 99] {
                assert_eq!(of_kind(kind(set, write)), Some((set, write)));
            }
        }
        assert_eq!(of_kind(3), None);
        let now = crate::draw::now();
        assert_eq!(seconds(time(seconds(now))), seconds(now));
        assert!(time(seconds(now)) <= now);
    }
}
