//! Helpers for the tests of this engine: an instance in its own directory.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
use rumba_testkit::key_value::SPACES;
pub use rumba_testkit::key_value::session;

pub const INDEX: usize = 2;

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
