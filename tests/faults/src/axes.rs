//! The parameters of a case besides its fault: the moment, the engine and the limits.

use std::fmt;

use strum::VariantArray;

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the run is started.
    Before,
    /// While rows are written.
    Load,
    /// While the engine does the deferred work of the load.
    Settle,
    /// Before anything is counted.
    Warmup,
    /// While it is measured.
    Loops,
    /// While the engine does the deferred work of the loops.
    Drain,
    /// While the data is verified.
    Verify,
    /// When the run has ended.
    After,
}

impl Moment {
    /// The phases of a trial, in their order.
    pub const PHASES: &'static [Moment] =
        &[Moment::Load, Moment::Settle, Moment::Warmup, Moment::Loops, Moment::Drain, Moment::Verify];

    /// The phase whose end is reported directly before this one begins.
    pub fn follows(self) -> Option<&'static str> {
        match self {
            Moment::Settle => Some("load"),
            Moment::Warmup => Some("settle"),
            Moment::Loops => Some("warmup"),
            Moment::Drain => Some("loops"),
            Moment::Verify => Some("drain"),
            Moment::Before | Moment::Load | Moment::After => None,
        }
    }

    /// The moment after this phase was the last one reported as ended.
    pub fn after(ended: Option<&str>) -> Self {
        match ended {
            None => Moment::Load,
            Some("load") => Moment::Settle,
            Some("settle" | "verify load") => Moment::Warmup,
            Some("loops") => Moment::Drain,
            Some("drain") => Moment::Verify,
            Some("verify") => Moment::After,
            Some(_) => Moment::Loops,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Moment::Before => "before the run",
            Moment::Load => "load",
            Moment::Settle => "settle",
            Moment::Warmup => "warmup",
            Moment::Loops => "loops",
            Moment::Drain => "drain",
            Moment::Verify => "verify",
            Moment::After => "after the run",
        })
    }
}

/// The engine that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum Engine {
    /// The engine that stores no data.
    Null,
    /// SQLite.
    Sqlite,
    /// RocksDB.
    RocksDb,
    /// LMDB.
    Lmdb,
    /// WiredTiger.
    WiredTiger,
    /// InnoDB in a server that rumba starts.
    InnoDb,
    /// MyRocks in a server that rumba starts.
    MyRocks,
    /// InnoDB in an existing server, reached by a DSN.
    Existing,
}

impl Engine {
    /// Engines whose data is in a directory chosen by rumba.
    pub const STORING: &'static [Engine] =
        &[Engine::Sqlite, Engine::RocksDb, Engine::Lmdb, Engine::WiredTiger, Engine::InnoDb, Engine::MyRocks];
    /// Those in a server that rumba starts.
    pub const SERVERS: &'static [Engine] = &[Engine::InnoDb, Engine::MyRocks];
    /// That in an existing server.
    pub const EXISTING: &'static [Engine] = &[Engine::Existing];

    /// Its name for rumba.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Null => "null",
            Engine::Sqlite => "sqlite",
            Engine::RocksDb => "rocksdb",
            Engine::Lmdb => "lmdb",
            Engine::WiredTiger => "wiredtiger",
            Engine::InnoDb | Engine::Existing => "innodb",
            Engine::MyRocks => "myrocks",
        }
    }

    /// The settings that keep its files small.
    pub fn requests(self) -> &'static [&'static str] {
        match self {
            // It makes three log files at once, 100 MB each by default.
            Engine::WiredTiger => &["wiredtiger.log.file_max=1MiB"],
            _ => &[],
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Existing => f.write_str("innodb (an existing server)"),
            engine => f.write_str(engine.name()),
        }
    }
}

/// Which limits a trial has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// None.
    None,
    /// A memory group.
    Memory,
    /// A separate file system on a loop device.
    Storage,
    /// The same, throttled, and a memory group.
    Both,
}

impl Limit {
    /// Every kind.
    pub const ALL: &'static [Limit] = &[Limit::None, Limit::Memory, Limit::Storage, Limit::Both];
    /// Those that hold data on the host's own file system.
    pub const NONE: &'static [Limit] = &[Limit::None];

    /// The settings that ask for it.
    pub fn requests(self) -> &'static [&'static str] {
        const MEMORY: &str = "memory=768MiB";
        match self {
            Limit::None => &[],
            Limit::Memory => &[MEMORY],
            Limit::Storage => &["storage={size=\"1GiB\",backing=\"tmpfs\"}"],
            Limit::Both => &[MEMORY, "storage={size=\"1GiB\",backing=\"tmpfs\",iops=20000}"],
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::None => "no limits",
            Limit::Memory => "memory",
            Limit::Storage => "storage",
            Limit::Both => "memory and throttled storage",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn injection_point_follows_from_the_last_finished_phase() {
        for moment in Moment::PHASES {
            assert_eq!(Moment::after(moment.follows()), *moment);
        }
        assert_eq!(Moment::after(Some("loop 1")), Moment::Loops);
        assert_eq!(Moment::after(Some("verify")), Moment::After);
    }
}
