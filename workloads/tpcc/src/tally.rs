//! What clients have been told is done: the tables are held against it.
//!
//! Each number has one writer, which stores it without a read-modify-write in a cache line of its own.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use rumba_core::acid::{Journal, Note};
use rumba_core::error::EngineError;
use rumba_core::workload::State;

use crate::data_set::DataSet;
use crate::draw::{Delivery, NewOrder, Payment};
use crate::entry::{Entered, kind};
use crate::scale::bytes;
use crate::store::Delivered;

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
        Tally { numbers, set: set.number, journal: None }
    }

    /// The same for a client that takes down what it is told.
    pub fn open_with(&self, set: DataSet, journal: Box<dyn Journal>) -> Tally {
        Tally { journal: Some(journal), ..self.open(set) }
    }

    /// Adds what another process's clients were told.
    pub fn add(&self, set: u32, sums: &Sums) {
        let numbers = Numbers::default();
        let all = [
            (&numbers.orders, sums.orders),
            (&numbers.lines, sums.lines),
            (&numbers.payments, sums.payments),
            (&numbers.cents, sums.cents),
            (&numbers.deliveries, sums.deliveries),
            (&numbers.orders_in_doubt, sums.orders_in_doubt),
            (&numbers.payments_in_doubt, sums.payments_in_doubt),
            (&numbers.deliveries_in_doubt, sums.deliveries_in_doubt),
        ];
        all.into_iter().for_each(|(number, sum)| number.add(sum));
        self.push(set, Arc::new(numbers));
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

/// A transaction that writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A new order.
    Order,
    /// A payment.
    Payment,
    /// A delivery.
    Delivery,
}

/// What a transaction has done that was acknowledged.
pub enum Done<'a> {
    /// An order, and its number.
    Order(&'a NewOrder, i64),
    /// A payment, and its customer's number.
    Payment(&'a Payment, i64),
    /// A delivery, and its orders.
    Delivery(&'a Delivery, Delivered),
}

/// One client's tally: its only writer.
pub struct Tally {
    numbers: Arc<Numbers>,
    set: u32,
    /// Where it is taken down besides, for a proof after the client's process is gone.
    journal: Option<Box<dyn Journal>>,
}

impl Tally {
    fn in_doubt(&self, write: Write) -> &Number {
        match write {
            Write::Order => &self.numbers.orders_in_doubt,
            Write::Payment => &self.numbers.payments_in_doubt,
            Write::Delivery => &self.numbers.deliveries_in_doubt,
        }
    }

    /// A transaction is begun, and its end not known.
    ///
    /// # Errors
    /// What keeps the journal from being written.
    pub fn begins(&mut self, write: Write) -> Result<(), EngineError> {
        self.in_doubt(write).add(1);
        self.note(|set| Note::Begun(kind(set, write)))
    }

    /// A transaction's end is known: what it has done, or nothing of it is left.
    ///
    /// # Errors
    /// What keeps the journal from being written.
    pub fn ended(&mut self, write: Write, done: Option<Done<'_>>) -> Result<(), EngineError> {
        self.in_doubt(write).add(-1);
        match &done {
            Some(Done::Order(order, _)) => {
                self.numbers.orders.add(1);
                self.numbers.lines.add(order.lines().len() as i64);
            }
            Some(Done::Payment(payment, _)) => {
                self.numbers.payments.add(1);
                self.numbers.cents.add(payment.cents);
            }
            Some(Done::Delivery(_, delivered)) => self.numbers.deliveries.add(i64::from(delivered.count())),
            None => {}
        }
        self.note(|set| match &done {
            Some(done) => Note::Acknowledged(kind(set, write), Entered::of(done).words()),
            None => Note::Undone(kind(set, write)),
        })
    }

    fn note(&mut self, note: impl FnOnce(u32) -> Note) -> Result<(), EngineError> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.note(&note(self.set)))
    }
}
