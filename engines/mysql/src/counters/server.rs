//! Which server and which engine the figures are of.

/// The engine that holds the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// InnoDB.
    InnoDb,
    /// MyRocks.
    RocksDb,
    /// Another, by the name that `ENGINE=` takes.
    Other(String),
}

impl Kind {
    /// The kind of the engine that `ENGINE=` names so.
    pub fn of(engine: &str) -> Self {
        match engine.to_ascii_lowercase().as_str() {
            "innodb" => Kind::InnoDb,
            "rocksdb" | "myrocks" => Kind::RocksDb,
            _ => Kind::Other(engine.to_owned()),
        }
    }
}

/// Whose server it is: figures of one name do not always mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// MariaDB.
    MariaDb,
    /// MySQL, Percona Server, and whatever else calls itself neither.
    MySql,
}

/// A running server and the engine under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// The engine that holds the tables.
    pub kind: Kind,
    /// Whose server it is.
    pub flavour: Flavour,
    /// The version: 10.11.6 is (10, 11, 6).
    pub version: (u32, u32, u32),
}

impl Server {
    /// What `SELECT VERSION()` says, or the server's greeting: MariaDB greets
    /// with `5.5.5-` in front of its version, for replicas of long ago.
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
