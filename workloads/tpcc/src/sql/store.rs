//! The transactions over SQL, one statement a row (*plain*).

use std::sync::Arc;

use rumba_engine_api::error::{EngineError, Result, SqlState};
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement, Visit};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::{Part, Together, Transactions};

use super::prepared::{Prepared, Texts, Wanted};
use super::several::Several;
use super::text::Sql;
use super::{balance_and_credit, discount_and_tax, int, money, number_and_tax};
use crate::draw::{Delivery, Line, NewOrder, OrderStatus, Payment, StockLevel, Who, is_original};
use crate::names::last_name;
use crate::rules::{DATA, DISTRICT_TEXT, Names, Rates, left, middle, missing, put_note};
use crate::scale::DISTRICTS;
use crate::settings::Style;
use crate::stage::exact;
use crate::stop::{Point, Stop, Stops};
use crate::store::{Delivered, Ordered, Paid, Status, Store};

/// The SQLSTATE for a number that does not fit its column.
const OUT_OF_RANGE: SqlState = SqlState(*b"22003");

/// The error of a payment, with the reason and the remedy if a sum is full. A warehouse's sum is full long before any
/// other, because all payments to its districts go into it.
#[cold]
fn reported_of_full_sum(error: EngineError) -> EngineError {
    if error.code().sqlstate != Some(OUT_OF_RANGE) {
        return error;
    }
    error.followed_by(
        "; w_ytd, DECIMAL(12,2) as the specification has it, is full at 10,000,000,000.00, after some four million \
         payments to a warehouse: set more warehouses, or run for less time",
    )
}

/// The adapter of clients.
pub struct SqlStore {
    transactions: Transactions,
    pub(super) dialect: Dialect,
    prepared: Prepared,
    style: Style,
    /// Customers of a name, in the order of their first names.
    pub(super) customers: Vec<i64>,
    /// The data of a customer with bad credit that a payment reads.
    data: Vec<u8>,
    pub(super) stops: Stops,
}

/// The maximum number of statements sent together: one for each district.
const MOST_TOGETHER: usize = DISTRICTS as usize;

pub(super) fn order_row(order: &NewOrder, key: [Param<'static>; 3]) -> [Param<'static>; 7] {
    let (count, is_local) = (order.lines().len() as u32, order.is_local());
    let entered = Param::Timestamp(order.entered);
    [key[0], key[1], key[2], int(order.customer), entered, int(count), int(u32::from(is_local))]
}

/// The values for a line's row of stock with this quantity left, and its key.
fn stock_row(order: &NewOrder, line: &Line, left: i64) -> [Param<'static>; 5] {
    let remote = u32::from(line.supply != order.warehouse);
    [Param::Int(left), int(line.quantity), int(remote), int(line.supply), int(line.item)]
}

/// The values of the history row for a payment by this customer to a warehouse and a district with these names.
pub(super) fn history_row<'a>(
    payment: &Payment,
    customer: Param<'static>,
    amount: Param<'static>,
    names: &'a Names,
) -> [Param<'a>; 8] {
    let (of, to) = ([payment.customer_district, payment.customer_warehouse], [payment.district, payment.warehouse]);
    let entered = Param::Timestamp(payment.entered);
    [customer, int(of[0]), int(of[1]), int(to[0]), int(to[1]), entered, amount, Param::Text(names.text())]
}

impl SqlStore {
    /// A client's adapter over its session, with the texts of its statements; the tables exist.
    ///
    /// # Errors
    /// A statement that the engine refuses, or a style that it does not support.
    pub fn new(session: Box<dyn SqlSession>, texts: Arc<Texts>, style: Style) -> Result<Self> {
        let mut transactions = Transactions::new(session)?;
        style.prepare(&mut *transactions.session)?;
        let (dialect, prepared) = (transactions.session.dialect(), Prepared::new(texts));
        let (customers, data) = (Vec::new(), Vec::new());
        Ok(Self { transactions, dialect, prepared, style, customers, data, stops: Stops::default() })
    }

    /// Prepares all statements that the client may run, so that a refusal is known before anything runs.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn prepare_all(&mut self) -> Result<()> {
        self.prepared.all(&mut *self.transactions.session, self.style)
    }

    pub(super) fn cents(&self, cents: i64) -> Param<'static> {
        exact(self.dialect, cents, 2)
    }

    /// Runs a statement to its end.
    async fn execute_wanted(&mut self, wanted: Wanted, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
        let session = &mut *self.transactions.session;
        let statement = self.prepared.get(session, wanted)?;
        session.execute(statement, values, visit).await
    }

    pub(super) async fn execute(&mut self, sql: Sql, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
        self.execute_wanted(Wanted::Plain(sql), values, visit).await
    }

    /// Starts a statement over several rows. It is awaited separately because its values are long, and a client's
    /// future would hold them for the life of the client.
    pub(super) fn start_one(&mut self, several: Several, values: &[Param<'_>]) -> Result<Together> {
        self.start(Part::Middle, &[(Wanted::Several(several), values)])
    }

    /// Runs a statement that answers no rows.
    pub(super) async fn change(&mut self, sql: Sql, values: &[Param<'_>]) -> Result<Answer> {
        self.execute(sql, values, &mut |_| {}).await
    }

    /// The part with the last statements. The commit is sent with them, unless a test makes the transaction pause
    /// before it.
    pub(super) fn last(&self) -> Part {
        if self.stops.are_set() { Part::Middle } else { Part::Last }
    }

    /// Starts statements that do not need each other's answers, as one request.
    pub(super) fn start(&mut self, part: Part, wanted: &[(Wanted, &[Param<'_>])]) -> Result<Together> {
        let mut statements = [(Statement(0), &[][..]); MOST_TOGETHER];
        // While one is in progress, none is prepared.
        for (place, (wanted, values)) in statements.iter_mut().zip(wanted) {
            *place = (self.prepared.get(&mut *self.transactions.session, *wanted)?, *values);
        }
        Ok(self.transactions.start_together(part, &statements[..wanted.len()]))
    }

    /// Receives the answers, and returns the first. Rows come with the number of their statement.
    pub(super) async fn finish(&mut self, started: Together, visit: &mut dyn FnMut(usize, &dyn Row)) -> Result<Answer> {
        self.transactions.end_together(started, visit).await
    }

    /// Begins a transaction with a statement.
    async fn begin(&mut self, sql: Sql, values: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
        let statement = self.prepared.get(&mut *self.transactions.session, Wanted::Plain(sql))?;
        self.transactions.begin_with(|session| session.submit(statement, values), visit).await
    }

    /// The number of a customer; for a name, of the middle customer (2.5.2.2). With `begins`, a search begins the
    /// transaction; returns whether it did.
    pub(super) async fn find(&mut self, warehouse: u32, district: u32, who: Who, begins: bool) -> Result<(i64, bool)> {
        let number = match who {
            Who::Number(number) => return Ok((i64::from(number), false)),
            Who::Name(number) => number,
        };
        let (name, length) = last_name(number);
        let values = [int(warehouse), int(district), Param::Text(&name[..length])];
        let mut found = std::mem::take(&mut self.customers);
        found.clear();
        let visit: Visit<'_> = &mut |row: &dyn Row| found.push(row.int(0));
        let answer = match begins {
            true => self.begin(Sql::CustomersByName, &values, visit).await,
            false => self.execute(Sql::CustomersByName, &values, visit).await,
        };
        let chosen = middle(&found);
        self.customers = found;
        answer?;
        chosen.map(|customer| (customer, begins)).ok_or_else(|| missing("a customer of a last name"))
    }

    async fn order(&mut self, order: &NewOrder) -> Result<Ordered> {
        if self.style == Style::Grouped {
            return self.order_in_groups(order).await;
        }
        let dialect = self.dialect;
        let NewOrder { warehouse, district, customer, .. } = *order;
        let place = [int(warehouse), int(district)];
        let mut found = None;
        let read = &mut |row: &dyn Row| found = Some(discount_and_tax(dialect, row));
        self.begin(Sql::CustomerAndTax, &[place[0], place[1], int(customer)], read).await?;
        let (discount, warehouse_tax) = found.ok_or_else(|| missing("a customer"))??;
        let mut found = None;
        let take = &mut |row: &dyn Row| found = Some(number_and_tax(dialect, row));
        self.execute(Sql::TakeOrderNumber, &place, take).await?;
        let (number, district_tax) = found.ok_or_else(|| missing("a district"))??;
        if number == 0 {
            return Err(missing("a district"));
        }
        let rates = Rates { discount, warehouse_tax, district_tax };
        self.change(Sql::SetOrderNumber, &[Param::Int(number + 1), place[0], place[1]]).await?;
        let key = [place[0], place[1], Param::Int(number)];
        self.change(Sql::InsertOrder, &order_row(order, key)).await?;
        self.change(Sql::InsertNewOrder, &key).await?;
        let written = if self.style == Style::Plain {
            self.lines_one_by_one(order, key).await?
        } else {
            self.lines_at_once(order, key).await?
        };
        Ok(written.map_or(Ordered::RolledBack, |(cents, original)| {
            let total = rates.total(cents);
            Ordered::Committed { order: number, total, original }
        }))
    }

    /// The amount of the lines in cents, and how many are original; `None` if an item does not exist.
    async fn lines_one_by_one(&mut self, order: &NewOrder, key: [Param<'static>; 3]) -> Result<Option<(i64, u32)>> {
        let (mut cents, mut original) = (0, 0);
        for (line, number) in order.lines().iter().zip(1..) {
            let Some((amount, is_original)) = self.line(order, key, line, number).await? else { return Ok(None) };
            cents += amount;
            original += u32::from(is_original);
        }
        Ok(Some((cents, original)))
    }

    /// A line of an order: its amount in cents, and whether both item and stock are original. `None` if there is no
    /// such item.
    async fn line(
        &mut self,
        order: &NewOrder,
        key: [Param<'static>; 3],
        line: &Line,
        number: u32,
    ) -> Result<Option<(i64, bool)>> {
        let dialect = self.dialect;
        let mut item = None;
        let read = &mut |row: &dyn Row| item = Some((money(dialect, row, 0, "i_price"), is_original(row.bytes(2))));
        self.execute(Sql::Item, &[int(line.item)], read).await?;
        let Some((price, is_item_original)) = item else { return Ok(None) };
        let price = price?;
        self.stops.again(Point::Price, price);
        let place = [int(line.supply), int(line.item)];
        let mut stock = None;
        let mut text = [0; DISTRICT_TEXT];
        let mut length = 0;
        let read = &mut |row: &dyn Row| {
            stock = Some((row.int(0), is_original(row.bytes(1))));
            let of_district = row.bytes(2);
            length = of_district.len().min(DISTRICT_TEXT);
            text[..length].copy_from_slice(&of_district[..length]);
        };
        self.execute_wanted(Wanted::Stock(order.district), &place, read).await?;
        let (quantity, is_stock_original) = stock.ok_or_else(|| missing("stock"))?;
        let wanted = i64::from(line.quantity);
        self.take_stock(order, line, left(quantity, wanted)).await?;
        let amount = wanted * price;
        let values = [
            key[0],
            key[1],
            key[2],
            int(number),
            int(line.item),
            int(line.supply),
            Param::Int(wanted),
            self.cents(amount),
            Param::Text(&text[..length]),
        ];
        self.change(Sql::InsertLine, &values).await?;
        Ok(Some((amount, is_item_original && is_stock_original)))
    }

    /// Takes a line's items from stock; `left` of them remain.
    pub(super) async fn take_stock(&mut self, order: &NewOrder, line: &Line, left: i64) -> Result<()> {
        self.change(Sql::UpdateStock, &stock_row(order, line, left)).await.map(drop)
    }

    async fn pay(&mut self, payment: &Payment) -> Result<Paid> {
        if self.style == Style::Grouped {
            return self.pay_in_groups(payment).await;
        }
        let dialect = self.dialect;
        let Payment { warehouse, district, customer_warehouse, customer_district, who, cents, .. } = *payment;
        let (amount, place) = (self.cents(cents), [int(warehouse), int(district)]);
        let mut names = Names::default();
        self.begin(Sql::PayWarehouse, &[amount, place[0]], &mut |_| {}).await?;
        self.execute(Sql::Warehouse, &place[..1], &mut |row| names.push(row.bytes(0))).await?;
        names.push(b"    ");
        self.change(Sql::PayDistrict, &[amount, place[0], place[1]]).await?;
        self.execute(Sql::District, &place, &mut |row| names.push(row.bytes(0))).await?;
        let (customer, _) = self.find(customer_warehouse, customer_district, who, false).await?;
        let key = [int(customer_warehouse), int(customer_district), Param::Int(customer)];
        let mut found = None;
        let read = &mut |row: &dyn Row| found = Some(balance_and_credit(dialect, row));
        self.execute(Sql::CustomerToPay, &key, read).await?;
        let (balance, has_bad_credit) = found.ok_or_else(|| missing("a customer"))??;
        if has_bad_credit {
            self.note(payment, customer, key).await?;
        } else {
            self.change(Sql::PayCustomer, &[amount, amount, key[0], key[1], key[2]]).await?;
        }
        self.change(Sql::InsertHistory, &history_row(payment, key[2], amount, &names)).await?;
        Ok(Paid { customer, balance: balance - cents })
    }

    /// Makes a payment by a customer with bad credit: inserts its note at the beginning of the customer's data, and
    /// truncates the end (2.5.2.2).
    pub(super) async fn note(&mut self, payment: &Payment, customer: i64, key: [Param<'static>; 3]) -> Result<()> {
        let amount = self.cents(payment.cents);
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        put_note(payment, customer, &mut data);
        let read = self.execute(Sql::CustomerData, &key, &mut |row| data.extend_from_slice(row.bytes(0))).await;
        data.truncate(DATA);
        let done = match read {
            Ok(_) => {
                let values = [amount, amount, Param::Text(&data), key[0], key[1], key[2]];
                self.change(Sql::PayCustomerWithData, &values).await.map(drop)
            }
            Err(error) => Err(error),
        };
        self.data = data;
        done
    }

    async fn status(&mut self, requested: &OrderStatus) -> Result<Status> {
        if self.style == Style::Grouped {
            return self.status_in_groups(requested).await;
        }
        let dialect = self.dialect;
        let OrderStatus { warehouse, district, who } = *requested;
        let (customer, has_begun) = self.find(warehouse, district, who, true).await?;
        let key = [int(warehouse), int(district), Param::Int(customer)];
        let mut balance = None;
        let read: Visit<'_> = &mut |row: &dyn Row| balance = Some(money(dialect, row, 0, "c_balance"));
        match has_begun {
            true => self.execute(Sql::Balance, &key, read).await?,
            false => self.begin(Sql::Balance, &key, read).await?,
        };
        let balance = balance.ok_or_else(|| missing("a customer"))??;
        let mut order = 0;
        loop {
            self.execute(Sql::LastOrder, &key, &mut |row| order = row.int(0)).await?;
            if !self.stops.again(Point::Newest, order) {
                break;
            }
        }
        let mut lines = 0;
        if order > 0 {
            lines = self.execute(Sql::Lines, &[key[0], key[1], Param::Int(order)], &mut |_| {}).await?.rows;
        }
        Ok(Status { customer, balance, order, lines })
    }

    async fn deliver(&mut self, delivery: &Delivery) -> Result<Delivered> {
        match self.style {
            Style::Grouped => return self.deliver_in_groups(delivery).await,
            Style::Batched => return self.deliver_at_once(delivery).await,
            Style::Plain => {}
        }
        let mut delivered = Delivered::default();
        for district in 1..=DISTRICTS {
            if let Some(order) = self.deliver_in(delivery, district).await? {
                delivered.put(district, order);
            }
        }
        Ok(delivered)
    }

    /// The oldest waiting order of a district, if there is one; for the first district the search begins the
    /// transaction.
    pub(super) async fn oldest(&mut self, delivery: &Delivery, district: u32) -> Result<Option<i64>> {
        let mut oldest = self.look_for_oldest(delivery, district, district == 1).await?;
        while self.stops.again(Point::Oldest(district), oldest.unwrap_or_default()) {
            oldest = self.look_for_oldest(delivery, district, false).await?;
        }
        Ok(oldest)
    }

    pub(super) async fn look_for_oldest(
        &mut self,
        delivery: &Delivery,
        district: u32,
        begins: bool,
    ) -> Result<Option<i64>> {
        let place = [int(delivery.warehouse), int(district)];
        let mut oldest = None;
        let look: Visit<'_> = &mut |row: &dyn Row| oldest = Some(row.int(0));
        match begins {
            true => self.begin(Sql::OldestNewOrder, &place, look).await?,
            false => self.execute(Sql::OldestNewOrder, &place, look).await?,
        };
        Ok(oldest)
    }

    /// Delivers the oldest order of a district, if one is waiting (2.7.4.2).
    async fn deliver_in(&mut self, delivery: &Delivery, district: u32) -> Result<Option<i64>> {
        let Some(oldest) = self.oldest(delivery, district).await? else { return Ok(None) };
        let place = [int(delivery.warehouse), int(district)];
        let key = [place[0], place[1], Param::Int(oldest)];
        if self.change(Sql::DeleteNewOrder, &key).await?.affected == 0 {
            return Err(EngineError::conflict("another delivery took the order"));
        }
        let mut customer = None;
        self.execute(Sql::CustomerOfOrder, &key, &mut |row| customer = Some(row.int(0))).await?;
        let customer = customer.ok_or_else(|| missing("an order that waits for its delivery"))?;
        self.change(Sql::DeliverOrder, &[int(delivery.carrier), key[0], key[1], key[2]]).await?;
        self.change(Sql::DeliverLines, &[Param::Timestamp(delivery.delivered), key[0], key[1], key[2]]).await?;
        let (dialect, mut amount) = (self.dialect, Ok(0));
        self.execute(Sql::Amount, &key, &mut |row| amount = money(dialect, row, 0, "ol_amount")).await?;
        let values = [self.cents(amount?), key[0], key[1], Param::Int(customer)];
        self.change(Sql::PayFromOrder, &values).await?;
        Ok(Some(oldest))
    }

    async fn level(&mut self, requested: &StockLevel) -> Result<i64> {
        let StockLevel { warehouse, district, threshold } = *requested;
        let place = [int(warehouse), int(district)];
        let mut next = 0;
        self.begin(Sql::NextOrder, &place, &mut |row| next = row.int(0)).await?;
        let mut low = 0;
        // The lines of the last twenty orders.
        let values = [place[0], place[1], Param::Int(next), Param::Int(next - 20), place[0], int(threshold)];
        self.execute(Sql::LowStock, &values, &mut |row| low = row.int(0)).await?;
        Ok(low)
    }
}

impl Store for SqlStore {
    async fn new_order(&mut self, order: &NewOrder) -> Result<Ordered> {
        let mut ordered = self.order(order).await;
        let commits = matches!(ordered, Ok(Ordered::Committed { .. }));
        if commits {
            ordered = self.stops.end(ordered);
        } else if ordered.is_ok() {
            self.stops.again(Point::Rollback, 0);
        }
        self.transactions.end(ordered, commits).await
    }

    async fn payment(&mut self, payment: &Payment) -> Result<Paid> {
        let paid = self.pay(payment).await.map_err(reported_of_full_sum);
        let paid = self.stops.end(paid);
        self.transactions.end(paid, true).await
    }

    async fn order_status(&mut self, requested: &OrderStatus) -> Result<Status> {
        self.transactions.next_only_reads();
        let status = self.status(requested).await;
        self.transactions.end(status, true).await
    }

    async fn delivery(&mut self, delivery: &Delivery) -> Result<Delivered> {
        let delivered = self.deliver(delivery).await;
        let delivered = self.stops.end(delivered);
        self.transactions.end(delivered, true).await
    }

    async fn stock_level(&mut self, requested: &StockLevel) -> Result<i64> {
        self.transactions.next_only_reads();
        let low = self.level(requested).await;
        self.transactions.end(low, true).await
    }

    fn statements(&mut self) -> StatementCounts {
        self.transactions.take_statements()
    }

    fn stop_with(&mut self, stop: Stop) {
        self.stops.set(stop);
    }
}
