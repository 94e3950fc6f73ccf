//! Translates an experiment's settings to LMDB's flags, map size and readers.

use std::path::Path;

use lmdb_master_sys as ffi;
use rumba_engine_api::common::{OverriddenSettings, Own};
use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Value, info};
use rumba_engine_api::units::show_bytes;

/// Default lower bound of the map size, even on a small device. A sparse mapping costs only address space, and the
/// device should fill up before the map does.
const MAP_SIZE_MIN: u64 = 16 << 30;

/// Default upper bound: the map must fit in 47 bits of address space, and with `writemap` in a file (ext4: 16 TiB).
const MAP_SIZE_MAX: u64 = 8 << 40;

/// A map consists of whole operating-system pages: 4, 16 or 64 KiB.
const MAP_SIZE_STEP: u64 = 64 << 10;

/// LMDB's own settings, by the names of lmdb.h.
pub(crate) const SETTINGS: &[SettingInfo] = &[
    info(
        "map_size",
        Kind::Bytes,
        "the file system's size, 16GiB to 8TiB",
        "most bytes of the database; the file grows only as it is written",
    ),
    // Each reader takes 64 bytes of the lock file; LMDB's default of 126 is too few for hundreds of clients.
    info("max_readers", Kind::Int(1, 1_000_000), "4096", "slots in the reader table; every session holds one"),
    info(
        "writemap",
        Kind::Bool,
        "true under durability none, else false",
        "MDB_WRITEMAP: write through the map, not by pwrite; a full device then kills the process (SIGBUS)",
    ),
    info(
        "mapasync",
        Kind::Bool,
        "false",
        "MDB_MAPASYNC in place of MDB_NOSYNC; needs writemap, and a durability below sync",
    ),
    info(
        "nometasync",
        Kind::Bool,
        "false",
        "MDB_NOMETASYNC in place of MDB_NOSYNC: data synced at commit, the meta page by the next commit",
    ),
    info(
        "nordahead",
        Kind::Bool,
        "true if the database exceeds the memory, else false",
        "MDB_NORDAHEAD: no read-ahead by the kernel, for random reads of more than the memory",
    ),
    info(
        "nomeminit",
        Kind::Bool,
        "false",
        "MDB_NOMEMINIT: do not zero pages before writing them; refused with writemap, which zeroes none",
    ),
];

/// How an environment is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The flags of `mdb_env_open`.
    pub flags: u32,
    /// The map's size in bytes; `None` takes it from the file system.
    pub map_size: Option<u64>,
    /// Slots in the reader table.
    pub max_readers: u32,
    /// The durability that a commit guarantees.
    pub durability: Durability,
}

impl Options {
    /// Parses a configuration, or refuses it.
    pub fn of(config: &EngineConfig) -> Result<Self, SettingError> {
        config.durability.refuse_buffered("lmdb", "each commit writes its pages to the kernel")?;
        config.settings.check("lmdb", SETTINGS)?;
        let settings = &config.settings.with_defaults(SETTINGS);
        let on = |name| {
            // `writemap`: `none` guarantees nothing, and writing through the map saves a quarter of the CPU per commit.
            settings.bool(name).unwrap_or(config.durability == Durability::None)
        };
        if settings.bytes("map_size") == Some(0) {
            return Err(SettingError::new("map_size", "a map needs a size above 0", "a size such as 64GiB"));
        }
        if on("mapasync") && !on("writemap") {
            return Err(SettingError::new(
                "mapasync",
                "it has no effect without writemap",
                "set writemap = true too, or leave mapasync out",
            ));
        }
        if on("nomeminit") && on("writemap") {
            return Err(SettingError::new(
                "nomeminit",
                "it has no effect with writemap, which zeroes no pages",
                "leave nomeminit out, or set writemap = false",
            ));
        }
        let replaces_nosync = ["mapasync", "nometasync"].into_iter().find(|name| on(name));
        if let (Some(name), Durability::Sync) = (replaces_nosync, config.durability) {
            return Err(SettingError::new(
                name,
                "a commit would return before it is on the device, which durability = \"sync\" promises",
                "set durability = \"no-sync\", or leave it out",
            ));
        }
        let mut flags = ffi::MDB_NOTLS;
        for (name, flag) in [
            ("writemap", ffi::MDB_WRITEMAP),
            ("mapasync", ffi::MDB_MAPASYNC),
            ("nometasync", ffi::MDB_NOMETASYNC),
            ("nordahead", ffi::MDB_NORDAHEAD),
            ("nomeminit", ffi::MDB_NOMEMINIT),
        ] {
            if on(name) {
                flags |= flag;
            }
        }
        if config.durability != Durability::Sync && replaces_nosync.is_none() {
            flags |= ffi::MDB_NOSYNC;
        }
        Ok(Self {
            flags,
            map_size: settings.bytes("map_size"),
            max_readers: settings.int("max_readers").and_then(|n| u32::try_from(n).ok()).unwrap_or_default(),
            durability: config.durability,
        })
    }

    /// The map's size in bytes for an instance in `dir`, rounded up to whole pages.
    pub fn map_size_in(&self, dir: &Path) -> Result<usize> {
        let wanted = match self.map_size {
            Some(bytes) => bytes,
            None => file_system_bytes(dir)?.clamp(MAP_SIZE_MIN, MAP_SIZE_MAX),
        };
        usize::try_from(wanted.next_multiple_of(MAP_SIZE_STEP)).map_err(|_| {
            EngineError::failed("mdb_env_set_mapsize", format!("map_size = {wanted} does not fit an address"))
        })
    }
}

/// Estimated fill factor of the tree: split pages are two thirds full.
const TREE_SHARE: f64 = 2.0 / 3.0;

/// Switches read-ahead off for a database larger than memory, as LMDB's documentation advises. Otherwise a read of one
/// page brings in 128 KiB, which evicts useful pages.
pub(crate) fn fit_to_data(config: &mut EngineConfig, data_bytes: u64, memory_bytes: u64) -> Option<String> {
    let database_bytes = data_bytes as f64 / TREE_SHARE;
    if database_bytes <= memory_bytes as f64 || config.settings.get("nordahead").is_some() {
        return None;
    }
    config.settings.0.insert("nordahead".to_owned(), Value::Bool(true));
    let (database, memory) = (show_bytes(database_bytes), show_bytes(memory_bytes as f64));
    Some(format!("nordahead = true (no read-ahead): a database of about {database}, {memory} of memory"))
}

/// The common setting that `nometasync` overrides: a commit then waits for its data, and may still be lost.
pub(crate) fn overruled(config: &EngineConfig) -> OverriddenSettings {
    let is_set = config.settings.bool("nometasync") == Some(true);
    OverriddenSettings { durability: is_set.then(|| Own::new("nometasync", None)), ..OverriddenSettings::default() }
}

/// The size in bytes of the file system that holds `dir`.
fn file_system_bytes(dir: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(dir)
        .map_err(|errno| EngineError::failed("statvfs", format!("{dir}: {errno}", dir = dir.display())))?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
        EngineConfig {
            cache: 1 << 20,
            durability,
            settings: settings.iter().cloned().collect(),
            ..EngineConfig::new("lmdb")
        }
    }

    fn flags(durability: Durability, settings: &[(&str, Value)]) -> u32 {
        Options::of(&config(durability, settings)).unwrap().flags
    }

    #[test]
    fn only_durability_none_uses_a_writable_map_by_default() {
        assert_eq!(flags(Durability::NoSync, &[]) & ffi::MDB_WRITEMAP, 0);
        assert_ne!(flags(Durability::None, &[]) & ffi::MDB_WRITEMAP, 0);
        assert_eq!(flags(Durability::None, &[("writemap", Value::Bool(false))]) & ffi::MDB_WRITEMAP, 0);
    }

    #[test]
    fn weaker_flag_replaces_nosync_and_is_refused_under_sync() {
        let on = Value::Bool(true);
        let meta = flags(Durability::NoSync, &[("nometasync", on.clone())]);
        assert_eq!(meta & (ffi::MDB_NOSYNC | ffi::MDB_NOMETASYNC), ffi::MDB_NOMETASYNC);
        for settings in [vec![("nometasync", on.clone())], vec![("mapasync", on.clone()), ("writemap", on.clone())]] {
            let error = Options::of(&config(Durability::Sync, &settings)).unwrap_err();
            assert_eq!(error.key, settings[0].0);
            assert!(error.remedy.contains("no-sync"), "{error:?}");
        }
    }

    /// `nometasync` was reported as equal in guarantees and cost to engines that sync nothing.
    #[test]
    fn nometasync_maps_to_no_common_durability_level() {
        let durability = |name| overruled(&config(Durability::NoSync, &[(name, Value::Bool(true))])).durability;
        assert_eq!(durability("nometasync"), Some(Own::new("nometasync", None)));
        assert_eq!(durability("nordahead"), None);
    }

    /// With read-ahead, a read from a database larger than memory cost 150 KB of device reads instead of 3.5 KB.
    #[test]
    fn larger_than_memory_database_disables_read_ahead() {
        let fitted = |settings: &[(&str, Value)], memory: u64| {
            let mut config = config(Durability::Sync, settings);
            let words = fit_to_data(&mut config, 100 << 20, memory);
            (Options::of(&config).unwrap().flags & ffi::MDB_NORDAHEAD != 0, words)
        };
        let (is_set, words) = fitted(&[], 100 << 20);
        assert!(is_set && words.unwrap().contains("a database of about 150"), "pages are not full");
        assert_eq!(fitted(&[], 200 << 20), (false, None));
        let own = |value| ("nordahead", Value::Bool(value));
        assert_eq!(fitted(&[own(false)], 100 << 20), (false, None));
        assert_eq!(fitted(&[own(true)], 200 << 20), (true, None));
    }

    #[test]
    fn mapasync_without_writemap_is_refused_as_ineffective() {
        let error = Options::of(&config(Durability::NoSync, &[("mapasync", Value::Bool(true))])).unwrap_err();
        assert!(error.remedy.contains("writemap = true"), "{error:?}");
    }

    #[test]
    fn nomeminit_with_writemap_is_refused_as_ineffective() {
        let on = ("nomeminit", Value::Bool(true));
        // With `none`, `writemap` is the default.
        for (durability, settings) in [
            (Durability::None, vec![on.clone()]),
            (Durability::NoSync, vec![on.clone(), ("writemap", Value::Bool(true))]),
        ] {
            let error = Options::of(&config(durability, &settings)).unwrap_err();
            assert_eq!(error.key, "nomeminit");
            assert!(error.remedy.contains("writemap = false"), "{error:?}");
        }
        assert_ne!(flags(Durability::NoSync, std::slice::from_ref(&on)) & ffi::MDB_NOMEMINIT, 0);
        assert_ne!(flags(Durability::None, &[on, ("writemap", Value::Bool(false))]) & ffi::MDB_NOMEMINIT, 0);
    }

    #[test]
    fn map_size_is_whole_pages_and_defaults_to_the_device_size() {
        let options = Options::of(&config(Durability::NoSync, &[("map_size", Value::Int(5000))])).unwrap();
        assert_eq!(options.map_size_in(Path::new("/")).unwrap(), 64 << 10);
        let options = Options::of(&config(Durability::NoSync, &[])).unwrap();
        let device = file_system_bytes(Path::new("/")).unwrap().min(MAP_SIZE_MAX);
        assert!(options.map_size_in(Path::new("/")).unwrap() as u64 >= device);
    }
}
