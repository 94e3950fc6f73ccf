//! The engine over the real library.

#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod availability;
mod conflicts;
mod disk_full;
mod oracle;
mod session;
mod settings;
mod upkeep;

use std::collections::BTreeMap;
use std::path::Path;

use rumba_core::engine::{Durability, Engine, EngineConfig, Instance, Schema, Session};
use rumba_core::kv::{Batch, KeySpace, KvSession};
use rumba_core::setting::{Settings, Value};
use rumba_engine_wiredtiger::WiredTiger;
use tempfile::TempDir;

const SPACES: &[KeySpace] = &[
    KeySpace { name: "link", scan_prefix: 0, derived: false },
    KeySpace { name: "count", scan_prefix: 0, derived: false },
];

fn config() -> EngineConfig {
    EngineConfig {
        name: "wiredtiger".into(),
        engine: "wiredtiger".into(),
        cache: 64 << 20,
        durability: Durability::NoSync,
        compression: None,
        library: None,
        server: None,
        limits: Default::default(),
        // Three log files of the usual 100 MB each are allocated otherwise, per test.
        settings: settings(&[("log.file_max", Value::Text("1MiB".into()))]),
    }
}

fn settings(list: &[(&str, Value)]) -> Settings {
    Settings(list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<BTreeMap<_, _>>())
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
        match self.instance.session().unwrap() {
            Session::Kv(session) => session,
            other => panic!("wiredtiger gave {}", other.told()),
        }
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
    session.begin().unwrap();
    session.put(0, key, value).unwrap();
    session.commit().unwrap();
}

fn get(session: &mut dyn KvSession, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"left over".to_vec();
    session.get(0, key, &mut value).unwrap().then_some(value)
}

fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}
