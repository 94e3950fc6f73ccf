//! The nine tables in memory, and the five transactions as clause 2 describes them, in the simplest way. An adapter's
//! answers and tables are compared with it.

use std::collections::BTreeMap;

use crate::content::{Row, Value};
use crate::draw::{Delivery, NewOrder, ORIGINAL, OrderStatus, Payment, StockLevel, Who};
use crate::names::last_name;
use crate::scale::DISTRICTS;
use crate::store::{Delivered, Ordered, Paid, Status};
use crate::tables::{Table, Type};

/// A primary key. History has none, so it uses the number of the row.
type Key = Vec<i64>;

/// The tables.
#[derive(Default)]
pub struct Oracle {
    tables: [BTreeMap<Key, Row>; Table::ALL.len()],
    /// Whether the compared database sorts texts as if all letters were capitals.
    pub folds_case: bool,
}

fn place(table: Table, column: &str) -> usize {
    table.columns().iter().position(|(name, _)| *name == column).expect("a column of the table")
}

fn keys(parts: &[u32]) -> Key {
    parts.iter().map(|part| i64::from(*part)).collect()
}

impl Oracle {
    pub fn insert(&mut self, table: Table, row: Row) {
        let rows = &mut self.tables[table as usize];
        let of_key = table.columns().iter().zip(&row).filter(|((_, kind), _)| *kind == Type::Key);
        let mut key: Key =
            of_key.map(|(_, value)| if let Value::Number(number) = value { *number } else { -1 }).collect();
        if key.is_empty() {
            key.push(rows.len() as i64);
        }
        let before = rows.insert(key, row);
        assert!(before.is_none(), "{table:?}: a row twice: {before:?}");
    }

    pub fn rows(&self, table: Table) -> Vec<Row> {
        self.tables[table as usize].values().cloned().collect()
    }

    fn value(&self, table: Table, key: &Key, column: &str) -> &Value {
        &self.tables[table as usize][key][place(table, column)]
    }

    fn number(&self, table: Table, key: &Key, column: &str) -> i64 {
        match self.value(table, key, column) {
            Value::Number(number) => *number,
            other => panic!("{table:?}.{column} of {key:?} is {other:?}"),
        }
    }

    fn text(&self, table: Table, key: &Key, column: &str) -> &[u8] {
        match self.value(table, key, column) {
            Value::Text(text) => text,
            other => panic!("{table:?}.{column} of {key:?} is {other:?}"),
        }
    }

    fn set(&mut self, table: Table, key: &Key, column: &str, value: Value) {
        let row = self.tables[table as usize].get_mut(key).expect("a row that is changed");
        row[place(table, column)] = value;
    }

    fn add(&mut self, table: Table, key: &Key, column: &str, number: i64) {
        let sum = self.number(table, key, column) + number;
        self.set(table, key, column, Value::Number(sum));
    }

    /// The keys of a table that begin so, in order.
    fn below<'a>(&'a self, table: Table, prefix: &'a [i64]) -> impl DoubleEndedIterator<Item = &'a Key> {
        self.tables[table as usize].keys().filter(move |key| key.starts_with(prefix))
    }

    /// 2.5.2.2, 2.6.2.2: by number; or the middle one of those with the name, ordered by first name, rounded up.
    fn customer(&self, warehouse: u32, district: u32, who: Who) -> i64 {
        let number = match who {
            Who::Number(number) => return i64::from(number),
            Who::Name(number) => number,
        };
        let (name, length) = last_name(number);
        let prefix = keys(&[warehouse, district]);
        let all = self.below(Table::Customer, &prefix);
        let mut named: Vec<&Key> =
            all.filter(|key| self.text(Table::Customer, key, "c_last") == &name[..length]).collect();
        named.sort_by_key(|key| {
            let first = self.text(Table::Customer, key, "c_first");
            if self.folds_case { first.to_ascii_uppercase() } else { first.to_vec() }
        });
        named[named.len().div_ceil(2) - 1][2]
    }

    /// 2.4.2.
    pub fn new_order(&mut self, order: &NewOrder) -> Ordered {
        let NewOrder { warehouse, district, customer, .. } = *order;
        if order.lines().iter().any(|line| !self.tables[Table::Item as usize].contains_key(&keys(&[line.item]))) {
            return Ordered::RolledBack;
        }
        let (home, place) = (keys(&[warehouse]), keys(&[warehouse, district]));
        let number = self.number(Table::District, &place, "d_next_o_id");
        self.add(Table::District, &place, "d_next_o_id", 1);
        let of_district = |column: &str, oracle: &Self| oracle.number(Table::District, &place, column);
        let (warehouse_tax, district_tax) = (self.number(Table::Warehouse, &home, "w_tax"), of_district("d_tax", self));
        let discount = self.number(Table::Customer, &keys(&[warehouse, district, customer]), "c_discount");
        let is_local = order.lines().iter().all(|line| line.supply == warehouse);
        let numbers = |numbers: &[i64]| numbers.iter().map(|number| Value::Number(*number)).collect::<Row>();
        let head = [i64::from(warehouse), i64::from(district), number];
        let mut row = numbers(&[head[0], head[1], head[2], i64::from(customer)]);
        row.extend([Value::Time, Value::None]);
        row.extend(numbers(&[order.lines().len() as i64, i64::from(is_local)]));
        self.insert(Table::Orders, row);
        self.insert(Table::NewOrder, numbers(&head));
        let (mut cents, mut original) = (0, 0);
        for (nth, line) in (1..).zip(order.lines()) {
            let (item, stock) = (keys(&[line.item]), keys(&[line.supply, line.item]));
            let amount = i64::from(line.quantity) * self.number(Table::Item, &item, "i_price");
            cents += amount;
            let quantity = self.number(Table::Stock, &stock, "s_quantity") - i64::from(line.quantity);
            let quantity = if quantity < 10 { quantity + 91 } else { quantity };
            self.set(Table::Stock, &stock, "s_quantity", Value::Number(quantity));
            self.add(Table::Stock, &stock, "s_ytd", i64::from(line.quantity));
            self.add(Table::Stock, &stock, "s_order_cnt", 1);
            self.add(Table::Stock, &stock, "s_remote_cnt", i64::from(line.supply != warehouse));
            let has = |text: &[u8]| text.windows(ORIGINAL.len()).any(|part| part == ORIGINAL);
            let of_both =
                has(self.text(Table::Item, &item, "i_data")) && has(self.text(Table::Stock, &stock, "s_data"));
            original += u32::from(of_both);
            let text = self.text(Table::Stock, &stock, &format!("s_dist_{district:02}")).to_vec();
            let mut row = numbers(&[head[0], head[1], head[2], nth, i64::from(line.item), i64::from(line.supply)]);
            row.push(Value::None);
            row.extend(numbers(&[i64::from(line.quantity), amount]));
            row.push(Value::Text(text));
            self.insert(Table::OrderLine, row);
        }
        let taxed = i128::from(10_000 - discount) * i128::from(10_000 + warehouse_tax + district_tax);
        let total = (i128::from(cents) * taxed / 100_000_000) as i64;
        Ordered::Committed { order: number, total, original }
    }

    /// 2.5.2.
    pub fn payment(&mut self, payment: &Payment) -> Paid {
        let Payment { warehouse, district, customer_warehouse, customer_district, who, cents, .. } = *payment;
        let (home, place) = (keys(&[warehouse]), keys(&[warehouse, district]));
        self.add(Table::Warehouse, &home, "w_ytd", cents);
        self.add(Table::District, &place, "d_ytd", cents);
        let number = self.customer(customer_warehouse, customer_district, who);
        let customer = vec![i64::from(customer_warehouse), i64::from(customer_district), number];
        self.add(Table::Customer, &customer, "c_balance", -cents);
        self.add(Table::Customer, &customer, "c_ytd_payment", cents);
        self.add(Table::Customer, &customer, "c_payment_cnt", 1);
        if self.text(Table::Customer, &customer, "c_credit") == b"BC" {
            let (whole, part) = (cents / 100, cents % 100);
            let note =
                format!("{number} {customer_district} {customer_warehouse} {district} {warehouse} {whole}.{part:02} ");
            let mut data = note.into_bytes();
            data.extend_from_slice(self.text(Table::Customer, &customer, "c_data"));
            data.truncate(500);
            self.set(Table::Customer, &customer, "c_data", Value::text(&data));
        }
        let mut names = self.text(Table::Warehouse, &home, "w_name").to_vec();
        names.extend_from_slice(b"    ");
        names.extend_from_slice(self.text(Table::District, &place, "d_name"));
        let numbers = [number, customer[1], customer[0], i64::from(district), i64::from(warehouse)];
        let mut row: Row = numbers.map(Value::Number).into();
        row.extend([Value::Time, Value::Number(cents), Value::Text(names)]);
        self.insert(Table::History, row);
        Paid { customer: number, balance: self.number(Table::Customer, &customer, "c_balance") }
    }

    /// 2.6.2.
    pub fn order_status(&self, requested: &OrderStatus) -> Status {
        let OrderStatus { warehouse, district, who } = *requested;
        let customer = self.customer(warehouse, district, who);
        let place = keys(&[warehouse, district]);
        let balance = self.number(Table::Customer, &[place[0], place[1], customer].into(), "c_balance");
        let mut orders = self.below(Table::Orders, &place);
        let last = orders.rfind(|key| self.number(Table::Orders, key, "o_c_id") == customer);
        let lines = last.map_or(0, |key| self.below(Table::OrderLine, key).count() as u64);
        Status { customer, balance, order: last.map_or(0, |key| key[2]), lines }
    }

    /// 2.7.4.
    pub fn delivery(&mut self, delivery: &Delivery) -> Delivered {
        let mut delivered = Delivered::default();
        for district in 1..=DISTRICTS {
            let place = keys(&[delivery.warehouse, district]);
            let Some(order) = self.below(Table::NewOrder, &place).next().cloned() else { continue };
            self.tables[Table::NewOrder as usize].remove(&order);
            self.set(Table::Orders, &order, "o_carrier_id", Value::Number(i64::from(delivery.carrier)));
            let lines: Vec<Key> = self.below(Table::OrderLine, &order).cloned().collect();
            let mut amount = 0;
            for line in &lines {
                self.set(Table::OrderLine, line, "ol_delivery_d", Value::Time);
                amount += self.number(Table::OrderLine, line, "ol_amount");
            }
            let customer = vec![place[0], place[1], self.number(Table::Orders, &order, "o_c_id")];
            self.add(Table::Customer, &customer, "c_balance", amount);
            self.add(Table::Customer, &customer, "c_delivery_cnt", 1);
            delivered.put(district, order[2]);
        }
        delivered
    }

    /// 2.8.2.
    pub fn stock_level(&self, requested: &StockLevel) -> i64 {
        let StockLevel { warehouse, district, threshold } = *requested;
        let place = keys(&[warehouse, district]);
        let next = self.number(Table::District, &place, "d_next_o_id");
        let recent = self.below(Table::OrderLine, &place).filter(|key| (next - 20..next).contains(&key[2]));
        let mut items: Vec<i64> = recent.map(|key| self.number(Table::OrderLine, key, "ol_i_id")).collect();
        items.sort_unstable();
        items.dedup();
        let is_low = |item: &&i64| {
            let stock = vec![place[0], **item];
            self.number(Table::Stock, &stock, "s_quantity") < i64::from(threshold)
        };
        items.iter().filter(is_low).count() as i64
    }
}
