//! The load: the initial population of clause 4.3.3.1, in chunks. Every chunk draws from its own generator, so that the
//! data depends on the seed and the scale alone and not on who loads what.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rand::SeedableRng;
use rumba_core::error::EngineError;
use rumba_core::sql::{Dialect, Param};
use rumba_core::value::DateTime;
use rumba_core::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Random, Retry, below, client_seed, stream_seed};

use crate::data_set::DataSet;
use crate::draw::{Constants, between, name_number, now, put_data, put_digits, put_text};
use crate::kv::KvLoader;
use crate::names::last_name;
use crate::scale::{DISTRICTS, LINES, Scale};
use crate::settings::Config;
use crate::sql::SqlLoader;
use crate::stage::Stage;
use crate::tables::Table;

/// Rows of items, stock and customers that are written together.
const ROWS: u32 = 1000;
/// Orders that are written together, with some ten lines each.
const ORDERS: u32 = 100;
/// Retries of one chunk: minutes of waiting. A load that leaves rows out would be worse than a slow one.
const RETRIES: u32 = 60_000;

/// What is loaded at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// Items from this one on.
    Items(u32),
    /// A warehouse and its districts.
    Warehouse(u32),
    /// Stock of a warehouse, from this item on.
    Stock(u32, u32),
    /// Customers of a warehouse's district from this one on, with their history.
    Customers(u32, u32, u32),
    /// Orders of a warehouse's district from this one on, with their lines.
    Orders(u32, u32, u32),
}

/// The load's types of operations, in the order of [`crate::bound::LOAD_OPS`].
impl Chunk {
    fn kind(self) -> OpKind {
        match self {
            Chunk::Items(_) => 0,
            Chunk::Warehouse(_) => 1,
            Chunk::Stock(..) => 2,
            Chunk::Customers(..) => 3,
            Chunk::Orders(..) => 4,
        }
    }

    /// How many there are in a data set.
    fn count(scale: &Scale) -> u64 {
        let per_items = u64::from(scale.items.div_ceil(ROWS));
        let of_district = u64::from(scale.customers.div_ceil(ROWS) + scale.customers.div_ceil(ORDERS));
        per_items + u64::from(scale.warehouses) * (1 + per_items + u64::from(DISTRICTS) * of_district)
    }

    /// The chunk of a number; `None` beyond the last.
    fn numbered(scale: &Scale, number: u64) -> Option<Self> {
        let per_items = u64::from(scale.items.div_ceil(ROWS));
        let Some(number) = number.checked_sub(per_items) else {
            return Some(Chunk::Items(number as u32 * ROWS + 1));
        };
        let (customers, orders) = (scale.customers.div_ceil(ROWS), scale.customers.div_ceil(ORDERS));
        let of_districts = u64::from(DISTRICTS) * u64::from(customers + orders);
        let of_warehouse = 1 + per_items + of_districts;
        let warehouse = u32::try_from(number / of_warehouse + 1).ok().filter(|number| *number <= scale.warehouses)?;
        Some(match number % of_warehouse {
            0 => Chunk::Warehouse(warehouse),
            nth if nth <= per_items => Chunk::Stock(warehouse, (nth as u32 - 1) * ROWS + 1),
            nth => {
                let nth = (nth - per_items - 1) as u32;
                let (district, nth) = (nth / (customers + orders) + 1, nth % (customers + orders));
                match nth.checked_sub(customers) {
                    None => Chunk::Customers(warehouse, district, nth * ROWS + 1),
                    Some(nth) => Chunk::Orders(warehouse, district, nth * ORDERS + 1),
                }
            }
        })
    }
}

/// What the loaders of an instance share: each touches it once per chunk.
#[derive(Debug, Default)]
pub struct Progress {
    chunk: AtomicU64,
    index_is_taken: AtomicBool,
}

/// Visits every row of a load of one data set, its exact numbers in their smallest units.
pub fn every_row(config: &Config, seed: u64, visit: &mut dyn FnMut(Table, &[Param<'_>])) {
    for number in 0..Chunk::count(&config.scale) {
        let Some(chunk) = Chunk::numbered(&config.scale, number) else { return };
        let mut stage = Stage::default();
        let random = Random::seed_from_u64(stream_seed(seed, number));
        Filler { stage: &mut stage, random, config, seed, now: now() }.fill(chunk);
        for (table, rows) in stage.filled() {
            let mut values = Vec::new();
            rows.params(Dialect::Sqlite, &mut values);
            values.chunks(table.columns().len()).for_each(|row| visit(table, row));
        }
    }
}

/// The adapters of the load.
pub enum Loader {
    Sql(SqlLoader),
    Kv(KvLoader),
}

impl Loader {
    /// Loads what is staged, all or nothing.
    async fn load(&mut self, set: DataSet, stage: &Stage) -> Result<(), EngineError> {
        match self {
            Loader::Sql(loader) => loader.load(set, stage).await,
            Loader::Kv(loader) => loader.load(set, stage),
        }
    }

    /// Makes the indexes; over keys and values their entries came with the rows.
    fn build_indexes(&mut self) -> Result<(), EngineError> {
        match self {
            Loader::Sql(loader) => loader.build_indexes(),
            Loader::Kv(_) => Ok(()),
        }
    }

    /// The statements since this was last called.
    fn statements(&mut self) -> StatementCounts {
        match self {
            Loader::Sql(loader) => loader.statements(),
            Loader::Kv(loader) => loader.statements(),
        }
    }
}

/// A loader of rows.
pub struct RowLoader {
    loader: Loader,
    config: Config,
    progress: Arc<Progress>,
    seed: u64,
    stage: Stage,
    /// What is staged and not yet written: of which data set, and how many rows it has.
    staged: Option<(DataSet, Chunk, u64)>,
    retry: Retry,
}

impl RowLoader {
    /// A loader that takes its share.
    pub fn new(loader: Loader, config: &Config, progress: Arc<Progress>, at: ClientAddress, seed: u64) -> Self {
        let retry = Retry::new(RETRIES, stream_seed(client_seed(seed, at), 1));
        Self { loader, config: *config, progress, seed, stage: Stage::default(), staged: None, retry }
    }
}

impl Worker for RowLoader {
    fn draw(&mut self) -> Option<OpKind> {
        if self.staged.is_none() {
            let number = self.progress.chunk.fetch_add(1, Relaxed);
            let (of_set, sets) = (Chunk::count(&self.config.scale), self.config.sets);
            let set = u32::try_from(number / of_set).ok().filter(|set| *set < sets)?;
            let chunk = Chunk::numbered(&self.config.scale, number % of_set)?;
            self.stage.clear();
            let random = Random::seed_from_u64(stream_seed(self.seed, number));
            let mut filler =
                Filler { stage: &mut self.stage, random, config: &self.config, seed: self.seed, now: now() };
            self.staged = Some((DataSet { number: set, of: sets }, chunk, filler.fill(chunk)));
        }
        self.staged.map(|(_, chunk, _)| chunk.kind())
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        let Some((set, _, rows)) = self.staged else { return Ok(Op::default()) };
        let mut retries = 0;
        while let Err(error) = self.loader.load(set, &self.stage).await {
            if !error.is_conflict() {
                return Err(explained(error));
            }
            if !self.retry.wait(retries + 1, &error).await {
                let words = format!("rows were given up after {retries} retries ({error}); load with fewer loaders");
                return Err(EngineError::failed("load", words));
            }
            retries += 1;
        }
        self.staged = None;
        Ok(Op { rows, retries, failed: false })
    }

    fn statements(&mut self) -> StatementCounts {
        self.loader.statements()
    }
}

/// A lost connection as the end of the load: whether the rows are in the database is not known.
fn explained(error: EngineError) -> EngineError {
    match error {
        EngineError::CutOff(why) => EngineError::failed(
            "load",
            format!(
                "{why}; whether the rows at hand were written is not known, so the load cannot go on: run it again"
            ),
        ),
        other => other,
    }
}

/// The loader of the indexes.
pub struct IndexLoader {
    loader: Loader,
    progress: Arc<Progress>,
}

impl IndexLoader {
    /// The one that is first makes them all.
    pub fn new(loader: Loader, progress: Arc<Progress>) -> Self {
        Self { loader, progress }
    }
}

impl Worker for IndexLoader {
    fn draw(&mut self) -> Option<OpKind> {
        (!self.progress.index_is_taken.swap(true, Relaxed)).then_some(0)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        self.loader.build_indexes()?;
        Ok(Op::default())
    }

    fn statements(&mut self) -> StatementCounts {
        self.loader.statements()
    }
}

/// Makes the rows of a chunk.
struct Filler<'a> {
    stage: &'a mut Stage,
    random: Random,
    config: &'a Config,
    seed: u64,
    now: DateTime,
}

impl Filler<'_> {
    /// How many rows it came to.
    fn fill(&mut self, chunk: Chunk) -> u64 {
        let Scale { customers, items, .. } = self.config.scale;
        let upto = |first: u32, rows: u32, last: u32| first..=last.min(first + rows - 1);
        match chunk {
            Chunk::Items(first) => upto(first, ROWS, items).map(|item| self.item(item)).sum(),
            Chunk::Warehouse(warehouse) => {
                self.warehouse(warehouse)
                    + (1..=DISTRICTS).map(|district| self.district(warehouse, district)).sum::<u64>()
            }
            Chunk::Stock(warehouse, first) => upto(first, ROWS, items).map(|item| self.stock(warehouse, item)).sum(),
            Chunk::Customers(warehouse, district, first) => {
                upto(first, ROWS, customers).map(|customer| self.customer(warehouse, district, customer)).sum()
            }
            Chunk::Orders(warehouse, district, first) => {
                let customers_of = self.permutation(warehouse, district);
                let orders = upto(first, ORDERS, customers);
                orders.map(|order| self.order(warehouse, district, order, customers_of[order as usize - 1])).sum()
            }
        }
    }

    fn item(&mut self, item: u32) -> u64 {
        let Self { stage, random, .. } = self;
        let rows = stage.of(Table::Item);
        rows.int(item).int(between(random, 1, 10_000)).text(|out| put_text(random, 14, 24, out));
        rows.cents(i64::from(between(random, 100, 10_000))).text(|out| put_data(random, out));
        1
    }

    /// Two streets, a city, a state and a zip code.
    fn address(&mut self, table: Table) {
        let Self { stage, random, .. } = self;
        let rows = stage.of(table);
        for _ in 0..3 {
            rows.text(|out| put_text(random, 10, 20, out));
        }
        rows.text(|out| put_text(random, 2, 2, out));
        rows.text(|out| {
            put_digits(random, 4, out);
            out.extend_from_slice(b"11111");
        });
    }

    /// A warehouse or a district up to its tax, which is at most a fifth.
    fn named(&mut self, table: Table) {
        let random = &mut self.random;
        self.stage.of(table).text(|out| put_text(random, 6, 10, out));
        self.address(table);
        let tax = between(&mut self.random, 0, 2000);
        self.stage.of(table).rate(tax);
    }

    fn warehouse(&mut self, warehouse: u32) -> u64 {
        self.stage.of(Table::Warehouse).int(warehouse);
        self.named(Table::Warehouse);
        // What its customers have paid: ten dollars each, 300,000.00 of 30,000.
        let paid = self.paid_in_district() * i64::from(DISTRICTS);
        self.stage.of(Table::Warehouse).cents(paid);
        1
    }

    fn paid_in_district(&self) -> i64 {
        i64::from(self.config.scale.customers) * PAID
    }

    fn district(&mut self, warehouse: u32, district: u32) -> u64 {
        self.stage.of(Table::District).int(warehouse).int(district);
        self.named(Table::District);
        let paid = self.paid_in_district();
        self.stage.of(Table::District).cents(paid).int(self.config.scale.customers + 1);
        1
    }

    fn stock(&mut self, warehouse: u32, item: u32) -> u64 {
        let Self { stage, random, .. } = self;
        let rows = stage.of(Table::Stock);
        rows.int(warehouse).int(item).int(between(random, 10, 100));
        for _ in 0..DISTRICTS {
            rows.text(|out| put_text(random, 24, 24, out));
        }
        rows.int(0).int(0).int(0).text(|out| put_data(random, out));
        1
    }

    fn customer(&mut self, warehouse: u32, district: u32, customer: u32) -> u64 {
        let (scale, Constants { name_load, .. }) = (&self.config.scale, self.config.constants);
        let number = match customer {
            ..=1000 => customer - 1,
            _ => name_number(&mut self.random, name_load, scale),
        };
        let (name, length) = last_name(number % scale.names());
        let random = &mut self.random;
        let rows = self.stage.of(Table::Customer);
        rows.int(warehouse).int(district).int(customer);
        rows.text(|out| put_text(random, 8, 16, out)).text(|out| out.extend_from_slice(b"OE"));
        rows.text(|out| out.extend_from_slice(&name[..length]));
        self.address(Table::Customer);
        let Self { stage, random, now, .. } = self;
        let rows = stage.of(Table::Customer);
        // A tenth has bad credit.
        let credit: &[u8] = if between(random, 1, 10) == 1 { b"BC" } else { b"GC" };
        rows.text(|out| put_digits(random, 16, out)).time(*now).text(|out| out.extend_from_slice(credit));
        rows.cents(CREDIT_LIMIT).rate(between(random, 0, 5000)).cents(-PAID).cents(PAID).int(1).int(0);
        rows.text(|out| put_text(random, 300, 500, out));
        let rows = stage.of(Table::History);
        rows.int(customer).int(district).int(warehouse).int(district).int(warehouse).time(*now).cents(PAID);
        rows.text(|out| put_text(random, 12, 24, out));
        2
    }

    /// The customers of a district in a random order, the same for each of its chunks (4.3.3.1: a permutation).
    fn permutation(&self, warehouse: u32, district: u32) -> Vec<u32> {
        let place = u64::from(warehouse) * u64::from(DISTRICTS) + u64::from(district);
        let mut random = Random::seed_from_u64(stream_seed(!self.seed, place));
        let mut customers: Vec<u32> = (1..=self.config.scale.customers).collect();
        for last in (1..customers.len()).rev() {
            customers.swap(last, below(&mut random, last as u64 + 1) as usize);
        }
        customers
    }

    fn order(&mut self, warehouse: u32, district: u32, order: u32, customer: u32) -> u64 {
        let scale = self.config.scale;
        let Self { stage, random, now, .. } = self;
        let is_delivered = order < scale.first_undelivered();
        let lines = between(random, LINES.0, LINES.2);
        let orders = stage.of(Table::Orders);
        orders.int(warehouse).int(district).int(order).int(customer).time(*now);
        match is_delivered {
            true => orders.int(between(random, 1, 10)),
            false => orders.null(),
        };
        orders.int(lines).int(1);
        for line in 1..=lines {
            let rows = stage.of(Table::OrderLine);
            rows.int(warehouse).int(district).int(order).int(line).int(between(random, 1, scale.items)).int(warehouse);
            // What is delivered was free, what is not costs up to 9,999.99 (4.3.3.1).
            match is_delivered {
                true => rows.time(*now).int(5).cents(0),
                false => rows.null().int(5).cents(i64::from(between(random, 1, 999_999))),
            };
            rows.text(|out| put_text(random, 24, 24, out));
        }
        if !is_delivered {
            stage.of(Table::NewOrder).int(warehouse).int(district).int(order);
        }
        u64::from(1 + lines) + u64::from(!is_delivered)
    }
}

/// What each customer has paid at the start, and owes less for it, in cents.
pub const PAID: i64 = 1_000;
/// 50,000.00.
const CREDIT_LIMIT: i64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{CUSTOMERS, ITEMS};
    use crate::settings::Style;

    #[test]
    fn chunks_cover_everything_once() {
        let scale = Scale { warehouses: 2, customers: 250, items: 1500 };
        let chunks: Vec<Chunk> = (0..).map_while(|number| Chunk::numbered(&scale, number)).collect();
        let count = |of: fn(&Chunk) -> bool| chunks.iter().filter(|chunk| of(chunk)).count();
        assert_eq!(count(|chunk| matches!(chunk, Chunk::Items(_))), 2);
        assert_eq!(count(|chunk| matches!(chunk, Chunk::Warehouse(_))), 2);
        assert_eq!(count(|chunk| matches!(chunk, Chunk::Stock(..))), 4);
        assert_eq!(count(|chunk| matches!(chunk, Chunk::Customers(..))), 20);
        assert_eq!(count(|chunk| matches!(chunk, Chunk::Orders(..))), 60);
        assert!(chunks.contains(&Chunk::Orders(2, 10, 201)) && chunks.contains(&Chunk::Stock(2, 1001)));
        assert_eq!(Chunk::numbered(&scale, chunks.len() as u64), None);
        assert_eq!(Chunk::count(&scale), chunks.len() as u64);
        let whole = Scale { warehouses: 1, customers: CUSTOMERS, items: ITEMS };
        assert_eq!((0..).map_while(|number| Chunk::numbered(&whole, number)).count(), 100 + 1 + 100 + 10 * 33);
    }

    #[test]
    fn each_customer_has_one_order_and_chunks_agree_on_whose() {
        let scale = Scale { warehouses: 1, customers: 300, items: 100 };
        let config = Config { scale, sets: 1, constants: Constants::drawn(1), style: Style::Plain, thinks: false };
        let mut stage = Stage::default();
        let random = Random::seed_from_u64(1);
        let filler = Filler { stage: &mut stage, random, config: &config, seed: 9, now: now() };
        let mut customers = filler.permutation(1, 4);
        assert_eq!(customers, filler.permutation(1, 4));
        assert_ne!(customers, filler.permutation(1, 5));
        customers.sort_unstable();
        assert_eq!(customers, (1..=300).collect::<Vec<u32>>());
    }
}
