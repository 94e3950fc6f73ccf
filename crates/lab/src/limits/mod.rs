//! Limits: memory, CPUs and storage for a trial.
//!
//! [`check`] refuses limits that this host cannot enforce, before anything starts. [`Enforcement::prepare`] enforces
//! limits for one trial, and lists each resource in the ledger before it is made. [`Enforcement::end`], or dropping it,
//! undoes everything. After a kill -9, `rumba doctor --clean` and the next run find the rest in the ledger.

mod affinity;
mod control_group;
mod error;
mod evict;
mod means;
mod volume;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rumba_engine_api::limits::{Backing, CalibrationPoint, Limits, StorageLimit, show_latency};
use rumba_engine_api::units::show_bytes;
use rumba_results::metric::Metric;
use rumba_results::warning::Warning;

pub(crate) use affinity::take_engine_cpus;
pub(crate) use control_group::tree_of;
pub use control_group::{MemoryPressure, MemoryReading, Version};
pub use error::{CPUS, LimitError, MEMORY, STORAGE};
pub use evict::evict;
pub use means::{Means, MemoryMeans, ThrottleMeans};
pub use volume::{LoopDevice, THROTTLES, Throttled, VolumeDir, delay_requests};

use crate::provision::{DataDir, Kind, Owner, ResourceRegistry};
use crate::registry::Process;
use control_group::{Group, Scope};
use error::refused;
use volume::{Share, Throttle, Volume};

/// The kinds of ledger entries made here.
pub const KINDS: [Kind; 2] = [control_group::KIND, volume::KIND];

/// How long throttled storage is measured at each depth. The throttle lets requests through in bursts, so the time must
/// cover several of them.
const CALIBRATION: Duration = Duration::from_secs(2);

/// The same for storage without a throttle, which serves thousands of requests in that time.
const UNTHROTTLED: Duration = Duration::from_millis(100);

/// The same for storage with a latency, which serves a request at a time.
const DELAYED: Duration = Duration::from_millis(500);
/// The share by which the measured latency may miss the requested one without a warning.
const MISSED: f64 = 0.25;

/// Refuses limits that this host cannot enforce, and changes nothing. Volumes will be made below `volumes`.
///
/// # Errors
/// [`LimitError::Unenforceable`] with an alternative.
pub fn check(limits: &Limits, volumes: &Path) -> Result<(), LimitError> {
    if needs_means(limits) { Means::gather(volumes)?.check(limits) } else { Ok(()) }
}

/// Whether a limit needs something to be made on the host. CPU limits do not.
fn needs_means(limits: &Limits) -> bool {
    limits.memory_bytes.is_some() || limits.storage.is_some()
}

/// The limits that this host can enforce, and a warning for each of the others.
///
/// # Errors
/// When the host cannot be queried, or there is too little space for a limit.
pub fn enforceable(limits: &Limits, volumes: &Path) -> Result<(Limits, Vec<Warning>), LimitError> {
    let memory = Limits { memory_bytes: limits.memory_bytes, ..Limits::default() };
    let storage = Limits { storage: limits.storage.clone(), ..Limits::default() };
    // Every process can restrict its own CPUs.
    let mut enforced = Limits { memory_bytes: None, storage: None, ..limits.clone() };
    let mut warnings = Vec::new();
    for part in [memory, storage] {
        match check(&part, volumes) {
            Ok(()) => {
                enforced.memory_bytes = enforced.memory_bytes.or(part.memory_bytes);
                enforced.storage = enforced.storage.or(part.storage);
            }
            Err(LimitError::Unenforceable { limit, problem, remedy }) => {
                let message = format!("{limit} is not in force: {problem}");
                warnings.push(Warning::new("limit-not-enforced", message, remedy));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((enforced, warnings))
}

/// Measures limited storage, for the conditions: 4 KiB random direct reads at depths 1 and 8. It takes about six
/// seconds, or less than one without a throttle. Call it in the trial's own process before the engine is opened,
/// because version 2 throttles only the trial's group.
///
/// # Errors
/// When the directory's filesystem has no direct I/O or no space.
pub fn calibrate(dir: &Path, storage: &StorageLimit) -> std::io::Result<Vec<CalibrationPoint>> {
    let seconds = match (storage.is_throttled(), storage.latency_us) {
        (true, _) => CALIBRATION,
        (false, Some(_)) => DELAYED,
        (false, None) => UNTHROTTLED,
    };
    volume::measure(dir, seconds)
}

/// Warns when a read's latency misses that of the limit: the medium or the host's CPUs are too slow for it.
pub fn missed_latency(storage: &StorageLimit, measured: &[CalibrationPoint]) -> Option<Warning> {
    let requested_us = storage.latency_us?;
    let single = measured.iter().find(|point| point.depth == 1)?;
    ((single.p50_us / requested_us as f64 - 1.0).abs() > MISSED).then(|| {
        let (requested, measured) = (show_latency(requested_us), show_latency(single.p50_us as u64));
        Warning::new(
            "storage-latency-missed",
            format!("limits.storage asks for {requested} per request, and the median read took {measured}"),
            "ask for a longer latency, use backing = \"tmpfs\", or leave the host's CPUs to the run",
        )
    })
}

/// Warns when storage is slower than the limit that it should emulate.
pub fn slower_than_requested(storage: &StorageLimit, measured: &[CalibrationPoint]) -> Option<Warning> {
    let requested = f64::from([storage.iops, storage.read_iops].into_iter().flatten().min()?);
    let deepest = measured.iter().max_by_key(|point| point.depth)?;
    (deepest.read_iops < 0.9 * requested).then(|| {
        let CalibrationPoint { depth, read_iops, .. } = deepest;
        let remedy = match storage.backing {
            Backing::File => "the disk below is the bottleneck: use backing = \"tmpfs\", or a lower limit",
            Backing::Tmpfs => {
                "the blocks are in memory already: the host's CPUs are the bottleneck, so ask for a lower limit"
            }
        };
        Warning::new(
            "storage-slower-than-asked",
            format!("limits.storage asks for {requested:.0} reads/s, and {read_iops:.0} were reached at depth {depth}"),
            remedy,
        )
    })
}

/// Limits that are enforced for one trial. Dropping it undoes everything.
#[derive(Debug, Default)]
pub struct Enforcement {
    // The fields are in the order of undoing: nothing can be set on a removed device, and processes in the groups keep
    // the volume busy.
    share: Option<Share>,
    groups: Vec<Group>,
    scope: Option<Scope>,
    volume: Option<Volume>,
    /// The throttle of the volume, if there is one.
    throttle: Option<Throttle>,
    storage: Option<StorageLimit>,
    memory_bytes: Option<u64>,
    /// The memory group's figures at the moment when the limit was removed.
    when_lifted: Option<MemoryReading>,
    enforced: Vec<String>,
}

impl Enforcement {
    /// Enforces limits except the throttle, which [`Enforcement::throttle`] adds. Until then data can be copied onto the
    /// volume at full speed. A volume is made at `volume`, which must not exist, be empty, or be left by a trial that has
    /// ended. `process` makes the process that delays requests.
    ///
    /// # Errors
    /// [`LimitError::Unenforceable`] before anything is made; otherwise the step that failed, with earlier steps
    /// undone.
    pub fn prepare(
        limits: &Limits,
        volume: &Path,
        owner: &Owner,
        ledger: &ResourceRegistry,
        process: Option<Process>,
    ) -> Result<Self, LimitError> {
        let mut enforcement = Self { storage: limits.storage.clone(), ..Self::default() };
        if needs_means(limits) {
            let means = Means::gather(volume)?;
            means.check(limits)?;
            if let Some(storage) = &limits.storage {
                enforcement.add_volume(&means, storage, volume, (owner, ledger, process))?;
            }
            if let Some(bytes) = limits.memory_bytes {
                enforcement.limit_memory(&means, bytes, owner, ledger)?;
            }
        }
        // The process that opens the engine sets them.
        enforcement.enforced.extend(affinity::in_words(limits));
        Ok(enforcement)
    }

    fn add_volume(
        &mut self,
        means: &Means,
        storage: &StorageLimit,
        path: &Path,
        (owner, ledger, process): (&Owner, &ResourceRegistry, Option<Process>),
    ) -> Result<(), LimitError> {
        DataDir::check(path)?;
        // `check` has refused a host without mkfs.
        let mkfs = means.mkfs.as_deref().unwrap_or(Path::new("mkfs.ext4"));
        let volume = Volume::create(path, storage, mkfs, owner, ledger, process)?;
        let mut words = format!("{STORAGE} = {storage}; {}", volume.how(storage));
        self.throttle = match &means.throttle {
            _ if !storage.is_throttled() => None,
            ThrottleMeans::Groups(groups) => {
                words += &format!(", throttled by {} (version 1)", groups[0].display());
                Some(Throttle::Groups(groups.clone()))
            }
            ThrottleMeans::IoMax(parent) => {
                let group = Group::create(Version::Two, parent, &["io", "memory"], owner, ledger)?;
                words += ", throttled by io.max (version 2)";
                let throttle = Throttle::IoMax(group.path().to_owned());
                self.groups.push(group);
                Some(throttle)
            }
            ThrottleMeans::None(problem) => {
                words += &format!(", NOT throttled: {problem}");
                None
            }
        };
        if let Some(throttle) = &self.throttle {
            volume.note(throttle)?;
        }
        self.volume = Some(volume);
        self.enforced.push(words);
        Ok(())
    }

    /// Throttles the volume of [`Enforcement::prepare`] from now on.
    ///
    /// # Errors
    /// When the throttle cannot be set.
    pub fn throttle(&mut self) -> Result<(), LimitError> {
        let (Some(volume), Some(storage)) = (&mut self.volume, &self.storage) else { return Ok(()) };
        volume.delay(storage)?;
        let Some(throttle) = &self.throttle else { return Ok(()) };
        match storage.iops {
            Some(total) => self.share = Some(Share::begin(total, storage, volume.device(), throttle)?),
            None => throttle.set(volume.device(), storage)?,
        }
        Ok(())
    }

    fn limit_memory(
        &mut self,
        means: &Means,
        bytes: u64,
        owner: &Owner,
        ledger: &ResourceRegistry,
    ) -> Result<(), LimitError> {
        let how = match &means.memory {
            // In version 2 a process is in only one group: the one that throttles.
            MemoryMeans::Group { version: Version::Two, .. } if !self.groups.is_empty() => {
                self.groups[0].limit_memory(bytes)?
            }
            MemoryMeans::Group { version, parent } => {
                let group = Group::create(*version, parent, &["memory"], owner, ledger)?;
                let how = group.limit_memory(bytes)?;
                // The group that limits memory comes first, because its figures are read.
                self.groups.insert(0, group);
                how
            }
            MemoryMeans::Scope => {
                let scope = Scope::new(bytes, owner);
                let how = scope.how();
                self.scope = Some(scope);
                how
            }
            MemoryMeans::None(problem) => return Err(LimitError::unenforceable(MEMORY, problem, "leave it out")),
        };
        self.memory_bytes = Some(bytes);
        self.enforced.push(format!("{MEMORY} = {}: {how}", show_bytes(bytes as f64)));
        Ok(())
    }

    /// The directory of the throttled filesystem, if storage is limited: data goes below it.
    pub fn storage_dir(&self) -> Option<&Path> {
        self.volume.as_ref().map(Volume::mounted)
    }

    /// The throttled device, if storage is limited.
    pub fn device(&self) -> Option<&LoopDevice> {
        self.volume.as_ref().map(Volume::device)
    }

    /// The process that delays the volume's requests, if there is one.
    pub fn delayer(&self) -> Option<u32> {
        self.volume.as_ref().and_then(Volume::delayer)
    }

    /// Removes throttle and delay for work that is not measured: a verification reads all data, which takes minutes at
    /// 1,000 reads per second. Returns warnings about the throttle until now, and about a throttle that remains.
    pub fn lift_throttle(&mut self) -> Vec<Warning> {
        let divided = self.share.take().map_or(Ok(()), Share::end);
        let free = StorageLimit::unthrottled();
        let lifted = self.volume.as_mut().map_or(Ok(()), |volume| {
            volume.delay(&free)?;
            self.throttle.as_ref().map_or(Ok(()), |throttle| throttle.set(volume.device(), &free))
        });
        let not_divided = divided.err().map(|error| {
            Warning::new(
                "iops-not-divided",
                format!(
                    "reads and writes kept the shares of limits.storage.iops that they had when this failed: {error}"
                ),
                "do not use this trial's throughput; run it again",
            )
        });
        let not_lifted = lifted.err().map(|error| {
            Warning::new(
                "throttle-not-lifted",
                format!("the verification reads at the throttle's rate: {error}"),
                "the figures are not touched by it; it only takes longer",
            )
        });
        not_divided.into_iter().chain(not_lifted).collect()
    }

    /// Removes the memory limit for work that is not measured. A verification's own memory is in the same group as an
    /// embedded engine, and must not get the engine killed. The reported memory figures stay those until now. A limit
    /// by systemd stays.
    pub fn lift_memory(&mut self) -> Option<Warning> {
        let group = self.groups.first().filter(|_| self.memory_bytes.is_some() && self.scope.is_none())?;
        let reading = group.reading();
        match group.lift_memory() {
            Ok(()) => {
                self.when_lifted = Some(reading);
                None
            }
            Err(error) => Some(Warning::new(
                "memory-not-lifted",
                format!("the verification keeps to {MEMORY}: {error}"),
                "it does not affect the figures, but the trial may be killed after its measurement",
            )),
        }
    }

    /// Runs a command, and everything that it starts, within the limits. Set its standard streams afterwards.
    ///
    /// # Errors
    /// When the group cannot be opened.
    pub fn command(&self, mut command: Command) -> Result<Command, LimitError> {
        if let Some(scope) = &self.scope {
            command = scope.wrap(&command);
        }
        for group in &self.groups {
            group
                .enter(&mut command)
                .map_err(refused(MEMORY, format!("enter the control group {}", group.path().display())))?;
        }
        Ok(command)
    }

    /// The enforced limits and how, one line for each, for the conditions.
    pub fn enforced(&self) -> &[String] {
        &self.enforced
    }

    /// The memory group's figures; `None` without a limit, or if systemd manages it.
    pub fn memory(&self) -> Option<MemoryReading> {
        self.when_lifted.clone().or_else(|| self.memory_bytes.and(self.groups.first()).map(Group::reading))
    }

    /// How close the memory group is to its limit; `None` without a limit, or if systemd manages it.
    pub fn memory_pressure(&self) -> Option<MemoryPressure> {
        let limit_bytes = self.memory_bytes.filter(|_| self.when_lifted.is_none())?;
        Some(MemoryPressure { held_bytes: self.groups.first()?.held_bytes()?, limit_bytes })
    }

    /// Why a trial ended, if it was for lack of memory. Call it before [`Enforcement::end`]. `cache_setting` is the
    /// engine's setting that takes most memory.
    pub fn verdict(&self, cache_setting: &str) -> Option<String> {
        let limit = self.memory_bytes?;
        let (killed, peak) = match (&self.scope, self.memory()) {
            (Some(scope), _) => (scope.was_killed(), Metric::absent("systemd has removed the group")),
            (None, Some(reading)) => (reading.oom_kills.value().is_some_and(|kills| kills > 0.0), reading.peak_bytes),
            (None, None) => return None,
        };
        let peak = peak.value().map_or("unknown".to_owned(), show_bytes);
        killed.then(|| {
            format!(
                "killed by the memory group: peak {peak} of limit {}; lower the engine's cache (setting \
                 {cache_setting}) or raise {MEMORY}",
                show_bytes(limit as f64)
            )
        })
    }

    /// Ends the processes that still run within the limits, and undoes everything.
    ///
    /// # Errors
    /// The first resource that could not be undone; it stays listed.
    pub fn end(mut self) -> Result<(), LimitError> {
        let shared = self.share.take().map_or(Ok(()), Share::end);
        let vacated: Vec<_> = self.groups.iter().map(Group::vacate).collect();
        let volume = self.volume.take().map_or(Ok(()), Volume::remove);
        let groups: Vec<_> = self.groups.drain(..).map(Group::remove).collect();
        vacated.into_iter().chain([shared, volume]).chain(groups).collect()
    }
}
