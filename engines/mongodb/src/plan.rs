//! Translates an experiment's configuration to the server's options and write concern.

use rumba_engine_api::bson::DocumentBuf;
use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::SettingError;
use rumba_server_kit::version::Version;

use crate::brand::Brand;
use crate::options::Options;
use crate::software::Software;

/// The smallest cache that MongoDB accepts for WiredTiger.
const LEAST_CACHE: u64 = 256 << 20;
/// The unit of MongoRocks' cache size.
const GIB: u64 = 1 << 30;

/// The options and requirements of a server.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Options with their values, in command-line order; the value is empty for an option without one.
    pub arguments: Vec<(String, String)>,
    /// Whether the server is a single-node replica set.
    pub replicated: bool,
    /// The write concern of all writes.
    pub write_concern: DocumentBuf,
}

impl Plan {
    fn notify(&mut self, name: &str, value: impl Into<String>) {
        self.arguments.retain(|(reported, _)| reported != name);
        self.arguments.push((name.to_owned(), value.into()));
    }

    /// The value of an option on the command line.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(reported, _)| reported == name).map(|(_, value)| value.as_str())
    }

    /// The command line.
    pub fn command_line(&self) -> impl Iterator<Item = String> {
        self.arguments.iter().flat_map(|(name, value)| {
            [Some(format!("--{name}")), Some(value.clone()).filter(|value| !value.is_empty())].into_iter().flatten()
        })
    }
}

/// The write concern for a durability: one server, and for `sync` its log on the device.
fn write_concern(durability: Durability) -> DocumentBuf {
    DocumentBuf::of(|of| {
        of.small("w", 1);
        of.bool("j", durability == Durability::Sync);
    })
}

/// The plan for an existing server, where only the write concern can be chosen.
///
/// # Errors
/// Command-line options, which rumba does not control here.
pub fn for_existing(brand: Brand, config: &EngineConfig, options: &Options) -> Result<Plan, SettingError> {
    if let Some(name) = ["transactions", "oplog"].into_iter().find(|name| config.settings.bool(name).is_some()) {
        let problem = format!("whether a server that others run has its {name} depends on how it was started");
        return Err(SettingError::new(name, problem, "leave it out; the record says which"));
    }
    match (config.durability, brand) {
        (Durability::None, _) => {
            let problem = "a server that others run keeps its log, or keeps none, as it was started";
            return Err(SettingError::new("durability", problem, "write no-sync or sync"));
        }
        (Durability::Sync, Brand::SecantusDb) => {
            let problem = "SecantusDB syncs commits if it was started so, and not if a client asks for it";
            return Err(SettingError::new("durability", problem, "write no-sync, or have rumba start it"));
        }
        _ => {}
    }
    let named =
        options.arguments.keys().next().map(String::as_str).or(config.compression.as_deref().map(|_| "compression"));
    if let Some(name) = named {
        let remedy = "leave it out; it is the server's own affair";
        return Err(SettingError::new(name, "a server that others run is not configured by rumba", remedy));
    }
    let write_concern = write_concern(config.durability);
    Ok(Plan { arguments: Vec::new(), replicated: options.oplog, write_concern })
}

/// The plan for a server that rumba runs.
///
/// # Errors
/// A request that this server cannot fulfill.
pub fn for_own(config: &EngineConfig, options: &Options, software: &Software) -> Result<Plan, SettingError> {
    if options.transactions && !options.oplog {
        let problem = "transactions need a replica set, which writes an oplog";
        return Err(SettingError::new("oplog", problem, "write transactions = false, which leaves out the oplog"));
    }
    let write_concern = write_concern(config.durability);
    let mut plan = Plan { arguments: Vec::new(), replicated: options.oplog, write_concern };
    match software.brand {
        Brand::MongoDb => mongodb(&mut plan, config, options, software)?,
        Brand::SecantusDb => secantusdb(&mut plan, config, software)?,
    }
    options.arguments.iter().for_each(|(name, value)| plan.notify(name, value.as_str()));
    Ok(plan)
}

/// The first version with transactions.
const WITH_TRANSACTIONS: Version = Version(4, 0, 0);

/// Returns the name of a storage engine without transactions, in any server.
pub fn without_transactions(engine: &str) -> Option<&'static str> {
    match engine {
        "mmapv1" => Some("MMAPv1"),
        "rocksdb" => Some("MongoRocks"),
        _ => None,
    }
}

fn refuse_without_transactions(engine: &str, software: &Software) -> Result<(), SettingError> {
    let remedy = "write settings.transactions = false";
    if let Some(name) = without_transactions(engine) {
        return Err(SettingError::new("storageEngine", format!("{name} has no transactions"), remedy));
    }
    match software.version.as_deref().and_then(Version::find) {
        Some(version) if version < WITH_TRANSACTIONS => {
            Err(SettingError::new("transactions", format!("MongoDB {version} has none, which came with 4.0"), remedy))
        }
        _ => Ok(()),
    }
}

fn mongodb(plan: &mut Plan, config: &EngineConfig, options: &Options, software: &Software) -> Result<(), SettingError> {
    // The option takes whole MiB and truncates the rest, so this value is exact.
    let gigabytes = ((config.cache >> 20) as f64 / 1024.0).to_string();
    let engine = options.arguments.get("storageEngine").map_or("wiredTiger", String::as_str);
    if options.transactions {
        refuse_without_transactions(engine, software)?;
    }
    let compression = config.compression.as_deref();
    match engine {
        "wiredTiger" if config.cache < LEAST_CACHE => {
            return Err(SettingError::new(
                "cache",
                "it takes no less than 256 MiB of cache",
                "write cache = \"256MiB\"",
            ));
        }
        "wiredTiger" => {
            plan.notify("wiredTigerCacheSizeGB", gigabytes);
            if let Some(name) = compression {
                plan.notify("wiredTigerCollectionBlockCompressor", name);
            }
        }
        "rocksdb" if config.cache == 0 || !config.cache.is_multiple_of(GIB) => {
            return Err(SettingError::new(
                "cache",
                "MongoRocks takes whole GiB of cache alone",
                "write cache = \"1GiB\"",
            ));
        }
        "rocksdb" => {
            plan.notify("rocksdbCacheSizeGB", (config.cache / GIB).to_string());
            if let Some(name) = compression {
                plan.notify("rocksdbCompression", name);
            }
        }
        "mmapv1" => {
            if compression.is_some_and(|name| name != "none") {
                let words = "rumba does not know how the storage engine mmapv1 compresses";
                return Err(SettingError::new("compression", words, "leave it out"));
            }
        }
        // Otherwise the record would show a cache size that the server never received.
        other => {
            let words = format!("rumba does not know how to set the cache of {other}");
            return Err(SettingError::new("storageEngine", words, "write wiredTiger, rocksdb or mmapv1"));
        }
    }
    if config.durability == Durability::None {
        if plan.replicated {
            let remedy = "write no-sync, or transactions = false without oplog for a server before 6.1";
            return Err(SettingError::new("durability", "a replica set needs its log", remedy));
        }
        plan.notify("nojournal", "");
    }
    Ok(())
}

fn secantusdb(plan: &mut Plan, config: &EngineConfig, software: &Software) -> Result<(), SettingError> {
    plan.notify("cache-size", format!("{}M", (config.cache >> 20).max(1)));
    match config.durability {
        Durability::None => {
            return Err(SettingError::new("durability", "SecantusDB always has its log", "write no-sync or sync"));
        }
        Durability::Buffered => {
            config.durability.refuse_buffered("SecantusDB", "a killed server loses no commit")?;
        }
        Durability::NoSync => {}
        // `j` alone does not sync in this server.
        Durability::Sync => plan.notify("sync-on-commit", ""),
    }
    if !plan.replicated {
        plan.notify("standalone", "");
    }
    if let Some(name) = config.compression.as_deref() {
        if software.program.ends_with("secantusd-py") {
            let remedy = "leave it out, or name a directory with secantusd-rs";
            return Err(SettingError::new("compression", "secantusd-py has no compression setting", remedy));
        }
        plan.notify("block-compressor", name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::config;
    use rumba_engine_api::setting::Value;

    fn planned(brand: Brand, change: impl FnOnce(&mut EngineConfig)) -> Result<Plan, SettingError> {
        of_version(brand, None, change)
    }

    fn of_version(
        brand: Brand,
        version: Option<&str>,
        change: impl FnOnce(&mut EngineConfig),
    ) -> Result<Plan, SettingError> {
        let mut config = config(brand);
        change(&mut config);
        let program = format!("/x/bin/{}", brand.programs()[0]).into();
        let mut software = Software::unchecked(brand, program);
        software.version = version.map(str::to_owned);
        for_own(&config, &Options::read(brand, &config)?, &software)
    }

    #[test]
    fn common_settings_become_the_servers_options() {
        let plan = planned(Brand::MongoDb, |config| {
            (config.cache, config.compression) = (500 << 20, Some("zstd".into()));
            config.settings.0.insert("directoryperdb".into(), Value::Bool(true));
        });
        let line: Vec<String> = plan.unwrap().command_line().collect();
        let wanted = [
            "--wiredTigerCacheSizeGB",
            "0.48828125",
            "--wiredTigerCollectionBlockCompressor",
            "zstd",
            "--directoryperdb",
        ];
        assert_eq!(line, wanted);
        let plan = planned(Brand::SecantusDb, |config| config.durability = Durability::Sync).unwrap();
        assert_eq!((plan.value("sync-on-commit"), plan.value("cache-size")), (Some(""), Some("64M")));
        assert_eq!(plan.write_concern.get().int("j"), Ok(1));
        let plan = planned(Brand::MongoDb, |config| {
            config.settings.0.insert("storageEngine".into(), Value::Text("rocksdb".into()));
            config.settings.0.insert("transactions".into(), Value::Bool(false));
            (config.cache, config.durability) = (2 << 30, Durability::None);
        });
        let plan = plan.unwrap();
        assert_eq!((plan.value("rocksdbCacheSizeGB"), plan.value("nojournal")), (Some("2"), Some("")));
        assert!(!plan.replicated && plan.value("wiredTigerCacheSizeGB").is_none());
    }

    #[test]
    fn unsupported_options_are_refused_before_the_start() {
        let refused = |brand, change: fn(&mut EngineConfig)| planned(brand, change).unwrap_err().to_string();
        assert!(refused(Brand::MongoDb, |_| {}).contains("256 MiB"), "64 MiB of cache");
        let none = refused(Brand::MongoDb, |config| (config.cache, config.durability) = (GIB, Durability::None));
        assert!(none.contains("needs its log"), "{none}");
        for brand in [Brand::MongoDb, Brand::SecantusDb] {
            let error = planned(brand, |config| {
                config.settings.0.insert("oplog".into(), Value::Bool(false));
            });
            let error = error.unwrap_err();
            assert!(error.key == "oplog" && error.remedy.contains("transactions = false"), "{error}");
        }
        let none = refused(Brand::SecantusDb, |config| config.durability = Durability::None);
        assert!(none.contains("always has its log"), "{none}");
        for (engine, transactions, cache, compression, words) in [
            // rumba would have to round the cache.
            ("rocksdb", false, 1536 << 20, None, "whole GiB"),
            ("rocksdb", true, GIB, None, "MongoRocks has no transactions"),
            ("mmapv1", false, GIB, Some("zlib"), "mmapv1"),
            ("mmapv1", true, GIB, None, "no transactions"),
            ("inMemory", true, GIB, None, "how to set the cache of inMemory"),
        ] {
            let error = planned(Brand::MongoDb, |config| {
                config.settings.0.insert("storageEngine".into(), Value::Text(engine.into()));
                config.settings.0.insert("transactions".into(), Value::Bool(transactions));
                (config.cache, config.compression) = (cache, compression.map(str::to_owned));
            });
            let error = error.unwrap_err().to_string();
            assert!(error.contains(words), "{engine}: {error}");
        }
        let old = |version| of_version(Brand::MongoDb, Some(version), |config| config.cache = GIB);
        assert!(old("3.6.23").unwrap_err().to_string().contains("MongoDB 3.6.23 has none"));
        assert!(old("4.0.0").is_ok() && old("7.0.5").is_ok());
    }

    #[test]
    fn settings_of_an_existing_server_are_refused() {
        let refused = |brand: Brand, change: &dyn Fn(&mut EngineConfig)| {
            let mut config = config(brand);
            (config.compression, config.durability) = (None, Durability::NoSync);
            change(&mut config);
            let options = Options::read(brand, &config).unwrap();
            for_existing(brand, &config, &options).map_err(|error| error.key)
        };
        for brand in [Brand::MongoDb, Brand::SecantusDb] {
            assert!(refused(brand, &|_| {}).is_ok());
            let durability = refused(brand, &|config| config.durability = Durability::None);
            assert_eq!(durability.unwrap_err(), "durability");
            for (name, value) in [("transactions", false), ("oplog", true), ("oplog", false)] {
                let change = |config: &mut EngineConfig| {
                    config.settings.0.insert(name.into(), Value::Bool(value));
                };
                assert_eq!(refused(brand, &change).unwrap_err(), name);
            }
        }
        let sync = |config: &mut EngineConfig| config.durability = Durability::Sync;
        assert!(refused(Brand::MongoDb, &sync).is_ok());
        assert_eq!(refused(Brand::SecantusDb, &sync).unwrap_err(), "durability");
    }
}
