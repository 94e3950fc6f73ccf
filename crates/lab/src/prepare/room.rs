//! Whether the data fits where it is to be.

use std::path::Path;

use rumba_core::engine::EngineConfig;
use rumba_core::record::{TrialPart, TrialPlan};
use rumba_core::units::show_bytes;

use super::Refusal;
use crate::provision;
use crate::registry::Registry;
use crate::spec::Experiment;

/// How much larger a database may get than its logical bytes before a run that
/// fits only its logical bytes would fill the device: B-trees after random
/// inserts, with their log, stay below three.
pub const TIMES_DATA: u64 = 3;

/// Refuses data that would not fit where it is to be.
pub(super) fn check(
    experiment: &Experiment,
    trials: &[TrialPlan],
    data_base: &Path,
    registry: &Registry,
) -> Result<(), Refusal> {
    if trials.is_empty() {
        return Ok(());
    }
    let logical = experiment.bound.expected_logical_bytes();
    keeping(experiment, registry).try_for_each(|engine| check_volume(engine, logical))?;
    let (kept, working) = databases(experiment, trials, registry);
    if kept + working == 0 { Ok(()) } else { check_disk(data_base, logical, kept, working) }
}

/// The engines that keep their data.
fn keeping<'a>(experiment: &'a Experiment, registry: &'a Registry) -> impl Iterator<Item = &'a EngineConfig> {
    let keeps_data =
        move |engine: &&EngineConfig| registry.engine(&engine.engine).is_some_and(|known| known.info().keeps_data);
    experiment.engines.iter().filter(keeps_data)
}

/// How many databases lie outside of limited storage at once: those that are kept, and those that are worked on.
pub(super) fn databases(experiment: &Experiment, trials: &[TrialPlan], registry: &Registry) -> (u64, u64) {
    let keeping: Vec<&EngineConfig> = keeping(experiment, registry).collect();
    // What was loaded, or is kept for the user, is kept outside the volumes; with repeats interleaved, all of it at once.
    let loads = trials.iter().filter(|trial| trial.part == TrialPart::Load).count() as u64;
    let working = match keeping.iter().any(|engine| engine.limits.storage.is_none()) {
        _ if experiment.run.keep_data && !keeping.is_empty() => trials.len() as u64 - loads,
        true => 1,
        false => 0,
    };
    (loads, working)
}

/// Refuses limited storage that the engine's database would fill.
fn check_volume(engine: &EngineConfig, logical: u64) -> Result<(), Refusal> {
    let needed = logical.saturating_mul(TIMES_DATA);
    match &engine.limits.storage {
        Some(storage) if storage.size_bytes < needed => Err(Refusal::NoRoom {
            problem: format!(
                "{}: limits.storage.size is {}; this data set may need {} ({} of rows, and engines take up to \
                 {TIMES_DATA} times that)",
                engine.name,
                show_bytes(storage.size_bytes as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            remedy: "set limits.storage.size to \"data*4\", or lower maxid1",
        }),
        _ => Ok(()),
    }
}

/// Refuses a disk that has no room for so many databases that are kept and that are at work.
fn check_disk(data_base: &Path, logical: u64, kept: u64, working: u64) -> Result<(), Refusal> {
    let needed = logical.saturating_mul(kept + working).saturating_mul(TIMES_DATA);
    let of_each = match kept {
        0 => String::new(),
        _ => format!("; {kept} kept for the repeats and {working} at work"),
    };
    match provision::free_bytes(data_base) {
        Ok(free) if free < needed => Err(Refusal::NoRoom {
            problem: format!(
                "the volume of {} has {} free; this data set may need {} ({} of rows, and engines take up to \
                 {TIMES_DATA} times that{of_each})",
                data_base.display(),
                show_bytes(free as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            remedy: if kept > 0 {
                "lower maxid1, set run.data_dir to a larger volume, or repeats_from = \"load\", which keeps nothing"
            } else {
                "lower maxid1, or set run.data_dir to a larger volume"
            },
        }),
        // Unknown free space is no reason to refuse: the engine will say when it is full.
        _ => Ok(()),
    }
}
