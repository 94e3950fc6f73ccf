//! Storage of a known kind: an ext4 filesystem on a loop device over a file.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rumba_engine_api::limits::{Backing, StorageLimit, show_latency};
use rumba_engine_api::units::show_bytes;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::{MountFlags, mount};

use super::aligned::AlignedBuffer;
use super::delay::Delayer;
use super::loop_device::LoopDevice;
use super::place::{Layout, Throttled, VolumeDir};
use super::throttle::Throttle;
use crate::limits::error::{LimitError, STORAGE, refused};
use crate::provision::{Owner, ResourceRegistry};
use crate::registry::Process;

/// Space in the tmpfs beyond the image itself, bytes.
const TMPFS_ROOM_BYTES: u64 = 1 << 20;
/// Few inodes, because an engine has some hundred files and inode tables are written at creation.
const BYTES_PER_INODE: &str = "131072";

/// Reads that measure the way of a request, and the longest delay of each.
const PROBES: usize = 21;
const LONGEST_PROBE: Duration = Duration::from_millis(10);

/// A mounted filesystem on a loop device. It is removed when dropped.
#[derive(Debug)]
pub struct Volume {
    // The fields are in the order of undoing: the process that delays requests is needed until the filesystem is
    // unmounted.
    dir: VolumeDir,
    delayer: Option<Delayer>,
    /// The time that a request needs in addition to its delay.
    path: Duration,
    device: LoopDevice,
    is_direct: bool,
    is_preallocated: bool,
}

impl Volume {
    /// Makes the file, the device and the filesystem, without a throttle.
    ///
    /// # Errors
    /// The step that failed; earlier steps are undone.
    pub fn create(
        path: &Path,
        storage: &StorageLimit,
        mkfs: &Path,
        owner: &Owner,
        ledger: &ResourceRegistry,
        process: Option<Process>,
    ) -> Result<Self, LimitError> {
        // Dropped last if a step fails.
        let mut delayer = None;
        let dir = VolumeDir::create(path, owner, ledger)?;
        let layout = &dir.layout;
        if storage.backing == Backing::Tmpfs {
            mount_tmpfs(&layout.backing, storage.size_bytes)?;
        }
        let (image, is_preallocated) = make_image(&layout.image, storage.size_bytes)?;
        let image = match storage.latency_us {
            Some(_) => serve(&mut delayer, process, layout, storage.backing)?,
            None => image,
        };
        let attached = LoopDevice::attach(&image);
        let device =
            attached.map_err(refused(STORAGE, format!("attach {} to a loop device", layout.image.display())))?;
        dir.note(&Throttled { device: device.clone(), groups: Vec::new() })?;
        // A file in tmpfs is not cached twice anyway, and older kernels have no direct I/O for it.
        let is_direct = (storage.backing == Backing::File || delayer.is_some()) && device.go_direct();
        if delayer.is_some() && !is_direct {
            let problem = "the loop device refuses direct I/O over FUSE, so requests would wait for each other";
            return Err(LimitError::unenforceable(STORAGE, problem, "leave limits.storage.latency out"));
        }
        // Set the queue last, because any other change of the device may reset it.
        let set = device.set_queue(storage.rotational, storage.read_ahead_bytes);
        set.map_err(refused(STORAGE, "set the rotational flag and read-ahead of its device"))?;
        make_filesystem(mkfs, &device.node)?;
        mount(&device.node, &layout.mounted, "ext4", MountFlags::NOATIME, c"nodiscard")
            .map_err(Into::into)
            .map_err(refused(STORAGE, format!("mount the ext4 of {}", device.node.display())))?;
        let path = match (&mut delayer, storage.latency_us) {
            (Some(delayer), Some(us)) => path_time(delayer, &device.node, Duration::from_micros(us))
                .map_err(refused(STORAGE, format!("measure the way of a request to {}", device.node.display())))?,
            _ => Duration::ZERO,
        };
        Ok(Self { dir, delayer, path, device, is_direct, is_preallocated })
    }

    /// The filesystem's directory.
    pub fn mounted(&self) -> &Path {
        &self.dir.layout.mounted
    }

    /// Notes which groups will throttle the device, so that the throttles are found after a kill.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn note(&self, throttle: &Throttle) -> Result<(), LimitError> {
        // In version 2 a throttle is removed with its group.
        let Throttle::Groups(groups) = throttle else { return Ok(()) };
        Ok(self.dir.note(&Throttled { device: self.device.clone(), groups: groups.clone() })?)
    }

    /// Delays requests by the latency of `storage` from now on; without one, ends the delay.
    ///
    /// # Errors
    /// The process that delays them is gone.
    pub fn delay(&mut self, storage: &StorageLimit) -> Result<(), LimitError> {
        let Some(delayer) = &mut self.delayer else { return Ok(()) };
        let latency = Duration::from_micros(storage.latency_us.unwrap_or_default());
        delayer
            .delay(latency.saturating_sub(self.path))
            .map_err(refused(STORAGE, "send the latency to the process of the volume"))
    }

    /// The process that delays requests, if there is one.
    pub fn delayer(&self) -> Option<u32> {
        self.delayer.as_ref().map(Delayer::pid)
    }

    pub fn device(&self) -> &LoopDevice {
        &self.device
    }

    /// How the volume was made and is treated, for the conditions. The device's number is left out, because it is
    /// arbitrary and no difference between two trials.
    pub fn how(&self, storage: &StorageLimit) -> String {
        let passing = match (storage.backing, self.is_direct) {
            (Backing::Tmpfs, _) => "blocks in memory",
            (Backing::File, true) => "past the host's page cache",
            (Backing::File, false) => {
                "THROUGH the host's page cache, because the file's own filesystem refuses direct I/O"
            }
        };
        let sparse = if self.is_preallocated { "" } else { ", file not preallocated" };
        let delayed =
            storage.latency_us.map(|us| format!(", each request answered after {} by FUSE", show_latency(us)));
        let delayed = delayed.unwrap_or_default();
        format!("ext4 (noatime, nodiscard) on a loop device, {passing}{sparse}{delayed}, {}", self.treated())
    }

    /// The kernel's current settings of the device.
    fn treated(&self) -> String {
        let facts = self.device.facts();
        let turns = match facts.rotational {
            Some(true) => "rotational",
            Some(false) => "not rotational",
            None => "rotational or not: not exposed",
        };
        let read_ahead = facts.read_ahead_bytes.map_or("not exposed".to_owned(), |bytes| show_bytes(bytes as f64));
        format!("{turns}, read-ahead {read_ahead}")
    }

    /// Removes the volume now, and returns the error if that fails.
    ///
    /// # Errors
    /// A resource that could not be undone; `rumba doctor --clean` finds it later.
    pub fn remove(self) -> Result<(), LimitError> {
        Ok(self.dir.remove()?)
    }
}

/// Serves the volume's file with a delay, and opens the served file.
fn serve(
    delayer: &mut Option<Delayer>,
    process: Option<Process>,
    layout: &Layout,
    backing: Backing,
) -> Result<File, LimitError> {
    let refused = || refused(STORAGE, format!("serve {} by FUSE", layout.image.display()));
    let is_direct = backing == Backing::File;
    *delayer = Some(Delayer::start(process, &layout.image, &layout.delayed, is_direct).map_err(refused())?);
    let served = OpenOptions::new().read(true).write(true).open(&layout.delayed).map_err(refused())?;
    // The kernel learns the file's size.
    served.metadata().map_err(refused())?;
    Ok(served)
}

/// The time that a read takes in addition to its delay: the loop device, FUSE, and the switches between them.
///
/// It is that of the fastest of several reads. On a busy host most of them wait for a CPU. If that wait were taken off the
/// delay, requests would be faster than the limit as soon as the host is idle.
fn path_time(delayer: &mut Delayer, node: &Path, latency: Duration) -> io::Result<Duration> {
    let delay = latency.min(LONGEST_PROBE);
    delayer.delay(delay)?;
    let device = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(node)?;
    let mut page = AlignedBuffer::new(4096);
    let mut read = || {
        let begun = Instant::now();
        device.read_exact_at(page.bytes(), 0).map(|()| begun.elapsed())
    };
    let times = (0..PROBES).map(|_| read()).collect::<io::Result<Vec<Duration>>>()?;
    delayer.delay(Duration::ZERO)?;
    Ok(times.into_iter().min().unwrap_or_default().saturating_sub(delay))
}

fn mount_tmpfs(point: &Path, size_bytes: u64) -> Result<(), LimitError> {
    let options = CString::new(format!("size={},mode=0700", size_bytes + TMPFS_ROOM_BYTES)).unwrap_or_default();
    mount("rumba", point, "tmpfs", MountFlags::NOATIME, options.as_c_str())
        .map_err(Into::into)
        .map_err(refused(STORAGE, format!("mount a tmpfs on {}", point.display())))
}

/// Makes the file and allocates its blocks. In tmpfs, later blocks would be charged to the memory group that writes
/// first. On a disk, they could run out in the middle of a trial.
fn make_image(path: &Path, size_bytes: u64) -> Result<(File, bool), LimitError> {
    let refused = || refused(STORAGE, format!("make {} of {size_bytes} bytes", path.display()));
    let mut options = OpenOptions::new();
    let image = options.read(true).write(true).create_new(true).mode(0o600).open(path).map_err(refused())?;
    match fallocate(&image, FallocateFlags::empty(), 0, size_bytes) {
        Ok(()) => Ok((image, true)),
        Err(rustix::io::Errno::OPNOTSUPP) => {
            image.set_len(size_bytes).map_err(refused())?;
            Ok((image, false))
        }
        Err(error) => Err(refused()(error.into())),
    }
}

/// Makes an ext4 filesystem. Inode tables are written now, so that the kernel does not write them during a trial. The
/// device is not discarded, because that would free the file's blocks. The journal need not be overwritten, because the
/// file is new.
fn make_filesystem(mkfs: &Path, device: &Path) -> Result<(), LimitError> {
    let output = Command::new(mkfs)
        .args(["-q", "-F", "-m", "0", "-i", BYTES_PER_INODE])
        .args(["-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=1"])
        .arg(device)
        .stdin(Stdio::null())
        .output();
    let refused = || refused(STORAGE, format!("make an ext4 on {}", device.display()));
    let output = output.map_err(refused())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " | ");
    Err(refused()(io::Error::other(format!("{} ended with {}: {words}", mkfs.display(), output.status))))
}
