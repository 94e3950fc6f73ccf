//! The profiles of these servers: `profiles/`.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::setting::SettingError;
use rumba_server_kit::profile::{self, Filled, Needs, Promises};
use rumba_server_kit::version::Version;

use crate::counters::Kind;
use crate::software::Brand;

/// The parameters of a profile.
#[derive(Clone, Copy, Debug)]
pub struct For<'a> {
    /// The engine.
    pub kind: &'a Kind,
    /// The server's brand.
    pub brand: Brand,
    /// The server's version.
    pub version: Version,
    /// The database's own cache in bytes.
    pub cache: u64,
    /// The durability that a commit guarantees.
    pub durability: Durability,
}

/// Fills in the profile for an engine.
///
/// # Errors
/// An invalid profile, which is a bug in rumba that its tests detect.
pub fn fill(requested: &For<'_>) -> Result<Filled, SettingError> {
    let (texts, engine) = of_kind(requested.kind);
    let brand = requested.brand.name().to_ascii_lowercase();
    let needs = Needs {
        engine,
        brand: &brand,
        version: requested.version,
        cache: requested.cache,
        durability: kept_durability(requested.kind, requested.durability),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
    };
    profile::fill(&texts, &needs)
}

/// The durability that an engine keeps when this one is requested. TokuDB either syncs a commit or leaves it in the
/// process until the next sync of the log, so `no-sync` becomes `buffered`.
pub fn kept_durability(kind: &Kind, requested: Durability) -> Durability {
    match (kind, requested) {
        (Kind::TokuDb, Durability::NoSync) => Durability::Buffered,
        (_, requested) => requested,
    }
}

/// The variables by which an engine's profile implements the common settings.
pub fn promises(kind: &Kind) -> Promises {
    let (texts, engine) = of_kind(kind);
    profile::promises(&texts, engine)
}

/// The profile's files for an engine, the more specific one last, and the engine's name in them.
fn of_kind(kind: &Kind) -> ([&'static str; 2], &str) {
    let (own, engine) = match kind {
        Kind::InnoDb => (include_str!("../profiles/innodb.toml"), "innodb"),
        Kind::RocksDb => (include_str!("../profiles/myrocks.toml"), "rocksdb"),
        Kind::TokuDb => (include_str!("../profiles/tokudb.toml"), "tokudb"),
        Kind::Other(name) => (include_str!("../profiles/other.toml"), name.as_str()),
    };
    ([include_str!("../profiles/common.toml"), own], engine)
}

#[cfg(test)]
mod tests;
