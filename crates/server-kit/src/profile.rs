//! Profiles, which compute a server's configuration from a memory budget.
//!
//! A profile is a TOML text with layers; each layer applies to some servers and engines. A value that begins with `=`
//! is computed. It starts with `cache` or `cpus`, followed by any of `* N`, `/ N`, `from SIZE`, `to SIZE`, `by SIZE`. A
//! final `unit U` is appended to the number. `A less B` subtracts one such quantity from another.

use std::collections::BTreeMap;

use rumba_engine_api::engine::Durability;
use rumba_engine_api::setting::SettingError;
use rumba_engine_api::units::parse_bytes;
use serde::Deserialize;

use crate::version::Version;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    layer: Vec<Layer>,
    #[serde(default)]
    families: BTreeMap<String, String>,
}

/// Variables for some servers; later layers override earlier ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    /// A brand and version bounds: `mysql >= 5.7 < 8.0.30`; all servers if absent.
    servers: Option<String>,
    /// The engine by the server's name; all engines if absent.
    engine: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Variables that implement a durability: `name = { none = "0", buffered = "0", no-sync = "2", sync = "1" }`. The
    /// server does not support a level that is missing.
    #[serde(default)]
    durability: BTreeMap<String, Levels>,
}

/// A variable's value for each durability that the server supports.
pub type Levels = BTreeMap<Durability, String>;

/// The inputs of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// The engine by the server's name.
    pub engine: &'a str,
    /// The server's brand in lower case: `mariadb`.
    pub brand: &'a str,
    /// The server's version.
    pub version: Version,
    /// The database's own cache in bytes.
    pub cache: u64,
    /// The durability that a commit guarantees.
    pub durability: Durability,
    /// CPUs that the server may use.
    pub cpus: u64,
}

/// A variable of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The server's variable, as its manual spells it.
    pub name: String,
    /// The value as it is written into the configuration, including units.
    pub value: String,
    /// Whether it implements one of the experiment's common settings, so that it must take effect.
    pub is_promise: bool,
}

/// A profile filled in for a server.
#[derive(Clone, Debug, Default)]
pub struct Filled {
    /// The server's variables.
    pub lines: Vec<Line>,
    /// The options of an LSM engine's column families.
    pub families: Vec<(String, String)>,
}

/// The variables by which profiles implement the common settings.
#[derive(Clone, Debug, Default)]
pub struct Promises {
    /// The variable for the cache size.
    pub cache: Option<String>,
    /// The variables for the durability.
    pub durability: Vec<(String, Levels)>,
}

impl Promises {
    /// Refuses a durability that the engine does not support.
    ///
    /// # Errors
    /// The setting `durability`, with the levels that the engine supports.
    pub fn require(&self, engine: &str, durability: Durability) -> Result<(), SettingError> {
        let has = |level: Durability| self.durability.iter().all(|(_, levels)| levels.contains_key(&level));
        if has(durability) {
            return Ok(());
        }
        let offered = Durability::NAMES.iter().filter(|(_, level)| has(*level)).map(|(name, _)| *name);
        let problem = format!("{engine} has no `{}`", durability.name());
        Err(SettingError::new("durability", problem, format!("set one of: {}", offered.collect::<Vec<_>>().join(", "))))
    }
}

/// The common-setting variables of the profiles for an engine, the more specific profile last. They are in layers for
/// all servers, so no server is needed to know them. [`fill`] reports an invalid profile.
pub fn promises(profiles: &[&str], engine: &str) -> Promises {
    let mut promises = Promises::default();
    let sound = profiles.iter().filter_map(|text| toml_edit::de::from_str::<Profile>(text).ok());
    for layer in sound.flat_map(|profile| profile.layer) {
        if layer.servers.is_none() && layer.is_of(engine) {
            let cache = layer.variables.into_iter().find(|(_, value)| is_the_cache(value));
            promises.cache = cache.map(|(name, _)| name).or(promises.cache);
            promises.durability.extend(layer.durability);
        }
    }
    promises
}

/// Fills in profiles, the more specific one last.
///
/// # Errors
/// An invalid profile, which is a bug in rumba that its tests detect.
pub fn fill(profiles: &[&str], needs: &Needs<'_>) -> Result<Filled, SettingError> {
    let remedy = "this is a mistake of rumba's profiles: please report it";
    let broken = |what: String| SettingError::new("engine", format!("profile: {what}"), remedy);
    let mut filled = Filled::default();
    for text in profiles {
        let profile: Profile = toml_edit::de::from_str(text).map_err(|error| broken(error.to_string()))?;
        for layer in profile.layer.iter().filter(|layer| layer.is_for(needs)) {
            for (name, value) in &layer.variables {
                let computed = compute(value, needs).map_err(broken)?;
                filled.put(Line { name: name.clone(), value: computed, is_promise: is_the_cache(value) });
            }
            for (name, levels) in &layer.durability {
                let value = levels.get(&needs.durability).cloned();
                let value = value.ok_or_else(|| broken(format!("{name} has no `{}`", needs.durability.name())))?;
                filled.put(Line { name: name.clone(), value, is_promise: true });
            }
        }
        for (name, value) in &profile.families {
            filled.families.push((name.clone(), compute(value, needs).map_err(broken)?));
        }
    }
    Ok(filled)
}

impl Filled {
    fn put(&mut self, line: Line) {
        self.lines.retain(|known| known.name != line.name);
        self.lines.push(line);
    }
}

impl Layer {
    fn is_for(&self, needs: &Needs<'_>) -> bool {
        let is_of_servers = |servers: &String| names(servers, needs.brand, needs.version);
        self.is_of(needs.engine) && self.servers.as_ref().is_none_or(is_of_servers)
    }

    fn is_of(&self, engine: &str) -> bool {
        self.engine.as_ref().is_none_or(|requested| requested.eq_ignore_ascii_case(engine))
    }
}

/// Whether `mysql >= 5.7 < 8.0.30` matches a server.
fn names(servers: &str, brand: &str, version: Version) -> bool {
    let mut words = servers.split_whitespace();
    if words.next() != Some(brand) {
        return false;
    }
    while let Some(relation) = words.next() {
        let Some(bound) = words.next().and_then(Version::find) else { return false };
        let holds = match relation {
            ">=" => version >= bound,
            "<" => version < bound,
            _ => false,
        };
        if !holds {
            return false;
        }
    }
    true
}

/// Whether a value is the cache size itself, in any unit, or the rest of it.
fn is_the_cache(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let is_cache = words.next() == Some("=") && words.next() == Some("cache");
    is_cache && words.next().is_none_or(|word| word == "unit" || word == "less")
}

/// Variables of a profile without a reason: they are not the cache, and there is no comment above them. A comment
/// applies until the next blank line.
pub fn without_reason(profile: &str) -> Vec<&str> {
    let mut has_reason = false;
    let variables = profile.lines().filter(|line| {
        match line.trim() {
            "" => has_reason = false,
            comment if comment.starts_with('#') => has_reason = true,
            _ => {}
        }
        let Some((name, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else { return false };
        !["servers", "engine"].contains(&name) && !is_the_cache(value.trim_matches('"')) && !has_reason
    });
    variables.collect()
}

/// Computes `= cache * 2 from 64MiB to 16GiB by 1MiB unit B`; any other text is returned unchanged.
fn compute(text: &str, needs: &Needs<'_>) -> Result<String, String> {
    let Some(expression) = text.strip_prefix('=') else { return Ok(text.to_owned()) };
    if let Some((whole, part)) = expression.split_once(" less ") {
        let [whole, part] = [whole, part].map(|quantity| {
            compute(&format!("={quantity}"), needs)?.parse::<u64>().map_err(|error| format!("`{text}`: {error}"))
        });
        return Ok(whole?.saturating_sub(part?).to_string());
    }
    let mut words = expression.split_whitespace();
    let mut value = match words.next() {
        Some("cache") => needs.cache,
        Some("cpus") => needs.cpus,
        other => return Err(format!("`{text}` begins with {other:?}, not with cache or cpus")),
    };
    while let Some(word) = words.next() {
        let next = words.next().unwrap_or_default();
        if word == "unit" {
            return Ok(format!("{value}{next}"));
        }
        let by = parse_bytes(next)?.max(1);
        value = match word {
            "*" => value.saturating_mul(by),
            "/" => value / by,
            "from" => value.max(by),
            "to" => value.min(by),
            "by" => value.div_ceil(by).saturating_mul(by),
            _ => return Err(format!("`{text}`: `{word}` is none of * / from to by unit")),
        };
    }
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs<'_> = Needs {
        engine: "a",
        brand: "mysql",
        version: Version(5, 7, 44),
        cache: 1 << 30,
        durability: Durability::Sync,
        cpus: 4,
    };

    #[test]
    fn servers_are_named_by_brand_and_bounds() {
        let named = |text| names(text, "mysql", Version(5, 7, 44));
        assert!(named("mysql") && named("mysql >= 5.7 < 8.0.30"));
        assert!(!named("mysql >= 8.0") && !named("mariadb") && !named("mysql > 5"));
    }

    #[test]
    fn values_are_computed_from_the_budget() {
        let computed = |text| compute(text, &NEEDS);
        assert_eq!(computed("= cache / 64 from 1MiB to 8MiB by 1MiB").as_deref(), Ok("8388608"));
        assert_eq!(computed("= cpus * 2").as_deref(), Ok("8"));
        assert_eq!(computed("= cache unit B").as_deref(), Ok("1073741824B"));
        assert!(is_the_cache("= cache unit B") && is_the_cache("= cache") && !is_the_cache("= cache * 2"));
        assert_eq!(computed("= cache less cache / 2 to 128MiB").as_deref(), Ok("939524096"));
        assert!(is_the_cache("= cache less cache / 2") && !is_the_cache("= cache / 2"));
        assert_eq!(computed("ON").as_deref(), Ok("ON"));
        assert!(computed("= pool").is_err() && computed("= cache + 1").is_err());
    }

    #[test]
    fn later_layer_overrides_and_other_servers_layers_are_skipped() {
        let profile = r#"
            [[layer]]
            [layer.variables]
            x = "1"
            [layer.durability]
            y = { none = "0", buffered = "0", no-sync = "2", sync = "1" }
            [[layer]]
            servers = "mysql >= 5.7"
            [layer.variables]
            x = "= cache"
            [[layer]]
            engine = "b"
            [layer.variables]
            x = "3"
        "#;
        let filled = fill(&[profile], &NEEDS).unwrap();
        let line = |name: &str| filled.lines.iter().find(|line| line.name == name).unwrap();
        assert_eq!((line("x").value.as_str(), line("x").is_promise), ("1073741824", true));
        assert_eq!(line("y").value, "1");
    }

    #[test]
    fn unsupported_durability_is_refused_with_supported_ones() {
        let profile = r#"
            [[layer]]
            [layer.durability]
            commit_sync = { none = "OFF", buffered = "OFF", sync = "ON" }
        "#;
        let promises = promises(&[profile], "a");
        assert!(promises.require("a", Durability::Buffered).is_ok());
        let error = promises.require("a", Durability::NoSync).unwrap_err();
        assert_eq!((error.key.as_str(), error.problem.as_str()), ("durability", "a has no `no-sync`"));
        assert_eq!(error.remedy, "set one of: none, buffered, sync");
        assert!(Promises::default().require("a", Durability::NoSync).is_ok(), "nothing is known of its commits");
        assert!(fill(&[profile], &Needs { durability: Durability::NoSync, ..NEEDS }).is_err());
    }
}
