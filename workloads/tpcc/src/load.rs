//! The load: the initial population of clause 4.3.3.1, in chunks. Every chunk draws from its own generator. The data
//! therefore depends only on the seed and the scale, and not on which loader loads which chunk.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rand::SeedableRng;
use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Dialect, Param};
use rumba_engine_api::value::DateTime;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Padded, Partition, Random, Retry, below, stream_seed};

use crate::chunk::{Chunk, ORDERS, ROWS};
use crate::data_set::DataSet;
use crate::draw::{Constants, between, name_number, now, put_data, put_digits, put_text};
use crate::kv::KvLoader;
use crate::names::last_name;
use crate::scale::{DISTRICTS, LINES, PAID, Scale};
use crate::settings::Config;
use crate::sql::SqlLoader;
use crate::stage::Stage;
use crate::tables::Table;

/// The shared state of an instance's loaders: each touches it once for each run of chunks, and for each index.
#[derive(Debug, Default)]
pub struct Progress {
    run: Padded,
    index: AtomicUsize,
    /// This host's share of the runs.
    pub partition: Partition,
}

impl Progress {
    /// The numbers of the chunks that a loader writes next, counted over all data sets; `None` if none are left.
    fn next_run(&self, config: &Config) -> Option<Range<u64>> {
        let number = self.partition.next(&self.run);
        let (runs, chunks) = (Chunk::runs(&config.scale), Chunk::count(&config.scale));
        let set = number / runs;
        if set >= u64::from(config.sets) {
            return None;
        }
        let run = Chunk::run(&config.scale, number % runs)?;
        Some(set * chunks + run.start..set * chunks + run.end)
    }

    /// The number of the index that a loader builds next, counted over all data sets; `None` if all are taken.
    fn next_index(&self, indexes: usize) -> Option<usize> {
        Some(self.index.fetch_add(1, Relaxed)).filter(|index| *index < indexes)
    }
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
    /// Loads the staged rows, all or none.
    async fn load(&mut self, set: DataSet, stage: &Stage) -> Result<()> {
        match self {
            Loader::Sql(loader) => loader.load(set, stage).await,
            Loader::Kv(loader) => loader.load(set, stage),
        }
    }

    /// The number of indexes to build; over keys and values their entries were loaded with the rows.
    fn indexes(&self) -> usize {
        match self {
            Loader::Sql(loader) => loader.indexes(),
            Loader::Kv(_) => 0,
        }
    }

    fn index_loaders(&self) -> u32 {
        match self {
            Loader::Sql(loader) => loader.index_loaders(),
            Loader::Kv(_) => 0,
        }
    }

    async fn build_index(&mut self, number: usize) -> Result<()> {
        match self {
            Loader::Sql(loader) => loader.build_index(number).await,
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

pub struct RowLoader {
    loader: Loader,
    config: Config,
    progress: Arc<Progress>,
    seed: u64,
    /// The chunks that it writes next.
    run: Range<u64>,
    stage: Stage,
    /// The staged rows that are not yet written: their data set, chunk, and number of rows.
    staged: Option<(DataSet, Chunk, u64)>,
    retry: Retry,
}

impl RowLoader {
    /// A loader that takes its share.
    pub fn new(loader: Loader, config: &Config, progress: Arc<Progress>, at: ClientAddress, seed: u64) -> Self {
        let (retry, stage) = (Retry::of_loader(at, seed), Stage::default());
        Self { loader, config: *config, progress, seed, run: 0..0, stage, staged: None, retry }
    }

    /// The number of its next chunk, which begins another run if the current one is complete.
    fn next_chunk(&mut self) -> Option<u64> {
        loop {
            if let Some(number) = self.run.next() {
                return Some(number);
            }
            self.run = self.progress.next_run(&self.config)?;
        }
    }
}

impl Worker for RowLoader {
    fn draw(&mut self) -> Option<OpKind> {
        if self.staged.is_none() {
            let number = self.next_chunk()?;
            let of_set = Chunk::count(&self.config.scale);
            let set = DataSet { number: (number / of_set) as u32, of: self.config.sets };
            let chunk = Chunk::numbered(&self.config.scale, number % of_set)?;
            self.stage.clear();
            let random = Random::seed_from_u64(stream_seed(self.seed, number));
            let mut filler =
                Filler { stage: &mut self.stage, random, config: &self.config, seed: self.seed, now: now() };
            self.staged = Some((set, chunk, filler.fill(chunk)));
        }
        self.staged.map(|(_, chunk, _)| chunk.kind())
    }

    async fn perform(&mut self) -> Result<Op> {
        let Some((set, _, rows)) = self.staged else { return Ok(Op::default()) };
        let mut retries = 0;
        while let Err(error) = self.loader.load(set, &self.stage).await {
            self.retry.load("rows", &mut retries, error).await?;
        }
        self.staged = None;
        Ok(Op { rows, retries, failed: false })
    }

    fn statements(&mut self) -> StatementCounts {
        self.loader.statements()
    }
}

/// A loader of indexes: each is of one table, so that loaders make several at once.
pub struct IndexLoader {
    loader: Loader,
    progress: Arc<Progress>,
    /// Whether it is one of those that make indexes.
    makes: bool,
    index: Option<usize>,
    retry: Retry,
}

impl IndexLoader {
    /// A loader that takes its share.
    pub fn new(loader: Loader, progress: Arc<Progress>, at: ClientAddress, seed: u64) -> Self {
        // The first host makes all of them, because they are too few to divide.
        let makes = at.host == 0 && progress.partition.share().own(at.client) < loader.index_loaders();
        Self { loader, progress, makes, index: None, retry: Retry::of_loader(at, seed) }
    }
}

impl Worker for IndexLoader {
    fn draw(&mut self) -> Option<OpKind> {
        if self.makes && self.index.is_none() {
            self.index = self.progress.next_index(self.loader.indexes());
        }
        self.index.map(|_| 0)
    }

    async fn perform(&mut self) -> Result<Op> {
        let Some(index) = self.index else { return Ok(Op::default()) };
        let mut retries = 0;
        while let Err(error) = self.loader.build_index(index).await {
            self.retry.load("index entries", &mut retries, error).await?;
        }
        self.index = None;
        Ok(Op { rows: 0, retries, failed: false })
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

    /// A warehouse or a district up to its tax, which is at most 20%.
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
        // The payments of its customers: ten dollars each, 300,000.00 for 30,000.
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
            // Delivered lines were free; others cost up to 9,999.99 (4.3.3.1).
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

/// 50,000.00.
const CREDIT_LIMIT: i64 = 5_000_000;

#[cfg(test)]
mod population;
#[cfg(test)]
mod tests;
