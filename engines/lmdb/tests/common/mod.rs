//! Helpers for the tests of this engine: an instance in its own directory.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
pub use rumba_testkit::key_value::session;

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
