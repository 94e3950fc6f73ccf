//! Finds the block device that holds a directory, and what the kernel reports about it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::diskstats::{self, DeviceNumber};
use super::mounts::{self, Mount};
use super::text_of;

/// The block device that holds a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its major and minor number, which the kernel's throttles and counters use.
    pub number: DeviceNumber,
    /// Its name: `sda2`.
    pub name: String,
}

/// The block device that holds a directory: a row of `/proc/diskstats` that counts.
///
/// # Errors
/// Why it has none, for a person.
pub fn device_of(dir: &Path) -> Result<Device, String> {
    let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
    let number = fs::metadata(&dir).map_err(|error| format!("{}: {error}", dir.display()))?.dev();
    let rows = fs::read_to_string("/proc/diskstats").map_err(|error| format!("/proc/diskstats: {error}"))?;
    let mounts = mounts::mounts()?;
    let mount = mounts::mount_of(&dir, &mounts);
    let device = resolve(DeviceNumber::from_stat(number), mount, &rows, |source| {
        let metadata = fs::metadata(source).ok()?;
        Some(DeviceNumber::from_stat(metadata.rdev()))
    })?;
    if let Some(reason) = why_uncounted(&device, &rows, switched_off(&sysfs(device.number)).as_deref()) {
        return Err(reason);
    }
    match btrfs_devices(&device.name) {
        Some(devices) if devices.len() > 1 => {
            Err(format!("a btrfs over several devices ({}) has no single device to read", devices.join(", ")))
        }
        _ => Ok(device),
    }
}

/// Finds the row by the directory's own device number, else by the mount's source.
fn resolve(
    number: DeviceNumber,
    mount: Option<&Mount>,
    diskstats: &str,
    number_of: impl Fn(&Path) -> Option<DeviceNumber>,
) -> Result<Device, String> {
    let device = |number| diskstats::row(diskstats, number).map(|(name, _)| Device { number, name: name.to_owned() });
    if let Some(device) = device(number) {
        return Ok(device);
    }
    let Some(mount) = mount else { return Err(format!("no mount and no row of /proc/diskstats for device {number}")) };
    // Filesystems such as btrfs number their subvolumes themselves; the source is the device.
    if let Some(device) = number_of(&mount.source).and_then(device) {
        return Ok(device);
    }
    let filesystem = &mount.filesystem;
    Err(match mount {
        mount if mount.is_memory() => format!("{filesystem} is memory and has no device"),
        mount if mount.is_layered() => format!("{filesystem} is layered over other filesystems and has no device"),
        mount if mount.is_network() => format!("{filesystem} is not a local device"),
        mount => format!("{filesystem} from {} has no row in /proc/diskstats", mount.source.display()),
    })
}

/// Why the device's counters are not kept, or `None` if they are. All its figures would be zero although a filesystem
/// is mounted from it. `switch` is the file that turns disabled counters on again.
fn why_uncounted(device: &Device, diskstats: &str, switch: Option<&Path>) -> Option<String> {
    let name = &device.name;
    if let Some(switch) = switch {
        return Some(format!("the kernel does not count I/O on {name}; as root: echo 1 > {}", switch.display()));
    }
    let (_, counters) = diskstats::row(diskstats, device.number)?;
    // Mounting the filesystem has read from the device.
    (counters.submitted == 0)
        .then(|| format!("the driver of {name} counts neither reads nor writes in /proc/diskstats"))
}

/// The file that turns a device's counters on, if they are off. A device without its own request queue (LVM, RAID) is
/// left out, because many kernels count its requests even when the flag is off.
fn switched_off(link: &Path) -> Option<PathBuf> {
    let disk = disk_of(link)?;
    let switch = disk.join("queue/iostats");
    (disk.join("mq").is_dir() && text_of(&switch)? == "0").then_some(switch)
}

/// A device's entry in sysfs, a link.
fn sysfs(number: DeviceNumber) -> PathBuf {
    PathBuf::from(format!("/sys/dev/block/{number}"))
}

/// The entry of the whole disk: the queue and the model belong to it, one directory up from a partition.
fn disk_of(link: &Path) -> Option<PathBuf> {
    let mut dir = link.canonicalize().ok()?;
    if dir.join("partition").exists() {
        dir.pop();
    }
    Some(dir)
}

/// The devices of the btrfs that a device belongs to, if it belongs to one.
fn btrfs_devices(name: &str) -> Option<Vec<String>> {
    fs::read_dir("/sys/fs/btrfs").ok()?.flatten().find_map(|filesystem| {
        let devices = fs::read_dir(filesystem.path().join("devices")).ok()?;
        let names: Vec<String> = devices.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.iter().any(|device| device == name).then_some(names)
    })
}

/// The facts that sysfs has about a device; `None` for each that it lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The manufacturer's name for it.
    pub model: Option<String>,
    /// Whether the device reports rotating media; virtual disks often report it wrongly.
    pub rotational: Option<bool>,
    /// The kernel's read-ahead on it, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

impl DeviceFacts {
    /// Reads the facts of a device.
    pub fn of(number: DeviceNumber) -> Self {
        Self::of_sysfs(&sysfs(number))
    }

    /// Reads the facts from a device's entry in sysfs, which may be a link.
    pub fn of_sysfs(link: &Path) -> Self {
        let Some(dir) = disk_of(link) else { return Self::default() };
        Self {
            model: text_of(dir.join("device/model")),
            rotational: text_of(dir.join("queue/rotational")).map(|flag| flag == "1"),
            read_ahead_bytes: text_of(dir.join("queue/read_ahead_kb"))
                .and_then(|kib| kib.parse::<u64>().ok())
                .map(|kib| kib * 1024),
            scheduler: text_of(dir.join("queue/scheduler")).map(|text| super::parse::chosen(&text).to_owned()),
            backing_file: text_of(dir.join("loop/backing_file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKSTATS: &str = "\
   8       2 sda2 10 20 30 40 50 60 70 80 0 90 100 0 0 0 0
 254       1 dm-1 10 20 30 40 50 60 70 80 0 90 100 0 0 0 0
";
    const NUMBERED_BY_THE_FILESYSTEM: DeviceNumber = DeviceNumber { major: 0, minor: 40 };

    fn mount(filesystem: &str, source: &str) -> Mount {
        Mount {
            root: "/".into(),
            point: "/".into(),
            filesystem: filesystem.into(),
            source: source.into(),
            options: Vec::new(),
        }
    }

    fn sda2(source: &Path) -> Option<DeviceNumber> {
        (source == Path::new("/dev/sda2")).then_some(DeviceNumber { major: 8, minor: 2 })
    }

    #[test]
    fn a_partition_or_mapped_device_is_read_as_it_is() {
        let found = resolve(DeviceNumber { major: 254, minor: 1 }, None, DISKSTATS, |_| None).unwrap();
        assert_eq!(found.name, "dm-1");
    }

    #[test]
    fn a_subvolume_is_read_through_the_source_of_its_mount() {
        let mount = mount("btrfs", "/dev/sda2");
        assert_eq!(resolve(NUMBERED_BY_THE_FILESYSTEM, Some(&mount), DISKSTATS, sda2).unwrap().name, "sda2");
    }

    #[test]
    fn filesystem_without_a_device_gives_the_reason() {
        for (filesystem, source, reason) in [
            ("tmpfs", "none", "tmpfs is memory and has no device"),
            ("overlay", "overlay", "overlay is layered over other filesystems and has no device"),
            ("nfs4", "server:/x", "nfs4 is not a local device"),
            ("zfs", "pool/data", "zfs from pool/data has no row in /proc/diskstats"),
        ] {
            let mount = mount(filesystem, source);
            assert_eq!(resolve(NUMBERED_BY_THE_FILESYSTEM, Some(&mount), DISKSTATS, sda2).unwrap_err(), reason);
        }
    }

    /// Guards against figures of zero for a device that is not counted. Counters may be off in the kernel, or missing
    /// in the driver (NVMe multipath before Linux 6.4). Then every engine seemed to read and write nothing.
    #[test]
    fn device_without_io_counters_is_absent_not_zero() {
        let device = Device { number: DeviceNumber { major: 259, minor: 1 }, name: "nvme0n1p1".to_owned() };
        let rows = |reads: u64, writes: u64| format!(" 259 1 nvme0n1p1 {reads} 0 8 5 {writes} 0 0 0 0 0 0\n");
        assert_eq!(why_uncounted(&device, &rows(1, 0), None), None);
        assert_eq!(why_uncounted(&device, &rows(0, 1), None), None, "a new file system may be in the page cache");
        let none = why_uncounted(&device, &rows(0, 0), None);
        assert_eq!(none.unwrap(), "the driver of nvme0n1p1 counts neither reads nor writes in /proc/diskstats");
        let off = why_uncounted(&device, &rows(7, 7), Some(Path::new("/sys/x/queue/iostats")));
        assert_eq!(off.unwrap(), "the kernel does not count I/O on nvme0n1p1; as root: echo 1 > /sys/x/queue/iostats");
    }

    #[test]
    fn partition_uses_iostats_switch_of_its_disk_if_it_has_a_queue() {
        let dir = tempfile::tempdir().unwrap();
        let disk = dir.path().canonicalize().unwrap().join("sda");
        let (partition, switch) = (disk.join("sda2"), disk.join("queue/iostats"));
        for made in [&partition, &disk.join("mq"), &disk.join("queue")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(partition.join("partition"), "2\n").unwrap();
        fs::write(&switch, "0\n").unwrap();
        assert_eq!(switched_off(&partition), Some(switch.clone()));
        assert_eq!(switched_off(&disk), Some(switch.clone()));
        fs::write(&switch, "1\n").unwrap();
        assert_eq!(switched_off(&partition), None);
        fs::write(&switch, "0\n").unwrap();
        fs::remove_dir(disk.join("mq")).unwrap();
        assert_eq!(switched_off(&partition), None, "it may count all the same");
        assert_eq!(switched_off(&dir.path().join("gone")), None);
    }
}
