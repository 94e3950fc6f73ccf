//! The conditions of clause 3.3.2 over the rows themselves: every row is read once, in whatever order the engine has them,
//! and summed up in whole cents. Rows of either side of a join that have no partner on the other are there, too.

use std::collections::BTreeMap;

use rumba_core::check::Check;
use rumba_core::error::EngineError;

use super::{EXAMPLES, Found, Rows, name};
use crate::data_set::DataSet;
use crate::scale::{DISTRICTS, Scale};
use crate::tables::{NONE, Table, column};

/// The conditions, each with the table whose rows are looked at; that of numbers comes from elsewhere.
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

/// What breaks each condition.
#[derive(Default)]
struct Broken([(u64, Vec<String>); 13]);

impl Broken {
    /// A row breaks a condition, if it does.
    fn if_not(&mut self, holds: bool, clause: usize, told: impl FnOnce() -> String) {
        let (count, examples) = &mut self.0[clause];
        if !holds {
            *count += 1;
            if examples.len() < EXAMPLES {
                examples.push(told());
            }
        }
    }

    fn check(&mut self, clause: usize, examined: i64) -> Check {
        let (wrong, examples) = std::mem::take(&mut self.0[clause]);
        Check { name: name(clause), examined: examined.cast_unsigned(), wrong, examples }
    }
}

/// What a warehouse's rows say.
#[derive(Default)]
struct Warehouse {
    taken: i64,
    of_districts: i64,
    of_history: i64,
}

/// What a district's rows say.
#[derive(Default)]
struct District {
    taken: i64,
    next: i64,
    of_history: i64,
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
type Place = [u32; 3];

/// What an order's rows say.
struct Order {
    place: Place,
    customer: u32,
    carrier: i64,
    lines_said: i64,
    lines: i64,
    waits: bool,
    /// What of it was delivered, in cents.
    delivered: i64,
}

/// What a customer's rows say, in cents.
#[derive(Clone, Copy, Default)]
struct Customer {
    is_there: bool,
    balance: i64,
    paid_in_year: i64,
    paid: i64,
    delivered: i64,
}

/// All of it. Sums wrap around: of damaged rows they are wrong in any case.
pub(super) struct Book {
    scale: Scale,
    rows: [i64; Table::ALL.len()],
    warehouses: BTreeMap<u32, Warehouse>,
    districts: BTreeMap<[u32; 2], District>,
    /// In the order of their places.
    orders: Vec<Order>,
    /// By their places.
    customers: Vec<Customer>,
    broken: Broken,
}

/// A number of a key's.
fn id(number: i64) -> u32 {
    number as u32
}

impl Book {
    pub(super) fn read(rows: &mut dyn Rows, set: DataSet, scale: &Scale) -> Result<Self, EngineError> {
        let mut book = Self {
            scale: *scale,
            rows: [0; Table::ALL.len()],
            warehouses: BTreeMap::new(),
            districts: BTreeMap::new(),
            orders: Vec::new(),
            customers: vec![Customer::default(); scale.all_customers() as usize],
            broken: Broken::default(),
        };
        book.read_places(rows, set)?;
        book.read_customers(rows, set)?;
        book.read_orders(rows, set)?;
        book.read_new_orders(rows, set)?;
        book.read_lines(rows, set)?;
        // Of these, how many there are is what matters.
        for table in [Table::Item, Table::Stock] {
            book.rows[table as usize] = rows.count(set, table)?;
        }
        Ok(book)
    }

    /// What was read, held against each other: the conditions but that of numbers, and those numbers.
    pub(super) fn close(mut self) -> (Vec<Check>, Found) {
        let done = self.districts.iter().map(|(place, of)| (*place, of.done())).collect();
        let warehouse_cents = self.warehouses.values().fold(0_i64, |sum, of| sum.wrapping_add(of.taken));
        let found = Found { rows: self.rows, warehouse_cents, done };
        let mut broken = std::mem::take(&mut self.broken);
        self.of_money(&mut broken);
        self.of_districts(&mut broken);
        self.of_orders(&mut broken);
        self.of_customers(&mut broken);
        let conditions = CONDITIONS.iter().map(|&(clause, table)| broken.check(clause, found.of(table)));
        (conditions.collect(), found)
    }

    fn warehouse(&mut self, number: u32) -> &mut Warehouse {
        self.warehouses.entry(number).or_default()
    }

    fn district(&mut self, warehouse: u32, district: u32) -> &mut District {
        self.districts.entry([warehouse, district]).or_default()
    }

    /// A customer by its place; `None` for one that the scale does not have.
    fn customer(&mut self, [warehouse, district, customer]: Place) -> Option<&mut Customer> {
        let per = self.scale.customers as usize;
        let district_of_all = (warehouse.checked_sub(1)? as usize)
            .checked_mul(DISTRICTS as usize)?
            .checked_add(district.checked_sub(1)? as usize)?;
        let number = customer.checked_sub(1)? as usize;
        if district > DISTRICTS || number >= per {
            return None;
        }
        self.customers.get_mut(district_of_all.checked_mul(per)?.checked_add(number)?)
    }

    fn read_places(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<(), EngineError> {
        let columns = [0, column::W_YTD];
        self.rows[Table::Warehouse as usize] = rows.visit(set, Table::Warehouse, &columns, &mut |row| {
            self.warehouse(id(row[0])).taken = row[1];
        })?;
        let columns = [0, 1, column::D_YTD, column::D_NEXT_O_ID];
        self.rows[Table::District as usize] = rows.visit(set, Table::District, &columns, &mut |row| {
            let warehouse = self.warehouse(id(row[0]));
            warehouse.of_districts = warehouse.of_districts.wrapping_add(row[2]);
            let district = self.district(id(row[0]), id(row[1]));
            (district.taken, district.next) = (row[2], row[3]);
        })?;
        Ok(())
    }

    fn read_customers(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<(), EngineError> {
        let columns = [0, 1, 2, column::C_BALANCE, column::C_YTD_PAYMENT];
        self.rows[Table::Customer as usize] = rows.visit(set, Table::Customer, &columns, &mut |row| {
            if let Some(customer) = self.customer([id(row[0]), id(row[1]), id(row[2])]) {
                customer.is_there = true;
                (customer.balance, customer.paid_in_year) = (row[3], row[4]);
            }
        })?;
        let payer = [column::H_C_W_ID, column::H_C_D_ID, column::H_C_ID];
        let columns = [column::H_W_ID, column::H_D_ID, payer[0], payer[1], payer[2], column::H_AMOUNT];
        self.rows[Table::History as usize] = rows.visit(set, Table::History, &columns, &mut |row| {
            let amount = row[5];
            let add = |sum: &mut i64| *sum = sum.wrapping_add(amount);
            add(&mut self.warehouse(id(row[0])).of_history);
            add(&mut self.district(id(row[0]), id(row[1])).of_history);
            if let Some(customer) = self.customer([id(row[2]), id(row[3]), id(row[4])]) {
                add(&mut customer.paid);
            }
        })?;
        Ok(())
    }

    fn read_orders(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<(), EngineError> {
        let columns = [0, 1, 2, column::O_C_ID, column::O_CARRIER_ID, column::O_OL_CNT];
        self.rows[Table::Orders as usize] = rows.visit(set, Table::Orders, &columns, &mut |row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            let (carrier, lines_said) = (row[4], row[5]);
            let district = self.district(place[0], place[1]);
            district.last_order = district.last_order.max(Some(place[2]));
            district.orders += 1;
            district.lines_said = district.lines_said.wrapping_add(lines_said);
            let customer = id(row[3]);
            self.orders.push(Order { place, customer, carrier, lines_said, lines: 0, waits: false, delivered: 0 });
        })?;
        if !self.orders.is_sorted_by_key(|order| order.place) {
            self.orders.sort_unstable_by_key(|order| order.place);
        }
        Ok(())
    }

    fn read_new_orders(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<(), EngineError> {
        let mut at = 0;
        self.rows[Table::NewOrder as usize] = rows.visit(set, Table::NewOrder, &[0, 1, 2], &mut |row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            let district = self.district(place[0], place[1]);
            district.waits += 1;
            let (first, newest) = district.waiting.unwrap_or((place[2], place[2]));
            district.waiting = Some((first.min(place[2]), newest.max(place[2])));
            match self.order_at(place, &mut at) {
                Some(order) => order.waits = true,
                None => self.broken.if_not(false, 5, || format!("{}: no such order waits", told(place))),
            }
        })?;
        Ok(())
    }

    fn read_lines(&mut self, rows: &mut dyn Rows, set: DataSet) -> Result<(), EngineError> {
        let (columns, mut at) = ([0, 1, 2, 3, column::OL_DELIVERY_D, column::OL_AMOUNT], 0);
        self.rows[Table::OrderLine as usize] = rows.visit(set, Table::OrderLine, &columns, &mut |row| {
            let place = [id(row[0]), id(row[1]), id(row[2])];
            self.district(place[0], place[1]).lines += 1;
            let Some(order) = self.order_at(place, &mut at) else {
                self.broken.if_not(false, 6, || format!("{}: a line of no order", told(place)));
                return;
            };
            order.lines += 1;
            let (is_delivered, has_carrier) = (row[4] != NONE, order.carrier != NONE);
            if is_delivered {
                order.delivered = order.delivered.wrapping_add(row[5]);
            }
            self.broken.if_not(is_delivered == has_carrier, 7, || {
                format!("{}, line {}: delivered {is_delivered}, carrier {has_carrier}", told(place), row[3])
            });
        })?;
        Ok(())
    }

    /// The order at a place. Most rows are of the order that was found last, or of the next.
    fn order_at(&mut self, place: Place, at: &mut usize) -> Option<&mut Order> {
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
            broken.if_not(taken == of_districts, 1, || {
                format!("warehouse {number}: w_ytd {taken}, sum of d_ytd {of_districts}")
            });
            broken.if_not(taken == of_history, 8, || {
                format!("warehouse {number}: w_ytd {taken}, sum of h_amount {of_history}")
            });
        }
        for ([warehouse, district], District { taken, of_history, .. }) in &self.districts {
            broken.if_not(taken == of_history, 9, || {
                format!("warehouse {warehouse}, district {district}: d_ytd {taken}, sum of h_amount {of_history}")
            });
        }
    }

    /// 3.3.2.2 to 4.
    fn of_districts(&self, broken: &mut Broken) {
        for ([warehouse, district], of) in &self.districts {
            let place = || format!("warehouse {warehouse}, district {district}");
            let last = of.next - 1;
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
            broken.if_not(of.lines_said == of.lines, 4, || {
                format!("{}: sum of o_ol_cnt {}, order lines {}", place(), of.lines_said, of.lines)
            });
        }
    }

    /// 3.3.2.5 and 6, beside what was found while reading.
    fn of_orders(&self, broken: &mut Broken) {
        for Order { place, carrier, lines_said, lines, waits, .. } in &self.orders {
            let has_carrier = *carrier != NONE;
            broken.if_not(has_carrier != *waits, 5, || {
                format!("{}: has a carrier {has_carrier}, waits {waits}", told(*place))
            });
            broken.if_not(lines_said == lines, 6, || {
                format!("{}: o_ol_cnt {lines_said}, order lines {lines}", told(*place))
            });
        }
    }

    /// 3.3.2.10 and 12.
    fn of_customers(mut self, broken: &mut Broken) {
        for order in std::mem::take(&mut self.orders) {
            let [warehouse, district, _] = order.place;
            if let Some(customer) = self.customer([warehouse, district, order.customer]) {
                customer.delivered = customer.delivered.wrapping_add(order.delivered);
            }
        }
        let per = self.scale.customers as usize;
        for (number, customer) in self.customers.iter().enumerate().filter(|(_, customer)| customer.is_there) {
            let Customer { balance, paid_in_year, paid, delivered, .. } = *customer;
            let place = || {
                let (district, number) = (number / per, number % per + 1);
                let (warehouse, district) = (district / DISTRICTS as usize + 1, district % DISTRICTS as usize + 1);
                format!("warehouse {warehouse}, district {district}, customer {number}")
            };
            broken.if_not(balance == delivered.wrapping_sub(paid), 10, || {
                format!("{}: c_balance {balance}, delivered {delivered}, paid {paid}", place())
            });
            broken.if_not(balance.wrapping_add(paid_in_year) == delivered, 12, || {
                format!("{}: c_balance {balance}, c_ytd_payment {paid_in_year}, delivered {delivered}", place())
            });
        }
    }
}

/// An order's place, in words.
fn told([warehouse, district, order]: Place) -> String {
    format!("warehouse {warehouse}, district {district}, order {order}")
}
