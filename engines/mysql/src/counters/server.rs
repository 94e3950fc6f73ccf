//! The server and engine whose counters are read.

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

/// The server's vendor, because counters of one name may differ in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL, Percona Server, and any server that does not call itself MariaDB.
    MySql,
}

/// A running server and the engine under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The engine that holds the tables.
    pub kind: Kind,
    /// The server's vendor.
    pub flavour: Flavour,
    /// The version: 10.11.6 is (10, 11, 6).
    pub version: (u32, u32, u32),
}

impl Server {
    /// Parses `SELECT VERSION()` or the server's greeting. MariaDB greets with `5.5.5-` in front of its version, for
    /// compatibility with old replicas.
    pub fn new(kind: Kind, version: &str) -> Self {
        let flavour = if version.contains("MariaDB") { Flavour::MariaDb } else { Flavour::MySql };
        let bare = match flavour {
            Flavour::MariaDb => version.strip_prefix("5.5.5-").unwrap_or(version),
            Flavour::MySql => version,
        };
        let mut numbers = bare.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self { kind, flavour, version: (next(), next(), next()) }
    }
}
