//! Finds the common settings that an experiment's own server variables override.

use rumba_engine_api::common::{Durability, OverriddenSettings, Own};
use rumba_engine_api::engine::EngineConfig;

use crate::profile::{Levels, Promises};
use crate::readback::{Match, compare};

/// A setting of the experiment, and its value.
type Set = (String, String);

impl Promises {
    /// The common settings that the experiment's own settings override. `is` says whether a setting is another name of
    /// a variable; `bytes` parses a size as the server does.
    pub fn overruled(
        &self,
        config: &EngineConfig,
        is: impl Fn(&str, &str) -> bool,
        bytes: impl Fn(&str) -> Option<u64>,
    ) -> OverriddenSettings {
        // If several settings are the same variable, the last one takes effect.
        let set = |variable: &str| -> Option<Set> {
            let (setting, value) = config.settings.0.iter().rfind(|(setting, _)| is(setting, variable))?;
            Some((setting.clone(), value.to_string()))
        };
        let cache = self.cache.as_deref().and_then(set).map(|(setting, value)| Own::new(setting, bytes(&value)));
        OverriddenSettings { cache, durability: self.durability(config, set) }
    }

    /// The level whose values are all in effect. If no level matches, the result names the overriding setting. On an
    /// existing server unset variables are unknown, so the level is known only if the experiment sets all of them.
    fn durability(&self, config: &EngineConfig, set: impl Fn(&str) -> Option<Set>) -> Option<Own<Durability>> {
        let in_force = |(variable, values): &(String, Levels)| match set(variable) {
            Some((setting, value)) => Some((Some(setting), value)),
            None if config.is_existing() => None,
            None => Some((None, values.get(&config.durability)?.clone())),
        };
        let in_force: Vec<(Option<String>, String)> = self.durability.iter().map(in_force).collect::<Option<_>>()?;
        let with_values = || in_force.iter().zip(self.durability.iter().map(|(_, values)| values));
        let is_of = |value: &str, values: &Levels, level: Durability| {
            values.get(&level).is_some_and(|of_level| compare(value, of_level) == Match::Same)
        };
        let is_whole = |level: Durability| with_values().all(|((_, value), values)| is_of(value, values, level));
        if !config.is_existing() && is_whole(config.durability) {
            return None;
        }
        let other = with_values().filter(|((_, value), values)| !is_of(value, values, config.durability));
        let named = other.chain(with_values()).find_map(|((setting, _), _)| setting.clone());
        // If two levels have the same values, the stronger one is guaranteed.
        let level = Durability::NAMES.iter().rev().map(|(_, level)| *level).find(|level| is_whole(*level));
        named.map(|setting| Own::new(setting, level))
    }
}
