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

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::allocations::Counting;
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::key_value::{self, Database, SPACES, load};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[each(contract::cases)]
fn key_value_contract(case: &'static str) {
    let config = |durability| match durability {
        Durability::None => unlogged(),
        durability => EngineConfig { durability, ..config() },
    };
    Contract { engine: &WiredTiger, config, writer: crash::WRITER }.holds(case);
}

fn config() -> EngineConfig {
    EngineConfig {
        cache: 64 << 20,
        // Otherwise each test would allocate three log files of the default 100 MB.
        settings: settings(&[("log.file_max", Value::Text("1MiB".into()))]),
        ..EngineConfig::new("wiredtiger")
    }
}

fn settings(list: &[(&str, Value)]) -> Settings {
    list.iter().cloned().collect()
}

fn unlogged() -> EngineConfig {
    EngineConfig { durability: Durability::None, settings: Settings::default(), ..config() }
}

fn open(config: &EngineConfig) -> Database {
    Database::open(&WiredTiger, config)
}

fn put(session: &mut dyn KvSession, key: &[u8], value: &[u8]) {
    key_value::put(session, 0, key, value);
}

fn get(session: &mut dyn KvSession, key: &[u8]) -> Option<Vec<u8>> {
    key_value::get(session, 0, key)
}
