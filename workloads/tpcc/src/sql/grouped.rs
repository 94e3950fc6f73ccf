//! The transactions over SQL with as few round trips as their answers allow (*grouped*). They use the statements of
//! *batched* and read all rows of stock in one statement. Statements that do not need each other's answers are sent
//! together.
//! A new order waits three times instead of nineteen: for the order's number, for items and stock, and for its writes
//! with the commit.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Param, Row, Visit};
use rumba_workload_kit::Part;

use super::bought::Bought;
use super::prepared::Wanted;
use super::several::Several;
use super::store::{SqlStore, history_row, order_row};
use super::text::Sql;
use super::waiting::Waiting;
use super::{balance_and_credit, discount_and_tax, int, money, number_and_tax};
use crate::draw::{Delivery, NewOrder, OrderStatus, Payment, Who};
use crate::names::last_name;
use crate::rules::{Names, Rates, middle, missing};
use crate::scale::DISTRICTS;
use crate::stop::Point;
use crate::store::{Delivered, Ordered, Paid, Status};

const DISTRICT_COUNT: usize = DISTRICTS as usize;

impl SqlStore {
    pub(super) async fn order_in_groups(&mut self, order: &NewOrder) -> Result<Ordered> {
        let dialect = self.dialect;
        let place = [int(order.warehouse), int(order.district)];
        let customer = [place[0], place[1], int(order.customer)];
        let wanted =
            [(Wanted::Plain(Sql::CustomerAndTax), &customer[..]), (Wanted::Plain(Sql::TakeOrderNumber), &place[..])];
        let started = self.start(Part::First, &wanted)?;
        let (mut of_customer, mut of_district) = (None, None);
        let read = &mut |nth, row: &dyn Row| match nth {
            0 => of_customer = Some(discount_and_tax(dialect, row)),
            _ => of_district = Some(number_and_tax(dialect, row)),
        };
        self.finish(started, read).await?;
        let (discount, warehouse_tax) = of_customer.ok_or_else(|| missing("a customer"))??;
        let (number, district_tax) = of_district.ok_or_else(|| missing("a district"))??;
        if number == 0 {
            return Err(missing("a district"));
        }
        let rates = Rates { discount, warehouse_tax, district_tax };
        let key = [place[0], place[1], Param::Int(number)];
        let mut bought = Bought::new(order, dialect);
        let started = self.start(
            Part::Middle,
            &[
                (Wanted::Plain(Sql::SetOrderNumber), &[Param::Int(number + 1), place[0], place[1]]),
                (Wanted::Plain(Sql::InsertOrder), &order_row(order, key)),
                (Wanted::Plain(Sql::InsertNewOrder), &key),
                (Wanted::Several(Several::Items), &bought.items()),
                (Wanted::Several(Several::Stock(order.district)), &bought.places()),
            ],
        )?;
        let read = &mut |nth, row: &dyn Row| match nth {
            3 => bought.read_item(row),
            _ => bought.read_stock(row),
        };
        self.finish(started, read).await?;
        if !bought.all_exist()? {
            return Ok(Ordered::RolledBack);
        }
        self.stops.again(Point::Price, bought.first_price());
        let (cents, original) = self.take_in_one(&bought, order, key).await?;
        Ok(Ordered::Committed { order: number, total: rates.total(cents), original })
    }

    /// Takes an order's items from stock and writes its lines. Returns their amount in cents, and how many are
    /// original.
    async fn take_in_one(
        &mut self,
        bought: &Bought<'_>,
        order: &NewOrder,
        key: [Param<'static>; 3],
    ) -> Result<(i64, u32)> {
        let taken = bought.take()?;
        let started = {
            let (stock, lines) = (bought.restocked(&taken), bought.lines(key, &taken));
            self.start(
                self.last(),
                &[
                    (Wanted::Several(Several::Restock(stock.count)), stock.values()),
                    (Wanted::Several(Several::Lines(order.lines().len())), lines.of(order)),
                ],
            )?
        };
        self.finish(started, &mut |_, _| {}).await?;
        Ok((taken.cents, taken.original))
    }

    pub(super) async fn pay_in_groups(&mut self, payment: &Payment) -> Result<Paid> {
        let dialect = self.dialect;
        let (amount, place) = (self.cents(payment.cents), [int(payment.warehouse), int(payment.district)]);
        let of = [int(payment.customer_warehouse), int(payment.customer_district)];
        let mut found = std::mem::take(&mut self.customers);
        found.clear();
        let (mut names, mut balance) = (Names::default(), None);
        let started = {
            let (name, length) = match payment.who {
                Who::Name(number) => last_name(number),
                Who::Number(_) => Default::default(),
            };
            let (look, customer) = match payment.who {
                Who::Name(_) => (Sql::CustomersByName, Param::Text(&name[..length])),
                Who::Number(customer) => (Sql::CustomerToPay, int(customer)),
            };
            self.start(
                Part::First,
                &[
                    (Wanted::Plain(Sql::PayWarehouse), &[amount, place[0]]),
                    (Wanted::Plain(Sql::Warehouse), &place[..1]),
                    (Wanted::Plain(Sql::PayDistrict), &[amount, place[0], place[1]]),
                    (Wanted::Plain(Sql::District), &place),
                    (Wanted::Plain(look), &[of[0], of[1], customer]),
                ],
            )?
        };
        let by_number = matches!(payment.who, Who::Number(_));
        let read = &mut |nth, row: &dyn Row| match nth {
            1 => {
                names.push(row.bytes(0));
                names.push(b"    ");
            }
            3 => names.push(row.bytes(0)),
            _ if by_number => balance = Some(balance_and_credit(dialect, row)),
            _ => found.push(row.int(0)),
        };
        let answered = self.finish(started, read).await;
        let chosen = middle(&found);
        self.customers = found;
        answered?;
        let customer = match payment.who {
            Who::Number(customer) => i64::from(customer),
            Who::Name(_) => chosen.ok_or_else(|| missing("a customer of a last name"))?,
        };
        let key = [of[0], of[1], Param::Int(customer)];
        if !by_number {
            let read: Visit<'_> = &mut |row: &dyn Row| balance = Some(balance_and_credit(dialect, row));
            self.execute(Sql::CustomerToPay, &key, read).await?;
        }
        let (balance, has_bad_credit) = balance.ok_or_else(|| missing("a customer"))??;
        let history = history_row(payment, key[2], amount, &names);
        if has_bad_credit {
            self.note(payment, customer, key).await?;
            self.change(Sql::InsertHistory, &history).await?;
        } else {
            let started = self.start(
                self.last(),
                &[
                    (Wanted::Plain(Sql::PayCustomer), &[amount, amount, key[0], key[1], key[2]]),
                    (Wanted::Plain(Sql::InsertHistory), &history),
                ],
            )?;
            self.finish(started, &mut |_, _| {}).await?;
        }
        Ok(Paid { customer, balance: balance - payment.cents })
    }

    pub(super) async fn status_in_groups(&mut self, requested: &OrderStatus) -> Result<Status> {
        let dialect = self.dialect;
        let (customer, has_begun) = self.find(requested.warehouse, requested.district, requested.who, true).await?;
        let key = [int(requested.warehouse), int(requested.district), Param::Int(customer)];
        let wanted = [Wanted::Plain(Sql::Balance), Wanted::Plain(Sql::LastOrder)].map(|wanted| (wanted, &key[..]));
        let started = self.start(if has_begun { Part::Middle } else { Part::First }, &wanted)?;
        let (mut balance, mut order) = (None, 0);
        let read = &mut |nth, row: &dyn Row| match nth {
            0 => balance = Some(money(dialect, row, 0, "c_balance")),
            _ => order = row.int(0),
        };
        self.finish(started, read).await?;
        let balance = balance.ok_or_else(|| missing("a customer"))??;
        while self.stops.again(Point::Newest, order) {
            self.execute(Sql::LastOrder, &key, &mut |row| order = row.int(0)).await?;
        }
        let mut lines = 0;
        if order > 0 {
            lines = self.execute(Sql::Lines, &[key[0], key[1], Param::Int(order)], &mut |_| {}).await?.rows;
        }
        Ok(Status { customer, balance, order, lines })
    }

    pub(super) async fn deliver_in_groups(&mut self, delivery: &Delivery) -> Result<Delivered> {
        let mut waiting = Waiting::new(delivery, self.dialect);
        let mut oldest = [None; DISTRICT_COUNT];
        let started = {
            let places: [_; DISTRICT_COUNT] = std::array::from_fn(|nth| [int(delivery.warehouse), int(nth as u32 + 1)]);
            let wanted = places.each_ref().map(|place| (Wanted::Plain(Sql::OldestNewOrder), &place[..]));
            self.start(Part::First, &wanted)?
        };
        self.finish(started, &mut |nth, row| oldest[nth] = Some(row.int(0))).await?;
        for (district, mut found) in (1..).zip(oldest) {
            while self.stops.again(Point::Oldest(district), found.unwrap_or_default()) {
                found = self.look_for_oldest(delivery, district, false).await?;
            }
            waiting.put(district, found);
        }
        if waiting.count == 0 {
            return Ok(Delivered::default());
        }
        let started = {
            let keys = waiting.keys();
            let (carrier, time) = (waiting.keys_behind(waiting.carrier()), waiting.keys_behind(waiting.time()));
            self.start(
                Part::Middle,
                &[
                    (Wanted::Several(Several::Delete), &keys),
                    (Wanted::Several(Several::Customers), &keys),
                    (Wanted::Several(Several::DeliverOrders), &carrier),
                    (Wanted::Several(Several::DeliverLines), &time),
                    (Wanted::Several(Several::Amounts), &keys),
                ],
            )?
        };
        let read = &mut |nth, row: &dyn Row| match nth {
            1 => waiting.read_customer(row),
            _ => waiting.read_amount(row),
        };
        let deleted = self.finish(started, read).await?.affected;
        waiting.all_deleted(deleted)?;
        let started = {
            let payments = waiting.payments()?;
            let wanted = payments.each_ref().map(|values| (Wanted::Plain(Sql::PayFromOrder), &values[..]));
            self.start(self.last(), &wanted[..waiting.count])?
        };
        self.finish(started, &mut |_, _| {}).await?;
        Ok(waiting.delivered())
    }
}
