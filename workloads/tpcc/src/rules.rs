//! The computations of the specification, for all engines.

use std::io::Write;

use rumba_engine_api::error::EngineError;

use crate::draw::Payment;

/// The maximum length of a customer's data.
pub const DATA: usize = 500;
pub const DISTRICT_TEXT: usize = 24;

/// The error for rows that the load should have written.
pub fn missing(what: &'static str) -> EngineError {
    EngineError::failed(what, "is missing: the data is not the loaded data; load it again")
}

/// The quantity of stock left after taking this much. A remainder below ten is refilled by 91 (2.4.2.2).
pub fn left(quantity: i64, wanted: i64) -> i64 {
    if quantity >= wanted + 10 { quantity - wanted } else { quantity - wanted + 91 }
}

/// An order's rates from its customer, its warehouse and its district.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    /// In ten-thousandths.
    pub discount: i64,
    pub warehouse_tax: i64,
    pub district_tax: i64,
}

impl Rates {
    /// The sum of the lines, discounted and taxed (2.4.2.2), in cents.
    pub fn total(self, cents: i64) -> i64 {
        const WHOLE: i128 = 10_000;
        let (discounted, taxed) =
            (WHOLE - i128::from(self.discount), WHOLE + i128::from(self.warehouse_tax + self.district_tax));
        (i128::from(cents) * discounted * taxed / (WHOLE * WHOLE)) as i64
    }
}

/// The names of a warehouse and of a district with four blanks between them, as stored in the history.
#[derive(Default)]
pub struct Names {
    bytes: [u8; 24],
    length: usize,
}

impl Names {
    pub fn push(&mut self, name: &[u8]) {
        let end = (self.length + name.len()).min(self.bytes.len());
        self.bytes[self.length..end].copy_from_slice(&name[..end - self.length]);
        self.length = end;
    }

    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The middle one of the customers with a last name, ordered by first name (2.5.2.2).
pub fn middle(customers: &[i64]) -> Option<i64> {
    customers.get(customers.len().saturating_sub(1) / 2).copied()
}

/// Inserts a payment's note at the beginning of the data of a customer with bad credit, and truncates the end
/// (2.5.2.2).
pub fn put_note(payment: &Payment, customer: i64, data: &mut Vec<u8>) {
    let Payment { warehouse, district, customer_warehouse, customer_district, cents, .. } = payment;
    let (whole, part) = (cents / 100, cents % 100);
    // Writing to memory cannot fail.
    let _ =
        write!(data, "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {whole}.{part:02} ");
}
