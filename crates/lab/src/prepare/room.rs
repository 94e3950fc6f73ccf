//! Checks that the data fits on its disk or volume.

use std::collections::BTreeMap;
use std::path::Path;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::limits::Backing;
use rumba_engine_api::units::show_bytes;
use rumba_results::record::{TrialPart, TrialPlan};

use super::Refusal;
use crate::provision;
use crate::registry::Registry;
use crate::spec::Experiment;

/// Refuses a run if a database of this many times its logical bytes would fill the device. B-trees after random
/// inserts, with their log, stay below three.
pub const TIMES_DATA: u64 = 3;

/// Refuses data that would not fit.
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
    keeping(experiment, registry)
        .try_for_each(|engine| check_volume(engine, logical, allocated_bytes(engine, registry)))?;
    let disk = OnDisk::of(experiment, trials, registry);
    // A disk with only a volume's file was checked with the limits.
    if disk.databases() == 0 { Ok(()) } else { check_disk(data_base, logical, &disk) }
}

fn keeping<'a>(experiment: &'a Experiment, registry: &'a Registry) -> impl Iterator<Item = &'a EngineConfig> {
    let keeps_data =
        move |engine: &&EngineConfig| registry.engine(&engine.engine).is_some_and(|known| known.info().keeps_data);
    experiment.engines.iter().filter(keeps_data)
}

/// Bytes that an engine allocates in addition to its data.
fn allocated_bytes(engine: &EngineConfig, registry: &Registry) -> u64 {
    registry.engine(&engine.engine).map_or(0, |known| known.allocates_bytes(engine))
}

/// The data that is on the disk at the same time.
pub(super) struct OnDisk {
    /// Bytes that all databases allocate in addition to their data.
    allocated_bytes: u64,
    /// The most loads that are kept at the same time for trials that start from copies of them.
    kept: u64,
    /// Databases in use outside limited storage.
    working: u64,
    /// The file of the largest volume, bytes. One exists at a time, and volumes in memory take no disk space.
    pub volume_bytes: u64,
}

impl OnDisk {
    /// Computes the values for these trials.
    pub fn of(experiment: &Experiment, trials: &[TrialPlan], registry: &Registry) -> Self {
        let keeping: Vec<&EngineConfig> = keeping(experiment, registry).collect();
        let allocated = |trial: &TrialPlan| allocated_bytes(&trial.engine, registry);
        // Kept data, of a load or for the user, is outside the volumes.
        let others: Vec<&TrialPlan> = trials.iter().filter(|trial| trial.part != TrialPart::Load).collect();
        let (kept, of_kept) = most_kept(trials, allocated);
        let outside = keeping.iter().filter(|engine| engine.limits.storage.is_none());
        let largest = outside.map(|engine| allocated_bytes(engine, registry)).max();
        let (working, at_work) = match largest {
            _ if experiment.run.keep_data && !keeping.is_empty() => {
                (others.len() as u64, others.into_iter().map(allocated).sum())
            }
            Some(largest) => (1, largest),
            None => (0, 0),
        };
        let files = experiment.engines.iter().filter_map(|engine| engine.limits.storage.as_ref());
        let files = files.filter(|storage| storage.backing == Backing::File).map(|storage| storage.size_bytes);
        Self { kept, allocated_bytes: of_kept + at_work, working, volume_bytes: files.max().unwrap_or_default() }
    }

    pub fn databases(&self) -> u64 {
        self.kept + self.working
    }

    /// An upper bound for disk space, with databases of this many logical bytes.
    pub fn bytes(&self, logical: u64) -> u64 {
        let data = logical.saturating_mul(TIMES_DATA).saturating_mul(self.databases());
        data.saturating_add(self.allocated_bytes).saturating_add(self.volume_bytes)
    }
}

/// The most loads that are kept at the same time, and the bytes that they allocate in addition to their data. A load is
/// kept until its last trial has started. The loads of one repeat are therefore gone before those of the next are made.
fn most_kept(trials: &[TrialPlan], allocated: impl Fn(&TrialPlan) -> u64) -> (u64, u64) {
    let started = trials.iter().enumerate().filter_map(|(place, trial)| Some((trial.loaded_by?, place)));
    let last_start: BTreeMap<u32, usize> = started.collect();
    let mut kept: BTreeMap<u32, u64> = BTreeMap::new();
    let mut most = (0, 0);
    for (place, trial) in trials.iter().enumerate() {
        if trial.part == TrialPart::Load {
            kept.insert(trial.number, allocated(trial));
            most = most.max((kept.len() as u64, kept.values().sum()));
        }
        kept.retain(|load, _| last_start.get(load).is_some_and(|last| *last > place));
    }
    most
}

/// Refuses limited storage that the engine's database would fill.
fn check_volume(engine: &EngineConfig, logical: u64, allocated: u64) -> Result<(), Refusal> {
    let needed = logical.saturating_mul(TIMES_DATA).saturating_add(allocated);
    let adjacent = match allocated {
        0 => String::new(),
        _ => format!(", plus {} of log that it allocates at once", show_bytes(allocated as f64)),
    };
    match &engine.limits.storage {
        Some(storage) if storage.size_bytes < needed => Err(Refusal::NoRoom {
            problem: format!(
                "{}: limits.storage.size is {}; this data set may need {} ({} of rows, and engines take up to \
                 {TIMES_DATA} times that{adjacent})",
                engine.name,
                show_bytes(storage.size_bytes as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            remedy: "set limits.storage.size to so much (\"data*4\" is four times the rows), make the cache and with it the \
                     log smaller, or use less data",
        }),
        _ => Ok(()),
    }
}

/// Refuses a disk that is too small for the data on it at the same time.
fn check_disk(data_base: &Path, logical: u64, disk: &OnDisk) -> Result<(), Refusal> {
    let OnDisk { allocated_bytes, kept, working, volume_bytes } = *disk;
    let needed = disk.bytes(logical);
    let mut adjacent = match kept {
        0 => String::new(),
        _ => format!("; {kept} kept for the repeats and {working} at work"),
    };
    if allocated_bytes > 0 {
        adjacent += &format!("; {} of log that they allocate at once", show_bytes(allocated_bytes as f64));
    }
    if volume_bytes > 0 {
        adjacent += &format!("; and a volume of {} at a time", show_bytes(volume_bytes as f64));
    }
    match provision::free_bytes(data_base) {
        Ok(free) if free < needed => Err(Refusal::NoRoom {
            problem: format!(
                "the volume of {} has {} free; this data set may need {} ({} of rows, and engines take up to \
                 {TIMES_DATA} times that{adjacent})",
                data_base.display(),
                show_bytes(free as f64),
                show_bytes(needed as f64),
                show_bytes(logical as f64)
            ),
            remedy: if kept > 0 {
                "use less data, run fewer engines at a time, or set run.data_dir to a larger volume"
            } else {
                "use less data, or set run.data_dir to a larger volume"
            },
        }),
        // Unknown free space is no reason to refuse: the engine will report a full disk.
        _ => Ok(()),
    }
}
