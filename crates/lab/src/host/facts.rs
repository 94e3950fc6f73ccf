//! The facts, read once.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::block::{self, Device, DeviceFacts};
use super::diskstats;
use super::memory_limit::memory_limit;
use super::mounts::{self, Mount};
use super::{parse, text_of};

/// How long the device is sampled for traffic of other processes.
const WATCH: Duration = Duration::from_millis(250);

/// The facts about the host and about the storage under a data directory. A fact that the host does not expose is
/// `None`.
#[derive(Clone, Debug)]
pub struct Facts {
    pub machine: Machine,
    /// The storage under the data directory.
    pub storage: Storage,
}

/// The facts about the machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The CPU's name.
    pub cpu: Option<String>,
    pub cpus: Option<usize>,
    /// CPUs that this process may use, quotas counted.
    pub cpus_allowed: Option<usize>,
    /// Whether CPUs share cores.
    pub smt: Option<bool>,
    pub numa_nodes: Option<usize>,
    /// The frequency governors in force; empty when the kernel exposes none.
    pub governors: BTreeSet<String>,
    pub memory_bytes: Option<u64>,
    /// The memory limit of its control groups, bytes.
    pub memory_limit_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    /// How readily the kernel swaps, 0 to 200.
    pub swappiness: Option<u32>,
    /// When the kernel gives huge pages without a request: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
    /// Bytes in a page of memory.
    pub page_bytes: usize,
    /// The kernel's release.
    pub kernel: String,
    pub distribution: Option<String>,
    /// The kernel's source of time.
    pub clock_source: Option<String>,
    /// The hypervisor's name, or that there is one.
    pub virtual_machine: Option<String>,
    pub container: Option<String>,
    pub load_average: Option<f64>,
}

/// The facts about the storage under a data directory.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The directory, or its nearest ancestor that exists.
    pub dir: PathBuf,
    /// The block device, or why there is none.
    pub device: Result<Device, String>,
    pub device_facts: DeviceFacts,
    pub mount: Option<Mount>,
    /// Bytes of the filesystem.
    pub total_bytes: Option<u64>,
    /// Bytes of it that this user may still fill.
    pub free_bytes: Option<u64>,
    /// Bytes per second that other processes read and wrote on the device just now.
    pub others_bytes_per_s: Option<f64>,
}

impl Facts {
    /// Reads all facts; takes a quarter of a second to sample the device.
    pub fn gather(data_dir: &Path) -> Self {
        Self { machine: Machine::gather(), storage: Storage::gather(data_dir) }
    }
}

impl Machine {
    /// Bytes that this process and the page cache of its files may fill: the memory, or the group's limit below it.
    pub fn usable_memory_bytes(&self) -> Option<u64> {
        match (self.memory_bytes, self.memory_limit_bytes) {
            (Some(memory), Some(limit)) => Some(memory.min(limit)),
            (memory, limit) => memory.or(limit),
        }
    }

    fn gather() -> Self {
        let cpuinfo = text_of("/proc/cpuinfo").unwrap_or_default();
        let meminfo = text_of("/proc/meminfo").unwrap_or_default();
        let release = text_of("/etc/os-release").unwrap_or_default();
        Self {
            cpu: parse::cpu_model(&cpuinfo).map(str::to_owned),
            cpus: text_of("/sys/devices/system/cpu/online").and_then(|list| parse::list_length(&list)),
            cpus_allowed: thread::available_parallelism().ok().map(usize::from),
            smt: text_of("/sys/devices/system/cpu/smt/active").map(|flag| flag == "1"),
            numa_nodes: text_of("/sys/devices/system/node/online").and_then(|list| parse::list_length(&list)),
            governors: governors(),
            memory_bytes: parse::meminfo_bytes(&meminfo, "MemTotal"),
            memory_limit_bytes: memory_limit(),
            swap_bytes: text_of("/proc/swaps").map(|text| parse::swap_bytes(&text)),
            swappiness: text_of("/proc/sys/vm/swappiness").and_then(|text| text.parse().ok()),
            transparent_huge_pages: text_of("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|text| parse::chosen(&text).to_owned()),
            page_bytes: rustix::param::page_size(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            distribution: parse::os_release(&release).get("PRETTY_NAME").map(|&name| name.to_owned()),
            clock_source: text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            virtual_machine: virtual_machine(&cpuinfo),
            container: container(),
            load_average: text_of("/proc/loadavg").and_then(|text| parse::load_average(&text)),
        }
    }
}

impl Storage {
    fn gather(data_dir: &Path) -> Self {
        let dir = nearest_existing(data_dir);
        let device = block::device_of(&dir);
        let space = rustix::fs::statvfs(&dir).ok();
        Self {
            device_facts: device.as_ref().map(|device| DeviceFacts::of(device.number)).unwrap_or_default(),
            mount: mounts::mounts().ok().and_then(|mounts| mounts::mount_of(&dir, &mounts).cloned()),
            total_bytes: space.as_ref().map(|space| space.f_blocks * space.f_frsize),
            free_bytes: space.as_ref().map(|space| space.f_bavail * space.f_frsize),
            others_bytes_per_s: device.as_ref().ok().and_then(watch),
            device,
            dir,
        }
    }
}

/// The nearest ancestor that exists, links resolved.
fn nearest_existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).unwrap_or(absolute)
}

/// The traffic on a device in bytes per second, sampled over [`WATCH`].
fn watch(device: &Device) -> Option<f64> {
    let moved = || {
        let rows = fs::read_to_string("/proc/diskstats").ok()?;
        let (_, counters) = diskstats::row(&rows, device.number)?;
        Some(counters.read_bytes + counters.write_bytes)
    };
    let (start, before) = (Instant::now(), moved()?);
    thread::sleep(WATCH);
    Some(moved()?.checked_sub(before)? as f64 / start.elapsed().as_secs_f64())
}

fn governors() -> BTreeSet<String> {
    let Ok(cpus) = fs::read_dir("/sys/devices/system/cpu") else { return BTreeSet::new() };
    cpus.flatten().filter_map(|cpu| text_of(cpu.path().join("cpufreq/scaling_governor"))).collect()
}

fn virtual_machine(cpuinfo: &str) -> Option<String> {
    let vendor = text_of("/sys/hypervisor/type").or_else(|| {
        let vendor = text_of("/sys/class/dmi/id/sys_vendor")?;
        let product = text_of("/sys/class/dmi/id/product_name").unwrap_or_default();
        parse::has_hypervisor(cpuinfo).then(|| format!("{vendor} {product}").trim().to_owned())
    });
    vendor.or_else(|| parse::has_hypervisor(cpuinfo).then(|| "yes, kind unknown".to_owned()))
}

fn container() -> Option<String> {
    text_of("/run/systemd/container").or_else(|| {
        [("/run/.containerenv", "podman"), ("/.dockerenv", "docker")]
            .into_iter()
            .find(|(path, _)| Path::new(path).exists())
            .map(|(_, name)| name.to_owned())
    })
}
