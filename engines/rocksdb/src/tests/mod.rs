//! Tests with the installed library.

mod background;
mod durability;
mod session;
mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Gauge, Schema};
use rumba_engine_api::kv::{Batch, KeySpace, KvSession};
use rumba_engine_api::setting::Value;
use rumba_testkit::allocations::{self, Counting};
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::key_value::{self, Database, SPACES, get, put, scan, session};

use crate::RocksDb;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[each(contract::cases)]
fn key_value_contract(case: &'static str) {
    let config = |durability| EngineConfig { durability, ..config() };
    Contract { engine: &RocksDb, config, writer: durability::WRITER }.holds(case);
}

const NODE: usize = 0;
const LINK: usize = 1;
const INDEX: usize = 2;

fn config() -> EngineConfig {
    EngineConfig { cache: 8 << 20, ..EngineConfig::new("rocksdb") }
}

fn config_with<const N: usize>(settings: [(&str, Value); N]) -> EngineConfig {
    EngineConfig { settings: settings.into(), ..config() }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn open(config: &EngineConfig) -> Database {
    Database::open(&RocksDb, config)
}

/// Loads rows of 100 bytes, compressible to about half, in batches.
fn load(session: &mut dyn KvSession, space: usize, rows: std::ops::Range<u64>) {
    let mut batch = Batch::default();
    let mut state = rows.start | 1;
    for row in rows {
        let mut value = [b'v'; 100];
        for byte in &mut value[..50] {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (state >> 56) as u8;
        }
        batch.push(space, &row.to_be_bytes(), &value);
        if batch.len() == 1000 {
            session.load(&batch).unwrap();
            batch.clear();
        }
    }
    session.load(&batch).unwrap();
}

fn gauge(gauges: &[Gauge], name: &str) -> f64 {
    gauges.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no gauge {name} in {gauges:?}")).value
}
