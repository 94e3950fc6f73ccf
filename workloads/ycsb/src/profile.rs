//! The six core workloads, as numbers.

/// The types of operations, in the order of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl Kind {
    /// Every type.
    pub const ALL: [Kind; 5] = [Kind::Read, Kind::Update, Kind::Insert, Kind::Scan, Kind::ReadModifyWrite];

    /// Whether it writes to an existing record.
    pub fn updates(self) -> bool {
        matches!(self, Kind::Update | Kind::ReadModifyWrite)
    }
}

/// One of the core workloads.
#[derive(Debug)]
pub struct Profile {
    /// Its letter.
    pub name: &'static str,
    /// The share of each type, in the order of [`Kind::ALL`].
    pub mix: [f64; 5],
    /// How records are chosen.
    pub requests: &'static str,
    /// The most records of a scan.
    pub max_scan: u64,
}

const fn profile(name: &'static str, mix: [f64; 5], requests: &'static str, max_scan: u64) -> Profile {
    Profile { name, mix, requests, max_scan }
}

/// The value of `maxscanlength` if a workload's file does not set it.
const MAX_SCAN: u64 = 1000;

/// The core workloads, as in YCSB's parameter files.
pub const PROFILES: [Profile; 6] = [
    profile("a", [0.5, 0.5, 0.0, 0.0, 0.0], "zipfian", MAX_SCAN),
    profile("b", [0.95, 0.05, 0.0, 0.0, 0.0], "zipfian", MAX_SCAN),
    profile("c", [1.0, 0.0, 0.0, 0.0, 0.0], "zipfian", MAX_SCAN),
    profile("d", [0.95, 0.0, 0.05, 0.0, 0.0], "latest", MAX_SCAN),
    profile("e", [0.0, 0.0, 0.05, 0.95, 0.0], "zipfian", 100),
    profile("f", [0.5, 0.0, 0.0, 0.0, 0.5], "zipfian", MAX_SCAN),
];

/// Their letters.
pub const NAMES: &[&str] = &["a", "b", "c", "d", "e", "f"];
