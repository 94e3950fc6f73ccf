//! The conditions of clause 3.3.2 over the rows themselves. Every row is read once, in the engine's order, and summed
//! in whole cents. Rows without a partner on the other side of a join are included.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Display, Formatter};

use rumba_engine_api::check::Check;
use rumba_engine_api::error::Result;

use super::stock::Stock;
use super::{CLAUSES, Entries, Found, Rows, name};
use crate::data_set::DataSet;
use crate::scale::{DISTRICTS, Scale};
use crate::tables::{NONE, Table, column};

/// The conditions, each with the table whose rows are checked; the condition of cardinalities is checked elsewhere.
const CONDITIONS: [(usize, Table); 11] = [
    (1, Table::Warehouse),
    (2, Table::District),
    (3, Table::NewOrder),
    (4, Table::District),
    (5, Table::Orders),
    (6, Table::Orders),
    (7, Table::OrderLine),
    (8, Table::Warehouse),
    (9, Table::District),
    (10, Table::Customer),
    (12, Table::Customer),
];

/// The violations of each condition, by the number of the clause less one.
struct Broken([Check; CLAUSES.len()]);

impl Default for Broken {
    fn default() -> Self {
        Self(std::array::from_fn(|at| Check::new(name(at + 1))))
    }
}

impl Broken {
    /// A row breaks a condition, if it does.
    fn if_not(&mut self, holds: bool, clause: usize, reported: impl FnOnce() -> String) {
        if !holds {
            self.0[clause - 1].fail(reported);
        }
    }

    fn check(&self, clause: usize, examined: i64) -> Check {
        Check { examined: examined.cast_unsigned(), ..self.0[clause - 1].clone() }
    }
}

/// The sum of rows in cents; `None` if there is no row.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum(Option<i64>);

impl Sum {
    /// Wraps around, because the sum of damaged rows is wrong in any case.
    fn add(&mut self, cents: i64) {
        self.0 = Some(self.0.unwrap_or_default().wrapping_add(cents));
    }

    /// Whether both sides have rows, with equal sums.
    fn is(self, other: Self) -> bool {
        self.0.is_some() && self == other
    }
}

impl Display for Sum {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cents) => cents.fmt(f),
            None => f.write_str("none"),
        }
    }
}

/// The sums of a warehouse's rows.
#[derive(Default)]
struct Warehouse {
    taken: Sum,
    of_districts: Sum,
    of_history: Sum,
}

/// The sums of a district's rows.
#[derive(Default)]
struct District {
    taken: Sum,
    next: i64,
    of_history: Sum,
    last_order: Option<u32>,
    orders: i64,
    waiting: Option<(u32, u32)>,
    waits: i64,
    lines_said: i64,
    lines: i64,
}

impl District {
    /// Orders that do not wait.
    fn done(&self) -> i64 {
        self.orders - self.waits
    }
}

/// An order's warehouse, district and number.
type RowKey = [u32; 3];

/// The sums of an order's rows.
struct Order {
    place: RowKey,
    customer: u32,
    carrier: i64,
    lines_said: i64,
    lines: i64,
    waits: bool,
    /// The delivered amount, in cents.
    delivered: i64,
}

/// The sums of a customer's rows, in cents.
#[derive(Clone, Copy, Default)]
struct Customer {
    /// Whether the customer has a row.
    is_there: bool,
    /// Whether an order or a payment names it.
    is_named: bool,
    balance: i64,
    paid_in_year: i64,
    paid: i64,
    delivered: i64,
}

pub(super) struct ConsistencyChecker {
    scale: Scale,
    rows: [i64; Table::ALL.len()],
    warehouses: BTreeMap<u32, Warehouse>,
    districts: BTreeMap<[u32; 2], District>,
    /// In the order of their places.
    orders: Vec<Order>,
    /// By their places.
    customers: Vec<Customer>,
    /// Those that the scale does not have.
    other_processes: HashMap<RowKey, Customer>,
    stock: Stock,
    entries: Option<Entries>,
    broken: Broken,
}

/// A number of a key's.
fn id(number: i64) -> u32 {
    number as u32
}

impl ConsistencyChecker {
    pub(super) fn read(rows: &mut dyn Rows, set: DataSet, scale: &Scale) -> Result<Self> {
        let mut book = Self {
            scale: *scale,
            rows: [0; Table::ALL.len()],
            warehouses: BTreeMap::new(),
            districts: BTreeMap::new(),
            orders: Vec::new(),
            customers: vec![Customer::default(); scale.all_customers() as usize],
            other_processes: HashMap::new(),
            stock: Stock::default(),
            entries: rows.entries(set)?,
            broken: Broken::default(),
        };
        book.read_places(rows, set)?;
        book.read_customers(rows, set)?;
        book.read_orders(rows, set)?;
        book.read_new_orders(rows, set)?;
        book.read_lines(rows, set)?;
        book.read_stock(rows, set)?;
        // For items, only the number of rows matters.
        book.rows[Table::Item as usize] = rows.count(set, Table::Item)?;
        Ok(book)
    }

    /// Visits the rows of a table, and counts them.
    fn visit(
        &mut self,
        (rows, set): (&mut dyn Rows, DataSet),
        table: Table,
        columns: &[usize],
        mut each: impl FnMut(&mut Self, &[i64]),
    ) -> Result<()> {
        self.rows[table as usize] = rows.visit(set, table, columns, &mut |row| each(self, row))?;
        Ok(())
    }

    /// Compares the sums: the conditions except for cardinalities, the condition of stock, and the cardinalities found.
    pub(super) fn close(mut self) -> (Vec<Check>, Check, Found) {
        let done = self.districts.iter().map(|(place, of)| (*place, of.done())).collect();
        let warehouse_cents = self.warehouses.values().filter_map(|of| of.taken.0).fold(0, i64::wrapping_add);
        let found = Found { rows: self.rows, warehouse_cents, done, entries: self.entries };
        let stock = std::mem::take(&mut self.stock).check(found.of(Table::Stock));
        let mut broken = std::mem::take(&mut self.broken);
        self.of_money(&mut broken);
        self.of_districts(&mut broken);
        self.of_orders(&mut broken);
        self.of_customers(&mut broken);
        let conditions = CONDITIONS.iter().map(|&(clause, table)| broken.check(clause, found.of(table)));
        (conditions.collect(), stock, found)
    }

    fn warehouse(&mut self, number: u32) -> &mut Warehouse {
        self.warehouses.entry(number).or_default()
    }

    fn district(&mut self, warehouse: u32, district: u32) -> &mut District {
        self.districts.entry([warehouse, district]).or_default()
    }

    fn customer(&mut self, place: RowKey) -> &mut Customer {
        let known = customer_at(&self.scale, place).and_then(|at| self.customers.get_mut(at));
        known.unwrap_or_else(|| self.other_processes.entry(place).or_default())
    }

    fn read_places(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        self.visit((rows, set), Table::Warehouse, &[0, column::W_YTD], |book, row| {
            book.warehouse(id(row[0])).taken.add(row[1]);
        })?;
        let columns = [0, 1, column::D_YTD, column::D_NEXT_O_ID];
        self.visit((rows, set), Table::District, &columns, |book, row| {
            book.warehouse(id(row[0])).of_districts.add(row[2]);
            let district = book.district(id(row[0]), id(row[1]));
            district.taken.add(row[2]);
            district.next = row[3];
        })
    }

    fn read_customers(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        let columns = [0, 1, 2, column::C_BALANCE, column::C_YTD_PAYMENT];
        self.visit((rows, set), Table::Customer, &columns, |book, row| {
            let customer = book.customer([id(row[0]), id(row[1]), id(row[2])]);
            customer.is_there = true;
            (customer.balance, customer.paid_in_year) = (row[3], row[4]);
        })?;
        let payer = [column::H_C_W_ID, column::H_C_D_ID, column::H_C_ID];
        let columns = [column::H_W_ID, column::H_D_ID, payer[0], payer[1], payer[2], column::H_AMOUNT];
        self.visit((rows, set), Table::History, &columns, |book, row| {
            let amount = row[5];
            book.warehouse(id(row[0])).of_history.add(amount);
            book.district(id(row[0]), id(row[1])).of_history.add(amount);
            let customer = book.customer([id(row[2]), id(row[3]), id(row[4])]);
            customer.is_named = true;
            customer.paid = customer.paid.wrapping_add(amount);
        })
    }

    fn read_orders(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        let columns = [0, 1, 2, column::O_C_ID, column::O_CARRIER_ID, column::O_OL_CNT];
        self.visit((rows, set), Table::Orders, &columns, |book, row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            let (customer, carrier, lines_said) = (id(row[3]), row[4], row[5]);
            let district = book.district(place[0], place[1]);
            district.last_order = district.last_order.max(Some(place[2]));
            district.orders += 1;
            district.lines_said = district.lines_said.wrapping_add(lines_said);
            book.orders.push(Order { place, customer, carrier, lines_said, lines: 0, waits: false, delivered: 0 });
        })?;
        if !self.orders.is_sorted_by_key(|order| order.place) {
            self.orders.sort_unstable_by_key(|order| order.place);
        }
        Ok(())
    }

    fn read_new_orders(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        let mut at = 0;
        self.visit((rows, set), Table::NewOrder, &[0, 1, 2], |book, row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            let district = book.district(place[0], place[1]);
            district.waits += 1;
            let (first, newest) = district.waiting.unwrap_or((place[2], place[2]));
            district.waiting = Some((first.min(place[2]), newest.max(place[2])));
            match book.order_at(place, &mut at) {
                Some(order) => order.waits = true,
                None => book.broken.if_not(false, 5, || format!("{}: no such order waits", reported(place))),
            }
        })
    }

    fn read_lines(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        let took = [column::OL_SUPPLY_W_ID, column::OL_I_ID, column::OL_QUANTITY];
        let columns = [0, 1, 2, 3, column::OL_DELIVERY_D, column::OL_AMOUNT, took[0], took[1], took[2]];
        let mut at = 0;
        self.visit((rows, set), Table::OrderLine, &columns, |book, row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            book.district(place[0], place[1]).lines += 1;
            // Loaded orders are numbered like the customers, and took no stock.
            if place[2] > book.scale.customers {
                book.stock.line(place[0], [id(row[6]), id(row[7])], row[8]);
            }
            let Some(order) = book.order_at(place, &mut at) else {
                book.broken.if_not(false, 6, || format!("{}: a line of no order", reported(place)));
                return;
            };
            order.lines += 1;
            let (is_delivered, has_carrier) = (row[4] != NONE, order.carrier != NONE);
            if is_delivered {
                order.delivered = order.delivered.wrapping_add(row[5]);
            }
            book.broken.if_not(is_delivered == has_carrier, 7, || {
                format!("{}, line {}: delivered {is_delivered}, carrier {has_carrier}", reported(place), row[3])
            });
        })
    }

    fn read_stock(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<()> {
        let columns = [0, 1, column::S_QUANTITY, column::S_YTD, column::S_ORDER_CNT, column::S_REMOTE_CNT];
        self.visit((rows, set), Table::Stock, &columns, |book, row| {
            book.stock.row([id(row[0]), id(row[1])], row[2], [row[3], row[4], row[5]]);
        })
    }

    /// The order with this key. Most rows belong to the order found last, or to the next.
    fn order_at(&mut self, place: RowKey, at: &mut usize) -> Option<&mut Order> {
        let is_at = |at: usize| self.orders.get(at).is_some_and(|order| order.place == place);
        if !is_at(*at) {
            let next = *at + 1;
            *at = match is_at(next) {
                true => next,
                false => self.orders.binary_search_by_key(&place, |order| order.place).ok()?,
            };
        }
        self.orders.get_mut(*at)
    }

    /// 3.3.2.1, 8 and 9.
    fn of_money(&self, broken: &mut Broken) {
        for (number, Warehouse { taken, of_districts, of_history }) in &self.warehouses {
            broken.if_not(taken.is(*of_districts), 1, || {
                format!("warehouse {number}: w_ytd {taken}, sum of d_ytd {of_districts}")
            });
            broken.if_not(taken.is(*of_history), 8, || {
                format!("warehouse {number}: w_ytd {taken}, sum of h_amount {of_history}")
            });
        }
        for ([warehouse, district], District { taken, of_history, .. }) in &self.districts {
            broken.if_not(taken.is(*of_history), 9, || {
                format!("warehouse {warehouse}, district {district}: d_ytd {taken}, sum of h_amount {of_history}")
            });
        }
    }

    /// 3.3.2.2 to 4.
    fn of_districts(&self, broken: &mut Broken) {
        for ([warehouse, district], of) in &self.districts {
            let place = || format!("warehouse {warehouse}, district {district}");
            let last = of.next.wrapping_sub(1);
            let is_last = |number: Option<u32>| number.is_some_and(|number| i64::from(number) == last);
            let waiting = of.waiting.map(|(_, newest)| newest);
            let holds = is_last(of.last_order) && (waiting.is_none() || is_last(waiting));
            broken.if_not(holds, 2, || {
                format!("{}: d_next_o_id {}, last order {:?}, new {waiting:?}", place(), of.next, of.last_order)
            });
            if let Some((first, newest)) = of.waiting {
                let span = i64::from(newest) - i64::from(first) + 1;
                broken.if_not(span == of.waits, 3, || {
                    format!("{}: new orders {first} to {newest}, {} of them", place(), of.waits)
                });
            }
            broken.if_not(of.lines_said == of.lines && of.lines > 0, 4, || {
                format!("{}: sum of o_ol_cnt {}, order lines {}", place(), of.lines_said, of.lines)
            });
        }
    }

    /// 3.3.2.5 and 6, in addition to the violations found while reading.
    fn of_orders(&self, broken: &mut Broken) {
        for Order { place, carrier, lines_said, lines, waits, .. } in &self.orders {
            let has_carrier = *carrier != NONE;
            broken.if_not(has_carrier != *waits, 5, || {
                format!("{}: has a carrier {has_carrier}, waits {waits}", reported(*place))
            });
            broken.if_not(lines_said == lines && *lines > 0, 6, || {
                format!("{}: o_ol_cnt {lines_said}, order lines {lines}", reported(*place))
            });
        }
    }

    /// 3.3.2.10 and 12.
    fn of_customers(mut self, broken: &mut Broken) {
        for order in std::mem::take(&mut self.orders) {
            let [warehouse, district, _] = order.place;
            let customer = self.customer([warehouse, district, order.customer]);
            customer.is_named = true;
            customer.delivered = customer.delivered.wrapping_add(order.delivered);
        }
        let known = self.customers.iter().enumerate().map(|(at, customer)| (customer_place(&self.scale, at), customer));
        let other_processes = self.other_processes.iter().map(|(place, customer)| (*place, customer));
        for ([warehouse, district, number], customer) in known.chain(other_processes) {
            let Customer { is_there, is_named, balance, paid_in_year, paid, delivered } = *customer;
            let place = || format!("warehouse {warehouse}, district {district}, customer {number}");
            if !is_there {
                broken.if_not(!is_named, 10, || {
                    format!("{}: is not there, and has orders or payments: delivered {delivered}, paid {paid}", place())
                });
                continue;
            }
            broken.if_not(balance == delivered.wrapping_sub(paid), 10, || {
                format!("{}: c_balance {balance}, delivered {delivered}, paid {paid}", place())
            });
            broken.if_not(balance.wrapping_add(paid_in_year) == delivered, 12, || {
                format!("{}: c_balance {balance}, c_ytd_payment {paid_in_year}, delivered {delivered}", place())
            });
        }
    }
}

/// The index of a customer among all, from 0; `None` if the scale does not have it.
fn customer_at(scale: &Scale, [warehouse, district, customer]: RowKey) -> Option<usize> {
    let is_known = (1..=scale.warehouses).contains(&warehouse)
        && (1..=DISTRICTS).contains(&district)
        && (1..=scale.customers).contains(&customer);
    let district_of_all = || (warehouse - 1) as usize * DISTRICTS as usize + (district - 1) as usize;
    is_known.then(|| district_of_all() * scale.customers as usize + (customer - 1) as usize)
}

/// The customer of this number.
fn customer_place(scale: &Scale, at: usize) -> RowKey {
    let (per, districts) = (scale.customers as usize, DISTRICTS as usize);
    [at / per / districts + 1, at / per % districts + 1, at % per + 1].map(|part| part as u32)
}

fn reported([warehouse, district, order]: RowKey) -> String {
    format!("warehouse {warehouse}, district {district}, order {order}")
}
