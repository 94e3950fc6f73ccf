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

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;
    use rumba_engine_api::units::parse_bytes;

    use crate::profile::promises;

    use super::*;

    const PROFILE: &str = r#"
        [[layer]]
        [layer.variables]
        log_size = "= cache * 2"
        pool = "= cache unit B"
        [layer.durability]
        log = { none = "off", no-sync = "on", sync = "on" }
        sync = { none = "off", no-sync = "off", sync = "on" }
        [[layer]]
        engine = "another"
        [layer.variables]
        buffer = "= cache"
    "#;

    fn overruled(server: Option<&str>, durability: Durability, set: &[(&str, &str)]) -> OverriddenSettings {
        let settings = set.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
        let server = server.map(str::to_owned);
        let config = EngineConfig { server, durability, settings, ..EngineConfig::new("a") };
        promises(&[PROFILE], "a").overruled(
            &config,
            |setting, variable| setting == variable,
            |size| parse_bytes(size).ok(),
        )
    }

    #[test]
    fn unset_settings_and_those_equal_to_common_override_nothing() {
        assert_eq!(
            overruled(None, Durability::Sync, &[("log_size", "1MiB"), ("buffer", "1MiB")]),
            OverriddenSettings::default()
        );
        let as_is = [("log", "ON"), ("sync", "1")];
        assert_eq!(overruled(None, Durability::Sync, &as_is), OverriddenSettings::default());
    }

    #[test]
    fn a_cache_of_its_own_is_read_or_else_in_terms_of_its_own() {
        let cache = |size| overruled(None, Durability::Sync, &[("pool", size)]).cache;
        assert_eq!(cache("1GiB"), Some(Own::new("pool", Some(1 << 30))));
        assert_eq!(cache("half"), Some(Own::new("pool", None)));
    }

    #[test]
    fn the_level_is_the_one_whose_values_are_all_in_force_or_none() {
        let of = |durability, set: &[(&str, &str)]| overruled(None, durability, set).durability;
        assert_eq!(of(Durability::Sync, &[("sync", "off")]), Some(Own::new("sync", Some(Durability::NoSync))));
        let both = of(Durability::Sync, &[("log", "on"), ("sync", "off")]);
        assert_eq!(
            both,
            Some(Own::new("sync", Some(Durability::NoSync))),
            "the one that makes the difference is named"
        );
        assert_eq!(of(Durability::NoSync, &[("log", "off")]), Some(Own::new("log", Some(Durability::None))));
        assert_eq!(
            of(Durability::None, &[("sync", "on")]),
            Some(Own::new("sync", None)),
            "no level has a log that is off"
        );
        assert_eq!(of(Durability::Sync, &[("sync", "remotely")]), Some(Own::new("sync", None)));
    }

    #[test]
    fn existing_server_durability_is_known_if_all_of_it_is_set() {
        let of = |set: &[(&str, &str)]| overruled(Some("mysql://me@host/db"), Durability::Sync, set);
        assert_eq!(of(&[("sync", "on")]).durability, None);
        let all = of(&[("log", "on"), ("sync", "on"), ("pool", "1MiB")]);
        assert_eq!(all.durability, Some(Own::new("log", Some(Durability::Sync))));
        assert_eq!(all.cache, Some(Own::new("pool", Some(1 << 20))));
    }
}
