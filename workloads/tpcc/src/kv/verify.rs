//! The proof over keys and values: every row is read once, in the order of the keys, and summed up in whole cents.

use std::collections::HashMap;

use rumba_core::check::Check;
use rumba_core::error::EngineError;
use rumba_core::kv::{KvSession, Scan};

use super::part;
use super::row::{NONE, layout};
use crate::data_set::DataSet;
use crate::proof::{EXAMPLES, Found, name, proven, together};
use crate::scale::{DISTRICTS, Scale};
use crate::tables::{Table, column};
use crate::tally::Sums;

/// Holds the tables against each other, against the scale and against what clients were told.
///
/// # Errors
/// Whatever the engine said.
pub fn verify(
    mut session: Box<dyn KvSession>,
    scale: &Scale,
    sums: impl Iterator<Item = (DataSet, Sums)>,
) -> Result<Vec<Check>, EngineError> {
    together(sums.map(|(set, sums)| Ok((set, verify_set(session.as_mut(), set, scale, &sums)?))))
}

fn verify_set(
    session: &mut dyn KvSession,
    set: DataSet,
    scale: &Scale,
    sums: &Sums,
) -> Result<Vec<Check>, EngineError> {
    let mut reader = Reader { session, set, rows: [0; Table::ALL.len()] };
    let book = Book::read(&mut reader, scale)?;
    let found = Found {
        rows: reader.rows,
        warehouse_cents: book.warehouses.values().map(|of| of.taken).sum(),
        done: book.districts.iter().map(|((warehouse, district), of)| ([*warehouse, *district], of.done())).collect(),
    };
    let mut broken = Broken::default();
    book.of_money(&mut broken);
    book.of_districts(&mut broken);
    book.of_orders(&mut broken);
    book.of_customers(&mut broken);
    let conditions = CONDITIONS.iter().map(|&(clause, table)| broken.check(clause, found.of(table)));
    Ok(proven(conditions.collect(), scale, sums, &found))
}

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

/// Reads tables and counts their rows.
struct Reader<'a> {
    session: &'a mut dyn KvSession,
    set: DataSet,
    rows: [i64; Table::ALL.len()],
}

impl Reader<'_> {
    fn all(&mut self, table: Table, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), EngineError> {
        let everything = Scan { from: &[], to: &[0xff; 24], limit: usize::MAX };
        self.rows[table as usize] = self.session.scan(self.set.table(table), everything, visit)? as i64;
        Ok(())
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

/// What an order's rows say.
struct Order {
    place: (u32, u32, u32),
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

/// All of it.
struct Book {
    warehouses: HashMap<u32, Warehouse>,
    districts: HashMap<(u32, u32), District>,
    /// In the order of their keys.
    orders: Vec<Order>,
    /// By their places.
    customers: Vec<Customer>,
    scale: Scale,
    broken: Broken,
}

impl Book {
    fn read(reader: &mut Reader<'_>, scale: &Scale) -> Result<Self, EngineError> {
        let mut book = Self {
            warehouses: HashMap::new(),
            districts: HashMap::new(),
            orders: Vec::new(),
            customers: vec![Customer::default(); scale.all_customers() as usize],
            scale: *scale,
            broken: Broken::default(),
        };
        let warehouses = layout(Table::Warehouse);
        reader.all(Table::Warehouse, &mut |key, value| {
            book.warehouse(part(key, 0)).taken = warehouses.number(value, column::W_YTD);
        })?;
        let districts = layout(Table::District);
        reader.all(Table::District, &mut |key, value| {
            let (taken, next) = (districts.number(value, column::D_YTD), districts.number(value, column::D_NEXT_O_ID));
            book.warehouse(part(key, 0)).of_districts += taken;
            let district = book.district(key);
            (district.taken, district.next) = (taken, next);
        })?;
        book.read_customers(reader)?;
        book.read_orders(reader)?;
        // Of these, how many there are is what matters.
        reader.all(Table::Item, &mut |_, _| {})?;
        reader.all(Table::Stock, &mut |_, _| {})?;
        Ok(book)
    }

    fn warehouse(&mut self, number: u32) -> &mut Warehouse {
        self.warehouses.entry(number).or_default()
    }

    fn district(&mut self, key: &[u8]) -> &mut District {
        self.districts.entry((part(key, 0), part(key, 1))).or_default()
    }

    /// A customer by its place; `None` for one that the scale does not have.
    fn customer(&mut self, [warehouse, district, customer]: [u32; 3]) -> Option<&mut Customer> {
        let per = self.scale.customers as usize;
        let district_of_all = (warehouse.checked_sub(1)? * DISTRICTS + district.checked_sub(1)?) as usize;
        let number = customer.checked_sub(1)? as usize;
        if district > DISTRICTS || number >= per {
            return None;
        }
        self.customers.get_mut(district_of_all * per + number)
    }

    fn read_customers(&mut self, reader: &mut Reader) -> Result<(), EngineError> {
        let customers = layout(Table::Customer);
        reader.all(Table::Customer, &mut |key, value| {
            if let Some(customer) = self.customer([part(key, 0), part(key, 1), part(key, 2)]) {
                customer.is_there = true;
                customer.balance = customers.number(value, column::C_BALANCE);
                customer.paid_in_year = customers.number(value, column::C_YTD_PAYMENT);
            }
        })?;
        let history = layout(Table::History);
        reader.all(Table::History, &mut |_, value| {
            let number = |column| history.number(value, column) as u32;
            let amount = history.number(value, column::H_AMOUNT);
            let (warehouse, district) = (number(column::H_W_ID), number(column::H_D_ID));
            self.warehouse(warehouse).of_history += amount;
            self.districts.entry((warehouse, district)).or_default().of_history += amount;
            let customer = [column::H_C_W_ID, column::H_C_D_ID, column::H_C_ID].map(number);
            if let Some(customer) = self.customer(customer) {
                customer.paid += amount;
            }
        })
    }

    fn read_orders(&mut self, reader: &mut Reader) -> Result<(), EngineError> {
        let orders = layout(Table::Orders);
        reader.all(Table::Orders, &mut |key, value| {
            let place = (part(key, 0), part(key, 1), part(key, 2));
            let lines_said = orders.number(value, column::O_OL_CNT);
            let district = self.district(key);
            district.last_order = district.last_order.max(Some(place.2));
            district.orders += 1;
            district.lines_said += lines_said;
            self.orders.push(Order {
                place,
                customer: orders.number(value, column::O_C_ID) as u32,
                carrier: orders.number(value, column::O_CARRIER_ID),
                lines_said,
                lines: 0,
                waits: false,
                delivered: 0,
            });
        })?;
        // Both come in the order of the orders.
        let mut at = 0;
        reader.all(Table::NewOrder, &mut |key, _| {
            let number = part(key, 2);
            let district = self.district(key);
            district.waits += 1;
            let (first, _) = district.waiting.unwrap_or((number, number));
            district.waiting = Some((first, number));
            match self.order_of(key, &mut at) {
                Some(order) => order.waits = true,
                None => self.broken.if_not(false, 5, || format!("{}: no such order waits", told(key))),
            }
        })?;
        self.read_lines(reader)
    }

    fn read_lines(&mut self, reader: &mut Reader) -> Result<(), EngineError> {
        let (lines, mut at) = (layout(Table::OrderLine), 0);
        reader.all(Table::OrderLine, &mut |key, value| {
            self.district(key).lines += 1;
            let is_delivered = lines.number(value, column::OL_DELIVERY_D) != NONE;
            let Some(order) = self.order_of(key, &mut at) else {
                self.broken.if_not(false, 6, || format!("{}: a line of no order", told(key)));
                return;
            };
            order.lines += 1;
            let has_carrier = order.carrier != NONE;
            if is_delivered {
                order.delivered += lines.number(value, column::OL_AMOUNT);
            }
            self.broken.if_not(is_delivered == has_carrier, 7, || {
                format!("{}, line {}: delivered {is_delivered}, carrier {has_carrier}", told(key), part(key, 3))
            });
        })
    }

    /// The order that a key begins with; those before it have been passed.
    fn order_of(&mut self, key: &[u8], at: &mut usize) -> Option<&mut Order> {
        let place = (part(key, 0), part(key, 1), part(key, 2));
        while self.orders.get(*at).is_some_and(|order| order.place < place) {
            *at += 1;
        }
        self.orders.get_mut(*at).filter(|order| order.place == place)
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
        for ((warehouse, district), District { taken, of_history, .. }) in &self.districts {
            broken.if_not(taken == of_history, 9, || {
                format!("warehouse {warehouse}, district {district}: d_ytd {taken}, sum of h_amount {of_history}")
            });
        }
    }

    /// 3.3.2.2 to 4.
    fn of_districts(&self, broken: &mut Broken) {
        for ((warehouse, district), of) in &self.districts {
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

    /// 3.3.2.5 to 7, with what was found while reading.
    fn of_orders(&self, broken: &mut Broken) {
        for clause in 5..=7 {
            let (count, examples) = &self.broken.0[clause];
            broken.0[clause].0 += count;
            broken.0[clause].1.extend(examples.iter().cloned());
        }
        for Order { place: (warehouse, district, order), carrier, lines_said, lines, waits, .. } in &self.orders {
            let place = || format!("warehouse {warehouse}, district {district}, order {order}");
            broken.if_not((*carrier == NONE) == *waits, 5, || {
                format!("{}: has a carrier {}, waits {waits}", place(), *carrier != NONE)
            });
            broken
                .if_not(lines_said == lines, 6, || format!("{}: o_ol_cnt {lines_said}, order lines {lines}", place()));
        }
    }

    /// 3.3.2.10 and 12.
    fn of_customers(mut self, broken: &mut Broken) {
        for order in std::mem::take(&mut self.orders) {
            let (warehouse, district, _) = order.place;
            if let Some(customer) = self.customer([warehouse, district, order.customer]) {
                customer.delivered += order.delivered;
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
            broken.if_not(balance == delivered - paid, 10, || {
                format!("{}: c_balance {balance}, delivered {delivered}, paid {paid}", place())
            });
            broken.if_not(balance + paid_in_year == delivered, 12, || {
                format!("{}: c_balance {balance}, c_ytd_payment {paid_in_year}, delivered {delivered}", place())
            });
        }
    }
}

/// A key that begins with an order's, in words.
fn told(key: &[u8]) -> String {
    format!("warehouse {}, district {}, order {}", part(key, 0), part(key, 1), part(key, 2))
}
