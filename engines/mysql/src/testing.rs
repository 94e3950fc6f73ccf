//! What several tests need.

use rumba_core::engine::EngineConfig;

/// An engine as an experiment that says nothing more asks for it.
pub fn config(engine: &str) -> EngineConfig {
    EngineConfig { cache: 32 << 20, ..EngineConfig::new(engine) }
}
