//! The transactions over keys and values.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KvSession, Scan};
use rumba_engine_api::sql::Param;
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::{CountedKv, End};

use super::row::{layout, packed};
use super::{BY_CUSTOMER, BY_NAME, NOTHING, history_key, key2, key3, key4, name_prefix, part};
use crate::data_set::DataSet;
use crate::draw::{Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Who, is_original};
use crate::names::last_name;
use crate::rules::{DATA, Names, Rates, left, middle, missing, put_note};
use crate::scale::DISTRICTS;
use crate::stop::{Point, Stop, Stops};
use crate::store::{Delivered, Ordered, Paid, Status, Store};
use crate::tables::{NONE, Table, column};

/// The adapter of clients.
pub struct KvStore {
    session: CountedKv,
    set: DataSet,
    /// No other client has this number.
    client: u32,
    /// Payments that this client has written.
    payments: u64,
    /// The row that was read, and may be changed and written.
    row: Vec<u8>,
    /// Another row, read in addition.
    other: Vec<u8>,
    /// Customers of a name, in the order of their first names.
    customers: Vec<i64>,
    data: Vec<u8>,
    /// Lines of an order: keys and values, with where each ends.
    lines: Lines,
    /// Items of recent orders.
    items: Vec<u32>,
    stops: Stops,
}

/// Lines that were read and are to be written.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl KvStore {
    pub fn new(session: Box<dyn KvSession>, set: DataSet, client: u32) -> Self {
        Self {
            session: CountedKv::new(session),
            set,
            client,
            payments: 0,
            row: Vec::with_capacity(1024),
            other: Vec::with_capacity(1024),
            customers: Vec::new(),
            data: Vec::with_capacity(2 * DATA),
            lines: Lines::default(),
            items: Vec::new(),
            stops: Stops::default(),
        }
    }

    /// Runs a transaction; a failed one, or one that wants no changes, leaves no trace.
    fn transact<T>(&mut self, keeps: impl FnOnce(&T) -> bool, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.session.begin()?;
        let ended = body(self).and_then(|answer| {
            if keeps(&answer) {
                return self.stops.end(Ok(answer)).map(End::Commit);
            }
            self.stops.again(Point::Rollback, 0);
            Ok(End::Nothing(answer))
        });
        self.session.end(ended)
    }

    /// Reads a loaded row into `row` and locks it for a change.
    fn lock(&mut self, table: Table, key: &[u8], what: &'static str) -> Result<()> {
        let is_there = self.session.get_for_update(self.set.table(table), key, &mut self.row)?;
        if is_there { Ok(()) } else { Err(missing(what)) }
    }

    fn write(&mut self, table: Table, key: &[u8]) -> Result<()> {
        self.session.put(self.set.table(table), key, &self.row)
    }

    /// Writes a row of these values.
    fn insert(&mut self, table: Table, key: &[u8], values: &[Param<'_>]) -> Result<()> {
        layout(table).put(values, &mut self.row);
        self.write(table, key)
    }

    /// The number of a customer; for a name, of the middle customer.
    fn find(&mut self, warehouse: u32, district: u32, who: Who) -> Result<u32> {
        let number = match who {
            Who::Number(number) => return Ok(number),
            Who::Name(number) => number,
        };
        let (name, length) = last_name(number);
        let from = name_prefix(warehouse, district, &name[..length]);
        let mut to = [0xff; 64];
        to[..from.len()].copy_from_slice(&from);
        let set = self.set;
        let Self { session, customers, .. } = self;
        customers.clear();
        let scan = Scan { from: &from, to: &to, limit: usize::MAX };
        session
            .scan(set.space(BY_NAME), scan, &mut |key, _| customers.push(i64::from(part(&key[key.len() - 4..], 0))))?;
        middle(customers).map(|customer| customer as u32).ok_or_else(|| missing("a customer of a last name"))
    }

    fn order(&mut self, order: &NewOrder) -> Result<Ordered> {
        let NewOrder { warehouse, district, customer, entered, .. } = *order;
        let mut rates = Rates::default();
        if !self.session.get(self.set.table(Table::Warehouse), &warehouse.to_be_bytes(), &mut self.other)? {
            return Err(missing("a warehouse"));
        }
        rates.warehouse_tax = layout(Table::Warehouse).number(&self.other, column::W_TAX);
        let of_customer = key3([warehouse, district, customer]);
        if !self.session.get(self.set.table(Table::Customer), &of_customer, &mut self.other)? {
            return Err(missing("a customer"));
        }
        rates.discount = layout(Table::Customer).number(&self.other, column::C_DISCOUNT);
        let place = key2([warehouse, district]);
        self.lock(Table::District, &place, "a district")?;
        let districts = layout(Table::District);
        rates.district_tax = districts.number(&self.row, column::D_TAX);
        let number = districts.number(&self.row, column::D_NEXT_O_ID);
        districts.set(&mut self.row, column::D_NEXT_O_ID, number + 1);
        self.write(Table::District, &place)?;
        let key = key3([warehouse, district, number as u32]);
        let int = |number: u32| Param::Int(i64::from(number));
        let (count, is_local) = (order.lines().len() as u32, u32::from(order.is_local()));
        let row = [
            int(warehouse),
            int(district),
            Param::Int(number),
            int(customer),
            Param::Timestamp(entered),
            Param::Null,
            int(count),
            int(is_local),
        ];
        self.insert(Table::Orders, &key, &row)?;
        self.session.put(
            self.set.space(BY_CUSTOMER),
            &key4([warehouse, district, customer, !(number as u32)]),
            NOTHING,
        )?;
        self.session.put(self.set.table(Table::NewOrder), &key, NOTHING)?;
        let (mut cents, mut original) = (0, 0);
        for (line, nth) in order.lines().iter().zip(1..) {
            let Some((amount, is_original)) = self.line(order, number as u32, line, nth)? else {
                return Ok(Ordered::RolledBack);
            };
            cents += amount;
            original += u32::from(is_original);
        }
        Ok(Ordered::Committed { order: number, total: rates.total(cents), original })
    }

    /// A line of an order: its amount in cents, and whether both item and stock are original. `None` if there is no
    /// such item.
    fn line(&mut self, order: &NewOrder, number: u32, line: &Line, nth: u32) -> Result<Option<(i64, bool)>> {
        let NewOrder { warehouse, district, .. } = *order;
        if !self.session.get(self.set.table(Table::Item), &line.item.to_be_bytes(), &mut self.other)? {
            return Ok(None);
        }
        let items = layout(Table::Item);
        let price = items.number(&self.other, column::I_PRICE);
        self.stops.again(Point::Price, price);
        let is_item_original = is_original(items.text(&self.other, column::I_DATA));
        let place = key2([line.supply, line.item]);
        self.lock(Table::Stock, &place, "stock")?;
        let (stock, wanted) = (layout(Table::Stock), i64::from(line.quantity));
        let is_stock_original = is_original(stock.text(&self.row, column::S_DATA));
        let quantity = stock.number(&self.row, column::S_QUANTITY);
        stock.set(&mut self.row, column::S_QUANTITY, left(quantity, wanted));
        stock.add(&mut self.row, column::S_YTD, wanted);
        stock.add(&mut self.row, column::S_ORDER_CNT, 1);
        stock.add(&mut self.row, column::S_REMOTE_CNT, i64::from(line.supply != warehouse));
        self.write(Table::Stock, &place)?;
        let amount = wanted * price;
        let text = stock.text(&self.row, column::S_DIST_01 + district as usize - 1);
        let int = |number: u32| Param::Int(i64::from(number));
        let row = [
            int(warehouse),
            int(district),
            int(number),
            int(nth),
            int(line.item),
            int(line.supply),
            Param::Null,
            Param::Int(wanted),
            Param::Int(amount),
            Param::Text(text),
        ];
        layout(Table::OrderLine).put(&row, &mut self.other);
        let key = key4([warehouse, district, number, nth]);
        self.session.put(self.set.table(Table::OrderLine), &key, &self.other)?;
        Ok(Some((amount, is_item_original && is_stock_original)))
    }

    fn pay(&mut self, payment: &Payment) -> Result<Paid> {
        let Payment { warehouse, district, customer_warehouse, customer_district, who, cents, entered } = *payment;
        let mut names = Names::default();
        let key = warehouse.to_be_bytes();
        self.lock(Table::Warehouse, &key, "a warehouse")?;
        let warehouses = layout(Table::Warehouse);
        warehouses.add(&mut self.row, column::W_YTD, cents);
        names.push(warehouses.text(&self.row, column::W_NAME));
        self.write(Table::Warehouse, &key)?;
        names.push(b"    ");
        let key = key2([warehouse, district]);
        self.lock(Table::District, &key, "a district")?;
        let districts = layout(Table::District);
        districts.add(&mut self.row, column::D_YTD, cents);
        names.push(districts.text(&self.row, column::D_NAME));
        self.write(Table::District, &key)?;
        let customer = self.find(customer_warehouse, customer_district, who)?;
        let place = [customer_warehouse, customer_district, customer];
        let key = key3(place);
        self.lock(Table::Customer, &key, "a customer")?;
        let customers = layout(Table::Customer);
        customers.add(&mut self.row, column::C_BALANCE, -cents);
        customers.add(&mut self.row, column::C_YTD_PAYMENT, cents);
        customers.add(&mut self.row, column::C_PAYMENT_CNT, 1);
        let balance = customers.number(&self.row, column::C_BALANCE);
        if customers.text(&self.row, column::C_CREDIT) == b"BC" {
            self.data.clear();
            put_note(payment, i64::from(customer), &mut self.data);
            self.data.extend_from_slice(customers.text(&self.row, column::C_DATA));
            self.data.truncate(DATA);
            customers.set_last_text(&mut self.row, &self.data);
        }
        self.write(Table::Customer, &key)?;
        let int = |number: u32| Param::Int(i64::from(number));
        let row = [
            int(customer),
            int(customer_district),
            int(customer_warehouse),
            int(district),
            int(warehouse),
            Param::Timestamp(entered),
            Param::Int(cents),
            Param::Text(names.text()),
        ];
        // Rows written by the load have 0.
        self.payments += 1;
        let number = (u64::from(self.client) + 1) << 40 | self.payments;
        self.insert(Table::History, &history_key(place, number), &row)?;
        Ok(Paid { customer: i64::from(customer), balance })
    }

    fn status(&mut self, requested: &OrderStatus) -> Result<Status> {
        let OrderStatus { warehouse, district, who } = *requested;
        let customer = self.find(warehouse, district, who)?;
        let place = key3([warehouse, district, customer]);
        if !self.session.get(self.set.table(Table::Customer), &place, &mut self.other)? {
            return Err(missing("a customer"));
        }
        let balance = layout(Table::Customer).number(&self.other, column::C_BALANCE);
        let mut order = 0;
        let to = key4([warehouse, district, customer, u32::MAX]);
        let newest = Scan { from: &place, to: &to, limit: 1 };
        loop {
            self.session.scan(self.set.space(BY_CUSTOMER), newest, &mut |key, _| order = !part(key, 3))?;
            if !self.stops.again(Point::Newest, i64::from(order)) {
                break;
            }
        }
        let mut lines = 0;
        // The null engine, which measures the client's own cost, returns the highest possible number.
        if order > 0 {
            let (from, to) = (key3([warehouse, district, order]), key3([warehouse, district, order.saturating_add(1)]));
            let all = Scan { from: &from, to: &to, limit: usize::MAX };
            lines = self.session.scan(self.set.table(Table::OrderLine), all, &mut |_, _| {})? as u64;
        }
        Ok(Status { customer: i64::from(customer), balance, order: i64::from(order), lines })
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<Delivered> {
        let mut delivered = Delivered::default();
        for district in 1..=DISTRICTS {
            if let Some(order) = self.deliver_in(delivery, district)? {
                delivered.put(district, i64::from(order));
            }
        }
        Ok(delivered)
    }

    /// Delivers the oldest order of a district, if one is waiting.
    fn deliver_in(&mut self, delivery: &Delivery, district: u32) -> Result<Option<u32>> {
        let warehouse = delivery.warehouse;
        let (from, to) = (key2([warehouse, district]), key4([warehouse, district, u32::MAX, u32::MAX]));
        let mut oldest = None;
        let first = Scan { from: &from, to: &to, limit: 1 };
        loop {
            self.session.scan(self.set.table(Table::NewOrder), first, &mut |key, _| oldest = Some(part(key, 2)))?;
            if !self.stops.again(Point::Oldest(district), i64::from(oldest.unwrap_or_default())) {
                break;
            }
        }
        let Some(order) = oldest else { return Ok(None) };
        let key = key3([warehouse, district, order]);
        if !self.session.get_for_update(self.set.table(Table::NewOrder), &key, &mut self.other)? {
            return Err(EngineError::conflict("another delivery took the order"));
        }
        self.session.delete(self.set.table(Table::NewOrder), &key)?;
        self.lock(Table::Orders, &key, "an order that waits for its delivery")?;
        let orders = layout(Table::Orders);
        let customer = orders.number(&self.row, column::O_C_ID) as u32;
        orders.set(&mut self.row, column::O_CARRIER_ID, i64::from(delivery.carrier));
        self.write(Table::Orders, &key)?;
        let amount = self.deliver_lines(delivery, district, order)?;
        let key = key3([warehouse, district, customer]);
        self.lock(Table::Customer, &key, "a customer")?;
        let customers = layout(Table::Customer);
        customers.add(&mut self.row, column::C_BALANCE, amount);
        customers.add(&mut self.row, column::C_DELIVERY_CNT, 1);
        self.write(Table::Customer, &key)?;
        Ok(Some(order))
    }

    /// Sets the time of an order's lines and returns their amount in cents. The order's lock protects the lines.
    fn deliver_lines(&mut self, delivery: &Delivery, district: u32, order: u32) -> Result<i64> {
        let set = self.set;
        let Self { session, lines: Lines { bytes, ends }, .. } = self;
        bytes.clear();
        ends.clear();
        let (of_line, delivered) = (layout(Table::OrderLine), packed(delivery.delivered));
        let (from, to) = (
            key3([delivery.warehouse, district, order]),
            key3([delivery.warehouse, district, order.saturating_add(1)]),
        );
        let mut amount = 0;
        let all = Scan { from: &from, to: &to, limit: usize::MAX };
        session.scan(set.table(Table::OrderLine), all, &mut |key, value| {
            bytes.extend_from_slice(key);
            let middle = bytes.len();
            bytes.extend_from_slice(value);
            of_line.set(&mut bytes[middle..], column::OL_DELIVERY_D, delivered);
            amount += of_line.number(value, column::OL_AMOUNT);
            ends.push((middle, bytes.len()));
        })?;
        let mut start = 0;
        for &(middle, end) in &*ends {
            session.put(set.table(Table::OrderLine), &bytes[start..middle], &bytes[middle..end])?;
            start = end;
        }
        Ok(amount)
    }

    fn level(&mut self, requested: &StockLevel) -> Result<i64> {
        let StockLevel { warehouse, district, threshold } = *requested;
        let place = key2([warehouse, district]);
        if !self.session.get(self.set.table(Table::District), &place, &mut self.other)? {
            return Err(missing("a district"));
        }
        let next = layout(Table::District).number(&self.other, column::D_NEXT_O_ID).max(0) as u32;
        // The lines of the last twenty orders.
        let (from, to) = (key3([warehouse, district, next.saturating_sub(20)]), key3([warehouse, district, next]));
        let set = self.set;
        let Self { session, items, other, .. } = self;
        items.clear();
        let recent = Scan { from: &from, to: &to, limit: usize::MAX };
        let of_line = layout(Table::OrderLine);
        session.scan(set.table(Table::OrderLine), recent, &mut |_, value| {
            items.push(of_line.number(value, column::OL_I_ID) as u32);
        })?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for &item in &*items {
            if session.get(set.table(Table::Stock), &key2([warehouse, item]), other)? {
                let quantity = layout(Table::Stock).number(other, column::S_QUANTITY);
                low += i64::from(quantity != NONE && quantity < i64::from(threshold));
            }
        }
        Ok(low)
    }
}

impl Store for KvStore {
    async fn new_order(&mut self, order: &NewOrder) -> Result<Ordered> {
        self.transact(|ordered| *ordered != Ordered::RolledBack, |store| store.order(order))
    }

    async fn payment(&mut self, payment: &Payment) -> Result<Paid> {
        self.transact(|_| true, |store| store.pay(payment))
    }

    async fn order_status(&mut self, requested: &OrderStatus) -> Result<Status> {
        self.status(requested)
    }

    async fn delivery(&mut self, delivery: &Delivery) -> Result<Delivered> {
        self.transact(|_| true, |store| store.deliver(delivery))
    }

    async fn stock_level(&mut self, requested: &StockLevel) -> Result<i64> {
        self.level(requested)
    }

    fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }

    fn stop_with(&mut self, stop: Stop) {
        self.stops.set(stop);
    }
}
