//! The engine: name, settings and opening.

use std::path::Path;
use std::sync::Arc;

use rumba_engine_api::common::OverriddenSettings;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Durability, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Schema,
    require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, info};

use crate::db::{self, Database, Options};
use crate::ffi::LoadError;
use crate::instance::RocksDbInstance;
use crate::library::{self, Library};
use crate::plan::{COMPRESSIONS, Plan, compression_of, own_cache};
use crate::session::Space;

/// The rocksdb engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RocksDb;

/// The common settings; any other option of RocksDB is accepted by its own name.
const SETTINGS: &[SettingInfo] = &[
    info("bloom_bits", Kind::Float(0.0, 100.0), "10", "bits per key of the bloom filters; 0 for none"),
    info("statistics", Kind::Bool, "false", "keep RocksDB's tickers (cache hits, compaction bytes); costs CPU"),
    info(
        "write_buffer_size",
        Kind::Bytes,
        "db_write_buffer_size / key spaces (at most 4), 64 KiB to 64 MiB",
        "memtable of one key space",
    ),
    info("max_write_buffer_number", Kind::Int(2, 64), "2", "memtables of one key space before writes stall"),
    info(
        "db_write_buffer_size",
        Kind::Bytes,
        "cache / 4, up to 64 MiB for each of at most 4 key spaces",
        "limit over all memtables; 0 for none",
    ),
    info("block_cache", Kind::Bytes, "cache - 2 db_write_buffer_size", "capacity of the block cache"),
    info("max_bytes_for_level_base", Kind::Bytes, "4 table files", "size of the first level below L0"),
    info("target_file_size_base", Kind::Bytes, "one memtable, 1 MiB or more", "size of a table file"),
    info("level0_file_num_compaction_trigger", Kind::Int(1, 1000), "4", "L0 files that start a compaction"),
    info("compression_per_level", Kind::Text, "by `compression`", "list such as kNoCompression:kLZ4Compression"),
    info("bottommost_compression", Kind::Text, "by `compression`", "compression of the bottommost level: kZSTD"),
    info("block_size", Kind::Bytes, "4KiB", "uncompressed bytes of a data block"),
    info("cache_index_and_filter_blocks", Kind::Bool, "true", "index and filter blocks count against the cache"),
    info("max_background_jobs", Kind::Int(1, 1024), "the cores, 2 to 16", "threads for flush and compaction"),
    info("max_subcompactions", Kind::Int(1, 1024), "1", "threads of one compaction"),
    info("allow_concurrent_memtable_write", Kind::Bool, "true", "writers insert into a memtable at once"),
    info("enable_pipelined_write", Kind::Bool, "false", "log and memtable writes overlap"),
    info("use_direct_reads", Kind::Bool, "false", "reads bypass the page cache"),
    info("use_direct_io_for_flush_and_compaction", Kind::Bool, "false", "background I/O bypasses the page cache"),
    info("deadlock_detect", Kind::Bool, "true", "a deadlock is found at once, not by timeout"),
    info("transaction_lock_timeout", Kind::Int(-1, i64::MAX), "1000", "ms to wait for a row lock; -1 for ever"),
];

/// The listed default of one of the settings.
pub(crate) fn default_of(name: &str) -> &'static str {
    SETTINGS.iter().find(|info| info.name == name).map_or("", |info| info.default)
}

/// A check does not know the workload's number of key spaces. It gives the same result for any number.
const ANY_SPACES: usize = 1;

const COMPRESSION_NAMES: [&str; COMPRESSIONS.len()] = {
    let mut names = [""; COMPRESSIONS.len()];
    let mut position = 0;
    while position < names.len() {
        names[position] = COMPRESSIONS[position].0;
        position += 1;
    }
    names
};

static INFO: EngineInfo = EngineInfo {
    name: "rocksdb",
    about: "RocksDB: leveled LSM tree, pessimistic transactions with row locks",
    family: Family::KeyValue,
    form: Form::Library,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: &COMPRESSION_NAMES,
    settings: SETTINGS,
};

impl Engine for RocksDb {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn memory_need(&self, _config: &EngineConfig) -> Option<MemoryNeed> {
        MemoryNeed::of(include_str!("../../memory-needs.txt"), INFO.name)
    }

    /// Sessions lock the rows that they write and take no snapshot.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let is_direct = config.settings.0.get("use_direct_reads").is_some_and(|set| set.to_string() == "true");
        let reads = if is_direct { Reads::Direct } else { Reads::Buffered };
        EngineTraits::new("READ COMMITTED", config.durability != Durability::None, reads)
    }

    /// Direct reads bypass the page cache, so the block cache may take all the memory.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let rule = "a third of it, as RocksDB's makers advise";
        let is_buffered = self.nature(config).reads == Some(Reads::Buffered);
        is_buffered.then_some(AdvisedCache { bytes: memory_bytes / 3, rule })
    }

    /// The compression of the bottommost level, which holds most of the data.
    fn compression(&self, config: &EngineConfig) -> Option<String> {
        Some(compression_of(config))
    }

    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        OverriddenSettings { cache: own_cache(config), ..OverriddenSettings::default() }
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        library::availability(requested.library)
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        match Library::load(config.library.as_deref()) {
            Ok(library) => Plan::of(config, Some(&library), ANY_SPACES).map(drop),
            // The trial's own process checks with the right library before it creates anything.
            Err(LoadError::Another { .. }) => Plan::of(config, None, ANY_SPACES).map(drop),
            Err(error) => Err(SettingError::new("library", error.what(), error.remedy())),
        }
    }

    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let spaces = schema.key_spaces()?;
        let library = Library::load(config.library.as_deref()).map_err(|error| error.into_engine_error())?;
        let plan = Plan::of(config, Some(&library), spaces.len())
            .map_err(|error| EngineError::failed("rocksdb settings", format!("{error}; {}", error.remedy)))?;
        allow_many_open_files();
        let mut base = Options::new(&library);
        base.set_block_cache(usize::try_from(plan.block_cache).unwrap_or(usize::MAX));
        if plan.statistics {
            base.enable_statistics();
        }
        let options = |prefix| {
            let words = |words: String| EngineError::failed("rocksdb_get_options_from_string", words);
            base.with(&plan.text(prefix)).map_err(words)
        };
        // RocksDB requires a family called `default`; it stays empty.
        let mut families = vec![db::Family { name: "default".to_owned(), options: options(0)? }];
        for space in spaces {
            families.push(db::Family { name: space.name.to_owned(), options: options(space.scan_prefix)? });
        }
        let db = Database::open(dir, options(0)?, &plan.locking, &families)?;
        let prefix = |space: &KeySpace| if plan.prefixes { space.scan_prefix } else { 0 };
        let spaces = spaces.iter().map(|space| Space { prefix: prefix(space), derived: space.derived }).collect();
        Ok(Box::new(RocksDbInstance::new(dir, Arc::new(db), plan, spaces)?))
    }

    fn reopens(&self, _config: &EngineConfig) -> bool {
        true
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        require_database(dir, "CURRENT")?;
        self.open(dir, config, schema)
    }
}

/// Raises this process's open-file limit to the hard limit. RocksDB keeps every table file open (`max_open_files =
/// -1`), and a limit of 1024 would end a run at a few GiB.
fn allow_many_open_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, the limit stays as it was, and RocksDB's error names the file that it could not open.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
}
