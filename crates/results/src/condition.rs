//! Conditions of a trial that are results and not settings, and therefore differ between all trials.

/// The origin of the data: its own load, or a copy of another trial's load.
pub const DATA: &str = "data";
/// rumba's own CPU per operation on this host.
pub const HARNESS: &str = "harness, CPU per operation";
/// The peak memory of its group.
pub const PEAK_OF_GROUP: &str = "memory, peak of the group";
/// The peak memory of the group's processes alone.
pub const PEAK_OF_PROCESSES: &str = "memory, peak of the processes";
/// The measured speed of its limited storage before the engine was opened.
pub const STORAGE_MEASURED: &str = "storage, measured before the trial";
/// Bytes that rumba itself wrote to the data's device from warmup to drain.
pub const WRITTEN_BY_RUMBA: &str = "written by rumba, warmup to drain";

/// All of them.
const FOUND: [&str; 6] = [DATA, HARNESS, PEAK_OF_GROUP, PEAK_OF_PROCESSES, STORAGE_MEASURED, WRITTEN_BY_RUMBA];

/// Whether a condition describes how a trial ran, so that a difference in it is a suspect.
pub fn is_given(condition: &str) -> bool {
    !FOUND.contains(&condition)
}
