//! Engines that differ only in their names: comparing them would compare one engine with itself.

use rumba_engine_api::engine::EngineConfig;
use rumba_results::warning::Warning;
use rumba_statistics::same_engine::{Setup, pairs};

use crate::registry::Registry;

/// A warning for each such pair, by the settings that they will start with. An engine's own default of a setting is
/// known only when it runs; the results check that case.
pub fn warnings(engines: &[EngineConfig], registry: &Registry) -> Vec<Warning> {
    let setup =
        |config| Some(Setup::new(config, build(config), registry.engine(&config.engine)?.planned_settings(config)));
    let setups: Vec<Setup<'_>> = engines.iter().filter_map(setup).collect();
    pairs(&setups).into_iter().map(|(_, _, reason)| warning(&reason)).collect()
}

fn build(config: &EngineConfig) -> String {
    format!("{:?} {:?}", config.library, config.server)
}

fn warning(reason: &str) -> Warning {
    Warning::new(
        "same-engine",
        format!("{reason}; a comparison of the two is void"),
        "change a setting that takes effect, leave one of them out, or set [run] aa = true to compare an engine with itself",
    )
}
