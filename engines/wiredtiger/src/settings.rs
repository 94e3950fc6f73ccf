//! WiredTiger's own settings: names, the call that takes each, and permitted values. Names, bounds and defaults are
//! those of `wiredtiger.h` 3.2. If this engine's default differs, the text says so.

use rumba_engine_api::setting::{Kind, SettingInfo, info};

/// The call that takes a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `wiredtiger_open`: the whole database.
    Open,
    /// `WT_SESSION.create`: every table.
    Create,
}

impl Call {
    /// The library's name of the call.
    pub fn name(self) -> &'static str {
        match self {
            Call::Open => "wiredtiger_open",
            Call::Create => "WT_SESSION.create",
        }
    }
}

/// Settings that exist but are set elsewhere, and where.
pub const DECIDED_ELSEWHERE: &[(&str, &str)] = &[
    ("cache_size", "set `cache`"),
    ("block_compressor", "set `compression`"),
    ("extensions", "set `compression`: its library is loaded with it"),
    ("log.path", "the log stays in the instance's own directory, where it is measured and removed"),
    ("type", "tables are row-store B-trees; the library's LSM trees are not supported"),
    ("in_memory", "an engine without storage cannot be measured"),
    ("key_format", "keys are byte strings"),
    ("value_format", "values are byte strings"),
];

const PERCENT_OR_BYTES: Kind = Kind::Bytes;
const LIST: Kind = Kind::Text;

const OPEN: &[SettingInfo] = &[
    info("buffer_alignment", Kind::Int(-1, 1 << 20), "-1", "alignment of I/O buffers in bytes; -1: the platform's"),
    info("cache_max_wait_ms", Kind::Int(0, i64::MAX), "0", "ms a client waits for room in the cache; 0: for ever"),
    info("cache_overflow.file_max", Kind::Bytes, "0", "bound of the cache overflow file; 0: none, else >= 100MB"),
    info("cache_overhead", Kind::Int(0, 30), "8", "percent by which the allocator is thought to exceed the cache"),
    info("checkpoint.log_size", Kind::Bytes, "2GiB (library: 0)", "log bytes between checkpoints; up to 2GiB"),
    info("checkpoint.wait", Kind::Int(0, 100_000), "60 (library: 0)", "seconds between checkpoints; 0: none by time"),
    info("checkpoint_sync", Kind::Bool, "true", "sync files when a checkpoint is written"),
    info("debug_mode.checkpoint_retention", Kind::Int(0, 1024), "0", "keep the log of this many checkpoints"),
    info("debug_mode.eviction", Kind::Bool, "false", "evict to the overflow file more readily"),
    info("debug_mode.rollback_error", Kind::Int(0, 10_000_000), "0", "make every Nth operation a conflict"),
    info("debug_mode.table_logging", Kind::Bool, "false", "log operations on tables without a log, too"),
    info("direct_io", LIST, "[]", "files opened with O_DIRECT: [checkpoint,data,log]"),
    info("eviction.threads_max", Kind::Int(1, 20), "8", "most eviction threads"),
    info("eviction.threads_min", Kind::Int(1, 20), "1", "fewest eviction threads"),
    info("eviction_checkpoint_target", PERCENT_OR_BYTES, "1", "dirty cache a checkpoint starts from; percent or bytes"),
    info("eviction_dirty_target", PERCENT_OR_BYTES, "5", "dirty cache that workers evict to; percent or bytes"),
    info("eviction_dirty_trigger", PERCENT_OR_BYTES, "20", "dirty cache at which clients evict; percent or bytes"),
    info("eviction_target", PERCENT_OR_BYTES, "80", "cache that workers evict to; percent or bytes"),
    info("eviction_trigger", PERCENT_OR_BYTES, "95", "cache at which clients evict; percent or bytes"),
    info("file_extend", LIST, "[]", "extend files by: (data=16MB,log=100MB)"),
    info("file_manager.close_handle_minimum", Kind::Int(0, i64::MAX), "250", "open handles before any is closed"),
    info("file_manager.close_idle_time", Kind::Int(0, 100_000), "30", "seconds a handle is idle before it is closed"),
    info("file_manager.close_scan_interval", Kind::Int(1, 100_000), "10", "seconds between looks for idle handles"),
    info("io_capacity.total", Kind::Bytes, "0", "bytes a second of I/O; 0: unbounded, else >= 1MB"),
    info("log.archive", Kind::Bool, "true", "remove log files that no recovery needs"),
    info("log.compressor", Kind::Choice(&["none", "snappy", "zlib"]), "none", "compression of log records"),
    info(
        "log.enabled",
        Kind::Bool,
        "true; false under durability `none`",
        "true, with none: a log that guarantees nothing",
    ),
    info("log.file_max", Kind::Bytes, "100MiB", "size of a log file; 100KiB to 2GiB"),
    info("log.os_cache_dirty_pct", Kind::Int(0, 100), "0", "percent of a log file written before writeback starts"),
    info("log.prealloc", Kind::Bool, "true", "allocate log files ahead"),
    info("log.zero_fill", Kind::Bool, "false", "write zeroes into new log files"),
    info("mmap", Kind::Bool, "true", "map files into memory where possible"),
    info("session_max", Kind::Int(1, i64::MAX), "20000 (library: 100)", "most sessions, those of the library included"),
    info("statistics", Kind::Choice(&["fast", "all"]), "fast (library: none)", "statistics kept; counters need them"),
    info("statistics_log.json", Kind::Bool, "false", "write the library's own statistics file as JSON"),
    info("statistics_log.on_close", Kind::Bool, "false", "log statistics at close"),
    info("statistics_log.wait", Kind::Int(0, 100_000), "0", "seconds between entries of the statistics file; 0: none"),
    info(
        "transaction_sync.enabled",
        Kind::Bool,
        "true; false under durability `none` (library: false)",
        "write each commit's log record out; false leaves it in the process's memory",
    ),
    info("transaction_sync.method", Kind::Choice(&["dsync", "fsync"]), "fsync", "how durability `sync` syncs the log"),
    info("verbose", LIST, "[]", "events reported on standard error: [checkpoint,evict]"),
    info("zlib.compression_level", Kind::Int(0, 9), "6", "level of compression `zlib`, given to its extension"),
];

const CREATE: &[SettingInfo] = &[
    info("access_pattern_hint", Kind::Choice(&["none", "random", "sequential"]), "none", "advice to the system"),
    info("allocation_size", Kind::Bytes, "4KiB", "unit of a file's blocks: a power of two, 512B to 128MiB"),
    info("block_allocation", Kind::Choice(&["best", "first"]), "best", "fit of blocks into free space"),
    info("cache_resident", Kind::Bool, "false", "never evict the tables' pages"),
    info("checksum", Kind::Choice(&["on", "off", "uncompressed"]), "uncompressed", "blocks that get a checksum"),
    info("dictionary", Kind::Int(0, i64::MAX), "0", "distinct values remembered per leaf page"),
    info("internal_key_max", Kind::Bytes, "0", "longest key in an internal page; 0: a tenth of the page"),
    info("internal_key_truncate", Kind::Bool, "true", "drop needless trailing bytes of internal keys"),
    info("internal_page_max", Kind::Bytes, "4KiB", "size of internal pages before compression; 512B to 512MiB"),
    info("leaf_key_max", Kind::Bytes, "0", "longest key in a leaf page; 0: a tenth of the page"),
    info("leaf_page_max", Kind::Bytes, "32KiB", "size of leaf pages before compression; 512B to 512MiB"),
    info("leaf_value_max", Kind::Bytes, "0", "longest value in a leaf page; 0: half of the page"),
    info("memory_page_image_max", Kind::Bytes, "0", "in-memory bytes of one block; 0: 4 times leaf_page_max"),
    info("memory_page_max", Kind::Bytes, "5MiB", "size of a page in memory before it is written and split"),
    info("os_cache_dirty_max", Kind::Bytes, "0", "bytes written before the system's writeback starts; 0: its choice"),
    info("os_cache_max", Kind::Bytes, "0", "bytes of a file kept in the system's cache; 0: its choice"),
    info("prefix_compression", Kind::Bool, "false", "store the common prefix of a leaf page's keys once"),
    info("prefix_compression_min", Kind::Int(0, i64::MAX), "4", "fewest bytes of prefix worth it"),
    info("split_pct", Kind::Int(50, 100), "90", "percent of the page size that a split fills"),
];

const ALL: [SettingInfo; OPEN.len() + CREATE.len()] = {
    let mut all = [OPEN[0]; OPEN.len() + CREATE.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < OPEN.len() { OPEN[at] } else { CREATE[at - OPEN.len()] };
        at += 1;
    }
    all
};

/// All settings that are passed on.
pub static SETTINGS: &[SettingInfo] = &ALL;

/// The default of a setting, without the note on the library's own.
pub fn default_of(name: &str) -> &'static str {
    let default = SETTINGS.iter().find(|info| info.name == name).map_or("", |info| info.default);
    default.split(" (library").next().unwrap_or_default()
}

/// The call that takes the setting of this name.
pub fn call_of(name: &str) -> Call {
    if CREATE.iter().any(|info| info.name == name) { Call::Create } else { Call::Open }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{literal, nested};
    use crate::raw::Library;
    use rumba_engine_api::setting::Value;

    /// A value that fits the type and all bounds.
    fn example(info: &SettingInfo) -> Value {
        match info.kind {
            Kind::Bool => Value::Bool(true),
            Kind::Int(low, high) => Value::Int(low.max(1).min(high)),
            Kind::Choice(words) => Value::Text(words[0].into()),
            Kind::Text => Value::Text(if info.name == "file_extend" { "(data=16MB)" } else { "[]" }.into()),
            _ if info.name.starts_with("eviction_") => Value::Int(50),
            _ => Value::Int(128 << 20),
        }
    }

    /// A misspelled name in this list would be refused only when someone uses it.
    #[test]
    fn library_accepts_every_setting_in_its_call() {
        let library = Library::load(None).unwrap();
        for info in SETTINGS {
            let value = example(info);
            info.check(&value).unwrap();
            if info.name == "zlib.compression_level" {
                continue; // the extension's, not the library's
            }
            let value = literal(info, &value).unwrap();
            let config = nested(&BTreeMap::from([(info.name.to_owned(), value)]));
            library.validate(call_of(info.name).name(), &config).unwrap_or_else(|why| panic!("{config}: {why}"));
        }
    }
}
