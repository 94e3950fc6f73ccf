//! Limits: how much memory, which CPUs and what kind of storage an experiment may use.
//!
//! Plain values only; the lab enforces them.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cpus::CpuSet;
use crate::setting::{Kind, SettingError, SettingInfo, Settings, Value, info};
use crate::units::{parse_bytes, show_bytes};

/// The smallest accepted memory limit; with less, a trial's process is killed before it has opened an engine.
pub const SMALLEST_MEMORY_BYTES: u64 = 16 << 20;
/// The smallest accepted storage: an ext4 with its journal and some data.
pub const SMALLEST_STORAGE_BYTES: u64 = 64 << 20;
/// The size of storage if the experiment sets none.
pub const DEFAULT_STORAGE_BYTES: u64 = 8 << 30;
/// Read-ahead on storage whose experiment sets none: the kernel's own default for a disk.
pub const DEFAULT_READ_AHEAD_BYTES: u64 = 128 << 10;
/// The smallest accepted rate in bytes per second: one page.
const SMALLEST_RATE_BPS: i64 = 4096;

/// The accepted latencies: below, the detour through a process would take longer.
const SMALLEST_LATENCY_US: u64 = 100;
const LARGEST_LATENCY_US: u64 = 10_000_000;

/// The limits of an experiment; `None` means as the host has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Bytes for the engine's processes together, page cache included.
    pub memory_bytes: Option<u64>,
    /// The storage that holds the data.
    pub storage: Option<StorageLimit>,
    /// The CPUs of the engine's processes, or of the trial's process if the engine is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSet>,
    /// The CPUs of a server's loaders and clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpus: Option<CpuSet>,
}

/// Storage of a known kind: a separate filesystem with throttled operations and bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StorageLimit {
    /// The named kind with these figures, if one was named.
    pub tier: Option<String>,
    /// Reads and writes together per second, as a device serves them; `None` is no limit.
    #[serde(default)]
    pub iops: Option<u32>,
    /// Reads per second; `None` is no limit.
    pub read_iops: Option<u32>,
    /// Writes per second; `None` is no limit.
    pub write_iops: Option<u32>,
    /// Bytes read per second; `None` is no limit.
    pub read_bps: Option<u64>,
    /// Bytes written per second; `None` is no limit.
    pub write_bps: Option<u64>,
    /// The least time of each read and write, in microseconds; `None` is that of the medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// The size of the filesystem's device, in bytes.
    pub size_bytes: u64,
    /// The medium of the device's blocks.
    pub backing: Backing,
    /// Bytes that the kernel reads ahead of a sequential reader, and around a missing page of a mapping. `None`, in
    /// older records, leaves it to the kernel, which takes 2.5 MB for a rotational disk.
    #[serde(default)]
    pub read_ahead_bytes: Option<u64>,
    /// Whether the device reports itself as rotational, which changes the behaviour of the kernel and of some engines.
    /// `None`, in older records, means the value of the underlying disk.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// Whether a load that is kept for other trials is throttled too. If not, engines that differ only in their
    /// storage's rates start from one load.
    #[serde(default = "throttled")]
    pub throttle_load: bool,
}

fn throttled() -> bool {
    true
}

/// The medium of throttled storage's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backing {
    /// A file on the host's disk, accessed without the host's page cache.
    File,
    /// A file in memory, for rates that the host's disk cannot serve.
    Tmpfs,
}

/// A named kind of storage.
struct Tier {
    name: &'static str,
    iops: u32,
    /// A shared disk of a virtual machine serves 8,000 reads per second at depth 1. The faster kinds are therefore kept
    /// in memory by default.
    backing: Backing,
}

/// The kinds of the published comparison of storage (2016-11-23): operations
/// per second of a disk array, a slow and a fast solid-state disk.
const TIERS: [Tier; 3] = [
    Tier { name: "disk-array", iops: 1_000, backing: Backing::File },
    Tier { name: "slow-ssd", iops: 10_000, backing: Backing::Tmpfs },
    Tier { name: "fast-ssd", iops: 100_000, backing: Backing::Tmpfs },
];

const TIER_NAMES: &[&str] = &["disk-array", "slow-ssd", "fast-ssd"];

/// The keys of the table `limits.storage`.
pub const STORAGE_SETTINGS: &[SettingInfo] = &[
    info("tier", Kind::Choice(TIER_NAMES), "none", "a named kind: disk-array 1k, slow-ssd 10k, fast-ssd 100k IOPS"),
    info("iops", IOPS, "no limit", "reads and writes together, per second"),
    info("read_iops", IOPS, "no limit", "reads per second"),
    info("write_iops", IOPS, "no limit", "writes per second"),
    info("read_bps", Kind::Bytes, "no limit", "bytes read per second"),
    info("write_bps", Kind::Bytes, "no limit", "bytes written per second"),
    info("latency", Kind::Duration, "none", "the least time of each read and write: 1ms"),
    info("size", Kind::Bytes, "8GiB", "bytes of the filesystem's device"),
    info(
        "backing",
        Kind::Choice(&["file", "tmpfs"]),
        "tmpfs for slow-ssd and fast-ssd, else file",
        "where the blocks are: a file on disk or in memory",
    ),
    info("read_ahead", Kind::Bytes, "128KiB", "the kernel's read-ahead, whole KiB; 0 turns it off"),
    info("rotational", Kind::Bool, "false", "whether the device reports itself as rotational"),
    info("throttle_load", Kind::Bool, "true", "false: loads that are kept go as fast as the blocks allow"),
];

const IOPS: Kind = Kind::Int(1, u32::MAX as i64);

impl Limits {
    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads the value of `limits.memory`: `"1GiB"`, or a number of bytes.
pub fn parse_memory(value: &Value) -> Result<u64, SettingError> {
    const KEY: &str = "limits.memory";
    let bytes = match value {
        Value::Int(bytes) => u64::try_from(*bytes).map_err(|_| "a size is not negative".to_owned()),
        Value::Text(text) => parse_bytes(text),
        other => Err(format!("`{other}` is not a size")),
    }
    .map_err(|problem| SettingError::new(KEY, problem, "write a size such as \"1GiB\""))?;
    at_least(KEY, bytes, SMALLEST_MEMORY_BYTES)
}

impl StorageLimit {
    /// A named kind of storage: `disk-array`, `slow-ssd` or `fast-ssd`.
    ///
    /// # Errors
    /// The known names.
    pub fn tier(name: &str) -> Result<Self, SettingError> {
        let tier = TIERS.iter().find(|tier| tier.name == name).ok_or_else(|| {
            let likely = crate::nearest(name, TIER_NAMES.iter().copied());
            let suggestion = likely.map_or(String::new(), |name| format!("did you mean \"{name}\"? "));
            SettingError::new(
                "limits.storage",
                format!("unknown storage `{name}`"),
                format!("{suggestion}it is one of {}, or a table such as {{ iops = 2000 }}", TIER_NAMES.join(", ")),
            )
        })?;
        Ok(Self {
            tier: Some(tier.name.to_owned()),
            iops: Some(tier.iops),
            backing: tier.backing,
            ..Self::unthrottled()
        })
    }

    /// Storage as a table describes it; [`STORAGE_SETTINGS`] has its keys. A table's other keys override its `tier`.
    ///
    /// # Errors
    /// The first key that cannot be accepted.
    pub fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        settings.check("limits.storage", STORAGE_SETTINGS).map_err(below_storage)?;
        let base = settings.text("tier").map_or(Ok(Self::unthrottled()), Self::tier)?;
        let iops = |key| settings.int(key).and_then(|iops| u32::try_from(iops).ok());
        Ok(Self {
            tier: base.tier,
            iops: iops("iops").or(base.iops),
            read_iops: iops("read_iops"),
            write_iops: iops("write_iops"),
            read_bps: rate(settings, "read_bps")?,
            write_bps: rate(settings, "write_bps")?,
            latency_us: settings.duration("latency").map(latency).transpose()?,
            size_bytes: match settings.bytes("size") {
                Some(bytes) => at_least("limits.storage.size", bytes, SMALLEST_STORAGE_BYTES)?,
                None => base.size_bytes,
            },
            backing: match settings.text("backing") {
                Some("tmpfs") => Backing::Tmpfs,
                Some(_) => Backing::File,
                None => base.backing,
            },
            read_ahead_bytes: match settings.bytes("read_ahead") {
                Some(bytes) => Some(whole_kib("limits.storage.read_ahead", bytes)?),
                None => base.read_ahead_bytes,
            },
            rotational: settings.bool("rotational").or(base.rotational),
            throttle_load: settings.bool("throttle_load").unwrap_or(base.throttle_load),
        })
    }

    /// Storage whose rates are not limited.
    pub fn unthrottled() -> Self {
        Self {
            tier: None,
            iops: None,
            read_iops: None,
            write_iops: None,
            read_bps: None,
            write_bps: None,
            latency_us: None,
            size_bytes: DEFAULT_STORAGE_BYTES,
            backing: Backing::File,
            read_ahead_bytes: Some(DEFAULT_READ_AHEAD_BYTES),
            rotational: Some(false),
            throttle_load: true,
        }
    }

    /// The limits that apply during a kept load.
    #[must_use]
    pub fn while_loading(&self) -> Self {
        if self.throttle_load {
            return self.clone();
        }
        let Self { size_bytes, backing, read_ahead_bytes, rotational, throttle_load, .. } = self.clone();
        Self { size_bytes, backing, read_ahead_bytes, rotational, throttle_load, ..Self::unthrottled() }
    }

    /// Whether reads or writes are throttled at all.
    pub fn is_throttled(&self) -> bool {
        let iops = [self.iops, self.read_iops, self.write_iops];
        iops.iter().any(Option::is_some) || self.read_bps.is_some() || self.write_bps.is_some()
    }
}

/// Whole microseconds.
fn latency(requested: Duration) -> Result<u64, SettingError> {
    match u64::try_from(requested.as_micros()) {
        Ok(us) if (SMALLEST_LATENCY_US..=LARGEST_LATENCY_US).contains(&us) => Ok(us),
        _ => Err(SettingError::new(
            "limits.storage.latency",
            format!("{requested:?} is no latency that a volume can have"),
            "write a time from 100us to 10s, such as \"1ms\"",
        )),
    }
}

fn rate(settings: &Settings, key: &str) -> Result<Option<u64>, SettingError> {
    match settings.bytes(key) {
        Some(bytes) => at_least(&format!("limits.storage.{key}"), bytes, SMALLEST_RATE_BPS as u64).map(Some),
        None => Ok(None),
    }
}

/// The kernel's unit for it.
fn whole_kib(key: &str, bytes: u64) -> Result<u64, SettingError> {
    if bytes.is_multiple_of(1024) && bytes <= u64::from(u32::MAX) * 1024 {
        return Ok(bytes);
    }
    Err(SettingError::new(
        key,
        format!("{bytes} bytes is not a whole number of KiB"),
        "write a size such as \"128KiB\"",
    ))
}

fn at_least(key: &str, bytes: u64, smallest: u64) -> Result<u64, SettingError> {
    if bytes >= smallest {
        return Ok(bytes);
    }
    let (given, smallest) = (show_bytes(bytes as f64), show_bytes(smallest as f64));
    Err(SettingError::new(key, format!("{given} is too little to run anything"), format!("give at least {smallest}")))
}

fn below_storage(error: SettingError) -> SettingError {
    SettingError { key: format!("limits.storage.{}", error.key), ..error }
}

impl fmt::Display for Backing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backing::File => "file",
            Backing::Tmpfs => "tmpfs",
        })
    }
}

/// `1 ms`, `250 µs`.
pub fn show_latency(us: u64) -> String {
    if us < 1000 { format!("{us} µs") } else { format!("{} ms", us as f64 / 1e3) }
}

/// The form for people: `slow-ssd: 10000 operations/s, 8.00 GiB over tmpfs`.
impl fmt::Display for StorageLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tier) = &self.tier {
            write!(f, "{tier}: ")?;
        }
        let iops = [(self.iops, "operations/s"), (self.read_iops, "reads/s"), (self.write_iops, "writes/s")];
        for (iops, what) in iops {
            if let Some(iops) = iops {
                write!(f, "{iops} {what}, ")?;
            }
        }
        for (bps, what) in [(self.read_bps, "read"), (self.write_bps, "written")] {
            if let Some(bps) = bps {
                write!(f, "{}/s {what}, ", show_bytes(bps as f64))?;
            }
        }
        if let Some(us) = self.latency_us {
            write!(f, "{} per request, ", show_latency(us))?;
        }
        if !self.is_throttled() {
            f.write_str("not throttled, ")?;
        }
        write!(f, "{} over {}", show_bytes(self.size_bytes as f64), self.backing)?;
        if self.is_throttled() && !self.throttle_load {
            f.write_str(", kept loads not throttled")?;
        }
        Ok(())
    }
}

/// The measured performance of throttled storage before the trial, at one queue depth.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationPoint {
    /// Concurrent reads.
    pub depth: u32,
    /// Random direct reads of 4 KiB per second.
    pub read_iops: f64,
    /// The mean time of one of them in microseconds.
    pub mean_us: f64,
    /// The median time in microseconds.
    pub p50_us: f64,
    /// The 99th percentile in microseconds. On a throttled device it comes from the throttle's bursts and is not that
    /// of real storage.
    pub p99_us: f64,
    /// The number of reads behind these figures.
    pub reads: u64,
}

impl fmt::Display for CalibrationPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { depth, read_iops, mean_us, p50_us, .. } = self;
        write!(f, "depth {depth}: {read_iops:.0} reads/s, mean {mean_us:.0} µs, median {p50_us:.0} µs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pairs: &[(&str, Value)]) -> Settings {
        pairs.iter().cloned().collect()
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn a_table_goes_before_its_tier_and_reads_apart_from_writes() {
        let storage = StorageLimit::from_settings(&table(&[
            ("tier", text("slow-ssd")),
            ("write_iops", Value::Int(500)),
            ("read_bps", text("10MiB")),
            ("size", text("2GiB")),
            ("backing", text("file")),
        ]))
        .unwrap();
        assert_eq!((storage.iops, storage.read_iops, storage.write_iops), (Some(10_000), None, Some(500)));
        assert_eq!((storage.size_bytes, storage.backing), (2 << 30, Backing::File));
        let said = "slow-ssd: 10000 operations/s, 500 writes/s, 10.0 MiB/s read, 2.00 GiB over file";
        assert_eq!(storage.to_string(), said);
        let storage = StorageLimit::from_settings(&table(&[("iops", Value::Int(2000))])).unwrap();
        assert_eq!((storage.iops, storage.write_iops), (Some(2000), None));
        assert_eq!(storage.backing, Backing::File, "a filesystem on the disk needs no memory");
    }

    #[test]
    fn latency_is_a_time_that_a_volume_can_have() {
        let of =
            |time: &str| StorageLimit::from_settings(&table(&[("tier", text("slow-ssd")), ("latency", text(time))]));
        let storage = of("1.5ms").unwrap();
        assert_eq!((storage.latency_us, storage.is_throttled()), (Some(1500), true));
        let said = "slow-ssd: 10000 operations/s, 1.5 ms per request, 8.00 GiB over tmpfs";
        assert_eq!(storage.to_string(), said);
        for refused in ["1us", "1m"] {
            let error = of(refused).unwrap_err();
            assert_eq!((error.key.as_str(), error.remedy.contains("100us to 10s")), ("limits.storage.latency", true));
        }
        assert_eq!(storage.while_loading(), storage);
        let free = StorageLimit { throttle_load: false, ..storage };
        assert_eq!(free.while_loading().latency_us, None, "a load that is not throttled has no latency either");
    }

    #[test]
    fn every_volume_has_the_same_readahead_by_default() {
        for storage in [StorageLimit::tier("disk-array").unwrap(), StorageLimit::tier("fast-ssd").unwrap()] {
            assert_eq!((storage.read_ahead_bytes, storage.rotational), (Some(128 << 10), Some(false)));
        }
        let requested = table(&[("read_ahead", text("2560KiB")), ("rotational", Value::Bool(true))]);
        let storage = StorageLimit::from_settings(&requested).unwrap();
        assert_eq!((storage.read_ahead_bytes, storage.rotational), (Some(2560 << 10), Some(true)));
        let none = StorageLimit::from_settings(&table(&[("read_ahead", Value::Int(0))])).unwrap();
        assert_eq!(none.read_ahead_bytes, Some(0));
        let odd = StorageLimit::from_settings(&table(&[("read_ahead", Value::Int(1000))])).unwrap_err();
        assert_eq!(odd.key, "limits.storage.read_ahead");
    }

    #[test]
    fn mistake_names_its_key_and_a_remedy() {
        let error = |pairs: &[(&str, Value)]| StorageLimit::from_settings(&table(pairs)).unwrap_err();
        let misspelt = error(&[("read_iop", Value::Int(1))]);
        assert_eq!(misspelt.key, "limits.storage.read_iop");
        assert_eq!(misspelt.remedy, "did you mean `read_iops`?");
        assert_eq!(error(&[("iops", Value::Int(0))]).remedy, "expected a whole number from 1 to 4294967295");
        assert_eq!(error(&[("size", text("1MiB"))]).remedy, "give at least 64.0 MiB");
        assert_eq!(error(&[("write_bps", text("1k"))]).key, "limits.storage.write_bps");
        assert_eq!(error(&[("backing", text("nfs"))]).remedy, "expected one of file, tmpfs");
        assert!(StorageLimit::tier("fastssd").unwrap_err().remedy.starts_with("did you mean \"fast-ssd\"?"));
        assert!(StorageLimit::tier("tape").unwrap_err().remedy.contains("{ iops = 2000 }"));
    }

    #[test]
    fn memory_is_a_size_that_something_can_run_in() {
        assert_eq!(parse_memory(&text("1GiB")), Ok(1 << 30));
        assert_eq!(parse_memory(&Value::Int(503_316_480)), Ok(503_316_480));
        assert_eq!(parse_memory(&text("1MiB")).unwrap_err().remedy, "give at least 16.0 MiB");
        assert!(parse_memory(&Value::Bool(true)).is_err());
        assert!(parse_memory(&Value::Int(-1)).is_err());
    }
}
