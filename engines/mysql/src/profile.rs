//! The profiles of these servers: `profiles/`.

use rumba_core::engine::Durability;
use rumba_core::error::EngineError;
use rumba_server_kit::profile::{self, Filled, Needs, Promises};
use rumba_server_kit::version::Version;

use crate::counters::Kind;
use crate::software::Brand;

/// What a profile is made for.
#[derive(Clone, Copy, Debug)]
pub struct For<'a> {
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
}

/// Fills in the profile for an engine.
///
/// # Errors
/// A profile that is not sound, which is a mistake of rumba's and found by its tests.
pub fn fill(asked: &For<'_>) -> Result<Filled, EngineError> {
    let (texts, engine) = of_kind(asked.kind);
    let brand = asked.brand.name().to_ascii_lowercase();
    let needs = Needs {
        engine,
        brand: &brand,
        version: asked.version,
        cache: asked.cache,
        durability: asked.durability,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
    };
    profile::fill(&texts, &needs)
}

/// By which variables the profile for an engine keeps the common settings.
pub fn promises(kind: &Kind) -> Promises {
    let (texts, engine) = of_kind(kind);
    profile::promises(&texts, engine)
}

/// The profile for an engine, the more special part last, and what the engine is called there.
fn of_kind(kind: &Kind) -> ([&'static str; 2], &str) {
    let (own, engine) = match kind {
        Kind::InnoDb => (include_str!("../profiles/innodb.toml"), "innodb"),
        Kind::RocksDb => (include_str!("../profiles/myrocks.toml"), "rocksdb"),
        Kind::Other(name) if name.eq_ignore_ascii_case("tokudb") => {
            (include_str!("../profiles/tokudb.toml"), name.as_str())
        }
        Kind::Other(name) => (include_str!("../profiles/other.toml"), name.as_str()),
    };
    ([include_str!("../profiles/common.toml"), own], engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(kind: &Kind, brand: Brand, version: Version) -> For<'_> {
        For { kind, brand, version, cache: 1 << 30, durability: Durability::Sync }
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

    /// A promise in a layer for some servers would be kept by a variable of which nobody would know that it overrules one.
    #[test]
    fn what_is_promised_is_known_without_a_server() {
        let of = |kind: Kind| {
            let Promises { cache, durability } = promises(&kind);
            let known: Vec<String> = cache.into_iter().chain(durability.into_iter().map(|(name, _)| name)).collect();
            for (brand, version) in [(Brand::MariaDb, Version(11, 8, 6)), (Brand::MySql, Version(9, 7, 0))] {
                let promised =
                    fill(&needs(&kind, brand, version)).unwrap().lines.into_iter().filter(|line| line.is_promise);
                let mut promised: Vec<String> = promised.map(|line| line.name).collect();
                promised.sort();
                assert_eq!(promised, known, "{kind:?}");
            }
            known
        };
        assert_eq!(of(Kind::InnoDb), ["innodb_buffer_pool_size", "innodb_flush_log_at_trx_commit"]);
        assert_eq!(of(Kind::RocksDb), ["rocksdb_block_cache_size", "rocksdb_flush_log_at_trx_commit"]);
        assert_eq!(of(Kind::of("TokuDB")), ["tokudb_cache_size", "tokudb_commit_sync"]);
        assert_eq!(of(Kind::of("Aria")), ["aria_pagecache_buffer_size"]);
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

    /// Under a limit of four times its cache MyRocks was killed when the indexes of TPC-C were made after the load.
    #[test]
    fn what_myrocks_sorts_an_index_in_is_in_proportion_to_its_cache() {
        let small = For { cache: 64 << 20, ..needs(&Kind::RocksDb, Brand::MariaDb, Version(10, 11, 14)) };
        let filled = fill(&small).unwrap();
        let value = |name: &str| filled.lines.iter().find(|line| line.name == name).map(|line| line.value.as_str());
        assert_eq!(value("rocksdb_merge_buf_size"), Some("4194304"));
        assert_eq!(value("rocksdb_merge_combine_read_size"), Some("8388608"));
    }
}
