//! Parses an experiment's settings and separates rumba's own from the server's options.

use std::collections::BTreeMap;

use rumba_engine_api::engine::{EngineConfig, EngineInfo, Family, Form};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Value, info};
use rumba_protocol_mongodb::OnLost;
use rumba_server_kit::own_settings::separate;

use crate::brand::Brand;

const ON_LOST: SettingInfo =
    info("on_lost", Kind::Choice(&["fail", "reconnect"]), "fail", "what a session does after it lost its connection");
const TRANSACTIONS: SettingInfo =
    info("transactions", Kind::Bool, "true", "whether clients use transactions, which need a replica set of one");
const OPLOG: SettingInfo = info(
    "oplog",
    Kind::Bool,
    "as transactions",
    "run a replica set of one, which writes an oplog; false: a standalone server",
);
const READ_CONCERN: SettingInfo = info(
    "read_concern",
    Kind::Choice(&["local", "majority", "snapshot"]),
    "the server's, local",
    "what transactions read",
);

/// Settings for MongoDB: rumba's own names, then some of the server's options.
const MONGODB: &[SettingInfo] = &[
    ON_LOST,
    TRANSACTIONS,
    OPLOG,
    READ_CONCERN,
    info("storageEngine", Kind::Text, "wiredTiger", "the storage engine, by the server's own name: rocksdb, mmapv1"),
    info("syncdelay", Kind::Int(0, 1 << 30), "60", "seconds between checkpoints; 0 writes none"),
    info("wiredTigerJournalCompressor", Kind::Text, "snappy", "how the log is compressed"),
    info(
        "oplogSize",
        Kind::Int(1, 1 << 40),
        "a twentieth of the disk",
        "MB of the log of operations, which replicas read",
    ),
];

const SECANTUSDB: &[SettingInfo] = &[
    ON_LOST,
    TRANSACTIONS,
    OPLOG,
    READ_CONCERN,
    info("session-max", Kind::Int(1, 1 << 20), "the server's", "most sessions of its storage engine"),
];

const MONGODB_INFO: EngineInfo = EngineInfo {
    name: "mongodb",
    about: "MongoDB: documents in WiredTiger's B-trees, or in another of its storage engines",
    family: Family::Document,
    form: Form::Server,
    brought: None,
    keeps_data: true,
    has_cache: true,
    // An old or standalone mongod has none (`transactions = false`), and the reported isolation shows it.
    has_transactions: true,
    compressions: &["none", "snappy", "zlib", "zstd"],
    settings: MONGODB,
};

const SECANTUSDB_INFO: EngineInfo = EngineInfo {
    name: "secantusdb",
    about: "SecantusDB (beta): MongoDB's protocol over WiredTiger with different tables; its figures are not MongoDB's",
    compressions: &["none", "lz4", "zlib"],
    settings: SECANTUSDB,
    ..MONGODB_INFO
};

impl Brand {
    /// Describes the server's engine.
    pub fn info(self) -> &'static EngineInfo {
        match self {
            Brand::MongoDb => &MONGODB_INFO,
            Brand::SecantusDb => &SECANTUSDB_INFO,
        }
    }
}

/// The number of rumba's own settings at the start of each list.
const OWN: usize = 4;

/// Parsed settings.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `on_lost`.
    pub on_lost: OnLost,
    /// `transactions`.
    pub transactions: bool,
    /// `oplog`: whether the server is a replica set of one.
    pub oplog: bool,
    /// `read_concern`.
    pub read_concern: Option<String>,
    /// The server's own options by name; the value is empty for an option without a value.
    pub arguments: BTreeMap<String, String>,
}

impl Options {
    /// Separates rumba's own settings from the server's options.
    ///
    /// # Errors
    /// An invalid value for one of rumba's own settings; an option that rumba sets itself.
    pub fn read(brand: Brand, config: &EngineConfig) -> Result<Self, SettingError> {
        let (own, options) = separate(config, &brand.info().settings[..OWN], str::to_owned, RESERVED)?;
        let mut arguments = BTreeMap::new();
        for (name, value) in options {
            let written = match value {
                Value::Bool(false) => {
                    return Err(SettingError::new(name, "an option of the server's is there or not", "leave it out"));
                }
                Value::Bool(true) => String::new(),
                other => other.to_string(),
            };
            arguments.insert(name, written);
        }
        let transactions = own.bool("transactions") != Some(false);
        Ok(Self {
            on_lost: if own.text("on_lost") == Some("reconnect") { OnLost::Reconnect } else { OnLost::Fail },
            transactions,
            oplog: own.bool("oplog").unwrap_or(transactions),
            read_concern: own.text("read_concern").map(str::to_owned),
            arguments,
        })
    }
}

/// Options that rumba sets itself, and the alternative for each.
const RESERVED: &[(&str, &str)] = &[
    ("dbpath", "the data directory is [run] data_dir"),
    ("storage-path", "the data directory is [run] data_dir"),
    ("port", "rumba chooses a free one"),
    ("host", "nothing listens beyond loopback"),
    ("bind_ip", "nothing listens beyond loopback"),
    ("bind_ip_all", "nothing listens beyond loopback"),
    ("config", "write the options as settings"),
    ("logpath", "the server's log is kept with the results, as error.log"),
    ("fork", "rumba watches the server's process"),
    ("replSet", "write oplog"),
    ("standalone", "write oplog"),
    ("keyFile", "rumba makes one"),
    ("auth", "rumba sees to that"),
    ("wiredTigerCacheSizeGB", "write cache"),
    ("rocksdbCacheSizeGB", "write cache"),
    ("rocksdbCompression", "write compression"),
    ("tlsMode", "it listens only on loopback; for your own server use mongodb://…?tls=verified"),
    ("sslMode", "it listens only on loopback; for your own server use mongodb://…?tls=verified"),
    ("cache-size", "write cache"),
    ("wiredTigerCollectionBlockCompressor", "write compression"),
    ("block-compressor", "write compression"),
    ("nojournal", "write durability"),
    ("sync-on-commit", "write durability"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsn::FORM;
    use crate::tests::config;

    #[test]
    fn own_names_are_distinguished_from_server_options() {
        let mut requested = config(Brand::MongoDb);
        requested.settings.0.insert("transactions".into(), Value::Bool(false));
        requested.settings.0.insert("syncdelay".into(), Value::Int(10));
        requested.settings.0.insert("directoryperdb".into(), Value::Bool(true));
        let options = Options::read(Brand::MongoDb, &requested).unwrap();
        assert!(!options.transactions && !options.oplog && options.read_concern.is_none());
        let arguments: Vec<_> = options.arguments.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(arguments, [("directoryperdb", ""), ("syncdelay", "10")]);
        for (name, remedy) in [
            ("dbpath", "data_dir"),
            ("replSet", "oplog"),
            ("nojournal", "durability"),
            ("rocksdbCacheSizeGB", "cache"),
            ("tlsMode", "tls=verified"),
        ] {
            let mut requested = config(Brand::MongoDb);
            requested.settings.0.insert(name.into(), Value::Text("x".into()));
            assert!(Options::read(Brand::MongoDb, &requested).unwrap_err().remedy.contains(remedy), "{name}");
        }
    }

    #[test]
    fn oplog_follows_transactions_unless_it_is_set() {
        let read = |settings: &[(&str, bool)]| {
            let mut requested = config(Brand::MongoDb);
            requested.settings.0.extend(settings.iter().map(|&(name, value)| (name.to_owned(), Value::Bool(value))));
            Options::read(Brand::MongoDb, &requested).map(|options| (options.transactions, options.oplog))
        };
        assert_eq!(read(&[]).unwrap(), (true, true));
        assert_eq!(read(&[("transactions", false)]).unwrap(), (false, false));
        assert_eq!(read(&[("transactions", false), ("oplog", true)]).unwrap(), (false, true));
    }

    /// The error suggested `tls=true`, which no DSN accepts.
    #[test]
    fn dsns_suggested_by_remedies_are_accepted() {
        let written = RESERVED.iter().filter_map(|(_, remedy)| Some(remedy.split_once("mongodb://…?")?.1));
        let dsns: Vec<String> = written.map(|parameters| format!("mongodb://host/lab?{parameters}")).collect();
        assert_eq!(dsns.len(), 2, "{dsns:?}");
        for dsn in dsns {
            assert!(FORM.parse(&dsn).is_ok(), "{dsn}");
        }
    }
}
