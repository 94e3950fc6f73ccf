//! Checks whether an engine's sessions support TPC-C. The same random inputs run against the adapters and an in-memory
//! oracle, and every answer and the final tables are compared.

use std::fmt::Debug;
use std::sync::{Arc, LazyLock};

use rand::SeedableRng;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::worker::{ClientAddress, Worker, block_on};
use rumba_workload_kit::{Random, conformance};

use crate::acid::Inspect;
use crate::content::{Row, Value};
use crate::data_set::DataSet;
use crate::deck::Deck;
use crate::draw::{Constants, Input, Inputs};
use crate::kv::{self, KvInspector, KvLoader, KvStore};
use crate::load::{Loader, Progress, RowLoader, every_row};
use crate::oracle::Oracle;
use crate::scale::Scale;
use crate::settings::{Config, Style};
use crate::sql::{SqlInspector, SqlLoader, SqlStore, Texts, create_tables};
use crate::store::Store;
use crate::tables::Table;

const ONLY: DataSet = DataSet { number: 0, of: 1 };
/// Few rows of everything, so that inputs collide.
const SCALE: Scale = Scale { warehouses: 2, customers: 30, items: 100 };

/// The schema with which a conformance test opens its instance.
pub fn schema(family: Family) -> Schema<'static> {
    static SPACES: LazyLock<Vec<KeySpace>> = LazyLock::new(|| kv::spaces(1));
    if family == Family::KeyValue { Schema::KeyValue(&SPACES) } else { Schema::BySession }
}

/// Runs `steps` random transactions of `seed` over sessions from `open`. The sessions must all belong to one new, empty
/// instance that was opened with [`schema`]; `open` is called more than once.
///
/// # Errors
/// A description of the first answer or row that differs from the oracle's.
pub fn conformance(open: &mut dyn FnMut() -> Session, seed: u64, steps: usize) -> Result<(), String> {
    let wrong = |error: EngineError| format!("seed {seed}: {error}");
    let config =
        Config { scale: SCALE, sets: 1, constants: Constants::drawn(seed), style: Style::Plain, thinks: false };
    let mut oracle = Oracle::default();
    every_row(&config, seed, &mut |table, row| {
        let values = table.columns().iter().zip(row).map(|((_, kind), value)| Value::of(*kind, value));
        oracle.insert(table, values.collect());
    });
    match open() {
        Session::Kv(session) => {
            load(Loader::Kv(KvLoader::new(session)), &config, seed).map_err(wrong)?;
            let stores = (1..3).map(|client| Ok(KvStore::new(conformance::kv(open())?, ONLY, client)));
            let stores: Vec<KvStore> = stores.collect::<Result<_, String>>()?;
            run(stores, &mut oracle, &config, seed, steps)?;
            compare(&mut KvInspector::new(conformance::kv(open())?, ONLY), &oracle, seed)
        }
        Session::Sql(mut session) => {
            create_tables(&mut *session, 1).map_err(wrong)?;
            load(Loader::Sql(SqlLoader::new(session, 1).map_err(wrong)?), &config, seed).map_err(wrong)?;
            SqlLoader::new(conformance::sql(open())?, 1)
                .and_then(|mut loader| (0..loader.indexes()).try_for_each(|index| block_on(loader.build_index(index))))
                .map_err(wrong)?;
            oracle.folds_case = SqlInspector::new(conformance::sql(open())?, ONLY).folds_case().map_err(wrong)?;
            let (mut stores, texts) = (Vec::new(), Arc::new(Texts::new(ONLY)));
            let groups = conformance::sql(open())?.group_statements();
            for style in [Style::Plain, Style::Batched, Style::Grouped] {
                if style == Style::Grouped && !groups {
                    continue;
                }
                stores.push(SqlStore::new(conformance::sql(open())?, texts.clone(), style).map_err(wrong)?);
            }
            run(stores, &mut oracle, &config, seed, steps)?;
            compare(&mut SqlInspector::new(conformance::sql(open())?, ONLY), &oracle, seed)
        }
        other => Err(other.unserved("tpcc").to_string()),
    }
}

fn load(loader: Loader, config: &Config, seed: u64) -> Result<()> {
    let alone = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
    let mut loader = RowLoader::new(loader, config, Arc::<Progress>::default(), alone, seed);
    while loader.draw().is_some() {
        block_on(loader.perform())?;
    }
    Ok(())
}

/// Runs the mix, by one store after the other, and compares every answer.
fn run<S: Store>(
    mut stores: Vec<S>,
    oracle: &mut Oracle,
    config: &Config,
    seed: u64,
    steps: usize,
) -> Result<(), String> {
    let mut inputs = Inputs::new(Random::seed_from_u64(seed), config.scale, config.constants, None);
    let (mut deck, count) = (Deck::new(), stores.len());
    for step in 0..steps {
        let card = deck.draw(&mut inputs.random);
        let (input, store) = (inputs.draw(card), &mut stores[step % count]);
        let differs = match &input {
            Input::NewOrder(order) => differs(block_on(store.new_order(order)), oracle.new_order(order)),
            Input::Payment(payment) => differs(block_on(store.payment(payment)), oracle.payment(payment)),
            Input::OrderStatus(requested) => {
                differs(block_on(store.order_status(requested)), oracle.order_status(requested))
            }
            Input::Delivery(delivery) => differs(block_on(store.delivery(delivery)), oracle.delivery(delivery)),
            Input::StockLevel(requested) => {
                differs(block_on(store.stock_level(requested)), oracle.stock_level(requested))
            }
        };
        if let Some(how) = differs {
            return Err(format!("seed {seed}, step {step}, store {}: {input:?}: {how}", step % count));
        }
    }
    Ok(())
}

fn differs<T: PartialEq + Debug>(answer: Result<T>, expected: T) -> Option<String> {
    match answer {
        Ok(answer) if answer == expected => None,
        Ok(answer) => Some(format!("it answers {answer:?}, the oracle {expected:?}")),
        Err(error) => Some(error.to_string()),
    }
}

/// Compares the tables row by row.
fn compare(inspector: &mut impl Inspect, oracle: &Oracle, seed: u64) -> Result<(), String> {
    for table in Table::ALL {
        let found = inspector.content(table).map_err(|error| format!("seed {seed}: {table:?}: {error}"))?;
        let (found, expected) = (sorted(found), sorted(oracle.rows(table)));
        let table = format!("{table:?}");
        conformance::same(&table, &found, &expected).map_err(|wrong| format!("seed {seed}, {wrong}"))?;
    }
    Ok(())
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable();
    rows
}
