//! Volumes: a directory with a file, the filesystem of a loop device over that file, and the notes that are needed to
//! undo both.
//!
//! ```text
//! NAME/.rumba          the marker: its owner
//! NAME/backing/image   the file; a tmpfs may be mounted on backing
//! NAME/delayed         the mount point of the same file with a delay, if there is one
//! NAME/device.json     the loop device, and the groups that throttle it
//! NAME/mounted/        the mount point of the filesystem
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use super::loop_device::{self, LoopDevice};
use crate::host::mounts;
use crate::limits::control_group;
use crate::provision::{
    CheckedDir, Doing, Kind, MARKER, Objection, Owner, OwnerTag, PASSABLE, ProvisionError, Registration,
    ResourceRegistry, lock, remove_empty, take,
};

/// A separate filesystem, as the ledger lists it: mounts, loop device, throttles, file.
pub const KIND: Kind = Kind { name: "volume", words: "throttled filesystem", is_owned, clean };

/// How long a filesystem may stay in use after the processes on it were ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files in version 1's group of block I/O that throttle a device.
pub const THROTTLES: [&str; 4] = [
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
];

/// The names in a volume's directory.
const BACKING: &str = "backing";
const IMAGE: &str = "image";
const DELAYED: &str = "delayed";
const MOUNTED: &str = "mounted";
const DEVICE: &str = "device.json";
const UNFINISHED_DEVICE: &str = "device.part";

/// The longest note of a device, bytes.
const LONGEST: u64 = 64 << 10;

/// The paths of a volume.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The volume's directory.
    pub path: PathBuf,
    /// The directory of the file, and the mount point of a tmpfs for it.
    pub backing: PathBuf,
    /// The file behind the device, or behind the served file.
    pub image: PathBuf,
    /// The file that is served with a delay.
    pub delayed: PathBuf,
    /// The mount point of the filesystem.
    pub mounted: PathBuf,
}

impl Layout {
    fn of(path: &Path) -> Self {
        let backing = path.join(BACKING);
        let (delayed, mounted) = (path.join(DELAYED), path.join(MOUNTED));
        Self { path: path.to_owned(), image: backing.join(IMAGE), backing, delayed, mounted }
    }

    /// The files that a device may be over.
    fn images(&self) -> [&Path; 2] {
        [&self.delayed, &self.image]
    }

    /// The devices over them.
    fn devices(&self) -> Result<Vec<(&Path, LoopDevice)>, ProvisionError> {
        let mut devices = Vec::new();
        for image in self.images() {
            let attached = loop_device::attached_to(image).doing("look for the loop device of", image)?;
            devices.extend(attached.into_iter().map(|device| (image, device)));
        }
        Ok(devices)
    }
}

/// The device of a volume, and the groups that throttle it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Throttled {
    pub device: LoopDevice,
    /// Version 1's groups that hold its throttles; in version 2 they are removed with their group.
    pub groups: Vec<PathBuf>,
}

/// The directory of a volume of this process. Everything in it is undone when it is dropped.
#[derive(Debug)]
pub struct VolumeDir {
    pub(super) layout: Layout,
    registration: Registration,
}

impl VolumeDir {
    /// Makes the directory. A volume whose owner has ended is removed first.
    ///
    /// # Errors
    /// As [`DataDir::create`](crate::provision::DataDir::create).
    pub fn create(path: &Path, owner: &Owner, ledger: &ResourceRegistry) -> Result<Self, ProvisionError> {
        let (dir, _lock, _, registration) =
            take(path, &KIND, owner, ledger, |dir, _| undo(&Layout::of(dir.path()), dir))?;
        // From here on, dropping the value undoes the volume.
        let volume = Self { layout: Layout::of(dir.path()), registration };
        dir.make_dir(BACKING, PASSABLE)?;
        dir.make_dir(MOUNTED, PASSABLE)?;
        Ok(volume)
    }

    /// Notes the device once it is attached, and again before anything throttles it.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub fn note(&self, throttled: &Throttled) -> Result<(), ProvisionError> {
        let json = serde_json::to_vec(throttled).map_err(Into::into).doing("note the device of", &self.layout.path)?;
        let (dir, _lock) = lock(&self.layout.path)?;
        dir.write(DEVICE, UNFINISHED_DEVICE, &json)
    }

    /// Undoes everything now, and returns the error if that fails.
    ///
    /// # Errors
    /// A resource that could not be undone; `rumba doctor --clean` finds it later.
    pub fn remove(mut self) -> Result<(), ProvisionError> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), ProvisionError> {
        self.registration.undo(|| {
            let dir = CheckedDir::at(&self.layout.path)?;
            match (&dir, dir.as_ref().map(OwnerTag::read).transpose()?.flatten()) {
                (Some(dir), Some(marker)) => remove(&self.layout, dir, &marker),
                (Some(dir), None) => remove_unmarked(&self.layout, dir),
                (None, _) => detach(&self.layout, None),
            }
        })
    }
}

impl Drop for VolumeDir {
    fn drop(&mut self) {
        // A resource that cannot be removed stays in the ledger for the next `leftovers`.
        let _ = self.remove_once();
    }
}

/// Undoes the volume of an ended process.
fn clean(path: &Path, owner: &Owner) -> Result<(), ProvisionError> {
    let layout = Layout::of(path);
    // The device may still exist even if the directory is gone.
    let Some((dir, _lock)) = CheckedDir::lock(path)? else { return detach(&layout, None) };
    match OwnerTag::read(&dir)? {
        Some(marker) if marker.owner == *owner => remove(&layout, &dir, &marker),
        Some(_) => Ok(()),
        None => remove_unmarked(&layout, &dir),
    }
}

/// Whether a volume, or the rest of it, still belongs to an owner.
///
/// # Errors
/// When this is unknown, because the marker is invalid or belongs to another owner.
fn is_owned(path: &Path, owner: &Owner) -> Result<bool, ProvisionError> {
    let marker = CheckedDir::at(path)?.as_ref().map(OwnerTag::read).transpose()?.flatten();
    Ok(marker.map_or_else(|| is_there(&Layout::of(path)), |marker| marker.owner == *owner && !marker.kept))
}

/// Whether a volume has mounts or a device. A user may have removed its files, marker included, as far as that was
/// possible.
fn is_there(layout: &Layout) -> bool {
    let attached = layout.devices().is_ok_and(|devices| !devices.is_empty());
    attached
        || [&layout.mounted, &layout.delayed, &layout.backing].iter().any(|point| is_mounted(point).unwrap_or(false))
}

fn remove_unmarked(layout: &Layout, dir: &CheckedDir) -> Result<(), ProvisionError> {
    if !is_there(layout) {
        return Ok(());
    }
    undo(layout, dir)?;
    remove_empty(std::slice::from_ref(&layout.path));
    Ok(())
}

fn remove(layout: &Layout, dir: &CheckedDir, marker: &OwnerTag) -> Result<(), ProvisionError> {
    undo(layout, dir)?;
    dir.remove_file(MARKER)?;
    remove_empty(&marker.made);
    Ok(())
}

/// Undoes everything except the directory and its marker, from any state. The throttle goes first, so that the
/// remaining writes do not wait for it.
fn undo(layout: &Layout, dir: &CheckedDir) -> Result<(), ProvisionError> {
    dir.require_own()?;
    let noted = dir.read(DEVICE, LONGEST)?.and_then(|json| serde_json::from_slice::<Throttled>(&json).ok());
    match &noted {
        Some(noted) => clear(layout, noted)?,
        None => unthrottle_unnoted(layout)?,
    }
    unmount_all(&layout.mounted)?;
    detach(layout, noted.map(|noted| noted.device))?;
    unmount_all(&layout.delayed)?;
    unmount_all(&layout.backing)?;
    if let Some(backing) = dir.below(BACKING.as_ref())? {
        backing.remove_file(IMAGE)?;
    }
    dir.remove_file(DELAYED)?;
    dir.remove_file(DEVICE)?;
    dir.remove_file(UNFINISHED_DEVICE)?;
    dir.remove_dir(BACKING.as_ref())?;
    dir.remove_dir(MOUNTED.as_ref())
}

/// Detaches the devices over the volume's files, and the noted one, whose file may have no path here.
fn detach(layout: &Layout, noted: Option<LoopDevice>) -> Result<(), ProvisionError> {
    for (image, device) in layout.devices()?.into_iter().chain(noted.map(|noted| (&*layout.image, noted))) {
        device.detach(image).doing("detach", &device.node)?;
    }
    Ok(())
}

/// Clears the throttles of a volume without a note: of its current device, in the outermost groups.
fn unthrottle_unnoted(layout: &Layout) -> Result<(), ProvisionError> {
    let mounts = mounts::mounts().map_err(io::Error::other).doing("look for control groups of", &layout.path)?;
    let trees = mounts.into_iter().filter(|mount| mount.filesystem == "cgroup" && mount.has_option("blkio"));
    let groups: Vec<PathBuf> = trees.map(|mount| mount.point).collect();
    for (_, device) in layout.devices()? {
        clear(layout, &Throttled { device, groups: groups.clone() })?;
    }
    Ok(())
}

/// Clears the throttles of the noted device, unless another process has taken the device and set its own.
fn clear(layout: &Layout, Throttled { device, groups }: &Throttled) -> Result<(), ProvisionError> {
    match device.is_genuine().doing("look at", &device.node)? {
        Some(true) => {}
        Some(false) => {
            let words = format!("{} with the number {} is not a loop device", device.node.display(), device.number);
            return Err(ProvisionError::managed(&layout.path.join(DEVICE), Objection::new(words)));
        }
        None => return Ok(()),
    }
    let _lock = match device.lock() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock.doing("lock", &device.node)?,
    };
    if device.backing_file().is_some() && !layout.images().iter().any(|image| device.is_over(image)) {
        return Ok(());
    }
    groups.iter().try_for_each(|group| unthrottle_in(group, device))
}

/// Clears the throttles of a device in a group; a directory that is no control group, or is gone, has none.
fn unthrottle_in(group: &Path, device: &LoopDevice) -> Result<(), ProvisionError> {
    let Some(dir) = control_group::open(group).doing("open", group)? else { return Ok(()) };
    for throttle in THROTTLES {
        let path = group.join(throttle);
        // Open without creating: a file that the kernel does not have is no throttle.
        match rustix::fs::openat(&dir, throttle, OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Err(Errno::NOENT) => {}
            file => {
                let file = file.map_err(io::Error::from).doing("open", &path)?;
                let line = format!("{} 0", device.number);
                File::from(file).write_all(line.as_bytes()).doing("clear the throttle in", &path)?;
            }
        }
    }
    Ok(())
}

/// Unmounts every filesystem that is mounted on a directory.
fn unmount_all(point: &Path) -> Result<(), ProvisionError> {
    let deadline = Instant::now() + PATIENCE;
    while is_mounted(point)? {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            Err(rustix::io::Errno::BUSY) if Instant::now() < deadline => sleep(Duration::from_millis(50)),
            Err(rustix::io::Errno::BUSY) => {
                return Err(ProvisionError::StillUsed { path: point.to_owned(), users: users(point) });
            }
            Err(error) => return Err(io::Error::from(error)).doing("unmount", point),
        }
    }
    Ok(())
}

fn is_mounted(point: &Path) -> Result<bool, ProvisionError> {
    let mounts = mounts::mounts().map_err(io::Error::other).doing("look for a mount on", point)?;
    Ok(mounts.iter().any(|mount| mount.point == point))
}

/// The processes that work in a directory or have one of its files open, for a person.
fn users(point: &Path) -> String {
    let below = |link: PathBuf| fs::read_link(link).is_ok_and(|target| target.starts_with(point));
    let uses = |process: &Path| {
        let mut descriptors = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        below(process.join("cwd")) || descriptors.any(|descriptor| below(descriptor.path()))
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<String> = processes
        .filter(|process| process.file_name().as_encoded_bytes()[0].is_ascii_digit() && uses(&process.path()))
        .map(|process| process.file_name().to_string_lossy().into_owned())
        .collect();
    if pids.is_empty() { "a process out of sight".to_owned() } else { format!("process {}", pids.join(", ")) }
}
