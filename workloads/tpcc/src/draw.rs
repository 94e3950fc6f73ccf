//! The inputs of transactions, and their random numbers and texts, which the load uses too (clauses 2 and 4.3.2).

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rand::{Rng, SeedableRng};
use rumba_engine_api::value::DateTime;
use rumba_workload_kit::{Chance, Random, below};

use crate::deck::Card;
use crate::names::NAMES;
use crate::scale::{DISTRICTS, LINES, Scale};

pub const MOST_LINES: usize = LINES.2 as usize;

/// The constants C of the non-uniform random numbers (2.1.6.1), drawn once for a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    pub name_load: u32,
    /// The constant for last names in the run. Its distance from the constant of the load is bounded, so that the two
    /// differ.
    pub name_run: u32,
    /// The constant for customer numbers.
    pub customer: u32,
    pub item: u32,
}

impl Constants {
    pub fn drawn(number: u64) -> Self {
        let mut random = Random::seed_from_u64(number);
        let mut upto = |most: u32| below(&mut random, u64::from(most) + 1) as u32;
        let name_load = upto(255);
        let name_run = loop {
            let drawn = upto(255);
            let distance = drawn.abs_diff(name_load);
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break drawn;
            }
        };
        Self { name_load, name_run, customer: upto(1023), item: upto(8191) }
    }
}

/// A number from `low` to `high`, both included.
#[inline]
pub fn between(random: &mut Random, low: u32, high: u32) -> u32 {
    low + below(random, u64::from(high - low) + 1) as u32
}

/// The non-uniform number of clause 2.1.6, from `low` to `high`.
#[inline]
pub fn non_uniform(random: &mut Random, a: u32, constant: u32, low: u32, high: u32) -> u32 {
    let mixed = between(random, 0, a) | between(random, low, high);
    (mixed + constant) % (high - low + 1) + low
}

/// The number of a last name; in the run, one that the load has used.
pub fn name_number(random: &mut Random, constant: u32, scale: &Scale) -> u32 {
    non_uniform(random, 255, constant, 0, NAMES - 1) % scale.names()
}

const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends `length` characters from `alphabet`. Several come from each random number, each as a fraction that is
/// multiplied by the number of letters.
fn put_letters(random: &mut Random, alphabet: &[u8], length: u32, out: &mut Vec<u8>) {
    // 62^8 is far below 2^64, so that the last of eight is as uniform as the first.
    const OF_ONE: u32 = 8;
    for start in (0..length).step_by(OF_ONE as usize) {
        let mut fraction = random.next_u64();
        for _ in start..length.min(start + OF_ONE) {
            let product = u128::from(fraction) * alphabet.len() as u128;
            fraction = product as u64;
            out.push(alphabet[(product >> 64) as usize]);
        }
    }
}

/// Appends the a-string of clause 4.3.2.2.
pub fn put_text(random: &mut Random, low: u32, high: u32, out: &mut Vec<u8>) {
    let length = between(random, low, high);
    put_letters(random, ALPHANUMERIC, length, out);
}

/// Appends the n-string: digits.
pub fn put_digits(random: &mut Random, length: u32, out: &mut Vec<u8>) {
    put_letters(random, &ALPHANUMERIC[..10], length, out);
}

/// The text that one in ten items and rows of stock carry somewhere in their data.
pub const ORIGINAL: &[u8] = b"ORIGINAL";

/// Appends the data of an item or of stock (4.3.3.1): 26 to 50 letters, in every tenth of which stands `ORIGINAL`.
pub fn put_data(random: &mut Random, out: &mut Vec<u8>) {
    let start = out.len();
    put_text(random, 26, 50, out);
    if between(random, 1, 10) == 1 {
        let room = (out.len() - start - ORIGINAL.len()) as u32;
        let at = start + between(random, 0, room) as usize;
        out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
    }
}

pub fn is_original(text: &[u8]) -> bool {
    text.windows(ORIGINAL.len()).any(|part| part == ORIGINAL)
}

pub fn now() -> DateTime {
    TimeZone::UTC.to_datetime(Timestamp::now())
}

/// A line of an order that is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The item's number; one beyond the last does not exist.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supply: u32,
    pub quantity: u32,
}

/// The input of a new order (2.4.1).
#[derive(Clone, Debug, PartialEq)]
pub struct NewOrder {
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    lines: [Line; MOST_LINES],
    count: usize,
    pub entered: DateTime,
    /// Whether it was drawn with a missing item, and must be rolled back.
    pub rolls_back: bool,
}

impl NewOrder {
    /// One of these lines, 5 to 15, entered now.
    pub fn of(place: [u32; 3], lines: &[Line]) -> Self {
        let [warehouse, district, customer] = place;
        let mut all = [Line::default(); MOST_LINES];
        all[..lines.len()].copy_from_slice(lines);
        Self { warehouse, district, customer, lines: all, count: lines.len(), entered: now(), rolls_back: false }
    }

    /// Its lines, 5 to 15.
    pub fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    /// Whether all of it comes from the home warehouse.
    pub fn is_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply == self.warehouse)
    }
}

/// The way to select a customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Number(u32),
    /// By the number of a last name.
    Name(u32),
}

/// The input of a payment (2.5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Payment {
    pub warehouse: u32,
    pub district: u32,
    pub customer_warehouse: u32,
    pub customer_district: u32,
    pub who: Who,
    /// The amount in cents.
    pub cents: i64,
    pub entered: DateTime,
}

/// The input of an order status (2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    pub warehouse: u32,
    pub district: u32,
    pub who: Who,
}

/// The input of a delivery (2.7.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub warehouse: u32,
    pub carrier: u32,
    pub delivered: DateTime,
}

/// The input of a stock level (2.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StockLevel {
    pub warehouse: u32,
    pub district: u32,
    /// Stock below this is low.
    pub threshold: u32,
}

/// A transaction to be performed.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Input {
    /// Enters the transaction at the terminal at this time; until then it has the time at which it was drawn.
    pub fn enter(&mut self, now: DateTime) {
        match self {
            Input::NewOrder(order) => order.entered = now,
            Input::Payment(payment) => payment.entered = now,
            Input::Delivery(delivery) => delivery.delivered = now,
            Input::OrderStatus(_) | Input::StockLevel(_) => {}
        }
    }
}

/// One client's source of inputs.
#[derive(Clone, Debug)]
pub struct Inputs {
    pub random: Random,
    scale: Scale,
    constants: Constants,
    remote_line: Chance,
    missing_item: Chance,
    /// The place of the transactions, if they belong to a terminal.
    home: Option<Home>,
}

/// The warehouse of a terminal, and the district whose stock levels it requests (2.4.1.1, 2.8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub warehouse: u32,
    pub district: u32,
}

impl Home {
    /// The home of the terminal at this position, from 0, in its data set. A warehouse has ten terminals, one for each
    /// district.
    pub fn of_terminal(place: u32) -> Self {
        Self { warehouse: place / DISTRICTS + 1, district: place % DISTRICTS + 1 }
    }
}

impl Inputs {
    /// Inputs of a stream of random numbers.
    pub fn new(random: Random, scale: Scale, constants: Constants, home: Option<Home>) -> Self {
        let (remote_line, missing_item) = (Chance::new(0.01), Chance::new(0.01));
        Self { random, scale, constants, remote_line, missing_item, home }
    }

    /// A transaction of this type, at home or else of a uniformly drawn warehouse.
    pub fn draw(&mut self, card: Card) -> Input {
        let warehouse = match self.home {
            Some(home) => home.warehouse,
            None => between(&mut self.random, 1, self.scale.warehouses),
        };
        match card {
            Card::NewOrder => Input::NewOrder(self.new_order(warehouse)),
            Card::Payment => Input::Payment(self.payment(warehouse)),
            Card::OrderStatus => {
                let district = self.district();
                Input::OrderStatus(OrderStatus { warehouse, district, who: self.who() })
            }
            Card::Delivery => {
                Input::Delivery(Delivery { warehouse, carrier: between(&mut self.random, 1, 10), delivered: now() })
            }
            Card::StockLevel => {
                let district = self.home.map(|home| home.district).unwrap_or_else(|| self.district());
                let threshold = between(&mut self.random, 10, 20);
                Input::StockLevel(StockLevel { warehouse, district, threshold })
            }
        }
    }

    fn district(&mut self) -> u32 {
        between(&mut self.random, 1, DISTRICTS)
    }

    fn customer(&mut self) -> u32 {
        non_uniform(&mut self.random, 1023, self.constants.customer, 1, self.scale.customers)
    }

    /// Six in ten by last name (2.5.1.2, 2.6.1.2).
    fn who(&mut self) -> Who {
        if between(&mut self.random, 1, 100) <= 60 {
            return Who::Name(name_number(&mut self.random, self.constants.name_run, &self.scale));
        }
        Who::Number(self.customer())
    }

    /// Another warehouse; the same if there is no other.
    fn other_than(&mut self, home: u32) -> u32 {
        if self.scale.warehouses == 1 {
            return home;
        }
        let drawn = between(&mut self.random, 1, self.scale.warehouses - 1);
        drawn + u32::from(drawn >= home)
    }

    fn new_order(&mut self, warehouse: u32) -> NewOrder {
        let (district, customer) = (self.district(), self.customer());
        let count = between(&mut self.random, LINES.0, LINES.2) as usize;
        let mut lines = [Line::default(); MOST_LINES];
        for line in &mut lines[..count] {
            let item = non_uniform(&mut self.random, 8191, self.constants.item, 1, self.scale.items);
            let is_remote = self.remote_line.happens(&mut self.random);
            let supply = if is_remote { self.other_than(warehouse) } else { warehouse };
            *line = Line { item, supply, quantity: between(&mut self.random, 1, 10) };
        }
        // All clients lock rows of stock in one order, so that orders wait for each other but never in a circle.
        lines[..count].sort_unstable_by_key(|line| (line.supply, line.item));
        // The item that does not exist is the last one entered (2.4.1.5).
        let rolls_back = self.missing_item.happens(&mut self.random);
        if rolls_back {
            lines[count - 1].item = self.scale.items + 1;
        }
        NewOrder { warehouse, district, customer, lines, count, entered: now(), rolls_back }
    }

    fn payment(&mut self, warehouse: u32) -> Payment {
        let district = self.district();
        // 85 in a hundred customers pay at their own warehouse (2.5.1.2).
        let (customer_warehouse, customer_district) = match between(&mut self.random, 1, 100) {
            ..=85 => (warehouse, district),
            _ => (self.other_than(warehouse), self.district()),
        };
        let who = self.who();
        let cents = i64::from(between(&mut self.random, 100, 500_000));
        Payment { warehouse, district, customer_warehouse, customer_district, who, cents, entered: now() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{CUSTOMERS, ITEMS};

    fn inputs(warehouses: u32) -> Inputs {
        let scale = Scale { warehouses, customers: CUSTOMERS, items: ITEMS };
        Inputs::new(Random::seed_from_u64(3), scale, Constants::drawn(1), None)
    }

    #[test]
    fn constants_of_names_keep_their_distance() {
        for number in 0..1000 {
            let Constants { name_load, name_run, customer, item } = Constants::drawn(number);
            let distance = name_load.abs_diff(name_run);
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112, "{distance}");
            assert!(name_load.max(name_run) <= 255 && customer <= 1023 && item <= 8191);
        }
    }

    #[test]
    fn new_order_inputs_match_the_specification() {
        let mut inputs = inputs(10);
        let orders: Vec<NewOrder> = (0..100_000).map(|_| inputs.new_order(4)).collect();
        let lines: Vec<&Line> = orders.iter().flat_map(NewOrder::lines).collect();
        let share = |count: usize, of: usize| count as f64 / of as f64;
        assert!((share(lines.len(), orders.len()) - 10.0).abs() < 0.05);
        let remote = lines.iter().filter(|line| line.supply != 4).count();
        assert!((share(remote, lines.len()) - 0.01).abs() < 0.0005);
        let missing = orders.iter().filter(|order| order.lines().iter().any(|line| line.item > ITEMS)).count();
        assert!((share(missing, orders.len()) - 0.01).abs() < 0.0015);
        assert!(lines.iter().all(|line| (1..=10).contains(&line.supply) && (1..=10).contains(&line.quantity)));
        assert!(orders.iter().all(|order| order.lines()[..order.count - 1].iter().all(|line| line.item <= ITEMS)));
    }

    #[test]
    fn payments_are_remote_and_by_name_at_the_specified_rate() {
        let mut inputs = inputs(10);
        let payments: Vec<Payment> = (0..100_000).map(|_| inputs.payment(7)).collect();
        let share = |of: &dyn Fn(&&Payment) -> bool| payments.iter().filter(of).count() as f64 / payments.len() as f64;
        assert!((share(&|payment| payment.customer_warehouse != 7) - 0.15).abs() < 0.005);
        assert!((share(&|payment| matches!(payment.who, Who::Name(_))) - 0.6).abs() < 0.006);
        let mean = payments.iter().map(|payment| payment.cents as f64).sum::<f64>() / payments.len() as f64;
        assert!((mean - 250_050.0).abs() < 2_500.0, "{mean}");
    }

    #[test]
    fn each_warehouse_has_a_terminal_for_each_district() {
        let homes: Vec<Home> = (0..30).map(Home::of_terminal).collect();
        let expected = (1..=3).flat_map(|warehouse| (1..=10).map(move |district| Home { warehouse, district }));
        assert_eq!(homes, expected.collect::<Vec<Home>>());
    }

    const CARDS: [Card; 5] = [Card::NewOrder, Card::Payment, Card::OrderStatus, Card::Delivery, Card::StockLevel];

    /// The values that transactions of a type draw, each once and in order.
    /// These are warehouses, districts (a delivery has none), the carriers of deliveries and the thresholds of stock
    /// levels.
    fn places(inputs: &mut Inputs, card: Card) -> [Vec<u32>; 3] {
        let mut drawn: [Vec<u32>; 3] = Default::default();
        for _ in 0..2_000 {
            let of_one = match inputs.draw(card) {
                Input::NewOrder(order) => [order.warehouse, order.district, 0],
                Input::Payment(payment) => [payment.warehouse, payment.district, 0],
                Input::OrderStatus(requested) => [requested.warehouse, requested.district, 0],
                Input::Delivery(delivery) => [delivery.warehouse, 0, delivery.carrier],
                Input::StockLevel(requested) => [requested.warehouse, requested.district, requested.threshold],
            };
            drawn.iter_mut().zip(of_one).for_each(|(all, one)| all.push(one));
        }
        for all in &mut drawn {
            all.sort_unstable();
            all.dedup();
        }
        drawn
    }

    #[test]
    fn terminal_stays_at_home_and_other_clients_do_not() {
        let mut terminal = inputs(10);
        terminal.home = Some(Home { warehouse: 3, district: 7 });
        let mut other = inputs(10);
        let all: Vec<u32> = (1..=10).collect();
        for card in CARDS {
            let [home, districts, besides] = places(&mut terminal, card);
            assert_eq!(home, [3], "{card:?}");
            let [everywhere, all_districts, as_besides] = places(&mut other, card);
            assert_eq!(everywhere, all, "{card:?}");
            let (of_terminal, of_other, expected) = match card {
                Card::Delivery => (vec![0], vec![0], all.clone()),
                Card::StockLevel => (vec![7], all.clone(), (10..=20).collect()),
                _ => (all.clone(), all.clone(), vec![0]),
            };
            assert_eq!((districts, all_districts), (of_terminal, of_other), "{card:?}");
            assert_eq!((besides, as_besides), (expected.clone(), expected), "{card:?}");
        }
    }

    #[test]
    fn single_warehouse_has_no_other() {
        let mut inputs = inputs(1);
        assert!((0..1000).all(|_| inputs.new_order(1).is_local() && inputs.payment(1).customer_warehouse == 1));
    }

    #[test]
    fn non_uniform_numbers_favour_some() {
        let mut random = Random::seed_from_u64(1);
        let mut counts = vec![0_u32; 3000];
        for _ in 0..600_000 {
            let number = non_uniform(&mut random, 1023, 259, 1, 3000);
            counts[number as usize - 1] += 1;
        }
        // An `or` of numbers sets bits. Some numbers therefore occur far more often than their share of 200, and others
        // hardly ever.
        counts.sort_unstable();
        let hottest: u32 = counts[2700..].iter().sum();
        assert!(counts[2999] > 2_000 && hottest > 300_000, "{} {hottest}", counts[2999]);
    }

    #[test]
    fn tenth_of_data_is_original_and_alphabet_is_fully_used() {
        let mut random = Random::seed_from_u64(1);
        let mut original = 0;
        let mut seen = [false; 256];
        for _ in 0..20_000 {
            let mut data = Vec::new();
            put_data(&mut random, &mut data);
            assert!((26..=50).contains(&data.len()));
            original += u32::from(is_original(&data));
            data.iter().for_each(|byte| seen[usize::from(*byte)] = true);
        }
        assert!((1_850..2_150).contains(&original), "{original}");
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 62);
    }
}
