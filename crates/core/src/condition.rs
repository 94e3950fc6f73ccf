//! Conditions of a trial that say what came of it, and not under what it ran: no two trials have them alike.

/// Where its data came from: its own load, or a copy of what another trial loaded.
pub const DATA: &str = "data";
/// What rumba itself costs per operation on this host.
pub const HARNESS: &str = "harness, CPU per operation";
/// The most memory that its group ever held.
pub const PEAK_OF_GROUP: &str = "memory, peak of the group";
/// The most memory that the group's processes held themselves.
pub const PEAK_OF_PROCESSES: &str = "memory, peak of the processes";
/// How fast its limited storage was before the engine was opened.
pub const STORAGE_MEASURED: &str = "storage, measured before the trial";
/// What rumba wrote meanwhile to the device of the data.
pub const WRITTEN_BY_RUMBA: &str = "written by rumba, warmup to drain";

/// All of them.
const FOUND: [&str; 6] = [DATA, HARNESS, PEAK_OF_GROUP, PEAK_OF_PROCESSES, STORAGE_MEASURED, WRITTEN_BY_RUMBA];

/// Whether a trial ran under this condition, so that another in which it differs is suspect.
pub fn is_given(condition: &str) -> bool {
    !FOUND.contains(&condition)
}
