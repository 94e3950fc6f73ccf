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

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::allocations::Counting;
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::key_value::{self, Database, SPACES, load};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[needs(ExternalLibrary(LIBRARY))]
#[each(contract::cases)]
fn key_value_contract(case: &'static str) {
    let config = |durability| config(durability, &small_nodes());
    Contract { engine: &FractalTree, config, writer: "crash::commit_until_killed" }.holds(case);
}

fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
    let settings = settings.iter().cloned().collect();
    EngineConfig { cache: 32 << 20, durability, settings, ..EngineConfig::new("fractal-tree") }
}

/// Nodes small enough for a test to create inner nodes.
fn small_nodes() -> [(&'static str, Value); 2] {
    [("pagesize", Value::Text("64KiB".into())), ("readpagesize", Value::Text("16KiB".into()))]
}

fn open(config: &EngineConfig) -> Database {
    Database::open(&FractalTree, config)
}

fn usual() -> Database {
    open(&config(Durability::NoSync, &[]))
}

fn put(session: &mut dyn KvSession, key: &[u8], value: &[u8]) {
    key_value::put(session, 0, key, value);
}

fn get(session: &mut dyn KvSession, key: &[u8]) -> Option<Vec<u8>> {
    key_value::get(session, 0, key)
}
