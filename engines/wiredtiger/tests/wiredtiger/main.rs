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

use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::kv::{Batch, KeySpace, KvSession};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::allocations::Counting;
use rumba_testkit::contract::{self, Contract};
use rumba_testkit::key_value;
use tempfile::TempDir;

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

const SPACES: &[KeySpace] = &[
    KeySpace { name: "link", scan_prefix: 0, derived: false },
    KeySpace { name: "count", scan_prefix: 0, derived: false },
];

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

struct Database {
    instance: Box<dyn Instance>,
    dir: TempDir,
}

impl Database {
    fn open(config: &EngineConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        WiredTiger.check(config).unwrap();
        let instance = WiredTiger.open(dir.path(), config, Schema::KeyValue(SPACES)).unwrap();
        Self { instance, dir }
    }

    fn session(&self) -> Box<dyn KvSession> {
        key_value::session(&*self.instance)
    }

    fn gauge(&self, name: &str) -> f64 {
        let counters = self.instance.counters();
        counters.iter().find(|gauge| gauge.name == name).unwrap_or_else(|| panic!("no {name}")).value
    }
}

/// Loads rows `key 00000000`, …, with values that compress well.
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

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}
