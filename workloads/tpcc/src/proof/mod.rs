//! Verification of the data after every run. It checks the twelve consistency conditions of clause 3.3.2. It also
//! checks the tables against the scale and the acknowledged work, and the rows of stock against the lines that took
//! from them.
//! Each family of engines reads its rows in its own way; one [`book`](Book) compares them for all.

mod book;
mod stock;

use std::ops::RangeInclusive;

use rumba_engine_api::check::{Check, EXAMPLES};
use rumba_engine_api::error::Result;

use book::ConsistencyChecker;

use crate::data_set::DataSet;
use crate::scale::{DISTRICTS, PAID, Scale};
use crate::tables::Table;
use crate::tally::Sums;

/// The conditions, by the number of the clause less one.
const CLAUSES: [&str; 12] = [
    "a warehouse's total is the sum over its districts",
    "a district's next order number follows its last order and its last new order",
    "the numbers of new orders have no gap",
    "a district has as many order lines as its orders count",
    "an order has no carrier if it is a new order, and only then",
    "an order has as many lines as it counts",
    "a line has a delivery date if its order has a carrier, and only then",
    "a warehouse's total is the sum of its history",
    "a district's total is the sum of its history",
    "a customer's balance is the sum of the delivered lines, less the payments",
    "a district's orders without its new orders are those loaded as delivered and those delivered since",
    "a customer's balance and payments together are the sum of the delivered lines",
];

/// A condition by the number of its clause in 3.3.2.
fn name(clause: usize) -> String {
    format!("3.3.2.{clause}: {}", CLAUSES[clause - 1])
}

/// Takes the numbers of a row.
pub type Each<'a> = dyn FnMut(&[i64]) + 'a;

/// A reader of an engine's tables.
pub trait Rows {
    /// Visits all rows of a table in any order, each as numbers from these columns. Exact numbers are in their smallest
    /// units; a time only shows whether it is present; [`NONE`](crate::tables::NONE) is NULL. Returns the number of
    /// rows.
    fn visit(&mut self, set: DataSet, table: Table, columns: &[usize], each: &mut Each) -> Result<i64>;

    /// The number of rows of a table.
    fn count(&mut self, set: DataSet, table: Table) -> Result<i64>;

    /// The number of entries in the indexes. `None` if the engine maintains them itself, so that the workload has
    /// written no entry that a lookup depends on.
    fn entries(&mut self, _set: DataSet) -> Result<Option<Entries>> {
        Ok(None)
    }
}

/// The numbers of entries in the indexes that the workload writes itself.
#[derive(Clone, Copy, Debug)]
pub struct Entries {
    /// As many as customers.
    pub customers_by_name: i64,
    /// As many as orders.
    pub orders_by_customer: i64,
}

/// Checks the tables against each other, against the scale and against acknowledged work.
pub fn verify(rows: &mut dyn Rows, scale: &Scale, sums: impl Iterator<Item = (DataSet, Sums)>) -> Result<Vec<Check>> {
    together(sums.map(|(set, sums)| {
        let (conditions, stock, found) = ConsistencyChecker::read(rows, set, scale)?.close();
        let mut checks = proven(conditions, scale, &sums, &found);
        checks.push(stock);
        Ok((set, checks))
    }))
}

/// The facts for conditions on numbers of rows.
struct Found {
    rows: [i64; Table::ALL.len()],
    /// The amount that all warehouses have received, in cents.
    warehouse_cents: i64,
    /// The delivered orders of each district, by warehouse and number: its orders less its new orders.
    done: Vec<([u32; 2], i64)>,
    /// Entries of the indexes, if the workload writes them.
    entries: Option<Entries>,
}

impl Found {
    fn of(&self, table: Table) -> i64 {
        self.rows[table as usize]
    }
}

/// A number that was found in the data, and the range in which it must lie: one number without work in doubt.
struct FoundNumber {
    what: String,
    found: i64,
    expected: RangeInclusive<i64>,
}

fn check(name: String, numbers: Vec<FoundNumber>) -> Check {
    let examined = numbers.len() as u64;
    let is_wrong = |FoundNumber { found, expected, .. }: &FoundNumber| !expected.contains(found);
    let reported = |FoundNumber { what, found, expected }: FoundNumber| match expected.into_inner() {
        (from, to) if from == to => format!("{what}: {found}, expected {from}"),
        (from, to) => format!("{what}: {found}, expected {from} to {to}"),
    };
    let mut wrong: Vec<String> = numbers.into_iter().filter(is_wrong).map(reported).collect();
    let count = wrong.len() as u64;
    wrong.truncate(EXAMPLES);
    Check { name, examined, wrong: count, examples: wrong }
}

/// The checked conditions (3.3.2.1 to 10, and 12) in order, with those on numbers of rows.
fn proven(mut conditions: Vec<Check>, scale: &Scale, sums: &Sums, found: &Found) -> Vec<Check> {
    let last = conditions.len().saturating_sub(1);
    conditions.insert(last, delivered(scale, sums, found));
    conditions.extend([cardinalities(scale, found), orders(scale, sums, found), payments(scale, sums, found)]);
    conditions
}

/// Merges the checks of all data sets; a violation names its set.
fn together(sets: impl Iterator<Item = Result<(DataSet, Vec<Check>)>>) -> Result<Vec<Check>> {
    let mut all: Vec<Check> = Vec::new();
    for proven in sets {
        let (set, mut checks) = proven?;
        if set.of > 1 {
            let examples = checks.iter_mut().flat_map(|check| &mut check.examples);
            examples.for_each(|example| *example = format!("data set {}: {example}", set.number + 1));
        }
        if all.is_empty() {
            all = checks;
            continue;
        }
        for (all, one) in all.iter_mut().zip(checks) {
            all.examined += one.examined;
            all.wrong += one.wrong;
            all.examples.extend(one.examples);
            all.examples.truncate(EXAMPLES);
        }
    }
    Ok(all)
}

/// Orders less new orders are 2,100 in each district at the start, and after a run as many more as were delivered. The
/// tally does not count deliveries by district. Each district therefore has at least as many as at the start, and at
/// most that number plus all deliveries.
fn delivered(scale: &Scale, sums: &Sums, found: &Found) -> Check {
    let (start, in_doubt) = (i64::from(scale.delivered()), sums.deliveries_in_doubt);
    let from = scale.districts() as i64 * start + sums.deliveries;
    let expected = from..=from + in_doubt * i64::from(DISTRICTS);
    let what = "orders that do not wait".to_owned();
    let all = FoundNumber { what, found: found.of(Table::Orders) - found.of(Table::NewOrder), expected };
    // A delivery takes one order of a district.
    let most = start + sums.deliveries + in_doubt;
    let of_district = |&([warehouse, district], done): &([u32; 2], i64)| {
        let what = format!("orders of warehouse {warehouse}, district {district} that do not wait");
        FoundNumber { what, found: done, expected: start..=most }
    };
    check(name(11), std::iter::once(all).chain(found.done.iter().map(of_district)).collect())
}

/// The remedy if tables have a different number of rows than requested.
const OTHER_SCALE: &str =
    "if it was loaded at another scale, load it again, or set warehouses, customers and items as they were";

/// Rows whose number no transaction changes, and the entries that find customers.
fn cardinalities(scale: &Scale, found: &Found) -> Check {
    let expected = [
        (Table::Warehouse, u64::from(scale.warehouses)),
        (Table::District, scale.districts()),
        (Table::Customer, scale.all_customers()),
        (Table::Item, u64::from(scale.items)),
        (Table::Stock, scale.stock()),
    ];
    let rows = expected.map(|(table, rows)| {
        let what = format!("rows of {}", table.name());
        FoundNumber { what, found: found.of(table), expected: rows as i64..=rows as i64 }
    });
    let by_name = found.entries.map(|of| {
        let what = "entries of customers by name".to_owned();
        let expected = scale.all_customers() as i64;
        FoundNumber { what, found: of.customers_by_name, expected: expected..=expected }
    });
    let numbers = rows.into_iter().chain(by_name).collect();
    let mut check = check("tables have the rows of the scale".to_owned(), numbers);
    if let Some(last) = check.examples.last_mut() {
        *last = format!("{last}; {OTHER_SCALE}");
    }
    check
}

/// Orders, including those acknowledged to clients, and the entries that find them. If an entry is missing, an order
/// status reports an older order, which no condition detects.
fn orders(scale: &Scale, sums: &Sums, found: &Found) -> Check {
    let (from, orders) = (scale.all_customers() as i64 + sums.orders, found.of(Table::Orders));
    let number = FoundNumber { what: "orders".to_owned(), found: orders, expected: from..=from + sums.orders_in_doubt };
    let by_customer = found.entries.map(|of| {
        let what = "entries of orders by customer".to_owned();
        FoundNumber { what, found: of.orders_by_customer, expected: orders..=orders }
    });
    let numbers = std::iter::once(number).chain(by_customer).collect();
    check("every new order that was acknowledged is there".to_owned(), numbers)
}

fn payments(scale: &Scale, sums: &Sums, found: &Found) -> Check {
    let loaded = scale.all_customers() as i64;
    let from = loaded + sums.payments;
    let expected = from..=from + sums.payments_in_doubt;
    let count = FoundNumber { what: "payments".to_owned(), found: found.of(Table::History), expected };
    let from = loaded * PAID + sums.payment_cents;
    // A payment is of 5,000.00 at most.
    let expected = from..=from + sums.payments_in_doubt * 500_000;
    let taken = FoundNumber { what: "cents that warehouses took".to_owned(), found: found.warehouse_cents, expected };
    check("every payment that was acknowledged is there".to_owned(), vec![count, taken])
}
