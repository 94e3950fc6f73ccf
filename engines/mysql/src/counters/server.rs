//! The server and engine whose counters are read.

use rumba_server_kit::version::Version;

use crate::software::Brand;

/// The engine that holds the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// InnoDB.
    InnoDb,
    /// MyRocks.
    RocksDb,
    /// TokuDB.
    TokuDb,
    /// Another engine, by the name that `ENGINE=` takes.
    Other(String),
}

impl Kind {
    /// The kind of the engine with this `ENGINE=` name.
    pub fn of(engine: &str) -> Self {
        match engine.to_ascii_lowercase().as_str() {
            "innodb" => Kind::InnoDb,
            "rocksdb" | "myrocks" => Kind::RocksDb,
            "tokudb" => Kind::TokuDb,
            _ => Kind::Other(engine.to_owned()),
        }
    }
}

/// A running server and the engine under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The engine that holds the tables.
    pub kind: Kind,
    /// The server's brand, because counters of one name may differ in meaning.
    pub brand: Brand,
    /// Its version.
    pub version: Version,
}

impl Server {
    /// Parses `SELECT VERSION()` or the server's greeting. MariaDB greets with `5.5.5-` in front of its version, for
    /// compatibility with old replicas.
    pub fn new(kind: Kind, version: &str) -> Self {
        let (brand, bare) = match version.contains("MariaDB") {
            true => (Brand::MariaDb, version.strip_prefix("5.5.5-").unwrap_or(version)),
            false => (Brand::MySql, version),
        };
        Self { kind, brand, version: Version::find(bare).unwrap_or(Version(0, 0, 0)) }
    }
}
