//! What clients have been told is done: the tables are held against it.
//!
//! Each number has one writer, which stores it without a read-modify-write in a cache line of its own.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_core::workload::State;

use crate::data_set::DataSet;
use crate::scale::bytes;

/// A number of one writer.
#[derive(Debug, Default)]
struct Number(AtomicI64);

impl Number {
    #[inline]
    fn add(&self, change: i64) {
        self.0.store(self.0.load(Relaxed) + change, Relaxed);
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Numbers {
    orders: Number,
    lines: Number,
    payments: Number,
    cents: Number,
    deliveries: Number,
    orders_in_doubt: Number,
    payments_in_doubt: Number,
    deliveries_in_doubt: Number,
}

/// The sums over all clients, and over what was done before to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// New orders that were committed.
    pub orders: i64,
    /// Their lines.
    pub lines: i64,
    /// Payments that were committed.
    pub payments: i64,
    /// What they came to, in cents.
    pub cents: i64,
    /// Orders that were delivered.
    pub deliveries: i64,
    /// New orders that were begun, and of which it is not known whether they were committed.
    pub orders_in_doubt: i64,
    /// Payments likewise.
    pub payments_in_doubt: i64,
    /// Transactions of delivery likewise, each of up to ten orders.
    pub deliveries_in_doubt: i64,
}

impl Sums {
    /// What was added to the loaded rows, in bytes.
    pub fn bytes(&self) -> i64 {
        let [order, line, payment, delivery] =
            [bytes::NEW_ORDER + bytes::ORDER + bytes::BY_CUSTOMER, bytes::ORDER_LINE, bytes::HISTORY, bytes::NEW_ORDER]
                .map(u64::cast_signed);
        self.orders * order + self.lines * line + self.payments * payment - self.deliveries * delivery
    }
}

type Of = fn(&Numbers) -> &Number;

/// The numbers by the names under which they go with a copy of the data.
const NAMED: [(&str, Of); 8] = [
    ("orders", |numbers| &numbers.orders),
    ("lines", |numbers| &numbers.lines),
    ("payments", |numbers| &numbers.payments),
    ("payment_cents", |numbers| &numbers.cents),
    ("deliveries", |numbers| &numbers.deliveries),
    ("orders_in_doubt", |numbers| &numbers.orders_in_doubt),
    ("payments_in_doubt", |numbers| &numbers.payments_in_doubt),
    ("deliveries_in_doubt", |numbers| &numbers.deliveries_in_doubt),
];

/// The name of a number in a data set; of the first it is the number's own.
fn name_in(set: u32, name: &str) -> String {
    if set == 0 { name.to_owned() } else { format!("{name}_{}", set + 1) }
}

/// The tallies of one database.
#[derive(Debug)]
pub struct Tallies {
    sets: u32,
    /// Each with the number of its data set.
    all: Mutex<Vec<(u32, Arc<Numbers>)>>,
}

impl Tallies {
    /// Those of a database of so many data sets.
    pub fn new(sets: u32) -> Self {
        Self { sets, all: Mutex::default() }
    }

    fn push(&self, set: u32, numbers: Arc<Numbers>) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).push((set, numbers));
    }

    /// A tally for one client of a data set.
    pub fn open(&self, set: DataSet) -> Tally {
        let numbers = Arc::<Numbers>::default();
        self.push(set.number, numbers.clone());
        Tally(numbers)
    }

    fn sum(&self, set: u32, of: Of) -> i64 {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(number, _)| *number == set).map(|(_, numbers)| of(numbers).0.load(Relaxed)).sum()
    }

    /// The sums of each data set as of now.
    pub fn sums(&self) -> impl Iterator<Item = (DataSet, Sums)> + '_ {
        DataSet::all(self.sets).map(|set| (set, self.sums_of(set.number)))
    }

    fn sums_of(&self, set: u32) -> Sums {
        let [orders, lines, payments, cents, deliveries, orders_in_doubt, payments_in_doubt, deliveries_in_doubt] =
            NAMED.map(|(_, of)| self.sum(set, of));
        Sums { orders, lines, payments, cents, deliveries, orders_in_doubt, payments_in_doubt, deliveries_in_doubt }
    }

    /// The sums by name.
    pub fn state(&self) -> State {
        let of_set = |set| NAMED.map(|(name, of)| (name_in(set, name), self.sum(set, of).max(0).cast_unsigned()));
        (0..self.sets).flat_map(of_set).collect()
    }

    /// Adds sums that another process has given.
    ///
    /// # Errors
    /// The name of one that is missing; nothing is added then.
    pub fn restore(&self, state: &State) -> Result<(), String> {
        let mut sets = Vec::new();
        for set in 0..self.sets {
            let numbers = Numbers::default();
            for (name, of) in NAMED {
                let name = name_in(set, name);
                of(&numbers).add(state.get(&name).ok_or(name)?.cast_signed());
            }
            sets.push(numbers);
        }
        (0..).zip(sets).for_each(|(set, numbers)| self.push(set, Arc::new(numbers)));
        Ok(())
    }
}

/// One client's tally: its only writer.
#[derive(Debug)]
pub struct Tally(Arc<Numbers>);

impl Tally {
    /// A new order is begun, and its end not known.
    pub fn order_begins(&mut self) {
        self.0.orders_in_doubt.add(1);
    }

    /// A new order's end is known: committed with so many lines, or nothing of it is left.
    pub fn order_ended(&mut self, lines: Option<usize>) {
        self.0.orders_in_doubt.add(-1);
        if let Some(lines) = lines {
            self.0.orders.add(1);
            self.0.lines.add(lines as i64);
        }
    }

    /// A payment is begun.
    pub fn payment_begins(&mut self) {
        self.0.payments_in_doubt.add(1);
    }

    /// A payment's end is known: so many cents, or nothing of it is left.
    pub fn payment_ended(&mut self, cents: Option<i64>) {
        self.0.payments_in_doubt.add(-1);
        if let Some(cents) = cents {
            self.0.payments.add(1);
            self.0.cents.add(cents);
        }
    }

    /// A delivery is begun.
    pub fn delivery_begins(&mut self) {
        self.0.deliveries_in_doubt.add(1);
    }

    /// A delivery's end is known: so many orders.
    pub fn delivery_ended(&mut self, orders: u32) {
        self.0.deliveries_in_doubt.add(-1);
        self.0.deliveries.add(i64::from(orders));
    }
}
