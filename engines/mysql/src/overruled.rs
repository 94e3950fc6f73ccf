//! What an experiment's own variables come to in the place of `cache` and `durability`.

use rumba_core::common::Overruled;
use rumba_core::engine::EngineConfig;
use rumba_core::units::parse_bytes;

use crate::counters::Kind;
use crate::options::{Options, spelled};
use crate::plan::{SYNC_BINLOG, SYNCS_OF_BINLOG, prefix};
use crate::profile;

/// The common settings that the experiment's variables overrule: those by which the profile keeps them, and `sync_binlog`
/// where commits go to a binary log, which of an existing server nobody knows. That alone makes no commit durable: of an
/// existing server's engine without a log of its own nothing is known.
pub fn by_variables(kind: &Kind, config: &EngineConfig) -> Overruled {
    let mut promises = profile::promises(kind);
    let may_go_there = match config.is_existing() {
        true => !promises.durability.is_empty(),
        false => Options::read(config).is_ok_and(|options| options.binlog),
    };
    if may_go_there {
        promises.durability.push((SYNC_BINLOG.to_owned(), SYNCS_OF_BINLOG.map(str::to_owned)));
    }
    let is = |setting: &str, variable: &str| {
        let name = spelled(setting);
        name == variable || format!("{}_{name}", prefix(kind)) == variable
    };
    promises.overruled(config, is, |size| parse_bytes(size).ok())
}

#[cfg(test)]
mod tests {
    use rumba_core::common::{Durability, Own};
    use rumba_core::setting::Value;

    use super::*;

    fn with(kind: &Kind, durability: Durability, set: &[(&str, Value)]) -> Overruled {
        let settings = set.iter().cloned().collect();
        by_variables(kind, &EngineConfig { durability, settings, ..EngineConfig::new("innodb") })
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// Its dry run, its record and its parity told the 64 MiB that are common.
    #[test]
    fn a_pool_of_its_own_is_the_cache_however_its_name_and_its_size_are_written() {
        let pool = |setting: &str, size| with(&Kind::InnoDb, Durability::Sync, &[(setting, size)]).cache;
        for (setting, size) in [
            ("innodb_buffer_pool_size", text("1GiB")),
            ("innodb_buffer_pool_size", text("1024M")),
            ("innodb-buffer-pool-size", Value::Int(1 << 30)),
            ("buffer_pool_size", text("1g")),
        ] {
            assert_eq!(pool(setting, size), Some(Own::new(setting, Some(1 << 30))));
        }
        assert_eq!(pool("rocksdb_block_cache_size", text("1GiB")), None, "it is of another engine");
        let rocks = with(&Kind::RocksDb, Durability::Sync, &[("block_cache_size", text("1GiB"))]);
        assert_eq!(rocks.cache, Some(Own::new("block_cache_size", Some(1 << 30))));
        let aria = with(&Kind::of("Aria"), Durability::Sync, &[("aria_pagecache_buffer_size", text("16M"))]);
        assert_eq!(aria.cache, Some(Own::new("aria_pagecache_buffer_size", Some(16 << 20))));
    }

    #[test]
    fn how_the_log_is_flushed_is_the_durability_where_a_level_has_it_so() {
        let flush = "innodb_flush_log_at_trx_commit";
        let level = |durability, value| with(&Kind::InnoDb, durability, &[(flush, value)]).durability;
        assert_eq!(level(Durability::Sync, Value::Int(2)), Some(Own::new(flush, Some(Durability::NoSync))));
        assert_eq!(level(Durability::Sync, text("0")), Some(Own::new(flush, Some(Durability::None))));
        assert_eq!(level(Durability::NoSync, Value::Int(1)), Some(Own::new(flush, Some(Durability::Sync))));
        assert_eq!(level(Durability::Sync, Value::Int(3)), Some(Own::new(flush, None)), "MariaDB's own way");
        assert_eq!(level(Durability::Sync, Value::Int(1)), None, "it overrules nothing");
        let toku = with(&Kind::of("TokuDB"), Durability::Sync, &[("tokudb_commit_sync", Value::Bool(false))]);
        assert_eq!(toku.durability, Some(Own::new("tokudb_commit_sync", Some(Durability::NoSync))));
    }

    /// What the host's crash leaves out of the binary log is rolled back, whatever InnoDB has synced.
    #[test]
    fn a_binary_log_that_is_not_synced_keeps_no_level_of_synced_commits() {
        let of = |set: &[(&str, Value)]| with(&Kind::InnoDb, Durability::Sync, set).durability;
        let (binlog, unsynced) = (("binlog", Value::Bool(true)), ("sync_binlog", Value::Int(0)));
        assert_eq!(of(&[binlog.clone(), unsynced.clone()]), Some(Own::new("sync_binlog", None)));
        assert_eq!(of(std::slice::from_ref(&unsynced)), None, "there is no binary log");
        let flush = ("innodb_flush_log_at_trx_commit", Value::Int(2));
        let both = of(&[binlog, unsynced, flush]);
        assert_eq!(both, Some(Own::new("innodb_flush_log_at_trx_commit", Some(Durability::NoSync))));
    }

    /// Whether it writes a binary log, and syncs it, is its owner's to say.
    #[test]
    fn of_an_existing_server_is_known_what_is_set_if_it_says_all() {
        let existing_of = |kind: &Kind, set: &[(&str, Value)]| {
            let (server, settings) = (Some("mysql://me@host/db".to_owned()), set.iter().cloned().collect());
            by_variables(kind, &EngineConfig { server, settings, ..EngineConfig::new("innodb") })
        };
        let existing = |set: &[(&str, Value)]| existing_of(&Kind::InnoDb, set);
        let (pool, flush) =
            (("innodb_buffer_pool_size", text("1GiB")), ("innodb_flush_log_at_trx_commit", Value::Int(1)));
        let some = existing(&[pool, flush.clone()]);
        assert_eq!(some.cache, Some(Own::new("innodb_buffer_pool_size", Some(1 << 30))));
        assert_eq!(some.durability, None);
        let all = existing(&[flush, ("sync_binlog", Value::Int(1))]).durability;
        assert_eq!(all, Some(Own::new("innodb_flush_log_at_trx_commit", Some(Durability::Sync))));
        let unlogged = existing_of(&Kind::of("MyISAM"), &[("sync_binlog", Value::Int(1))]);
        assert_eq!(unlogged.durability, None, "its tables sync nothing");
    }
}
