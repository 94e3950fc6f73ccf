//! Tests of the engine with the real library.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod availability;
mod conflicts;
mod crash;
mod disk_full;
mod settings;
mod upkeep;
mod upserts;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::kv::{Batch, KeySpace, KvSession};
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::allocations::Counting;
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::key_value;
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[needs(ExternalLibrary(LIBRARY))]
#[each(contract::cases)]
fn key_value_contract(case: &'static str) {
    let config = |durability| config(durability, &small_nodes());
    Contract { engine: &FractalTree, config, writer: "crash::commit_until_killed" }.holds(case);
}

const SPACES: &[KeySpace] = &[
    KeySpace { name: "rows", scan_prefix: 0, derived: false },
    KeySpace { name: "counts", scan_prefix: 0, derived: false },
];

fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
    let settings = settings.iter().cloned().collect();
    EngineConfig { cache: 32 << 20, durability, settings, ..EngineConfig::new("fractal-tree") }
}

/// Nodes small enough for a test to create inner nodes.
fn small_nodes() -> [(&'static str, Value); 2] {
    [("pagesize", Value::Text("64KiB".into())), ("readpagesize", Value::Text("16KiB".into()))]
}

struct Database {
    instance: Box<dyn Instance>,
    dir: TempDir,
}

impl Database {
    fn open(config: &EngineConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        FractalTree.check(config).unwrap();
        let instance = FractalTree.open(dir.path(), config, Schema::KeyValue(SPACES)).unwrap();
        Self { instance, dir }
    }

    fn usual() -> Self {
        Self::open(&config(Durability::NoSync, &[]))
    }

    fn session(&self) -> Box<dyn KvSession> {
        key_value::session(&*self.instance)
    }

    fn counter(&self, name: &str) -> f64 {
        let counters = self.instance.counters();
        counters.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no {name} in {counters:?}")).value
    }
}

/// Loads rows `key 00000000`, … in batches.
fn load(session: &mut dyn KvSession, rows: usize) {
    let mut batch = Batch::default();
    for row in 0..rows {
        batch.push(0, format!("key {row:08}").as_bytes(), format!("value {row:08} ").repeat(16).as_bytes());
        if batch.len() == 1000 || row + 1 == rows {
            session.load(&batch).unwrap();
            batch.clear();
        }
    }
}

fn put(session: &mut dyn KvSession, key: &[u8], value: &[u8]) {
    key_value::put(session, 0, key, value);
}

fn get(session: &mut dyn KvSession, key: &[u8]) -> Option<Vec<u8>> {
    key_value::get(session, 0, key)
}
