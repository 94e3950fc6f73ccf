//! The measured memory needs of the server.

use rumba_engine_api::memory::MemoryNeed;
use rumba_server_kit::version::Version;

/// The table of measured needs.
const TABLE: &str = include_str!("../../memory-needs.txt");

/// The memory need of a server: that of the newest measured release that is no newer, else of the oldest.
pub fn need(version: Version) -> Option<MemoryNeed> {
    let measured = MemoryNeed::builds(TABLE).filter_map(|need| {
        let release = need.measured_on.strip_prefix("postgresql/postgresql-")?.parse::<u16>().ok()?;
        Some((release, need))
    });
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by_key(|(release, _)| *release);
    let place = measured.partition_point(|(release, _)| *release <= version.0).saturating_sub(1);
    measured.into_iter().nth(place).map(|(_, need)| need)
}
