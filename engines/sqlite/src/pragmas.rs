//! Translates an experiment's settings to pragmas, and checks that they took effect.

use rumba_engine_api::common::{OverriddenSettings, Own};
use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_engine_api::units::show_bytes;

use crate::busy::{HANDLERS, OWN, SHORT};
use crate::raw::Handle;

/// The values of `PRAGMA synchronous`, at the positions by which SQLite reports them.
const SYNCHRONOUS: [&str; 4] = ["off", "normal", "full", "extra"];
const AUTO_VACUUM: [&str; 3] = ["none", "full", "incremental"];
const TEMP_STORE: [&str; 3] = ["default", "file", "memory"];

/// This setting is a C function of this name, not a pragma.
const BUSY_HANDLER: &str = "busy_handler";
/// The pragma that SQLite resets when a handler is set.
const BUSY_TIMEOUT: &str = "busy_timeout";

/// SQLite's own settings, by the names of its pragmas.
pub(crate) const SETTINGS: &[SettingInfo] = &[
    info("page_size", Kind::Bytes, "4096", "bytes in a page: a power of two from 512 to 65536"),
    info(
        "journal_mode",
        Kind::Choice(&["wal", "delete", "truncate", "persist", "memory", "off"]),
        "wal",
        "how a transaction is made atomic; memory and off need durability none",
    ),
    info(
        "synchronous",
        Kind::Choice(&SYNCHRONOUS),
        "full for sync, normal (wal) or off (others) for no-sync, off for none",
        "when SQLite syncs files",
    ),
    info(
        "cache_size",
        Kind::Int(-2_147_483_647, 2_147_483_647),
        "an equal share of `cache`",
        "page cache of EACH session: pages if positive, KiB if negative",
    ),
    info("mmap_size", Kind::Bytes, "0", "bytes of the file read through a memory map instead of the page cache"),
    info(
        "wal_autocheckpoint",
        Kind::Int(0, 2_147_483_647),
        "1000",
        "pages in the log at which a commit also writes a checkpoint; 0 never does",
    ),
    info("auto_vacuum", Kind::Choice(&AUTO_VACUUM), "none", "whether free pages are given back to the file system"),
    info(
        "temp_store",
        Kind::Choice(&TEMP_STORE),
        "default",
        "where temporary tables and sorts are stored; default is files",
    ),
    info(
        "locking_mode",
        Kind::Choice(&["normal", "exclusive"]),
        "normal",
        "exclusive keeps the file locks and allows one session",
    ),
    // 5000 is the default of rusqlite, and so of many applications.
    info(
        BUSY_TIMEOUT,
        Kind::Int(0, 2_147_483_647),
        "5000",
        "milliseconds to wait for another writer before a conflict",
    ),
    info(
        BUSY_HANDLER,
        Kind::Choice(&HANDLERS),
        "sqlite for sync, short for the others",
        "how to wait: short sleeps 50 to 250 us at a time, sqlite 1 to 100 ms",
    ),
];

/// The pragmas of every connection of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Pragmas {
    /// Name and value, in the order in which they must be set. A value is written as SQLite reports it, so that it can
    /// be read back.
    values: Vec<(&'static str, String)>,
    /// How long to wait for another writer, in milliseconds.
    timeout_ms: u32,
    /// Whether the waits use shorter pauses than SQLite's own handler.
    waits_shortly: bool,
    /// The cache of each session, if the experiment sets it.
    pub cache_size: Option<i64>,
    /// Whether one session holds the file locks exclusively.
    pub is_exclusive: bool,
}

impl Pragmas {
    /// Parses a configuration, or refuses it.
    pub fn of(config: &EngineConfig) -> Result<Self, SettingError> {
        config.durability.refuse_buffered("sqlite", "each commit writes its pages to the kernel")?;
        config.settings.check("sqlite", SETTINGS)?;
        let settings = &config.settings.with_defaults(SETTINGS);
        let journal_mode = settings.text("journal_mode").unwrap_or_default();
        refuse_journal(config.durability, journal_mode)?;
        let locking_mode = settings.text("locking_mode").unwrap_or_default();
        let number = |name| settings.int(name).unwrap_or_default();
        let word = |name, words: &[&str]| position(words, settings.text(name).unwrap_or_default());
        let timeout_ms = u32::try_from(number(BUSY_TIMEOUT)).unwrap_or_default();
        // A synced write holds its lock for milliseconds, during which short pauses only waste CPU.
        let fitting = if config.durability == Durability::Sync { OWN } else { SHORT };
        let waits_shortly = settings.text(BUSY_HANDLER).unwrap_or(fitting) == SHORT;
        let values = vec![
            (BUSY_TIMEOUT, timeout_ms.to_string()),
            // Exclusive mode must be set before the log is first used; the log then needs no shared memory.
            ("locking_mode", locking_mode.to_owned()),
            // Both are fixed when the first page is written, and later connections ignore them.
            ("page_size", page_size(settings)?.to_string()),
            ("auto_vacuum", word("auto_vacuum", &AUTO_VACUUM)),
            ("journal_mode", journal_mode.to_owned()),
            ("synchronous", synchronous(config, journal_mode)?),
            ("mmap_size", settings.bytes("mmap_size").unwrap_or_default().to_string()),
            ("wal_autocheckpoint", number("wal_autocheckpoint").to_string()),
            ("temp_store", word("temp_store", &TEMP_STORE)),
        ];
        Ok(Self {
            values,
            timeout_ms,
            waits_shortly,
            cache_size: settings.int("cache_size"),
            is_exclusive: locking_mode == "exclusive",
        })
    }

    /// Sets the pragmas on a new connection, and fails if one does not take effect.
    pub fn apply(&self, handle: &Handle) -> Result<()> {
        for (name, value) in &self.values {
            handle.run(&format!("PRAGMA {name} = {value}"))?;
            let in_force = handle.pragma(name)?;
            if !in_force.eq_ignore_ascii_case(value) {
                let message = format!(
                    "requested {name} = {value}, but {in_force} is in force; this SQLite or file system does not \
                     support it"
                );
                return Err(EngineError::Failed { call: "PRAGMA", message });
            }
        }
        // Set the handler last, because it resets SQLite's own timeout. Without a timeout there is no wait.
        if self.waits_shortly && self.timeout_ms > 0 {
            handle.pause_shortly(self.timeout_ms)?;
        }
        Ok(())
    }

    /// The effective settings of a connection, as text.
    pub fn read_back(&self, handle: &Handle) -> Vec<(String, String)> {
        let pragmas = self.values.iter().filter(|(name, _)| *name != BUSY_TIMEOUT).map(|(name, _)| {
            let value = handle.pragma(name).unwrap_or_else(|error| error.to_string());
            ((*name).to_owned(), in_words(name, value))
        });
        let handler = if self.waits_shortly { SHORT } else { OWN };
        let waiting = [(BUSY_TIMEOUT, self.timeout_ms.to_string()), (BUSY_HANDLER, handler.to_owned())];
        waiting.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(pragmas).collect()
    }

    /// Describes the cache.
    pub fn describe_cache(&self, budget_bytes: u64) -> String {
        match self.cache_size {
            Some(size) if size < 0 => format!("{} KiB in each session", -size),
            Some(size) => format!("{size} pages in each session"),
            None => format!("{} shared out evenly among the sessions", show_bytes(budget_bytes as f64)),
        }
    }
}

fn position(words: &[&str], word: &str) -> String {
    words.iter().position(|known| *known == word).unwrap_or_default().to_string()
}

/// The name of a value that SQLite reports as a number.
fn in_words(name: &str, value: String) -> String {
    let words: &[&str] = match name {
        "synchronous" => &SYNCHRONOUS,
        "auto_vacuum" => &AUTO_VACUUM,
        "temp_store" => &TEMP_STORE,
        _ => return value,
    };
    value.parse().ok().and_then(|number: usize| words.get(number)).map_or(value, |word| (*word).to_owned())
}

fn page_size(settings: &Settings) -> Result<u64, SettingError> {
    let size = settings.bytes("page_size").unwrap_or_default();
    if size.is_power_of_two() && (512..=65536).contains(&size) {
        return Ok(size);
    }
    Err(SettingError::new(
        "page_size",
        format!("SQLite has no pages of {size} bytes"),
        "a power of two from 512 to 64k",
    ))
}

/// The level of `synchronous` for a durability.
///
/// In WAL mode `normal` syncs only at checkpoints, so a commit survives the process but not the host, and the file is
/// never damaged. In the other modes `normal` syncs at every commit; only `off` does not.
fn derived(durability: Durability, journal_mode: &str) -> &'static str {
    match durability {
        Durability::Sync => "full",
        Durability::NoSync if journal_mode == "wal" => "normal",
        // `buffered` was refused before.
        Durability::NoSync | Durability::Buffered | Durability::None => "off",
    }
}

/// The common settings that the experiment's own pragmas override. A per-session cache has no total size before the
/// number of sessions is known.
pub(crate) fn overruled(config: &EngineConfig) -> OverriddenSettings {
    let settings = config.settings.with_defaults(SETTINGS);
    let cache = settings.get("cache_size").map(|_| Own::new("cache_size", None));
    let journal_mode = settings.text("journal_mode").unwrap_or_default();
    let set = settings.text("synchronous").filter(|level| *level != derived(config.durability, journal_mode));
    let durability = set.filter(|_| !is_damaged_by_crashes(journal_mode)).map(|level| {
        // `extra` only adds a sync of the journal's directory.
        let level = if level == "extra" { "full" } else { level };
        let levels = [Durability::Sync, Durability::NoSync, Durability::None];
        let found = levels.into_iter().find(|durability| derived(*durability, journal_mode) == level);
        Own::new("synchronous", found)
    });
    OverriddenSettings { cache, durability }
}

/// The effective level of `synchronous`, by its number.
fn synchronous(config: &EngineConfig, journal_mode: &str) -> Result<String, SettingError> {
    let level = config.settings.text("synchronous").unwrap_or(derived(config.durability, journal_mode));
    if config.durability == Durability::Sync && (level == "off" || level == "normal") {
        return Err(SettingError::new(
            "synchronous",
            format!("`{level}` does not sync every commit, which durability = \"sync\" promises"),
            "use full or extra, or set durability = \"no-sync\"",
        ));
    }
    Ok(position(&SYNCHRONOUS, level))
}

/// With the journal in memory, or without one, a crash of the process damages the file, even if files are synced.
fn is_damaged_by_crashes(journal_mode: &str) -> bool {
    matches!(journal_mode, "memory" | "off")
}

fn refuse_journal(durability: Durability, journal_mode: &str) -> Result<(), SettingError> {
    if durability != Durability::None && is_damaged_by_crashes(journal_mode) {
        return Err(SettingError::new(
            "journal_mode",
            format!("`{journal_mode}` lets a crash of the process damage data"),
            format!("set durability = \"none\", or use wal with durability = \"{}\"", durability.name()),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn with(durability: Durability, set: &[(&str, &str)]) -> OverriddenSettings {
        let settings = set.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
        let config = EngineConfig { durability, settings, ..EngineConfig::new("sqlite") };
        Pragmas::of(&config).unwrap();
        overruled(&config)
    }

    /// The common cache size was reported for an engine that had as much in each session.
    #[test]
    fn a_cache_of_each_session_is_in_the_place_of_the_common_one() {
        let settings = [("cache_size", Value::Int(-2000))].into();
        let cache = overruled(&EngineConfig { settings, ..EngineConfig::new("sqlite") }).cache;
        assert_eq!(cache, Some(Own::new("cache_size", None)));
        assert_eq!(with(Durability::Sync, &[]), OverriddenSettings::default());
    }

    #[test]
    fn synchronous_pragma_maps_to_a_durability_level() {
        let of = |durability, set: &[(&str, &str)]| with(durability, set).durability;
        let level = |level| Some(Own::new("synchronous", level));
        assert_eq!(of(Durability::NoSync, &[("synchronous", "extra")]), level(Some(Durability::Sync)));
        assert_eq!(of(Durability::NoSync, &[("synchronous", "off")]), level(Some(Durability::None)));
        assert_eq!(of(Durability::None, &[("synchronous", "normal")]), level(Some(Durability::NoSync)));
        assert_eq!(of(Durability::NoSync, &[("synchronous", "normal")]), None, "it is so by itself");
        let journal = ("journal_mode", "delete");
        assert_eq!(of(Durability::NoSync, &[journal, ("synchronous", "off")]), None, "it is so by itself");
        let between = of(Durability::NoSync, &[journal, ("synchronous", "normal")]);
        assert_eq!(between, level(None), "it syncs at commits, and not all that `sync` does");
        let in_memory = of(Durability::None, &[("journal_mode", "memory"), ("synchronous", "full")]);
        assert_eq!(in_memory, None, "a crash damages the file at any durability");
    }
}
