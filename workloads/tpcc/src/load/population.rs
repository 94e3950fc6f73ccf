//! Checks the initial population column by column against clause 4.3.3.1. The consistency conditions cover little of
//! it, and the conformance oracle is filled by the same code as an engine's tables.

use super::*;
use crate::content::{Row, Value};
use crate::draw::is_original;
use crate::scale::{CUSTOMERS, ITEMS};
use crate::settings::Style;

const SCALE: Scale = Scale { warehouses: 1, customers: CUSTOMERS, items: ITEMS };

/// Rows of a table.
struct Filled {
    table: Table,
    rows: Vec<Row>,
}

fn filled(table: Table, chunks: impl IntoIterator<Item = Chunk>) -> Filled {
    let config = Config { scale: SCALE, sets: 1, constants: Constants::drawn(1), style: Style::Plain, thinks: false };
    let (mut stage, mut rows) = (Stage::default(), Vec::new());
    for (number, chunk) in (0..).zip(chunks) {
        stage.clear();
        let random = Random::seed_from_u64(number);
        Filler { stage: &mut stage, random, config: &config, seed: 7, now: now() }.fill(chunk);
        let mut values = Vec::new();
        stage.of(table).params(Dialect::Sqlite, &mut values);
        let row = |row: &[Param<'_>]| -> Row {
            table.columns().iter().zip(row).map(|((_, kind), value)| Value::of(*kind, value)).collect()
        };
        rows.extend(values.chunks(table.columns().len()).map(row));
    }
    Filled { table, rows }
}

impl Filled {
    fn column(&self, name: &str) -> impl Iterator<Item = &Value> {
        let place = self.table.columns().iter().position(|(column, _)| *column == name);
        let place = place.unwrap_or_else(|| panic!("no column {name}"));
        self.rows.iter().map(move |row| &row[place])
    }

    fn numbers(&self, name: &str) -> Vec<i64> {
        let number = |value: &Value| match value {
            Value::Number(number) => *number,
            other => panic!("{name}: {other:?}"),
        };
        self.column(name).map(number).collect()
    }

    fn texts(&self, name: &str) -> Vec<&[u8]> {
        let mut texts = Vec::new();
        for value in self.column(name) {
            match value {
                Value::Text(text) => texts.push(text.as_slice()),
                other => panic!("{name}: {other:?}"),
            }
        }
        texts
    }

    /// Whether it is there, row by row.
    fn is_there(&self, name: &str) -> Vec<bool> {
        self.column(name).map(|value| *value != Value::None).collect()
    }

    /// That all of a column are this number.
    fn are(&self, name: &str, number: i64) {
        assert!(self.numbers(name).iter().all(|found| *found == number), "{name}");
    }

    /// Checks that numbers are in a range, and come near both ends.
    fn span(&self, name: &str, low: i64, high: i64) {
        spans(name, &self.numbers(name), low, high);
    }

    /// Checks the lengths of texts.
    fn lengths(&self, name: &str, low: i64, high: i64) {
        let lengths: Vec<i64> = self.texts(name).iter().map(|text| text.len() as i64).collect();
        spans(name, &lengths, low, high);
    }

    /// That it is there in every row.
    fn all_there(&self, name: &str) {
        assert!(self.is_there(name).into_iter().all(|is_there| is_there), "{name}");
    }

    /// Checks that about a tenth of the texts satisfy `is_one`.
    fn tenth(&self, name: &str, is_one: impl Fn(&[u8]) -> bool) {
        let (all, count) = (self.rows.len(), self.texts(name).into_iter().filter(|text| is_one(text)).count());
        assert!((all * 8 / 100..all * 12 / 100).contains(&count), "{name}: {count} of {all}");
    }

    fn address(&self, prefix: &str) {
        let name = |column: &str| format!("{prefix}_{column}");
        ["street_1", "street_2", "city"].into_iter().for_each(|column| self.lengths(&name(column), 10, 20));
        self.lengths(&name("state"), 2, 2);
        for zip in self.texts(&name("zip")) {
            assert!(zip.len() == 9 && zip[..4].iter().all(u8::is_ascii_digit) && zip.ends_with(b"11111"), "{zip:?}");
        }
    }
}

fn spans(name: &str, found: &[i64], low: i64, high: i64) {
    let (least, most) = (found.iter().min().copied(), found.iter().max().copied());
    let near = (high - low) / 50;
    let is_near = |found: Option<i64>, end: i64| found.is_some_and(|found| found.abs_diff(end) as i64 <= near);
    assert!(found.iter().all(|found| (low..=high).contains(found)), "{name}: {least:?} to {most:?}");
    assert!(is_near(least, low) && is_near(most, high), "{name}: {least:?} to {most:?} of {low} to {high}");
}

#[test]
fn items_are_as_specified() {
    let items = filled(Table::Item, [1, 1001, 2001, 3001].map(Chunk::Items));
    assert_eq!(items.numbers("i_id"), (1..=4000).collect::<Vec<i64>>());
    items.span("i_im_id", 1, 10_000);
    items.lengths("i_name", 14, 24);
    items.span("i_price", 100, 10_000);
    items.lengths("i_data", 26, 50);
    items.tenth("i_data", is_original);
}

#[test]
fn warehouses_and_districts_are_as_specified() {
    let chunks = || (1..=500).map(Chunk::Warehouse);
    let warehouses = filled(Table::Warehouse, chunks());
    assert_eq!(warehouses.numbers("w_id"), (1..=500).collect::<Vec<i64>>());
    warehouses.lengths("w_name", 6, 10);
    warehouses.address("w");
    warehouses.span("w_tax", 0, 2_000);
    warehouses.are("w_ytd", 30_000_000);
    let districts = filled(Table::District, chunks());
    let places: Vec<(i64, i64)> = districts.numbers("d_w_id").into_iter().zip(districts.numbers("d_id")).collect();
    let expected = (1..=500).flat_map(|home| (1..=10).map(move |district| (home, district)));
    assert_eq!(places, expected.collect::<Vec<(i64, i64)>>());
    districts.lengths("d_name", 6, 10);
    districts.address("d");
    districts.span("d_tax", 0, 2_000);
    districts.are("d_ytd", 3_000_000);
    districts.are("d_next_o_id", 3_001);
}

#[test]
fn stock_is_as_specified() {
    let stock = filled(Table::Stock, [1, 1001, 2001, 3001].map(|first| Chunk::Stock(3, first)));
    assert_eq!(stock.numbers("s_i_id"), (1..=4000).collect::<Vec<i64>>());
    stock.are("s_w_id", 3);
    stock.span("s_quantity", 10, 100);
    (1..=DISTRICTS).for_each(|district| stock.lengths(&format!("s_dist_{district:02}"), 24, 24));
    ["s_ytd", "s_order_cnt", "s_remote_cnt"].into_iter().for_each(|sum| stock.are(sum, 0));
    stock.lengths("s_data", 26, 50);
    stock.tenth("s_data", is_original);
}

#[test]
fn customers_and_their_history_are_as_specified() {
    let chunks = || [1, 1001, 2001].map(|first| Chunk::Customers(3, 4, first));
    let customers = filled(Table::Customer, chunks());
    let all: Vec<i64> = (1..=3000).collect();
    assert_eq!(customers.numbers("c_id"), all);
    customers.are("c_w_id", 3);
    customers.are("c_d_id", 4);
    // The first thousand use each name once, in order.
    let names: Vec<Vec<u8>> = (0..1000).map(last_name).map(|(name, length)| name[..length].to_vec()).collect();
    let last = customers.texts("c_last");
    assert!(last.iter().zip(&names).all(|(found, name)| *found == name.as_slice()));
    // Some of the other names occur ten times as often as the mean, and some not at all.
    let times = |name: &Vec<u8>| last[1000..].iter().filter(|found| **found == name.as_slice()).count();
    let times: Vec<usize> = names.iter().map(times).collect();
    assert_eq!(times.iter().sum::<usize>(), 2000);
    assert!(times.iter().any(|times| *times >= 20) && times.contains(&0), "{times:?}");
    customers.lengths("c_first", 8, 16);
    assert!(customers.texts("c_middle").iter().all(|middle| *middle == b"OE"));
    customers.address("c");
    assert!(customers.texts("c_phone").iter().all(|phone| phone.len() == 16 && phone.iter().all(u8::is_ascii_digit)));
    customers.all_there("c_since");
    assert!(customers.texts("c_credit").iter().all(|credit| matches!(credit, [b'G' | b'B', b'C'])));
    customers.tenth("c_credit", |credit| credit == b"BC");
    customers.span("c_discount", 0, 5_000);
    let cents = [("c_credit_lim", 5_000_000), ("c_balance", -1_000), ("c_ytd_payment", 1_000)];
    let counts = [("c_payment_cnt", 1), ("c_delivery_cnt", 0)];
    cents.into_iter().chain(counts).for_each(|(name, number)| customers.are(name, number));
    customers.lengths("c_data", 300, 500);
    let history = filled(Table::History, chunks());
    assert_eq!(history.numbers("h_c_id"), all);
    let numbers = [("h_c_w_id", 3), ("h_w_id", 3), ("h_c_d_id", 4), ("h_d_id", 4), ("h_amount", 1_000)];
    numbers.into_iter().for_each(|(name, number)| history.are(name, number));
    history.all_there("h_date");
    history.lengths("h_data", 12, 24);
}

fn orders() -> impl Iterator<Item = Chunk> {
    (1..=CUSTOMERS).step_by(ORDERS as usize).map(|first| Chunk::Orders(3, 4, first))
}

/// Those up to this one are delivered.
const DELIVERED: i64 = 2_100;

#[test]
fn orders_and_new_orders_are_as_specified() {
    let all: Vec<i64> = (1..=3000).collect();
    let found = filled(Table::Orders, orders());
    assert_eq!(found.numbers("o_id"), all);
    found.are("o_w_id", 3);
    found.are("o_d_id", 4);
    let mut customers = found.numbers("o_c_id");
    assert_ne!(customers, all);
    customers.sort_unstable();
    assert_eq!(customers, all);
    found.all_there("o_entry_d");
    let is_delivered: Vec<bool> = all.iter().map(|order| *order <= DELIVERED).collect();
    assert_eq!(found.is_there("o_carrier_id"), is_delivered);
    let delivered = Filled { table: Table::Orders, rows: found.rows[..DELIVERED as usize].to_vec() };
    delivered.span("o_carrier_id", 1, 10);
    found.span("o_ol_cnt", 5, 15);
    found.are("o_all_local", 1);
    let waiting = filled(Table::NewOrder, orders());
    assert_eq!(waiting.numbers("no_o_id"), (DELIVERED + 1..=3000).collect::<Vec<i64>>());
    waiting.are("no_w_id", 3);
    waiting.are("no_d_id", 4);
}

#[test]
fn order_lines_are_as_specified() {
    let (orders_of, lines) = (filled(Table::Orders, orders()), filled(Table::OrderLine, orders()));
    let places: Vec<(i64, i64)> = lines.numbers("ol_o_id").into_iter().zip(lines.numbers("ol_number")).collect();
    let counted = (1..).zip(orders_of.numbers("o_ol_cnt"));
    let expected = counted.flat_map(|(order, count)| (1..=count).map(move |line| (order, line)));
    assert_eq!(places, expected.collect::<Vec<(i64, i64)>>());
    let numbers = [("ol_w_id", 3), ("ol_d_id", 4), ("ol_supply_w_id", 3), ("ol_quantity", 5)];
    numbers.into_iter().for_each(|(name, number)| lines.are(name, number));
    lines.span("ol_i_id", 1, 100_000);
    let is_delivered: Vec<bool> = places.iter().map(|(order, _)| *order <= DELIVERED).collect();
    assert_eq!(lines.is_there("ol_delivery_d"), is_delivered);
    let amounts = || lines.numbers("ol_amount").into_iter().zip(&is_delivered);
    assert!(amounts().all(|(cents, is_delivered)| (cents == 0) == *is_delivered), "delivered lines were free");
    let owed: Vec<i64> = amounts().filter(|(_, is_delivered)| !**is_delivered).map(|(cents, _)| cents).collect();
    spans("ol_amount", &owed, 1, 999_999);
    lines.lengths("ol_dist_info", 24, 24);
}
