//! The profiles of these servers: `profiles/`.

use rumba_core::engine::Durability;
use rumba_core::error::EngineError;
use rumba_server_kit::profile::{self, Filled, Needs};
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
    let (own, engine) = match asked.kind {
        Kind::InnoDb => (include_str!("../profiles/innodb.toml"), "innodb"),
        Kind::RocksDb => (include_str!("../profiles/myrocks.toml"), "rocksdb"),
        Kind::Other(name) if name.eq_ignore_ascii_case("tokudb") => {
            (include_str!("../profiles/tokudb.toml"), name.as_str())
        }
        Kind::Other(name) => (include_str!("../profiles/other.toml"), name.as_str()),
    };
    let brand = asked.brand.name().to_ascii_lowercase();
    let needs = Needs {
        engine,
        brand: &brand,
        version: asked.version,
        cache: asked.cache,
        durability: asked.durability,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
    };
    profile::fill(&[include_str!("../profiles/common.toml"), own], &needs)
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
