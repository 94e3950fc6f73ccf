//! Checks which of the ledger's transactions are present after the database was killed.

use std::collections::HashMap;

use rumba_engine_api::acid::Found;
use rumba_engine_api::check::Check;
use rumba_engine_api::error::Result;
use rumba_workload_kit::ledger::{self, Entries};

use super::Inspect;
use crate::data_set::DataSet;
use crate::entry::{Entered, Payment, Write, of_kind, time};
use crate::tally::{Sums, Tallies};

/// How much of a transaction is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completeness {
    Whole,
    Nothing,
    /// A part, which is never right for a single transaction. The requested durability decides the outcome of the
    /// trial.
    Half,
}

/// Looks for every acknowledged transaction, data set by data set, and adds those found to the tallies. Verification
/// then checks the tables against the tallies. Transactions in doubt may be present.
/// It also makes the one check that needs the ledger's file: each delivery is complete or absent.
pub fn recovered<I: Inspect>(
    entries: &Entries,
    tallies: &Tallies,
    sets: u32,
    inspector: impl Fn(DataSet) -> Result<I>,
) -> Result<Found> {
    let mut found = Found::default();
    let mut halves = Check::new("a delivery that was acknowledged is there as a whole, or not at all");
    for set in DataSet::all(sets) {
        let (inspector, sums) = (inspector(set)?, in_doubt(entries, set));
        let mut search = Search { inspector, sums, found: &mut found, halves: &mut halves };
        search.look(entries, set)?;
        tallies.add(set.number, search.sums);
    }
    found.checks.push(halves);
    Ok(found)
}

fn in_doubt(entries: &Entries, set: DataSet) -> Sums {
    let of = |write| entries.in_doubt_of(crate::entry::kind(set.number, write)) as i64;
    Sums {
        orders_in_doubt: of(Write::Order),
        payments_in_doubt: of(Write::Payment),
        deliveries_in_doubt: of(Write::Delivery),
        ..Sums::default()
    }
}

struct Search<'a, I> {
    inspector: I,
    /// The sums of the transactions found.
    sums: Sums,
    found: &'a mut Found,
    /// Deliveries, and those that are only partly present.
    halves: &'a mut Check,
}

impl<I: Inspect> Search<'_, I> {
    fn look(&mut self, entries: &Entries, set: DataSet) -> Result<()> {
        let of_set = |write: &ledger::Write| {
            let (number, kind) = of_kind(write.kind)?;
            (number == set.number).then(|| Entered::from_words(kind, &write.entry))
        };
        let entered: Vec<Entered> = entries.acknowledged.iter().filter_map(of_set).collect();
        let mut payments = self.payments(&entered)?;
        for entered in &entered {
            let left = match entered {
                Entered::Order { order, customer, lines } => self.order(*order, *customer, *lines)?,
                Entered::Payment(payment, _) => self.payment(&mut payments, payment),
                Entered::Delivery { warehouse, carrier, orders } => self.delivery(*warehouse, *carrier, orders)?,
            };
            self.found.acknowledged += 1;
            match left {
                Completeness::Whole => {}
                Completeness::Nothing => self.found.lose(|| words(entered)),
                Completeness::Half => self.halves.fail(|| words(entered)),
            }
        }
        Ok(())
    }

    /// The consistency conditions check that its lines are present too.
    fn order(&mut self, place: [u32; 3], customer: u32, lines: u32) -> Result<Completeness> {
        let order = self.inspector.order(place)?;
        let is_there = order.is_some_and(|order| (order.customer, order.lines) == (customer, lines));
        if is_there {
            self.sums.orders += 1;
            self.sums.lines += i64::from(lines);
        }
        Ok(if is_there { Completeness::Whole } else { Completeness::Nothing })
    }

    /// The number of occurrences of each payment since the first one in the ledger.
    fn payments(&mut self, entered: &[Entered]) -> Result<HashMap<Payment, u32>> {
        let mut payments = HashMap::new();
        let since = entered.iter().filter_map(|entered| match entered {
            Entered::Payment(_, entered_s) => Some(*entered_s),
            _ => None,
        });
        if let Some(first_s) = since.min() {
            // A column with whole seconds may have rounded it.
            let count = &mut |payment| *payments.entry(payment).or_default() += 1;
            self.inspector.payments(time(first_s.saturating_sub(1)), count)?;
        }
        Ok(payments)
    }

    fn payment(&mut self, payments: &mut HashMap<Payment, u32>, payment: &Payment) -> Completeness {
        let Some(left) = payments.get_mut(payment).filter(|left| **left > 0) else { return Completeness::Nothing };
        *left -= 1;
        self.sums.payments += 1;
        self.sums.payment_cents += i64::from(payment.cents);
        Completeness::Whole
    }

    /// A delivery is one transaction over ten districts. The orders found are added to the sums that the conditions are
    /// checked against.
    fn delivery(&mut self, warehouse: u32, carrier: u32, orders: &[u32]) -> Result<Completeness> {
        let (mut there, mut missing) = (0, 0);
        for (district, order) in (1..).zip(orders).filter(|(_, order)| **order > 0) {
            match self.inspector.order([warehouse, district, *order])?.is_some_and(|it| it.carrier == carrier) {
                true => there += 1,
                false => missing += 1,
            }
        }
        self.sums.deliveries += there;
        self.halves.examined += 1;
        Ok(match (there, missing) {
            (_, 0) => Completeness::Whole,
            (0, _) => Completeness::Nothing,
            _ => Completeness::Half,
        })
    }
}

fn words(entered: &Entered) -> String {
    match entered {
        Entered::Order { order: [warehouse, district, order], customer, .. } => {
            format!("order {order} of warehouse {warehouse}, district {district}, customer {customer}")
        }
        Entered::Payment(Payment { place: [warehouse, district], customer, cents }, _) => {
            format!("a payment of {cents} cents by customer {customer:?} at warehouse {warehouse}, district {district}")
        }
        Entered::Delivery { warehouse, orders, .. } => {
            format!("a delivery of warehouse {warehouse}: orders {orders:?}")
        }
    }
}
