//! Counts the acknowledged work of clients; the tables are checked against it.

use std::fs::File;
use std::sync::Arc;

use rumba_engine_api::error::Result;
use rumba_engine_api::workload::State;
use rumba_workload_kit::ledger::{Account, Entry, Ledger};

use crate::data_set::DataSet;
use crate::entry::{Done, Entered, Write, kind};
use crate::scale::bytes;

rumba_workload_kit::counters! {
    /// The sums over all clients, and over earlier work on the data.
    Sums at Of {
        /// New orders that were committed.
        orders: Orders,
        lines: Lines,
        /// Payments that were committed.
        payments: Payments,
        /// The sum of the payments, in cents.
        payment_cents: Cents,
        /// Orders that were delivered.
        deliveries: Deliveries,
        /// New orders that were begun, and may or may not have been committed.
        orders_in_doubt: OrdersInDoubt,
        /// Payments that may or may not have been committed.
        payments_in_doubt: PaymentsInDoubt,
        /// Delivery transactions that may or may not have been committed, each of up to ten orders.
        deliveries_in_doubt: DeliveriesInDoubt,
    }
}

impl Sums {
    /// The bytes added to the loaded rows.
    pub fn bytes(&self) -> i64 {
        let [order, line, payment, delivery] =
            [bytes::NEW_ORDER + bytes::ORDER + bytes::BY_CUSTOMER, bytes::ORDER_LINE, bytes::HISTORY, bytes::NEW_ORDER]
                .map(u64::cast_signed);
        self.orders * order + self.lines * line + self.payments * payment - self.deliveries * delivery
    }
}

#[derive(Debug)]
pub struct Tallies {
    /// The ledger of each data set.
    sets: Vec<Ledger<{ Sums::NAMES.len() }>>,
}

impl Tallies {
    /// The tallies of a database with this many data sets. The sums of the first set have the plain names.
    pub fn new(sets: u32) -> Self {
        let name = |set, name: &str| if set == 0 { name.to_owned() } else { format!("{name}_{}", set + 1) };
        Self { sets: (0..sets).map(|set| Ledger::new(Sums::NAMES.map(|plain| name(set, plain)))).collect() }
    }

    pub fn open(&self, set: DataSet) -> Tally {
        self.open_with(set, None, 0)
    }

    /// The tally of the client with this number, which also appends its transactions to a file if there is one.
    pub fn open_with(&self, set: DataSet, file: Option<&Arc<File>>, client: u32) -> Tally {
        Tally { account: self.sets[set.number as usize].open_with(file, client), set: set.number }
    }

    /// Adds the sums of another process's clients.
    pub fn add(&self, set: u32, sums: Sums) {
        self.sets[set as usize].add(sums);
    }

    /// The sums of each data set as of now.
    pub fn sums(&self) -> impl Iterator<Item = (DataSet, Sums)> + '_ {
        DataSet::all(self.sets.len() as u32).zip(self.sets.iter().map(Ledger::sums))
    }

    /// The sums by name.
    pub fn state(&self) -> State {
        self.sets.iter().flat_map(Ledger::state).collect()
    }

    /// Adds sums that another process has given.
    ///
    /// # Errors
    /// The name of one that is missing.
    pub fn restore(&self, state: &State) -> Result<()> {
        self.sets.iter().try_for_each(|ledger| ledger.restore(state))
    }
}

/// One client's tally: its only writer.
pub struct Tally {
    account: Account<{ Sums::NAMES.len() }>,
    set: u32,
}

impl Tally {
    fn add(&mut self, of: Of, change: i64) {
        self.account.add(of as usize, change);
    }

    /// A transaction is begun, and its end is unknown.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    pub fn begins(&mut self, write: Write) -> Result<()> {
        let doubt = match write {
            Write::Order => Of::OrdersInDoubt,
            Write::Payment => Of::PaymentsInDoubt,
            Write::Delivery => Of::DeliveriesInDoubt,
        };
        // The database assigns the number later.
        self.account.begin(kind(self.set, write), Some(doubt as usize), Entry::default)
    }

    /// A transaction's end is known: its result, or `None` if it left no trace.
    ///
    /// # Errors
    /// The ledger's file cannot be written.
    pub fn ended(&mut self, done: Option<Done<'_>>) -> Result<()> {
        let Some(done) = done else { return self.account.undo() };
        match &done {
            Done::Order(order, _) => {
                self.add(Of::Orders, 1);
                self.add(Of::Lines, order.lines().len() as i64);
            }
            Done::Payment(payment, _) => {
                self.add(Of::Payments, 1);
                self.add(Of::Cents, payment.cents);
            }
            Done::Delivery(_, delivered) => self.add(Of::Deliveries, i64::from(delivered.count())),
        }
        self.account.acknowledge(|entry| *entry = Entered::of(&done).words())
    }
}
