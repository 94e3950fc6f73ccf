//! Profiles: from a budget of memory to a server's configuration.
//!
//! The files in `profiles/` are the profiles; this is how they are read.

use std::collections::BTreeMap;

use rumba_core::engine::{Durability, EngineError};
use rumba_core::units::parse_bytes;
use serde::Deserialize;

use crate::counters::Kind;
use crate::software::{Brand, Version};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    layer: Vec<Layer>,
    #[serde(default)]
    families: BTreeMap<String, String>,
}

/// Variables for some servers; later layers come on top of earlier ones.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    /// A brand and bounds of its version: `mysql >= 5.7 < 8.0.30`; all servers if absent.
    servers: Option<String>,
    /// The engine by the server's name; all if absent.
    engine: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// Values for the durabilities none, no-sync and sync.
    #[serde(default)]
    durability: BTreeMap<String, [String; 3]>,
}

/// What a profile is made for.
#[derive(Clone, Copy, Debug)]
pub struct Needs<'a> {
    /// The engine.
    pub kind: &'a Kind,
    /// Whose server.
    pub brand: Brand,
    /// The server's version.
    pub version: Version,
    /// The database's own cache in bytes.
    pub cache: u64,
    /// What a commit promises.
    pub durability: Durability,
    /// CPUs that the server may use.
    pub cpus: u64,
}

/// A variable of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether it is what an experiment's common settings come to, and must hold.
    pub is_promise: bool,
}

/// A profile for a server.
#[derive(Clone, Debug, Default)]
pub struct Filled {
    /// The server's variables.
    pub lines: Vec<Line>,
    /// The options of MyRocks' column families.
    pub families: Vec<(String, String)>,
}

/// Fills in the profile for an engine.
///
/// # Errors
/// A profile that is not sound, which is a mistake of rumba's and found by its tests.
pub fn fill(needs: &Needs<'_>) -> Result<Filled, EngineError> {
    let own = match needs.kind {
        Kind::InnoDb => include_str!("../profiles/innodb.toml"),
        Kind::RocksDb => include_str!("../profiles/myrocks.toml"),
        Kind::Other(name) if name.eq_ignore_ascii_case("tokudb") => include_str!("../profiles/tokudb.toml"),
        Kind::Other(_) => include_str!("../profiles/other.toml"),
    };
    let broken = |what: String| EngineError::failed("profile", what);
    let mut filled = Filled::default();
    for text in [include_str!("../profiles/common.toml"), own] {
        let profile: Profile = toml_edit::de::from_str(text).map_err(|error| broken(error.to_string()))?;
        for layer in profile.layer.iter().filter(|layer| layer.is_for(needs)) {
            for (name, value) in &layer.variables {
                let computed = compute(value, needs).map_err(broken)?;
                filled.put(Line { name: name.clone(), value: computed, is_promise: value.trim() == "= cache" });
            }
            for (name, values) in &layer.durability {
                let value = values[needs.durability as usize].clone();
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
        let engine = match needs.kind {
            Kind::InnoDb => "innodb",
            Kind::RocksDb => "rocksdb",
            Kind::Other(name) => name,
        };
        self.engine.as_ref().is_none_or(|asked| asked.eq_ignore_ascii_case(engine))
            && self.servers.as_ref().is_none_or(|servers| names(servers, needs.brand, needs.version))
    }
}

/// Whether `mysql >= 5.7 < 8.0.30` names a server.
fn names(servers: &str, brand: Brand, version: Version) -> bool {
    let mut words = servers.split_whitespace();
    if words.next() != Some(brand.name().to_ascii_lowercase().as_str()) {
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

/// Computes `= cache * 2 from 64MiB to 16GiB by 1MiB`; any other text is its own value.
fn compute(text: &str, needs: &Needs<'_>) -> Result<String, String> {
    let Some(expression) = text.strip_prefix('=') else { return Ok(text.to_owned()) };
    let mut words = expression.split_whitespace();
    let mut value = match words.next() {
        Some("cache") => needs.cache,
        Some("cpus") => needs.cpus,
        other => return Err(format!("`{text}` begins with {other:?}, not with cache or cpus")),
    };
    while let Some(word) = words.next() {
        let by = parse_bytes(words.next().unwrap_or_default())?.max(1);
        value = match word {
            "*" => value.saturating_mul(by),
            "/" => value / by,
            "from" => value.max(by),
            "to" => value.min(by),
            "by" => value.div_ceil(by).saturating_mul(by),
            _ => return Err(format!("`{text}`: `{word}` is none of * / from to by")),
        };
    }
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(kind: &Kind, brand: Brand, version: Version) -> Needs<'_> {
        Needs { kind, brand, version, cache: 1 << 30, durability: Durability::Sync, cpus: 4 }
    }

    #[test]
    fn every_profile_can_be_filled_for_every_server() {
        for kind in [Kind::InnoDb, Kind::RocksDb, Kind::of("TokuDB"), Kind::of("Aria")] {
            for (brand, version) in [
                (Brand::MariaDb, Version(10, 11, 14)),
                (Brand::MariaDb, Version(11, 8, 6)),
                (Brand::MySql, Version(5, 6, 24)),
                (Brand::MySql, Version(9, 7, 0)),
            ] {
                assert!(!fill(&needs(&kind, brand, version)).unwrap().lines.is_empty());
            }
        }
    }

    #[test]
    fn the_budget_is_the_pool_and_the_log_is_in_proportion() {
        let filled = fill(&needs(&Kind::InnoDb, Brand::MySql, Version(9, 7, 0))).unwrap();
        let value = |name: &str| filled.lines.iter().find(|line| line.name == name).map(|line| line.value.as_str());
        assert_eq!(value("innodb_buffer_pool_size"), Some("1073741824"));
        assert_eq!(value("innodb_redo_log_capacity"), Some("2147483648"));
        assert_eq!(value("innodb_flush_log_at_trx_commit"), Some("1"));
        assert_eq!(
            value("innodb_flush_neighbors"),
            Some("0"),
            "alike on every build, whatever the device says of itself"
        );
        assert_eq!(value("innodb_log_file_size"), None, "it is of older servers");
        assert_eq!(value("query_cache_size"), None, "it is of older servers");
    }

    #[test]
    fn servers_are_named_by_brand_and_bounds() {
        let named = |text| names(text, Brand::MySql, Version(5, 7, 44));
        assert!(named("mysql") && named("mysql >= 5.7 < 8.0.30"));
        assert!(!named("mysql >= 8.0") && !named("mariadb") && !named("mysql > 5"));
    }
}
