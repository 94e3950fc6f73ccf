//! The host's means to enforce limits, and whether they suffice. [`Means::gather`] reads, [`Means::check`] judges.

use std::fs;
use std::path::{Path, PathBuf};

use rumba_engine_api::limits::{Backing, Limits, StorageLimit};
use rumba_engine_api::units::show_bytes;
use rustix::fs::{Access, access};
use rustix::thread::{CapabilitySet, capabilities};

use super::control_group::{self, Tree, Version};
use super::error::{LimitError, MEMORY, STORAGE};
use super::volume::{FUSE, LOOP_CONTROL, THROTTLES};
use crate::host::parse::meminfo_bytes;
use crate::provision;

/// Memory that a volume in tmpfs must leave to the rest of the host.
const MEMORY_RESERVE_BYTES: u64 = 512 << 20;
/// Disk that a volume must leave free on its host.
const DISK_RESERVE_BYTES: u64 = 256 << 20;

/// The mechanism that enforces a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryMeans {
    /// A control group, made directly.
    Group {
        /// Version of control groups.
        version: Version,
        /// The group in which it is made.
        parent: PathBuf,
    },
    /// A scope of the user's systemd.
    Scope,
    /// No mechanism: why, and the remedy.
    None(String),
}

/// The mechanism that throttles a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThrottleMeans {
    /// Version 1: files in these groups of block I/O, the root group first. Kernel threads do the write-back, and they
    /// are in the root group.
    Groups(Vec<PathBuf>),
    /// Version 2: `io.max` of a group below this one.
    IoMax(PathBuf),
    /// No mechanism, and why.
    None(String),
}

/// The means of this host.
#[derive(Clone, Debug)]
pub struct Means {
    /// Why this process may make no devices and mounts, if it may not.
    pub no_mounts: Option<&'static str>,
    pub memory: MemoryMeans,
    /// The mechanism for storage.
    pub throttle: ThrottleMeans,
    pub has_loop_devices: bool,
    /// Whether FUSE is available, which delays requests.
    pub has_fuse: bool,
    /// The program that makes an ext4 filesystem.
    pub mkfs: Option<PathBuf>,
    /// Bytes available on the disk of the volume.
    pub disk_bytes: u64,
    /// Bytes of memory available, given the host and this process's control groups.
    pub memory_bytes: u64,
}

impl Means {
    /// Reads the host's means for a volume below a directory.
    ///
    /// # Errors
    /// When the directory's filesystem cannot be queried.
    pub fn gather(volumes: &Path) -> Result<Self, LimitError> {
        Ok(Self {
            no_mounts: no_mounts(),
            memory: memory(),
            throttle: throttle(),
            has_loop_devices: Path::new(LOOP_CONTROL).exists(),
            has_fuse: Path::new(FUSE).exists(),
            mkfs: program("mkfs.ext4"),
            disk_bytes: provision::free_bytes(volumes)?,
            memory_bytes: available_memory(),
        })
    }

    /// Whether the means suffice for these limits.
    ///
    /// # Errors
    /// The first limit that cannot be enforced, why, and an alternative.
    pub fn check(&self, limits: &Limits) -> Result<(), LimitError> {
        if limits.memory_bytes.is_some() {
            self.check_memory()?;
        }
        limits.storage.as_ref().map_or(Ok(()), |storage| self.check_storage(storage, limits.memory_bytes))
    }

    fn check_memory(&self) -> Result<(), LimitError> {
        match &self.memory {
            MemoryMeans::None(problem) => Err(LimitError::unenforceable(
                MEMORY,
                problem,
                "run as root on a host or in a container that allows control groups, or in a systemd login session; \
                 or leave limits.memory out and lower the engines' caches",
            )),
            _ => Ok(()),
        }
    }

    fn check_storage(&self, storage: &StorageLimit, memory: Option<u64>) -> Result<(), LimitError> {
        let refuse = |problem: String, remedy: &str| Err(LimitError::unenforceable(STORAGE, problem, remedy));
        if let Some(problem) = self.no_mounts {
            return refuse(
                problem.into(),
                "run rumba as root with this capability, outside any user namespace; or leave limits.storage out and \
                 name a directory on the storage you mean as run.data_dir (limits.memory works without root where \
                 systemd runs)",
            );
        }
        if !self.has_loop_devices {
            return refuse(
                format!("{} is missing", LOOP_CONTROL),
                "load the module (`modprobe loop`), or start the container with access to the host's loop devices",
            );
        }
        if !self.has_fuse && storage.latency_us.is_some() {
            return refuse(
                format!("{FUSE} is missing, which limits.storage.latency needs"),
                "load the module (`modprobe fuse`), or start the container with access to the host's device",
            );
        }
        if self.mkfs.is_none() {
            return refuse(
                "there is no mkfs.ext4".into(),
                "install it: the package is e2fsprogs (`apt-get install e2fsprogs`)",
            );
        }
        if let ThrottleMeans::None(problem) = &self.throttle
            && storage.is_throttled()
        {
            return refuse(
                problem.clone(),
                "use a kernel with CONFIG_BLK_DEV_THROTTLING, and a host or container that allows it; a table without \
                 rates, such as { size = \"4GiB\" }, needs no throttle",
            );
        }
        self.check_size(storage, memory)
    }

    fn check_size(&self, storage: &StorageLimit, memory: Option<u64>) -> Result<(), LimitError> {
        let size = storage.size_bytes;
        let show = |bytes: u64| show_bytes(bytes as f64);
        let (has, reserve, problem, other) = match storage.backing {
            Backing::File => (self.disk_bytes, DISK_RESERVE_BYTES, "the disk has", "a larger disk (run.data_dir)"),
            // Memory reserved for the trial is not available for the volume.
            Backing::Tmpfs => (
                self.memory_bytes,
                MEMORY_RESERVE_BYTES + memory.unwrap_or(0),
                "the memory has",
                "limits.storage.backing = \"file\"",
            ),
        };
        if has >= size.saturating_add(reserve) {
            return Ok(());
        }
        Err(LimitError::NoRoom {
            limit: STORAGE,
            problem: format!(
                "{problem} {} left, and {} with {} to spare are needed",
                show(has),
                show(size),
                show(reserve)
            ),
            remedy: format!(
                "set limits.storage.size to at most {}, scale the experiment down, or use {other}",
                show(has.saturating_sub(reserve))
            ),
        })
    }
}

fn no_mounts() -> Option<&'static str> {
    let has = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    // The capabilities of a user namespace do not reach the host's devices.
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    match map.split_ascii_whitespace().eq(["0", "0", "4294967295"]) {
        _ if !has => Some("loop devices, mounts and throttles need root's capability CAP_SYS_ADMIN"),
        true => None,
        false => Some("loop devices and mounts need CAP_SYS_ADMIN of the host, which a user namespace does not give"),
    }
}

fn memory() -> MemoryMeans {
    let Some(tree) = control_group::tree_of("memory") else {
        return MemoryMeans::None("this host has no memory controller of control groups".into());
    };
    let parent = match tree.version {
        Version::One => Some(tree.own.clone()),
        Version::Two => control_group::parent_with(&tree, &["memory"]),
    };
    match parent {
        Some(parent) if may_make_groups(&tree, &parent) => MemoryMeans::Group { version: tree.version, parent },
        _ if control_group::is_offered(tree.version) => MemoryMeans::Scope,
        Some(parent) => MemoryMeans::None(format!("no control group can be made below {}", parent.display())),
        None => MemoryMeans::None(format!(
            "every control group between {} and {} holds processes, so that none can hand its memory controller down",
            tree.own.display(),
            tree.root.display()
        )),
    }
}

/// Version 2 moves a process only for a user who may write to both groups and to their common ancestor.
fn may_make_groups(tree: &Tree, parent: &Path) -> bool {
    let writable = |path: PathBuf| access(path, Access::WRITE_OK).is_ok();
    writable(parent.to_owned())
        && (tree.version == Version::One
            || (writable(parent.join("cgroup.procs")) && writable(parent.join("cgroup.subtree_control"))))
}

fn throttle() -> ThrottleMeans {
    let one = control_group::tree_of("blkio").filter(|tree| tree.version == Version::One);
    if let Some(tree) = one {
        let groups: Vec<PathBuf> = if tree.own == tree.root { vec![tree.root] } else { vec![tree.root, tree.own] };
        return match groups
            .iter()
            .flat_map(|group| THROTTLES.map(|file| group.join(file)))
            .find(|file| access(file, Access::WRITE_OK).is_err())
        {
            None => ThrottleMeans::Groups(groups),
            Some(file) => ThrottleMeans::None(format!("{} cannot be written", file.display())),
        };
    }
    let Some(tree) = control_group::tree_of("io") else {
        return ThrottleMeans::None("this host has no controller of block I/O (blkio or io)".into());
    };
    match control_group::parent_with(&tree, &["io", "memory"]) {
        Some(parent) if may_make_groups(&tree, &parent) => ThrottleMeans::IoMax(parent),
        _ => ThrottleMeans::None("no control group with a controller of block I/O can be made here".into()),
    }
}

/// A program on the path, or in the directories for administrators.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let administrators = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    // A relative entry would depend on the current directory.
    let absolute = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    absolute.chain(administrators).map(|dir| dir.join(name)).find(|file| file.is_file())
}

fn available_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let host = meminfo_bytes(&meminfo, "MemAvailable").unwrap_or(0);
    crate::host::memory_limit().map_or(host, |limit| limit.min(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means() -> Means {
        Means {
            no_mounts: None,
            memory: MemoryMeans::Group { version: Version::One, parent: "/sys/fs/cgroup/memory".into() },
            throttle: ThrottleMeans::Groups(vec!["/sys/fs/cgroup/blkio".into()]),
            has_loop_devices: true,
            has_fuse: true,
            mkfs: Some("/usr/sbin/mkfs.ext4".into()),
            disk_bytes: 20 << 30,
            memory_bytes: 12 << 30,
        }
    }

    fn refusal(means: &Means, memory: Option<u64>, tier: Option<&str>) -> String {
        let storage = tier.map(|tier| StorageLimit::tier(tier).unwrap());
        let limits = Limits { memory_bytes: memory, storage, ..Limits::default() };
        means.check(&limits).unwrap_err().to_string()
    }

    #[test]
    fn missing_means_are_named_with_alternatives() {
        let storage = StorageLimit::tier("slow-ssd").ok();
        let limits = Limits { memory_bytes: Some(1 << 30), storage, ..Limits::default() };
        means().check(&limits).unwrap();
        let lacks_both = Means { throttle: ThrottleMeans::None("no blkio".into()), has_fuse: false, ..means() };
        let unthrottled = |latency_us| StorageLimit { latency_us, ..StorageLimit::unthrottled() };
        let check =
            |latency_us| lacks_both.check(&Limits { storage: Some(unthrottled(latency_us)), ..Limits::default() });
        check(None).unwrap();
        let words = check(Some(1000)).unwrap_err().to_string();
        assert!(words.contains("/dev/fuse is missing") && words.contains("modprobe fuse"), "{words}");
        let lacking = [
            (
                Means { no_mounts: Some("no CAP_SYS_ADMIN"), ..means() },
                "no CAP_SYS_ADMIN",
                "limits.memory works without root",
            ),
            (Means { has_loop_devices: false, ..means() }, "/dev/loop-control is missing", "modprobe loop"),
            (Means { mkfs: None, ..means() }, "no mkfs.ext4", "e2fsprogs"),
            (Means { throttle: ThrottleMeans::None("no blkio".into()), ..means() }, "no blkio", "{ size = \"4GiB\" }"),
            (
                Means { memory: MemoryMeans::None("no group".into()), ..means() },
                "no group",
                "lower the engines' caches",
            ),
        ];
        for (means, problem, remedy) in lacking {
            let words = refusal(&means, Some(1 << 30), Some("slow-ssd"));
            assert!(words.contains(problem) && words.contains(remedy), "{words}");
        }
    }

    #[test]
    fn oversized_volume_is_refused_with_a_fitting_size() {
        let small = Means { disk_bytes: 3 << 30, memory_bytes: 3 << 30, ..means() };
        let words = refusal(&small, None, Some("disk-array"));
        assert!(words.contains("the disk has 3.00 GiB left, and 8.00 GiB"), "{words}");
        assert!(words.contains("at most 2.75 GiB"), "{words}");
        let words = refusal(&small, Some(1 << 30), Some("fast-ssd"));
        assert!(words.contains("at most 1.50 GiB"), "{words}");
        assert!(words.contains("backing = \"file\""), "{words}");
    }
}
