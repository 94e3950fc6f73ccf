//! Translates an experiment's settings to the library's configuration.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bf_tree::{Config, ConfigError, StorageBackend, WalConfig};
use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_engine_api::units::show_bytes;

use crate::files::{DATA, LOG};
use crate::replay::entry_length;

/// The library's largest page size.
const LARGEST_PAGE: u64 = 32 << 10;

/// Segment size of the log in bytes, unless records are longer. Each log write writes a whole segment.
const SEGMENT: u64 = 16 << 10;

/// The settings, by the library's own names.
pub(crate) const SETTINGS: &[SettingInfo] = &[
    info("leaf_page_size", Kind::Bytes, "4KiB", "bytes of a leaf on the device: 4KiB to 32KiB"),
    info(
        "cb_min_record_size",
        Kind::Int(2, 4096),
        "4, and 8 with pages of 32KiB",
        "fewest bytes of a key and its value; pages in memory begin with so few",
    ),
    info(
        "cb_max_record_size",
        Kind::Int(16, 16 << 10),
        "as many as fit, a little less than half a page",
        "most bytes of a key and its value",
    ),
    info("cb_max_key_len", Kind::Int(8, 1024), "128", "most bytes of a key, with one for its key space"),
    info(
        "storage_backend",
        Kind::Choice(&["std", "std_direct", "io_uring_blocking", "io_uring_polling"]),
        "std",
        "how files are read and written: through the page cache, or past it",
    ),
    info(
        "read_promotion_rate",
        Kind::Int(0, 100),
        "30",
        "percent of reads of a leaf that bring the record into the cache",
    ),
    info(
        "scan_promotion_rate",
        Kind::Int(0, 100),
        "30",
        "percent of scans of a leaf that bring the whole page into the cache",
    ),
    info(
        "use_snapshot",
        Kind::Bool,
        "true",
        "write the tree as a whole at close, without which it cannot be opened again",
    ),
    info(
        "wal_flush_interval",
        Kind::Duration,
        "100us",
        "how often the log is written; every write waits for it (the library: 1 ms)",
    ),
    info(
        "wal_segment_size",
        Kind::Bytes,
        "16KiB, or more for the longest record",
        "bytes of each write of the log, however few are new (the library: 1 GiB)",
    ),
];

#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub flush_interval: Duration,
    pub segment: usize,
}

/// Parsed settings.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// A power of two.
    pub cache: usize,
    pub leaf_page: usize,
    pub min_record: usize,
    pub max_record: usize,
    pub max_key: usize,
    pub backend: StorageBackend,
    pub read_promotion: usize,
    pub scan_promotion: usize,
    pub has_snapshots: bool,
    pub log: Option<Log>,
}

fn backend(name: Option<&str>) -> StorageBackend {
    match name {
        Some("std_direct") => StorageBackend::StdDirect,
        Some("io_uring_blocking") => StorageBackend::IoUringBlocking,
        Some("io_uring_polling") => StorageBackend::IoUringPolling,
        _ => StorageBackend::Std,
    }
}

/// Describes why the library refuses a configuration.
pub(crate) fn words(error: ConfigError) -> String {
    match error {
        ConfigError::MinimumRecordSize(words)
        | ConfigError::MaximumRecordSize(words)
        | ConfigError::LeafPageSize(words)
        | ConfigError::MaxKeyLen(words)
        | ConfigError::CircularBufferSize(words)
        | ConfigError::SnapshotFileInvalid(words) => words,
        ConfigError::SnapshotDisabled => "snapshots are off".to_owned(),
    }
}

fn mistake(error: ConfigError) -> SettingError {
    let (key, remedy) = match error {
        ConfigError::MinimumRecordSize(_) => ("cb_min_record_size", "raise it, or take smaller pages"),
        ConfigError::MaximumRecordSize(_) => ("cb_max_record_size", "lower it, or take larger pages"),
        ConfigError::LeafPageSize(_) => ("leaf_page_size", "4KiB, 8KiB, 16KiB or 32KiB"),
        ConfigError::MaxKeyLen(_) => ("cb_max_key_len", "lower it, or take larger pages"),
        ConfigError::CircularBufferSize(_) => ("cache", "give it room for two pages at least"),
        ConfigError::SnapshotFileInvalid(_) | ConfigError::SnapshotDisabled => ("use_snapshot", "set it to true"),
    };
    SettingError::new(key, words(error), remedy)
}

impl Options {
    /// Parses and checks a configuration.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    pub fn of(config: &EngineConfig) -> Result<Self, SettingError> {
        config.settings.check(crate::INFO.name, SETTINGS)?;
        refuse_what_it_has_not(config)?;
        let settings = &config.settings.with_defaults(SETTINGS);
        let number = |name| settings.int(name).unwrap_or_default() as usize;
        let leaf_page = settings.bytes("leaf_page_size").unwrap_or_default();
        if !leaf_page.is_power_of_two() || !(4096..=LARGEST_PAGE).contains(&leaf_page) {
            let problem = format!("{} is not a page size", show_bytes(leaf_page as f64));
            return Err(SettingError::new("leaf_page_size", problem, "4KiB, 8KiB, 16KiB or 32KiB"));
        }
        let max_key = number("cb_max_key_len");
        if max_key as u64 > leaf_page / 16 {
            let problem = format!("{max_key} bytes are more than a sixteenth of a page");
            return Err(SettingError::new("cb_max_key_len", problem, format!("give {} or fewer", leaf_page / 16)));
        }
        let mut options = Self {
            // The library requires a power of two, so the remainder stays unused.
            cache: 1 << config.cache.max(1).ilog2(),
            leaf_page: leaf_page as usize,
            min_record: match number("cb_min_record_size") {
                0 => 4.max(leaf_page as usize / 4096),
                given => given,
            },
            max_record: number("cb_max_record_size"),
            max_key,
            backend: backend(settings.text("storage_backend")),
            read_promotion: number("read_promotion_rate"),
            scan_promotion: number("scan_promotion_rate"),
            has_snapshots: settings.bool("use_snapshot") != Some(false),
            log: None,
        };
        if options.max_record == 0 {
            options.max_record = options.largest_record();
        }
        options.library(Path::new("")).validate().map_err(mistake)?;
        options.log = log(config, settings, &options)?;
        Ok(options)
    }

    /// The largest record in bytes that the library accepts with these pages and keys.
    fn largest_record(&self) -> usize {
        let fits = |max_record: &usize| {
            let options = Self { max_record: *max_record, ..self.clone() };
            options.library(Path::new("")).validate().is_ok()
        };
        (16..=self.leaf_page / 2).rev().step_by(8).find(fits).unwrap_or(self.leaf_page / 4)
    }

    /// The library's configuration for an instance in a directory.
    pub fn library(&self, dir: &Path) -> Config {
        let mut config = Config::default();
        config
            .storage_backend(self.backend.clone())
            .file_path(dir.join(DATA))
            .cb_size_byte(self.cache)
            .leaf_page_size(self.leaf_page)
            .cb_min_record_size(self.min_record)
            .cb_max_record_size(self.max_record)
            .cb_max_key_len(self.max_key)
            .read_promotion_rate(self.read_promotion)
            .scan_promotion_rate(self.scan_promotion)
            .use_snapshot(self.has_snapshots);
        if let Some(log) = self.log_of(dir) {
            config.enable_write_ahead_log(log);
        }
        config
    }

    /// The configuration of the log in a directory, if there is a log.
    pub fn log_of(&self, dir: &Path) -> Option<Arc<WalConfig>> {
        let log = self.log.as_ref()?;
        let mut config = WalConfig::new(dir.join(LOG));
        config.flush_interval(log.flush_interval).segment_size(log.segment);
        Some(Arc::new(config))
    }
}

fn refuse_what_it_has_not(config: &EngineConfig) -> Result<(), SettingError> {
    config.durability.refuse_buffered("bf-tree", "a write waits until its log record is written to the kernel")?;
    if config.durability == Durability::Sync {
        return Err(SettingError::new(
            "durability",
            "bf-tree writes its log and never syncs it, so it cannot provide sync",
            "set durability = \"no-sync\", or \"none\" to leave the log out",
        ));
    }
    Ok(())
}

/// The log that a durability level requires.
fn log(config: &EngineConfig, settings: &Settings, options: &Options) -> Result<Option<Log>, SettingError> {
    if config.durability == Durability::None {
        return Ok(None);
    }
    if !options.has_snapshots {
        return Err(SettingError::new(
            "use_snapshot",
            "a log can only be applied to a snapshot",
            "set it to true, or durability = \"none\"",
        ));
    }
    // `log_room` admits half a segment of pending entries. A delete logs only its key, and that may be the longer
    // entry.
    let longest = entry_length(options.max_record.max(options.max_key), 0) as u64;
    let least = (2 * longest).next_multiple_of(512);
    let segment = settings.bytes("wal_segment_size").unwrap_or(least.max(SEGMENT));
    if segment < least || !segment.is_multiple_of(512) {
        let segment = show_bytes(segment as f64);
        let problem = format!("{segment} cannot hold two of the longest record, or is not a multiple of 512");
        return Err(SettingError::new("wal_segment_size", problem, format!("give {least} bytes or more")));
    }
    let flush_interval = settings.duration("wal_flush_interval").unwrap_or_default();
    Ok(Some(Log { flush_interval, segment: segment as usize }))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn with(durability: Durability, pairs: &[(&str, Value)]) -> Result<Options, SettingError> {
        Options::of(&EngineConfig {
            cache: 100 << 20,
            durability,
            settings: pairs.iter().cloned().collect(),
            ..EngineConfig::new("bf-tree")
        })
    }

    #[test]
    fn the_cache_is_a_power_of_two_and_a_record_nearly_half_a_page() {
        let options = with(Durability::NoSync, &[]).unwrap();
        assert_eq!((options.cache, options.leaf_page), (64 << 20, 4096));
        assert!((1700..2048).contains(&options.max_record), "{}", options.max_record);
        let larger = with(Durability::None, &[("leaf_page_size", Value::Text("32KiB".to_owned()))]).unwrap();
        assert!((15_000..16_384).contains(&larger.max_record), "{}", larger.max_record);
        assert!(larger.log.is_none());
        // Pending entries may fill half a segment, and one of them can be the longest entry.
        assert_eq!(options.log.unwrap().segment, 16 << 10);
        let largest = with(Durability::NoSync, &[("leaf_page_size", Value::Text("32KiB".to_owned()))]).unwrap();
        assert!(largest.log.unwrap().segment > 2 * largest.max_record);
    }

    #[test]
    fn unsupported_durability_and_sizes_are_refused_by_name() {
        let refused = |durability, pairs: &[(&str, Value)]| with(durability, pairs).unwrap_err();
        let error = refused(Durability::Sync, &[]);
        assert!(error.key == "durability" && error.remedy.contains("no-sync"), "{error}");
        for (name, value) in [
            ("leaf_page_size", Value::Text("64KiB".to_owned())),
            ("leaf_page_size", Value::Text("5000".to_owned())),
            ("cb_max_record_size", Value::Int(3000)),
            ("cb_max_key_len", Value::Int(1000)),
            ("wal_segment_size", Value::Text("1KiB".to_owned())),
            // The segment fits the longest record but not twice its size.
            ("wal_segment_size", Value::Text("2KiB".to_owned())),
            ("use_snapshot", Value::Bool(false)),
        ] {
            assert_eq!(refused(Durability::NoSync, &[(name, value)]).key, name);
        }
        assert!(with(Durability::None, &[("use_snapshot", Value::Bool(false))]).is_ok());
    }
}
