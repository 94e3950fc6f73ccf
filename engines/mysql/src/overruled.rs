//! The experiment's own variables that override `cache` and `durability`.

use rumba_engine_api::common::{OverriddenSettings, Own};
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::units::parse_bytes;

use crate::counters::Kind;
use crate::options::{Options, spelled};
use crate::plan::{SYNC_BINLOG, syncs_of_binlog};
use crate::profile;
use crate::requested::prefix;

/// The common settings that the experiment's variables override. They are the profile's variables for `cache` and
/// `durability`, and `sync_binlog` where commits go to a binary log. For an existing server the binary log is unknown.
/// `sync_binlog` alone makes no commit durable, so an existing server's engine without its own log stays unknown.
///
/// A durability that the engine keeps as a weaker one counts as overridden, too.
pub fn by_variables(kind: &Kind, config: &EngineConfig) -> OverriddenSettings {
    let kept = profile::kept_durability(kind, config.durability);
    if kept == config.durability || config.is_existing() {
        return overridden(kind, config);
    }
    let found = overridden(kind, &EngineConfig { durability: kept, ..config.clone() });
    let as_kept = || Some(Own::new("tokudb_commit_sync = OFF", Some(kept)));
    OverriddenSettings { durability: found.durability.or_else(as_kept), ..found }
}

fn overridden(kind: &Kind, config: &EngineConfig) -> OverriddenSettings {
    let mut promises = profile::promises(kind);
    let may_go_there = match config.is_existing() {
        true => !promises.durability.is_empty(),
        false => Options::read(config).is_ok_and(|options| options.binlog),
    };
    if may_go_there {
        promises.durability.push((SYNC_BINLOG.to_owned(), syncs_of_binlog()));
    }
    let is = |setting: &str, variable: &str| {
        let name = spelled(setting);
        name == variable || format!("{}_{name}", prefix(kind)) == variable
    };
    let overruled = promises.overruled(config, is, |size| parse_bytes(size).ok());
    match kind {
        Kind::RocksDb => OverriddenSettings { cache: cache_of_rocksdb(config, is), ..overruled },
        _ => overruled,
    }
}

/// The cache size set by the experiment's variables: the block cache plus twice the total memtable size. Memtables
/// count twice because as much again may be in flush. For an existing server both variables must be set.
fn cache_of_rocksdb(config: &EngineConfig, is: impl Fn(&str, &str) -> bool) -> Option<Own<u64>> {
    let set = |variable: &str| {
        let (setting, value) = config.settings.0.iter().rfind(|(setting, _)| is(setting, variable))?;
        Some((setting, parse_bytes(&value.to_string()).ok()))
    };
    let (blocks, memtables) = (set("rocksdb_block_cache_size"), set("rocksdb_db_write_buffer_size"));
    let (named, _) = blocks.or(memtables)?;
    let is_whole = blocks.is_some() && memtables.is_some();
    if config.is_existing() && !is_whole {
        return None;
    }
    let usual = (config.cache / 4).min(MEMTABLES_MOST_BYTES);
    let memtables = memtables.map_or(Some(usual), |(_, bytes)| bytes);
    let blocks = blocks.map_or(Some(config.cache - 2 * usual), |(_, bytes)| bytes);
    // Without a limit on the memtables the sum is unknown.
    let total = blocks.zip(memtables.filter(|bytes| *bytes > 0));
    Some(Own::new(named, total.map(|(blocks, memtables)| blocks.saturating_add(memtables.saturating_mul(2)))))
}

/// The profile's largest `rocksdb_db_write_buffer_size`.
const MEMTABLES_MOST_BYTES: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use rumba_engine_api::common::{Durability, Own};
    use rumba_engine_api::setting::Value;

    use super::*;

    fn with(kind: &Kind, durability: Durability, set: &[(&str, Value)]) -> OverriddenSettings {
        let settings = set.iter().cloned().collect();
        by_variables(kind, &EngineConfig { durability, settings, ..EngineConfig::new("innodb") })
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// The dry run, the record and the comparability check showed the common value of 64 MiB instead.
    #[test]
    fn buffer_pool_setting_overrides_cache_in_every_spelling() {
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
        let aria = with(&Kind::of("Aria"), Durability::Sync, &[("aria_pagecache_buffer_size", text("16M"))]);
        assert_eq!(aria.cache, Some(Own::new("aria_pagecache_buffer_size", Some(16 << 20))));
    }

    /// Memtables came in addition to the block cache, so the reported cache was half of the actual memory.
    #[test]
    fn myrocks_cache_is_block_cache_plus_twice_memtables() {
        let of = |set: &[(&str, Value)]| {
            let config = EngineConfig { cache: 64 << 20, ..EngineConfig::new("myrocks") };
            by_variables(&Kind::RocksDb, &EngineConfig { settings: set.iter().cloned().collect(), ..config }).cache
        };
        let (blocks, memtables) = ("block_cache_size", "rocksdb_db_write_buffer_size");
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(blocks, text("64MiB"))]), Some(Own::new(blocks, Some(96 << 20))));
        assert_eq!(of(&[(memtables, text("32MiB"))]), Some(Own::new(memtables, Some(96 << 20))));
        assert_eq!(of(&[(blocks, text("64MiB")), (memtables, text("32m"))]), Some(Own::new(blocks, Some(128 << 20))));
        assert_eq!(of(&[(memtables, Value::Int(0))]), Some(Own::new(memtables, None)), "nothing limits them");
    }

    #[test]
    fn log_flush_setting_maps_to_a_durability_level() {
        let flush = "innodb_flush_log_at_trx_commit";
        let level = |durability, value| with(&Kind::InnoDb, durability, &[(flush, value)]).durability;
        assert_eq!(level(Durability::Sync, Value::Int(2)), Some(Own::new(flush, Some(Durability::NoSync))));
        assert_eq!(level(Durability::Sync, text("0")), Some(Own::new(flush, Some(Durability::Buffered))));
        assert_eq!(level(Durability::NoSync, Value::Int(1)), Some(Own::new(flush, Some(Durability::Sync))));
        assert_eq!(level(Durability::Sync, Value::Int(3)), Some(Own::new(flush, None)), "MariaDB's own way");
        assert_eq!(level(Durability::Sync, Value::Int(1)), None, "it overrules nothing");
        let toku = with(&Kind::of("TokuDB"), Durability::Sync, &[("tokudb_commit_sync", Value::Bool(false))]);
        assert_eq!(toku.durability, Some(Own::new("tokudb_commit_sync", None)), "the log is not synced later either");
        let toku = |durability| with(&Kind::TokuDb, durability, &[]).durability.and_then(|own| own.value);
        assert_eq!(toku(Durability::NoSync), Some(Durability::Buffered), "commits stay in the process for a second");
        assert_eq!(toku(Durability::Sync), None);
    }

    /// After a host crash, transactions missing from the binary log are rolled back even if InnoDB has synced them.
    #[test]
    fn unsynced_binlog_prevents_sync_durability() {
        let of = |set: &[(&str, Value)]| with(&Kind::InnoDb, Durability::Sync, set).durability;
        let (binlog, unsynced) = (("binlog", Value::Bool(true)), ("sync_binlog", Value::Int(0)));
        assert_eq!(of(&[binlog.clone(), unsynced.clone()]), Some(Own::new("sync_binlog", None)));
        assert_eq!(of(std::slice::from_ref(&unsynced)), None, "there is no binary log");
        let flush = ("innodb_flush_log_at_trx_commit", Value::Int(2));
        let both = of(&[binlog, unsynced, flush]);
        assert_eq!(both, Some(Own::new("innodb_flush_log_at_trx_commit", Some(Durability::NoSync))));
        let written = ("rocksdb_flush_log_at_trx_commit", Value::Int(2));
        let rocks = |set: &[(&str, Value)]| with(&Kind::RocksDb, Durability::Sync, set).durability;
        let buffered = Own::new("rocksdb_flush_log_at_trx_commit", Some(Durability::Buffered));
        assert_eq!(rocks(std::slice::from_ref(&written)), Some(buffered), "the record stays in the process");
        let at_commit = rocks(&[written, ("rocksdb_manual_wal_flush", Value::Bool(false))]);
        assert_eq!(at_commit.and_then(|own| own.value), Some(Durability::NoSync));
    }

    /// Only the owner of an existing server knows whether it writes and syncs a binary log.
    #[test]
    fn complete_settings_of_an_existing_server_are_known() {
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
