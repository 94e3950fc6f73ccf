//! Counts the acknowledged work of clients; the tables are checked against it.

use rumba_engine_api::acid::{Entry, Journal, Note};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::workload::State;
use rumba_workload_kit::tallies::{self, state_of, sums_of};

use crate::data_set::DataSet;
use crate::draw::{Delivery, NewOrder, Payment};
use crate::entry::{Entered, kind};
use crate::scale::bytes;
use crate::store::Delivered;

/// The counters, by position.
#[derive(Clone, Copy, Debug)]
enum Of {
    Orders,
    Lines,
    Payments,
    Cents,
    Deliveries,
    OrdersInDoubt,
    PaymentsInDoubt,
    DeliveriesInDoubt,
}

/// The names of the sums, in order, under which they are stored with a copy of the data.
const NAMES: [&str; 8] = [
    "orders",
    "lines",
    "payments",
    "payment_cents",
    "deliveries",
    "orders_in_doubt",
    "payments_in_doubt",
    "deliveries_in_doubt",
];

/// The sums over all clients, and over earlier work on the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// New orders that were committed.
    pub orders: i64,
    /// Their lines.
    pub lines: i64,
    /// Payments that were committed.
    pub payments: i64,
    /// The sum of the payments, in cents.
    pub cents: i64,
    /// Orders that were delivered.
    pub deliveries: i64,
    /// New orders that were begun, and may or may not have been committed.
    pub orders_in_doubt: i64,
    /// Payments that may or may not have been committed.
    pub payments_in_doubt: i64,
    /// Delivery transactions that may or may not have been committed, each of up to ten orders.
    pub deliveries_in_doubt: i64,
}

impl Sums {
    fn of(places: [i64; NAMES.len()]) -> Self {
        let [orders, lines, payments, cents, deliveries, orders_in_doubt, payments_in_doubt, deliveries_in_doubt] =
            places;
        Self { orders, lines, payments, cents, deliveries, orders_in_doubt, payments_in_doubt, deliveries_in_doubt }
    }

    fn in_places(&self) -> [i64; NAMES.len()] {
        let &Self {
            orders,
            lines,
            payments,
            cents,
            deliveries,
            orders_in_doubt,
            payments_in_doubt,
            deliveries_in_doubt,
        } = self;
        [orders, lines, payments, cents, deliveries, orders_in_doubt, payments_in_doubt, deliveries_in_doubt]
    }

    /// The bytes added to the loaded rows.
    pub fn bytes(&self) -> i64 {
        let [order, line, payment, delivery] =
            [bytes::NEW_ORDER + bytes::ORDER + bytes::BY_CUSTOMER, bytes::ORDER_LINE, bytes::HISTORY, bytes::NEW_ORDER]
                .map(u64::cast_signed);
        self.orders * order + self.lines * line + self.payments * payment - self.deliveries * delivery
    }
}

/// The names of a data set's sums; those of the first set are the plain names.
fn names_in(set: u32) -> [String; NAMES.len()] {
    NAMES.map(|name| if set == 0 { name.to_owned() } else { format!("{name}_{}", set + 1) })
}

/// The tallies of one database.
#[derive(Debug)]
pub struct Tallies {
    /// The tallies of each data set.
    sets: Vec<tallies::Tallies<{ NAMES.len() }>>,
}

impl Tallies {
    /// The tallies of a database with this many data sets.
    pub fn new(sets: u32) -> Self {
        Self { sets: (0..sets).map(|_| tallies::Tallies::default()).collect() }
    }

    /// A tally for one client of a data set.
    pub fn open(&self, set: DataSet) -> Tally {
        Tally { numbers: self.sets[set.number as usize].open(), set: set.number, journal: None }
    }

    /// The same for a client that also writes a journal.
    pub fn open_with(&self, set: DataSet, journal: Box<dyn Journal>) -> Tally {
        Tally { journal: Some(journal), ..self.open(set) }
    }

    /// Adds the sums of another process's clients.
    pub fn add(&self, set: u32, sums: &Sums) {
        self.sets[set as usize].add(sums.in_places());
    }

    /// The sums of each data set as of now.
    pub fn sums(&self) -> impl Iterator<Item = (DataSet, Sums)> + '_ {
        DataSet::all(self.sets.len() as u32).zip(&self.sets).map(|(set, tallies)| (set, Sums::of(tallies.sums())))
    }

    /// The sums by name.
    pub fn state(&self) -> State {
        (0..).zip(&self.sets).flat_map(|(set, tallies)| state_of(names_in(set), tallies.sums())).collect()
    }

    /// Adds sums that another process has given.
    ///
    /// # Errors
    /// The name of one that is missing; nothing is added then.
    pub fn restore(&self, state: &State) -> Result<(), String> {
        let all = (0..self.sets.len() as u32).map(|set| sums_of(names_in(set), state));
        let all = all.collect::<Result<Vec<_>, String>>()?;
        self.sets.iter().zip(all).for_each(|(tallies, sums)| tallies.add(sums));
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

/// The result of an acknowledged transaction.
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
    numbers: tallies::Tally<{ NAMES.len() }>,
    set: u32,
    /// The journal that also records the work, for a check after the client's process is gone.
    journal: Option<Box<dyn Journal>>,
}

impl Tally {
    fn add(&mut self, of: Of, change: i64) {
        self.numbers.add(of as usize, change);
    }

    fn doubt(&mut self, write: Write, change: i64) {
        let of = match write {
            Write::Order => Of::OrdersInDoubt,
            Write::Payment => Of::PaymentsInDoubt,
            Write::Delivery => Of::DeliveriesInDoubt,
        };
        self.add(of, change);
    }

    /// A transaction is begun, and its end is unknown.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn begins(&mut self, write: Write) -> Result<(), EngineError> {
        self.doubt(write, 1);
        // The database assigns the number later.
        self.note(|set| Note::Begun(kind(set, write), Entry::default()))
    }

    /// A transaction's end is known: its result, or `None` if it left no trace.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn ended(&mut self, write: Write, done: Option<Done<'_>>) -> Result<(), EngineError> {
        self.doubt(write, -1);
        match &done {
            Some(Done::Order(order, _)) => {
                self.add(Of::Orders, 1);
                self.add(Of::Lines, order.lines().len() as i64);
            }
            Some(Done::Payment(payment, _)) => {
                self.add(Of::Payments, 1);
                self.add(Of::Cents, payment.cents);
            }
            Some(Done::Delivery(_, delivered)) => self.add(Of::Deliveries, i64::from(delivered.count())),
            None => {}
        }
        self.note(|set| match &done {
            Some(done) => Note::Acknowledged(kind(set, write), Entered::of(done).words()),
            None => Note::Undone,
        })
    }

    fn note(&mut self, note: impl FnOnce(u32) -> Note) -> Result<(), EngineError> {
        self.journal.as_mut().map_or(Ok(()), |journal| journal.note(&note(self.set)))
    }
}
