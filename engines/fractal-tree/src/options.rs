//! Translates an experiment's settings to the library's options.

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_engine_api::units::show_bytes;

use crate::raw::{Commit, EnvironmentOptions, TreeOptions};

/// The compression methods, each with the library's number.
const METHODS: [(&str, i32); 5] = [("none", 0), ("snappy", 7), ("zlib", 8), ("quicklz", 9), ("lzma", 10)];

/// Names of the compression methods.
pub const COMPRESSIONS: &[&str] = &[METHODS[0].0, METHODS[1].0, METHODS[2].0, METHODS[3].0, METHODS[4].0];

/// The default compression, as in TokuDB.
pub const DEFAULT: &str = "zlib";

/// The smallest cache: the library needs space for several nodes, each up to a page in size.
const LEAST_CACHE: u64 = 1 << 20;

/// The settings, with the library's own names where they exist.
pub const SETTINGS: &[SettingInfo] = &[
    info("pagesize", Kind::Bytes, "4MiB", "largest size of a node before compression: 4KiB to 1GiB"),
    info("readpagesize", Kind::Bytes, "128KiB", "bytes of a leaf part that is read on its own: 4KiB to 1GiB"),
    info("fanout", Kind::Int(2, 16 << 10), "16", "most children of an inner node; fewer leave more room for messages"),
    info(
        "checkpointing_period",
        Kind::Int(0, 86_400),
        "60",
        "seconds between checkpoints; 0 turns automatic \
        checkpoints off",
    ),
    info("cleaner_period", Kind::Int(0, 86_400), "1", "seconds between rounds of the cleaner, which flushes messages"),
    info("cleaner_iterations", Kind::Int(0, 1 << 20), "5", "nodes that a round of the cleaner flushes"),
    info("enable_partial_eviction", Kind::Bool, "true", "parts of nodes leave the cache, not only whole ones"),
    info("lock_timeout", Kind::Int(0, 3_600_000), "1000", "ms to wait for a row lock (MySQL's TokuDB: 4000)"),
    info(
        "lk_max_memory",
        Kind::Bytes,
        "the library's",
        "memory for row locks, which become locks of ranges when it is full",
    ),
    info("lg_max", Kind::Bytes, "the library's", "bytes of a file of the log: 1MiB to 1GiB"),
    info("redzone", Kind::Int(0, 50), "5", "percent of the device that stay free: below them writes are refused"),
    info("direct_io", Kind::Bool, "false", "the trees are read and written past the page cache"),
    info(
        "upserts",
        Kind::Bool,
        "true",
        "writes that need no read are messages (DB->update); if false, rows are read and put",
    ),
    info(
        "hot_optimize",
        Kind::Bool,
        "false",
        "settle and drain bring every message to its leaf, through all of the data",
    ),
];

/// Parsed settings.
#[derive(Clone, Debug)]
pub struct Options {
    pub environment: EnvironmentOptions,
    pub trees: TreeOptions,
    pub upserts: bool,
    pub optimizes: bool,
}

impl Options {
    /// Parses and checks a configuration.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    pub fn of(config: &EngineConfig) -> Result<Self, SettingError> {
        let name = crate::INFO.name;
        config
            .durability
            .refuse_buffered(name, "each commit writes its log record to the kernel, or there is no log")?;
        config.settings.check(name, SETTINGS)?;
        let settings = &config.settings.with_defaults(SETTINGS);
        if config.cache < LEAST_CACHE {
            let problem = format!("{} are too few", show_bytes(config.cache as f64));
            return Err(SettingError::new("cache", problem, "give 1MiB or more"));
        }
        let bound = |name, least, most| bytes(settings, name, least, most);
        let number = |name| settings.int(name).unwrap_or_default();
        let trees = TreeOptions {
            pagesize: bound("pagesize", 4 << 10, 1 << 30)?,
            readpagesize: bound("readpagesize", 4 << 10, 1 << 30)?,
            fanout: u32::try_from(number("fanout")).ok(),
            compression: method(config.compression.as_deref())?,
        };
        if trees.readpagesize > trees.pagesize {
            let problem = "a part of a leaf cannot be larger than the leaf".to_owned();
            return Err(SettingError::new("readpagesize", problem, "give pagesize or less"));
        }
        let environment = EnvironmentOptions {
            cache: config.cache,
            commit: match config.durability {
                Durability::None => Commit::Nothing,
                // `buffered` was refused before.
                Durability::Buffered | Durability::NoSync => Commit::Written,
                Durability::Sync => Commit::Synced,
            },
            lock_timeout_ms: number("lock_timeout").unsigned_abs(),
            lk_max_memory: settings.bytes("lk_max_memory"),
            lg_max: bound("lg_max", 1 << 20, 1 << 30)?,
            redzone_percent: number("redzone") as u8,
            checkpointing_period_s: number("checkpointing_period") as u32,
            cleaner_period_s: number("cleaner_period") as u32,
            cleaner_iterations: number("cleaner_iterations") as u32,
            partial_eviction: settings.bool("enable_partial_eviction") != Some(false),
            direct_io: settings.bool("direct_io") == Some(true),
        };
        let is_on = |name| settings.bool(name) == Some(true);
        Ok(Self { environment, trees, upserts: is_on("upserts"), optimizes: is_on("hot_optimize") })
    }
}

/// Parses a size between two bounds.
fn bytes(settings: &Settings, name: &'static str, least: u64, most: u64) -> Result<Option<u32>, SettingError> {
    let Some(given) = settings.bytes(name) else { return Ok(None) };
    match u32::try_from(given) {
        Ok(fits) if (least..=most).contains(&given) => Ok(Some(fits)),
        _ => {
            let problem = format!("{} does not fit", show_bytes(given as f64));
            let bounds = format!("{} to {}", show_bytes(least as f64), show_bytes(most as f64));
            Err(SettingError::new(name, problem, bounds))
        }
    }
}

/// Returns the library's number for a compression method.
fn method(name: Option<&str>) -> Result<i32, SettingError> {
    let name = name.unwrap_or(DEFAULT);
    let found = METHODS.iter().find(|(known, _)| *known == name).map(|(_, method)| *method);
    found.ok_or_else(|| {
        let problem = format!("PerconaFT does not compress with {name}");
        SettingError::new("compression", problem, format!("one of {}", COMPRESSIONS.join(", ")))
    })
}

/// Returns the name of a compression method by the library's number.
pub fn compression_name(method: u64) -> String {
    let known = METHODS.iter().find(|(_, number)| u64::from(number.unsigned_abs()) == method);
    known.map_or_else(|| method.to_string(), |(name, _)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn with(config: impl Fn(&mut EngineConfig), pairs: &[(&str, Value)]) -> Result<Options, SettingError> {
        let settings = pairs.iter().cloned().collect();
        let mut whole = EngineConfig { cache: 3 << 30, settings, ..EngineConfig::new("fractal-tree") };
        config(&mut whole);
        Options::of(&whole)
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn omitted_settings_take_their_listed_defaults() {
        let Options { environment, trees, upserts, optimizes } = with(|_| {}, &[]).unwrap();
        assert_eq!((environment.cache, environment.commit), (3 << 30, Commit::Written));
        assert_eq!((environment.checkpointing_period_s, environment.lock_timeout_ms), (60, 1000));
        assert_eq!((environment.lg_max, environment.lk_max_memory, trees.compression), (None, None, 8));
        assert_eq!((trees.pagesize, trees.readpagesize, trees.fanout), (Some(4 << 20), Some(128 << 10), Some(16)));
        assert!(upserts && !optimizes);
    }

    #[test]
    fn a_compression_is_known_by_its_name() {
        for (name, method) in METHODS {
            let options = with(|config| config.compression = Some(name.to_owned()), &[]).unwrap();
            assert_eq!(options.trees.compression, method);
            assert_eq!(compression_name(u64::from(method.unsigned_abs())), name);
        }
        let error = with(|config| config.compression = Some("zstd".to_owned()), &[]).unwrap_err();
        assert!(error.key == "compression" && error.remedy.contains("quicklz"), "{error}");
    }

    #[test]
    fn impossible_settings_are_refused_by_name() {
        for (name, value) in [
            ("pagesize", text("1KiB")),
            ("pagesize", text("8GiB")),
            ("readpagesize", text("8MiB")),
            ("fanout", Value::Int(1)),
            ("lg_max", text("1KiB")),
            ("redzone", Value::Int(100)),
            ("upserts", text("yes")),
            ("page_size", text("4MiB")),
        ] {
            assert_eq!(with(|_| {}, &[(name, value)]).unwrap_err().key, name);
        }
        assert_eq!(with(|config| config.cache = 4096, &[]).unwrap_err().key, "cache");
    }
}
