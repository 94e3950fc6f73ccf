//! Helpers for several tests.

use rumba_engine_api::engine::EngineConfig;

/// An engine configuration with defaults only.
pub fn config(engine: &str) -> EngineConfig {
    EngineConfig { cache: 32 << 20, ..EngineConfig::new(engine) }
}
