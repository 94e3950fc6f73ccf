//! The measured memory needs of the servers.

use rumba_engine_api::memory::MemoryNeed;

use crate::counters::Kind;
use rumba_server_kit::version::Version;

use crate::software::Brand;

/// The table that `xtask memory-needs` writes.
const TABLE: &str = include_str!("../../memory-needs.txt");
/// MyRocks' memory beyond its cache grows with its memtables, which take half of the cache up to 512 MiB
/// (profiles/myrocks.toml). The need is at most half as much again.
const MEMTABLES_MOST_BYTES: u64 = 4 * (64 << 20);

/// The memory need of an engine on a server. It is that of the newest measured build of its brand that is no newer,
/// else of the oldest. An unmeasured engine uses InnoDB's need, because InnoDB holds such a server's own tables.
pub fn need(kind: &Kind, brand: Brand, version: Version) -> Option<MemoryNeed> {
    let engine = match kind {
        Kind::RocksDb => "myrocks",
        Kind::TokuDb => "tokudb",
        Kind::InnoDb | Kind::Other(_) => "innodb",
    };
    let prefix = format!("{engine}/{}-", brand.name().to_ascii_lowercase());
    let measured = MemoryNeed::builds(TABLE)
        .filter_map(|need| Some((Version::find(need.measured_on.strip_prefix(&prefix)?)?, need)));
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by_key(|(version, _)| *version);
    let place = measured.partition_point(|(known, _)| *known <= version).saturating_sub(1);
    let (_, mut need) = measured.into_iter().nth(place)?;
    if *kind == Kind::RocksDb {
        need.next_to_cache_most_bytes = MEMTABLES_MOST_BYTES;
    }
    Some(need)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_version_uses_nearest_older_memory_need() {
        let measured = |kind: &Kind, brand, version| need(kind, brand, version).unwrap().measured_on;
        let innodb = |brand, version| measured(&Kind::InnoDb, brand, version);
        assert_eq!(innodb(Brand::MariaDb, Version(10, 11, 14)), "innodb/mariadb-10.11");
        assert_eq!(innodb(Brand::MariaDb, Version(11, 4, 2)), "innodb/mariadb-10.11");
        assert_eq!(innodb(Brand::MariaDb, Version(12, 1, 1)), "innodb/mariadb-11.8");
        assert_eq!(innodb(Brand::MariaDb, Version(10, 5, 1)), "innodb/mariadb-10.11");
        assert_eq!(innodb(Brand::MySql, Version(8, 0, 36)), "innodb/mysql-5.6");
        assert_eq!(innodb(Brand::MySql, Version(9, 7, 0)), "innodb/mysql-9.7");
        assert_eq!(measured(&Kind::RocksDb, Brand::MariaDb, Version(10, 11, 14)), "myrocks/mariadb-10.11");
        assert_eq!(measured(&Kind::TokuDb, Brand::MariaDb, Version(10, 5, 23)), "tokudb/mariadb-10.5");
        assert_eq!(need(&Kind::RocksDb, Brand::MySql, Version(8, 0, 36)), None, "Percona Server was not measured");
    }
}
