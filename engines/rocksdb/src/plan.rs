//! Translates an experiment's configuration to RocksDB's options: one value for every option that is set, and the text
//! that RocksDB parses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::available_parallelism;

use rumba_engine_api::common::Own;
use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::{SettingError, Value};
use rumba_engine_api::units::parse_bytes;

use crate::db::{Locking, Options};
use crate::engine::default_of;
use crate::library::Library;
use crate::memory::{self, Given, Split};
use crate::names::{self, Group, Shape};

/// The compression methods, by the experiment's name and by RocksDB's.
pub const COMPRESSIONS: [(&str, &str); 6] = [
    ("none", "kNoCompression"),
    ("snappy", "kSnappyCompression"),
    ("zlib", "kZlibCompression"),
    ("lz4", "kLZ4Compression"),
    ("lz4hc", "kLZ4HCCompression"),
    ("zstd", "kZSTD"),
];

/// RocksDB's default compression.
const DEFAULT_COMPRESSION: &str = "snappy";

/// The published layout: no compression for L0 to L2, lz4 below (the last entry applies to all deeper levels), and the
/// requested one for the bottommost.
const LAYERED: &str = "kNoCompression:kNoCompression:kNoCompression:kLZ4Compression";

const MIB: u64 = 1 << 20;

/// The compression of the bottommost level: from its own option, else from `compression`, else RocksDB's default.
pub fn compression_of(config: &EngineConfig) -> String {
    let set = |name: &str| config.settings.get(name).map(ToString::to_string);
    let own = set("bottommost_compression").filter(|word| word != "kDisableCompressionOption");
    let levels = || set("compression_per_level").and_then(|levels| Some(levels.rsplit(':').next()?.to_owned()));
    let word = own.or_else(|| {
        // The layout for `compression` sets the bottommost level, which overrides the setting for all levels.
        let is_layered = config.compression.as_deref().is_some_and(|name| name != "none");
        if is_layered { None } else { levels().or_else(|| set("compression")) }
    });
    match word {
        Some(word) => COMPRESSIONS.iter().find(|(_, own)| *own == word).map_or(word, |(name, _)| (*name).to_owned()),
        None => config.compression.clone().unwrap_or_else(|| DEFAULT_COMPRESSION.to_owned()),
    }
}

/// All decisions before RocksDB is opened.
pub struct Plan {
    /// Capacity of the block cache in bytes: `cache` minus the memtables.
    pub block_cache: u64,
    pub durability: Durability,
    pub statistics: bool,
    pub locking: Locking,
    /// Whether the key spaces' prefixes may be used; false if the experiment sets its own extractor.
    pub prefixes: bool,
    /// Every option that is set, by group and name, in RocksDB's spelling.
    pub options: BTreeMap<(Group, String), String>,
}

impl Plan {
    /// Applies a configuration for so many key spaces: the experiment's settings, then the defaults that go with them.
    /// Without a library, values are not checked and unlisted names are accepted.
    ///
    /// # Errors
    /// The setting that RocksDB or this engine refuses.
    pub fn of(config: &EngineConfig, library: Option<&Arc<Library>>, spaces: usize) -> Result<Self, SettingError> {
        let why = "each commit writes its log record to the kernel, or there is no log";
        config.durability.refuse_buffered("rocksdb", why)?;
        let base = library.map(Options::new);
        let base = base.as_ref();
        let mut plan = Self {
            block_cache: 0,
            durability: config.durability,
            statistics: false,
            locking: Locking { deadlock_detect: default_of("deadlock_detect") == "true", ..Locking::default() },
            prefixes: true,
            options: BTreeMap::new(),
        };
        plan.set_compression(config.compression.as_deref())?;
        for (name, value) in &config.settings.0 {
            plan.set(name, value, base)?;
        }
        if config.settings.get("bloom_bits").is_some() && config.settings.get("filter_policy").is_some() {
            return Err(SettingError::new("bloom_bits", "`filter_policy` is given as well", "keep one of the two"));
        }
        let split = memory::divide(config.cache, spaces, given(config)?)?;
        plan.block_cache = split.block_cache;
        plan.fill(&split, base.is_some_and(Options::built_with_assertions))?;
        confirm(base, &plan.text(0))
            .map_err(|words| SettingError::new("settings", words, "the values do not go together"))?;
        Ok(plan)
    }

    /// The options of a key space's family in RocksDB's format. `prefix` is the length of the prefix that its scans
    /// share, 0 for none.
    pub fn text(&self, prefix: usize) -> String {
        let mut text = String::new();
        let mut table = String::new();
        for ((group, name), value) in &self.options {
            let into = if *group == Group::Table { &mut table } else { &mut text };
            into.push_str(&format!("{name}={value};"));
        }
        if self.prefixes && prefix > 0 {
            text.push_str(&format!("prefix_extractor=fixed:{prefix};"));
        }
        format!("{text}block_based_table_factory={{{table}}}")
    }

    fn put(&mut self, group: Group, name: &str, value: impl Into<String>) {
        self.options.insert((group, name.to_owned()), value.into());
    }

    fn set_compression(&mut self, name: Option<&str>) -> Result<(), SettingError> {
        let Some(name) = name else { return Ok(()) };
        let &(_, own) = COMPRESSIONS.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let remedy = rumba_engine_api::instead(name, COMPRESSIONS.iter().map(|(known, _)| *known));
            SettingError::new("compression", format!("rocksdb has no `{name}`"), remedy)
        })?;
        if name == "none" {
            self.put(Group::Family, "compression", own);
        } else {
            self.put(Group::Family, "compression_per_level", LAYERED);
            self.put(Group::Family, "bottommost_compression", own);
        }
        Ok(())
    }

    /// Adds one setting of the experiment, checked by the library.
    fn set(&mut self, name: &str, value: &Value, base: Option<&Options>) -> Result<(), SettingError> {
        if let Some(reason) = names::reserved(name) {
            return Err(SettingError::new(name, reason, "leave it out"));
        }
        let (group, shape) = match names::find(name) {
            Some(known) => known,
            None => (request_library(name, value, base)?, Shape::Text),
        };
        let text = spell(name, shape, value)?;
        match group {
            Group::Own => self.set_own(name, value),
            Group::Locking => self.set_locking(name, &text),
            Group::Database | Group::Family | Group::Table => {
                let words = |words| SettingError::new(name, words, remedy(shape));
                confirm(base, &pair(group, name, &text)).map_err(words)?;
                self.prefixes &= name != "prefix_extractor";
                self.put(group, name, text);
                Ok(())
            }
        }
    }

    fn set_own(&mut self, name: &str, value: &Value) -> Result<(), SettingError> {
        let wrong = |expected: &str| Err(SettingError::new(name, format!("`{value}` does not fit"), expected));
        match (name, value) {
            ("statistics", Value::Bool(on)) => self.statistics = *on,
            ("statistics", _) => return wrong("expected true or false"),
            // `spell` has checked it as a size; `divide` reads it.
            ("block_cache", _) => {}
            (_, Value::Int(0)) => self.put(Group::Table, "filter_policy", "nullptr"),
            (_, Value::Int(1..=100)) => self.put(Group::Table, "filter_policy", bloom(value)),
            (_, Value::Float(bits)) if (1.0..=100.0).contains(bits) => {
                self.put(Group::Table, "filter_policy", bloom(value));
            }
            _ => return wrong("expected bits per key from 1 to 100, or 0 for no filter"),
        }
        Ok(())
    }

    fn set_locking(&mut self, name: &str, text: &str) -> Result<(), SettingError> {
        let wrong = || SettingError::new(name, format!("`{text}` does not fit"), "expected a whole number, -1 or more");
        let whole = || text.parse::<i64>().ok().filter(|value| *value >= -1).ok_or_else(wrong);
        let locking = &mut self.locking;
        match name {
            "deadlock_detect" => locking.deadlock_detect = text == "true",
            "deadlock_detect_depth" => locking.deadlock_detect_depth = Some(whole()?),
            "expiration" => locking.expiration = Some(whole()?),
            "lock_timeout" => locking.lock_timeout = Some(whole()?),
            "max_num_locks" => locking.max_num_locks = Some(whole()?),
            "transaction_lock_timeout" => locking.transaction_lock_timeout = Some(whole()?),
            "num_stripes" => {
                let stripes = usize::try_from(whole()?).ok().filter(|stripes| *stripes > 0).ok_or_else(wrong)?;
                locking.num_stripes = Some(stripes);
            }
            _ => unreachable!("names.rs lists no other"),
        }
        Ok(())
    }

    /// Adds defaults for options that are not set.
    fn fill(&mut self, split: &Split, assertions: bool) -> Result<(), SettingError> {
        let jobs = available_parallelism().map_or(2, |cores| cores.get().clamp(2, 16));
        // A build with assertions logs at debug level by default. On a full device it aborts the process with its next
        // LOG line (WritableFileWriter::AssertFalseAndGetStatusForPrevError), before the error reaches rumba.
        let log_level = if assertions { "FATAL_LEVEL" } else { "INFO_LEVEL" };
        let file = split.memtable.max(MIB);
        self.put_default(Group::Database, "create_if_missing", "true");
        self.put_default(Group::Database, "create_missing_column_families", "true");
        // The flush would wait for the writers that `stopped` releases. The instance flushes before it is closed.
        self.put_default(Group::Database, "avoid_flush_during_shutdown", "true");
        self.put_default(Group::Database, "info_log_level", log_level);
        self.put_default(Group::Database, "max_background_jobs", jobs.to_string());
        self.put_default(Group::Database, "db_write_buffer_size", split.memtables.to_string());
        self.put_default(Group::Family, "write_buffer_size", split.memtable.to_string());
        self.put_default(Group::Family, "target_file_size_base", file.to_string());
        // L0 at its trigger is about as large as the level below.
        self.put_default(Group::Family, "max_bytes_for_level_base", file.saturating_mul(4).to_string());
        self.put_default(Group::Family, "level_compaction_dynamic_level_bytes", "true");
        self.put_default(Group::Table, "filter_policy", bloom(default_of("bloom_bits")));
        // Otherwise the memory of index and filter blocks is outside `cache` and grows with the data.
        let cached = "cache_index_and_filter_blocks";
        self.put_default(Group::Table, cached, default_of(cached));
        self.put_default(Group::Table, "pin_l0_filter_and_index_blocks_in_cache", "true");
        // Otherwise a table file's filter is one block. The cache has up to 64 shards, and a block larger than a shard
        // is read for every lookup. At a cache of 160 MiB, for example, the filter has 1.5 MB and a shard 1.2 MB.
        self.put_default(Group::Table, "index_type", "kTwoLevelIndexSearch");
        self.put_default(Group::Table, "partition_filters", "true");
        self.put_default_history()
    }

    /// How much of flushed memtables stays in memory: zero, unless their number is set. RocksDB ignores the number
    /// while a size is set (`max_write_buffer_number_to_maintain` in advanced_options.h).
    fn put_default_history(&mut self) -> Result<(), SettingError> {
        let [number, size] =
            ["number", "size"].map(|kind| (Group::Family, format!("max_write_buffer_{kind}_to_maintain")));
        let given = |key| self.options.get(key).is_some_and(|value| value != "0");
        match (given(&number), given(&size)) {
            (true, true) => {
                let why = format!("RocksDB ignores it while `{}` is given", size.1);
                Err(SettingError::new(number.1, why, "keep one of the two"))
            }
            (true, false) => Ok(()),
            (false, _) => {
                self.options.entry(size).or_insert_with(|| "1".to_owned());
                Ok(())
            }
        }
    }

    fn put_default(&mut self, group: Group, name: &str, value: impl Into<String>) {
        self.options.entry((group, name.to_owned())).or_insert_with(|| value.into());
    }
}

/// The settings that divide `cache`.
fn given(config: &EngineConfig) -> Result<Given, SettingError> {
    let bytes = |name: &str| match config.settings.get(name) {
        None => Ok(None),
        Some(value) => {
            let wrong = || SettingError::new(name, format!("`{value}` does not fit"), remedy(Shape::Whole));
            spell(name, Shape::Whole, value)?.parse().map(Some).map_err(|_| wrong())
        }
    };
    Ok(Given {
        block_cache: bytes("block_cache")?,
        memtables: bytes("db_write_buffer_size")?,
        memtable: bytes("write_buffer_size")?,
    })
}

/// The cache size set by the experiment's own settings, if both parts are set: less than `cache`, or no limit. A single
/// part leaves the rest of `cache` to the other.
pub fn own_cache(config: &EngineConfig) -> Option<Own<u64>> {
    if config.settings.bool("no_block_cache") == Some(true) {
        return Some(Own::new("no_block_cache", None));
    }
    let given = given(config).ok()?;
    let total = memory::divide(config.cache, 1, given).ok()?.total();
    match given {
        Given { memtables: Some(0), .. } => Some(Own::new("db_write_buffer_size", None)),
        Given { block_cache: Some(_), memtables: Some(_), .. } => Some(Own::new("block_cache", total)),
        _ => None,
    }
}

fn bloom(bits: impl std::fmt::Display) -> String {
    format!("bloomfilter:{bits}:false")
}

/// Lets the library check a text of options; does nothing without one.
fn confirm(base: Option<&Options>, text: &str) -> Result<(), String> {
    base.map_or(Ok(()), |base| base.with(text).map(drop))
}

/// Finds the group of a name that only the loaded library may know.
fn request_library(name: &str, value: &Value, base: Option<&Options>) -> Result<Group, SettingError> {
    let unknown = || SettingError::unknown(name, "rocksdb", names::all());
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(unknown());
    }
    let text = spell(name, Shape::Text, value)?;
    // The second message is from some groups in 7.8, the third from 10 on.
    const NOT_FOUND: [&str; 3] = ["Could not find option", "Unrecognized option", "Extra option not recognized"];
    let not_found = |words: &String| NOT_FOUND.iter().any(|known| words.contains(known));
    [Group::Family, Group::Table]
        .into_iter()
        .find(|group| !confirm(base, &pair(*group, name, &text)).is_err_and(|words| not_found(&words)))
        .ok_or_else(unknown)
}

/// One setting in RocksDB's format.
fn pair(group: Group, name: &str, value: &str) -> String {
    match group {
        Group::Table => format!("block_based_table_factory={{{name}={value}}}"),
        _ => format!("{name}={value}"),
    }
}

/// A value in RocksDB's spelling. RocksDB's parser accepts `8MiB` as 8 and a unit, but also `1.5` and `8apples` as
/// whole numbers, so these are checked here.
fn spell(name: &str, shape: Shape, value: &Value) -> Result<String, SettingError> {
    let wrong = || Err(SettingError::new(name, format!("`{value}` does not fit"), remedy(shape)));
    match (shape, value) {
        (Shape::Switch, Value::Bool(on)) => Ok(on.to_string()),
        (Shape::Whole, Value::Int(number)) => Ok(number.to_string()),
        (Shape::Whole, Value::Text(text)) => match parse_bytes(text) {
            Ok(bytes) => Ok(bytes.to_string()),
            Err(_) => wrong(),
        },
        (Shape::Fraction, Value::Int(_) | Value::Float(_)) => Ok(value.to_string()),
        (Shape::Text, Value::Text(text)) if !holds_together(text) => wrong(),
        (Shape::Text, _) => Ok(value.to_string()),
        _ => wrong(),
    }
}

/// Whether RocksDB parses a text as one value: balanced braces, and `;` only within them.
fn holds_together(text: &str) -> bool {
    let mut depth = 0i32;
    for letter in text.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return false,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}

fn remedy(shape: Shape) -> &'static str {
    match shape {
        Shape::Switch => "expected true or false",
        Shape::Whole => "expected a whole number, or a size such as \"8MiB\"",
        Shape::Fraction => "expected a number",
        Shape::Text => "expected one value as RocksDB spells it: \"kZSTD\", or \"{level=3;strategy=0}\"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes with zstd were compared with uncompressed sizes, without a warning.
    #[test]
    fn effective_compression_is_known_without_a_setting() {
        let of = |name: Option<&str>, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
            let compression = name.map(str::to_owned);
            compression_of(&EngineConfig { compression, settings, ..EngineConfig::new("rocksdb") })
        };
        assert_eq!(of(None, &[]), "snappy");
        assert_eq!(of(Some("none"), &[]), "none");
        assert_eq!(of(Some("zstd"), &[("compression", "kLZ4Compression")]), "zstd");
        assert_eq!(of(None, &[("compression", "kLZ4Compression")]), "lz4");
        assert_eq!(of(Some("zstd"), &[("bottommost_compression", "kNoCompression")]), "none");
        assert_eq!(of(None, &[("compression_per_level", "kNoCompression:kZSTD")]), "zstd");
    }
}
