//! What several tests need.

use rumba_core::engine::{Durability, EngineConfig};
use rumba_core::setting::Settings;

/// An engine as an experiment that says nothing more asks for it.
pub fn config(engine: &str) -> EngineConfig {
    EngineConfig {
        name: engine.into(),
        engine: engine.into(),
        cache: 32 << 20,
        durability: Durability::NoSync,
        compression: None,
        library: None,
        server: None,
        limits: Default::default(),
        settings: Settings::default(),
    }
}
