//! Helpers for the tests of this engine: an instance in its own directory.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
#[allow(unused_imports)] // Each test file uses its part.
pub use rumba_testkit::key_value::{get, session};
use tempfile::TempDir;

pub const ROWS: usize = 0;
pub const INDEX: usize = 1;
pub const SPACES: [KeySpace; 2] = [
    KeySpace { name: "rows", scan_prefix: 0, derived: false },
    KeySpace { name: "index", scan_prefix: 4, derived: false },
];

pub fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
    EngineConfig {
        cache: 64 << 20,
        durability,
        settings: settings.iter().cloned().collect(),
        ..EngineConfig::new("lmdb")
    }
}

pub fn open_in(dir: &Path, config: &EngineConfig) -> Box<dyn Instance> {
    Lmdb.open(dir, config, Schema::KeyValue(&SPACES)).unwrap()
}

/// A configuration whose map is small enough for valgrind (32 GiB at most).
pub fn small(durability: Durability) -> EngineConfig {
    config(durability, &[("map_size", Value::Text("1GiB".into()))])
}

pub fn open() -> (TempDir, Box<dyn Instance>) {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &small(Durability::NoSync));
    (dir, instance)
}

pub fn counter(instance: &dyn Instance, name: &str) -> f64 {
    instance.counters().into_iter().find(|gauge| gauge.name == name).unwrap().value
}
