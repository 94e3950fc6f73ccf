//! The tests of clauses 3.2.2 (atomicity) and 3.4.2 (isolation), as written except for the differences in
//! docs/workloads/tpcc.md.
//!
//! Dirty reads, dirty writes and lost updates (3.4.2.1 to 6) break a promise that every engine here makes. Repeatable
//! reads and the absence of phantoms (3.4.2.7 to 9) are not promised at every isolation level, so their anomalies are
//! named instead.

use std::sync::atomic::AtomicU32;

use rumba_engine_api::acid::{Outcome, Promise};
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::block_on;

use super::meeting::{How, Met, Stand, meet, until_it_ends};
use super::traces::Traces;
use super::{Inspect, Lab};
use crate::draw::{Delivery, Line, NewOrder, OrderStatus, Payment, Who, now};
use crate::stop::{Point, Word, is_rolled_back};
use crate::store::{Delivered, Ordered, Status, Store};

/// All of it happens here.
const WAREHOUSE: u32 = 1;
/// The amount of a payment, in cents.
const CENTS: i64 = 12_345;
/// Items of the orders; the prices of the last two change.
const ITEMS: [u32; 5] = [11, 12, 13, 14, 15];

/// Runs all tests; `unused` is the number of an item that does not exist.
///
/// # Errors
/// Any error of the engine. A broken promise is not an error.
pub fn isolation<S: Store, I: Inspect>(lab: &Lab<'_, S, I>, unused: u32) -> Result<Vec<Promise>> {
    let tests = Tests { lab, unused };
    Ok(vec![
        tests.atomicity(Word::GoOn)?,
        tests.atomicity(Word::RollBack)?,
        tests.status_and_order(1, Word::GoOn)?,
        tests.status_and_order(2, Word::RollBack)?,
        tests.two_orders(3, Word::GoOn)?,
        tests.two_orders(4, Word::RollBack)?,
        tests.payment_and_delivery(5, Word::GoOn)?,
        tests.payment_and_delivery(6, Word::RollBack)?,
        tests.prices(7)?,
        tests.delivery_and_order(8)?,
        tests.newest_order(9)?,
    ])
}

/// The subject of each test of clause 3.4.2, by its number less one.
const NAMES: [&str; 9] = [
    "an order status does not see an order before it is committed",
    "an order status does not see an order that is rolled back, and nothing of it is left",
    "of two new orders in a district the second follows the first",
    "of two new orders in a district the second takes the number of a first that is rolled back and leaves nothing",
    "a payment and a delivery both reach a customer's balance",
    "a payment alone reaches a customer's balance when the delivery is rolled back",
    "a new order finds the same prices while they are changed",
    "a delivery that finds no order finds none when it looks again",
    "an order status finds the same last order when it looks again",
];

fn promise(number: u32, outcome: Outcome, how: &str, seen: String) -> Promise {
    let name = format!("3.4.2.{number}: {}", NAMES[number as usize - 1]);
    Promise { name, short: format!("i{number}"), outcome, how: how.to_owned(), seen }
}

/// A promise that is kept if `holds`, and otherwise broken.
fn kept_if(holds: bool, number: u32, how: How, seen: String) -> Promise {
    match holds {
        true => promise(number, Outcome::Kept, how.word(), seen),
        false => promise(number, Outcome::Broken, "broken", seen),
    }
}

/// A promise that is kept if the first read was repeated; otherwise the anomaly is named.
fn repeated_if(holds: bool, number: u32, how: How, anomaly: &str, seen: String) -> Promise {
    match holds {
        true => promise(number, Outcome::Kept, how.word(), seen),
        false => promise(number, Outcome::Anomaly, anomaly, format!("{anomaly}: {seen}")),
    }
}

/// The number of a committed order; none if it was rolled back, by its test or because of a conflict.
fn number_of(ordered: Result<Ordered>) -> Result<Option<u32>> {
    match ordered {
        Ok(Ordered::Committed { order, .. }) => Ok(Some(order as u32)),
        Ok(Ordered::RolledBack) => Ok(None),
        Err(error) if is_rolled_back(&error) || error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}

fn order_of(district: u32, customer: u32, items: &[u32]) -> NewOrder {
    let line = |item: &u32| Line { item: *item, supply: WAREHOUSE, quantity: 3 };
    let lines: Vec<Line> = items.iter().map(line).collect();
    NewOrder::of([WAREHOUSE, district, customer], &lines)
}

/// The start of the sentence about a meeting with a new order.
fn stood(stand: Stand) -> &'static str {
    match stand.at {
        Point::Rollback => "a new order of an item that does not exist stood still before its rollback",
        _ => "a new order stood still before its end",
    }
}

fn or_none(number: Option<u32>) -> String {
    number.map_or_else(|| "rolled back".to_owned(), |number| format!("committed as {number}"))
}

struct Tests<'a, S, I> {
    lab: &'a Lab<'a, S, I>,
    unused: u32,
}

impl<S: Store, I: Inspect> Tests<'_, S, I> {
    fn inspector(&self) -> Result<I> {
        (self.lab.inspector)()
    }

    /// A new order by a new actor, retried until it is committed.
    fn order(&self, order: &NewOrder) -> Result<Ordered> {
        block_on((self.lab.actor)()?.new_order(order))
    }

    fn pay(&self, payment: &Payment) -> Result<()> {
        block_on((self.lab.actor)()?.payment(payment)).map(drop)
    }

    fn status(&self, district: u32, customer: u32) -> Result<Status> {
        let requested = OrderStatus { warehouse: WAREHOUSE, district, who: Who::Number(customer) };
        block_on((self.lab.actor)()?.order_status(&requested))
    }

    /// 3.2.2.1 and 2: a committed payment changes warehouse, district and customer; a rolled-back one changes none.
    fn atomicity(&self, end: Word) -> Result<Promise> {
        let (district, customer) = (10, 10);
        let paid = payment(district, customer);
        let look = || -> Result<[i64; 3]> {
            let mut inspector = self.inspector()?;
            let [of_district, of_warehouse] = inspector.taken([WAREHOUSE, district])?;
            Ok([of_warehouse, of_district, -inspector.balance([WAREHOUSE, district, customer])?])
        };
        let before = look()?;
        let mut actor = (self.lab.actor)()?;
        actor.store.stop_with(Box::new(move |point, _| if point == Point::End { end } else { Word::GoOn }));
        match until_it_ends(|| block_on(actor.payment(&paid)), &AtomicU32::new(0)) {
            Err(error) if !is_rolled_back(&error) => return Err(error),
            _ => {}
        }
        drop(actor);
        let grown: Vec<i64> = look()?.iter().zip(before).map(|(after, before)| after - before).collect();
        let (number, words, due) = match end {
            Word::RollBack => (2, "a payment that is rolled back changes no row", 0),
            _ => (1, "a payment that is committed changes all of its rows", CENTS),
        };
        let holds = grown.iter().all(|grown| *grown == due);
        let seen = format!("warehouse, district and customer: {grown:?} cents, of {due} each");
        let (outcome, how) = if holds { (Outcome::Kept, "whole") } else { (Outcome::Broken, "broken") };
        let (name, short) = (format!("3.2.2.{number}: {words}"), format!("a{number}"));
        Ok(Promise { name, short, outcome, how: how.to_owned(), seen })
    }

    /// A meeting with a customer's order that pauses before its commit; the customer has the district's number.
    /// For a rollback there are two meetings. The first order has an item that does not exist as its last line
    /// (2.4.1.5). The second order has written all its rows, because batched and grouped statements find a missing item
    /// before they write a line or take from stock.
    fn next_to_order(
        &self,
        number: u32,
        end: Word,
        meeting: impl Fn(&NewOrder, Stand) -> Result<Promise>,
    ) -> Result<Promise> {
        let whole = || meeting(&order_of(number, number, &ITEMS), Stand::at_end(end));
        if end != Word::RollBack {
            return whole();
        }
        let [one, two, three, four, _] = ITEMS;
        let unused = order_of(number, number, &[one, two, three, four, self.unused]);
        let promise = meeting(&unused, Stand::at(Point::Rollback))?;
        // The remains of a broken first test would disturb the second.
        if promise.outcome == Outcome::Broken {
            return Ok(promise);
        }
        let of_whole = whole()?;
        Ok(match of_whole.outcome {
            Outcome::Broken => of_whole,
            _ => Promise { seen: format!("{}; then {}", promise.seen, of_whole.seen), ..promise },
        })
    }

    /// The traces of the order with this number, or of the next order.
    fn traces(&self, order: &NewOrder, number: Option<u32>) -> Result<Traces> {
        let last = self.status(order.district, order.customer)?.order;
        Traces::of(&mut self.inspector()?, order, number, last)
    }

    /// 3.4.2.1 and 2: an order status while a new order of the same customer is uncommitted.
    fn status_and_order(&self, number: u32, end: Word) -> Result<Promise> {
        self.next_to_order(number, end, |order, stand| self.status_next_to(number, order, stand))
    }

    fn status_next_to(&self, number: u32, order: &NewOrder, stand: Stand) -> Result<Promise> {
        let whole = order_of(number, number, &ITEMS);
        let before = self.traces(&whole, None)?;
        let met = meet(self.lab, stand, |actor| block_on(actor.new_order(order)), || self.status(number, number))?;
        let Met { first, second, how, .. } = met;
        let ordered = number_of(first)?;
        let after = before.after(u32::from(ordered.is_some()), &whole);
        let unlike = self.traces(&whole, Some(before.next))?.unlike(&after);
        // A status that waited may see either order; one that did not wait must see the old one.
        let saw_its_end = how != How::WentOn && Some(second.order) == ordered.map(i64::from);
        let holds = (second.order == before.last || saw_its_end) && unlike.is_empty();
        let seen = format!(
            "{}, and an order status {}; the last order was {}, the new one was {}, and the status reported {}{unlike}",
            stood(stand),
            how.reported(),
            before.last,
            or_none(ordered),
            second.order
        );
        Ok(kept_if(holds, number, how, seen))
    }

    /// 3.4.2.3 and 4: two new orders of one customer.
    fn two_orders(&self, number: u32, end: Word) -> Result<Promise> {
        self.next_to_order(number, end, |order, stand| self.order_next_to(number, order, stand))
    }

    fn order_next_to(&self, number: u32, order: &NewOrder, stand: Stand) -> Result<Promise> {
        let whole = order_of(number, number, &ITEMS);
        let before = self.traces(&whole, None)?;
        let met = meet(self.lab, stand, |actor| block_on(actor.new_order(order)), || self.order(&whole))?;
        let Met { first, second, how, .. } = met;
        let (first, second) = (number_of(first)?, number_of(Ok(second))?);
        let mut numbers: Vec<u32> = first.into_iter().chain(second).collect();
        numbers.sort_unstable();
        let expected: Vec<u32> = (before.next..).take(numbers.len()).collect();
        let after = self.traces(&whole, Some(before.next))?;
        let unlike = after.unlike(&before.after(numbers.len() as u32, &whole));
        let holds = second.is_some() && numbers == expected && unlike.is_empty();
        let seen = format!(
            "{}, and another {}; the next number was {}: the first was {}, the second {}, and the next number is \
             {}{unlike}",
            stood(stand),
            how.reported(),
            before.next,
            or_none(first),
            or_none(second),
            after.next
        );
        Ok(kept_if(holds, number, how, seen))
    }

    /// 3.4.2.5 and 6: a delivery, and a payment by the customer of an order that it delivers.
    fn payment_and_delivery(&self, number: u32, end: Word) -> Result<Promise> {
        let district = number;
        let place = [WAREHOUSE, district];
        if self.inspector()?.waiting(place)?.is_empty() {
            let order = order_of(district, number, &ITEMS);
            until_it_ends(|| self.order(&order), &AtomicU32::new(0))?;
        }
        let mut inspector = self.inspector()?;
        let oldest = inspector.waiting(place)?.first().copied().unwrap_or_default();
        let order = [WAREHOUSE, district, oldest];
        let customer = inspector.order(order)?.map_or(1, |order| order.customer);
        let cents: i64 = inspector.lines(order)?.iter().map(|line| line.cents).sum();
        let owner = [WAREHOUSE, district, customer];
        let before = inspector.balance(owner)?;
        drop(inspector);
        let (delivery, paid) = (delivery(), payment(district, customer));
        let met = meet(self.lab, Stand::at_end(end), |actor| block_on(actor.delivery(&delivery)), || self.pay(&paid))?;
        let Met { first, how, .. } = met;
        let is_delivered = delivered(first)?.is_some_and(|delivered| delivered.0[district as usize - 1] == oldest);
        let after = self.inspector()?.balance(owner)?;
        let due = before - CENTS + if is_delivered { cents } else { 0 };
        let seen = format!(
            "a delivery stood still before its end, and a payment of the order's customer {}; the balance was {before} cents, \
             {CENTS} were paid, an order of {cents} was {}, and it is {after}",
            how.reported(),
            if is_delivered { "delivered" } else { "not delivered" }
        );
        Ok(kept_if(after == due, number, how, seen))
    }

    /// 3.4.2.7: prices that change while a new order reads them.
    fn prices(&self, number: u32) -> Result<Promise> {
        let (district, customer) = (number, number);
        let [.., other, item] = ITEMS;
        let mut inspector = self.inspector()?;
        let (of_item, of_other) = (inspector.price(item)?, inspector.price(other)?);
        drop(inspector);
        let raised = [(item, of_item + of_item / 10), (other, of_other + of_other / 10)];
        let order = order_of(district, customer, &[item, other, item, ITEMS[0], ITEMS[1]]);
        let stand = Stand { at: Point::Price, then: Word::GoOn, end: |_| Word::GoOn };
        let met =
            meet(self.lab, stand, |actor| block_on(actor.new_order(&order)), || self.inspector()?.set_prices(&raised))?;
        let (ordered, how) = (number_of(met.first)?, met.how);
        let mut inspector = self.inspector()?;
        let now = [inspector.price(item)?, inspector.price(other)?];
        if now != raised.map(|(_, cents)| cents) {
            let seen = format!("prices were set to {raised:?}, and are {now:?}");
            return Ok(promise(number, Outcome::Broken, "broken", seen));
        }
        let Some(ordered) = ordered else {
            let seen = format!(
                "prices were changed during a new order, and that was rolled back; the change {}",
                how.reported()
            );
            return Ok(promise(number, Outcome::Kept, "refused", seen));
        };
        let lines = inspector.lines([WAREHOUSE, district, ordered])?;
        let paid: Vec<i64> = lines.iter().take(3).map(|line| line.cents / i64::from(line.quantity.max(1))).collect();
        let holds = paid == [of_item, of_other, of_item];
        let seen = format!(
            "a new order had read the price of an item, and a change of prices {}; items {item}, {other} and {item} again cost \
             {of_item}, {of_other} and {of_item} cents before, and the order was charged {paid:?}",
            how.reported()
        );
        Ok(repeated_if(holds, number, how, "non-repeatable read", seen))
    }

    /// 3.4.2.8: a new order where a delivery has found none.
    fn delivery_and_order(&self, number: u32) -> Result<Promise> {
        let district = number;
        let place = [WAREHOUSE, district];
        let waiting = self.inspector()?.waiting(place)?;
        self.inspector()?.withdraw(place, &waiting)?;
        let (delivery, order) = (delivery(), order_of(district, number, &ITEMS));
        let stand = Stand {
            at: Point::Oldest(district),
            then: Word::Again,
            // If it were delivered, it would have skipped older ones.
            end: |seen| if seen.iter().all(|order| *order == 0) { Word::GoOn } else { Word::RollBack },
        };
        let met = meet(self.lab, stand, |actor| block_on(actor.delivery(&delivery)), || self.order(&order));
        self.inspector()?.put_back(place, &waiting)?;
        let Met { first, second, how, seen } = met?;
        let has_ended = delivered(first)?.is_some();
        let found = seen.get(1).copied().unwrap_or_default();
        let reported = format!(
            "a delivery had found no order that waits in a district, and a new order there {}; it was {}; looking again the \
             delivery found {}{}",
            how.reported(),
            or_none(number_of(Ok(second))?),
            if found == 0 { "none".to_owned() } else { format!("order {found}") },
            if has_ended || found != 0 { "" } else { ", and was rolled back" }
        );
        Ok(repeated_if(found == 0, number, how, "phantom", reported))
    }

    /// 3.4.2.9: a new order by a customer whose last order was read.
    fn newest_order(&self, number: u32) -> Result<Promise> {
        let (district, customer) = (number, number);
        let order = order_of(district, customer, &ITEMS);
        let stand = Stand { at: Point::Newest, then: Word::Again, end: |_| Word::GoOn };
        let requested = OrderStatus { warehouse: WAREHOUSE, district, who: Who::Number(customer) };
        let met =
            meet(self.lab, stand, |actor| block_on(actor.order_status(&requested)).map(drop), || self.order(&order))?;
        let Met { first, second, how, seen } = met;
        match first {
            Err(error) if !error.is_conflict() => return Err(error),
            _ => {}
        }
        let holds = seen.windows(2).all(|pair| pair[0] == pair[1]);
        let reported = format!(
            "an order status had read a customer's last order, and a new order of the customer {}; it was {}, and the status \
             read {seen:?}",
            how.reported(),
            or_none(number_of(Ok(second))?)
        );
        Ok(repeated_if(holds, number, how, "phantom", reported))
    }
}

fn payment(district: u32, customer: u32) -> Payment {
    Payment {
        warehouse: WAREHOUSE,
        district,
        customer_warehouse: WAREHOUSE,
        customer_district: district,
        who: Who::Number(customer),
        cents: CENTS,
        entered: now(),
    }
}

fn delivery() -> Delivery {
    Delivery { warehouse: WAREHOUSE, carrier: 7, delivered: now() }
}

/// The delivered orders; none if the delivery was rolled back.
fn delivered(delivered: Result<Delivered>) -> Result<Option<Delivered>> {
    match delivered {
        Ok(delivered) => Ok(Some(delivered)),
        Err(error) if is_rolled_back(&error) || error.is_conflict() => Ok(None),
        Err(error) => Err(error),
    }
}
