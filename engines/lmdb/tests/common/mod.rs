//! What the tests of this engine share: an instance in a directory of its own.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use rumba_core::engine::{Durability, Engine, EngineConfig, Instance, Schema, Session};
use rumba_core::kv::{KeySpace, KvSession};
use rumba_core::setting::{Settings, Value};
use rumba_engine_lmdb::Lmdb;
use tempfile::TempDir;

pub const ROWS: usize = 0;
pub const INDEX: usize = 1;
pub const SPACES: [KeySpace; 2] = [
    KeySpace { name: "rows", scan_prefix: 0, derived: false },
    KeySpace { name: "index", scan_prefix: 4, derived: false },
];

pub fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
    EngineConfig {
        name: "lmdb".into(),
        engine: "lmdb".into(),
        cache: 64 << 20,
        durability,
        compression: None,
        library: None,
        server: None,
        limits: Default::default(),
        settings: Settings(settings.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect::<BTreeMap<_, _>>()),
    }
}

pub fn open_in(dir: &Path, config: &EngineConfig) -> Box<dyn Instance> {
    Lmdb.open(dir, config, Schema::KeyValue(&SPACES)).unwrap()
}

/// With a map that valgrind can map too (32 GiB at most).
pub fn open() -> (TempDir, Box<dyn Instance>) {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, &[("map_size", Value::Text("1GiB".into()))]));
    (dir, instance)
}

pub fn session(instance: &dyn Instance) -> Box<dyn KvSession> {
    match instance.session().unwrap() {
        Session::Kv(session) => session,
        other => panic!("lmdb gave {}", other.told()),
    }
}

pub fn get(session: &mut dyn KvSession, space: usize, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"left over".to_vec();
    let found = session.get(space, key, &mut value).unwrap();
    assert!(found || value.is_empty(), "an absent key must leave no value behind");
    found.then_some(value)
}

pub fn counter(instance: &dyn Instance, name: &str) -> f64 {
    instance.counters().into_iter().find(|gauge| gauge.name == name).unwrap().value
}
