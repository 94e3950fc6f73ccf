//! Volumes: a directory that holds a file, the filesystem of a loop device over
//! that file, and what is needed to undo both.
//!
//! ```text
//! NAME/.rumba          the marker: whose it is
//! NAME/backing/image   the file; a tmpfs may be mounted on backing
//! NAME/device.json     the loop device, written before anything throttles it
//! NAME/mounted/        where the filesystem is mounted
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::mount::{UnmountFlags, unmount};
use serde::{Deserialize, Serialize};

use super::data_dir::{lock, make, may_take, remove_empty, unless_gone};
use super::error::{Doing, ProvisionError};
use super::ledger::{Ledger, Registration, Thing};
use super::loop_device::{self, LoopDevice};
use super::marker::{self, Marker};
use super::owner::Owner;
use crate::host::mounts;

/// How long a filesystem may stay in use after the processes on it were ended.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files in version 1's group of block I/O that throttle a device.
pub const THROTTLES: [&str; 4] = [
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
];

/// Where everything of a volume is.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The volume's directory.
    pub path: PathBuf,
    /// The directory of the file, and the mount point of a tmpfs for it.
    pub backing: PathBuf,
    /// The file behind the device.
    pub image: PathBuf,
    /// Where the filesystem is mounted.
    pub mounted: PathBuf,
    device: PathBuf,
}

impl Layout {
    fn of(path: &Path) -> Self {
        let backing = path.join("backing");
        Self {
            path: path.to_owned(),
            image: backing.join("image"),
            backing,
            mounted: path.join("mounted"),
            device: path.join("device.json"),
        }
    }
}

/// The device of a volume, and the groups that throttle it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Throttled {
    /// The device.
    pub device: LoopDevice,
    /// Version 1's groups that hold its throttles; version 2's go with their group.
    pub groups: Vec<PathBuf>,
}

/// The place of a volume of this process. Everything in it is undone when it is dropped.
#[derive(Debug)]
pub struct VolumeDir {
    layout: Layout,
    registration: Registration,
    removed: bool,
}

impl VolumeDir {
    /// Refuses a path that [`VolumeDir::create`] would refuse, and touches nothing.
    ///
    /// # Errors
    /// As [`VolumeDir::create`].
    pub fn check(path: &Path) -> Result<(), ProvisionError> {
        super::DataDir::check(path)
    }

    /// Makes the place, or undoes a volume whose owner has ended and takes its place.
    ///
    /// # Errors
    /// As [`super::DataDir::create`].
    pub fn create(path: &Path, owner: &Owner, ledger: &Ledger) -> Result<Self, ProvisionError> {
        let (path, made) = make(path)?;
        Self::take(&path, owner, ledger, made.clone()).inspect_err(|_| remove_empty(&made))
    }

    fn take(path: &Path, owner: &Owner, ledger: &Ledger, mut made: Vec<PathBuf>) -> Result<Self, ProvisionError> {
        let _lock = lock(path)?;
        let layout = Layout::of(path);
        if let Some(leftover) = may_take(path)? {
            undo(&layout)?;
            made = leftover.made;
        }
        let registration = ledger.register(&Thing::Volume { path: path.to_owned() }, owner)?;
        Marker::new(path.to_owned(), owner.clone(), made).write().doing("write the marker of", path)?;
        // From here on, dropping it undoes it.
        let volume = Self { layout, registration, removed: false };
        for dir in [&volume.layout.backing, &volume.layout.mounted] {
            fs::create_dir(dir).doing("create", dir)?;
        }
        Ok(volume)
    }

    /// Where everything is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Notes what is about to be throttled.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&self, throttled: &Throttled) -> Result<(), ProvisionError> {
        let file = &self.layout.device;
        serde_json::to_vec(throttled).map_err(Into::into).and_then(|json| fs::write(file, json)).doing("write", file)
    }

    /// Undoes everything now, and says when that fails.
    ///
    /// # Errors
    /// What could not be undone; `rumba doctor --clean` finds it later.
    pub fn remove(mut self) -> Result<(), ProvisionError> {
        self.remove_once()
    }

    fn remove_once(&mut self) -> Result<(), ProvisionError> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        match Marker::read(&self.layout.path)? {
            Some(marker) => remove(&self.layout, &marker)?,
            None => remove_unmarked(&self.layout)?,
        }
        self.registration.strike()
    }
}

impl Drop for VolumeDir {
    fn drop(&mut self) {
        // What fails here stays in the ledger and is found by the next `leftovers`.
        let _ = self.remove_once();
    }
}

/// Undoes what a dead process left of a volume.
pub fn clean(path: &Path, owner: &Owner) -> Result<(), ProvisionError> {
    if !path.is_dir() {
        return Ok(());
    }
    let _lock = lock(path)?;
    match Marker::read(path)? {
        Some(marker) if marker.owner == *owner => remove(&Layout::of(path), &marker),
        Some(_) => Ok(()),
        None => remove_unmarked(&Layout::of(path)),
    }
}

/// Whether a volume has lost its marker but not its mounts or device: someone
/// has removed the files that could be removed.
pub fn is_unmarked(path: &Path) -> bool {
    let layout = Layout::of(path);
    let is_there = || {
        let attached = loop_device::attached_to(&layout.image).is_ok_and(|devices| !devices.is_empty());
        attached || [&layout.mounted, &layout.backing].iter().any(|point| is_mounted(point).unwrap_or(false))
    };
    matches!(Marker::read(path), Ok(None)) && is_there()
}

fn remove_unmarked(layout: &Layout) -> Result<(), ProvisionError> {
    if !is_unmarked(&layout.path) {
        return Ok(());
    }
    undo(layout)?;
    remove_empty(std::slice::from_ref(&layout.path));
    Ok(())
}

fn remove(layout: &Layout, marker: &Marker) -> Result<(), ProvisionError> {
    undo(layout)?;
    let file = layout.path.join(marker::NAME);
    unless_gone(fs::remove_file(&file)).doing("remove", &file)?;
    remove_empty(&marker.made);
    Ok(())
}

/// Undoes everything but the directory and its marker, however far it came:
/// the throttle first, so that what is still to be written need not wait for it.
fn undo(layout: &Layout) -> Result<(), ProvisionError> {
    unthrottle(layout)?;
    unmount_all(&layout.mounted)?;
    for device in loop_device::attached_to(&layout.image).doing("look for the loop device of", &layout.image)? {
        device.detach(&layout.image).doing("detach", &device.node)?;
    }
    unmount_all(&layout.backing)?;
    for file in [&layout.image, &layout.device] {
        unless_gone(fs::remove_file(file)).doing("remove", file)?;
    }
    for dir in [&layout.backing, &layout.mounted] {
        unless_gone(fs::remove_dir(dir)).doing("remove", dir)?;
    }
    Ok(())
}

/// Clears the throttles of the volume's device: unless the device has been taken
/// by someone else meanwhile, whose throttles they would be.
fn unthrottle(layout: &Layout) -> Result<(), ProvisionError> {
    let file = &layout.device;
    let noted = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return unthrottle_unnoted(layout),
        noted => noted.doing("read", file)?,
    };
    // Half written: then nothing was throttled yet.
    let Ok(throttled) = serde_json::from_slice(&noted) else { return Ok(()) };
    clear(layout, &throttled)
}

/// The same for a volume whose note is gone: whatever device it has now, in the outermost groups.
fn unthrottle_unnoted(layout: &Layout) -> Result<(), ProvisionError> {
    let mounts = mounts::mounts().map_err(io::Error::other).doing("look for control groups of", &layout.path)?;
    let trees = mounts.into_iter().filter(|mount| mount.filesystem == "cgroup" && mount.has_option("blkio"));
    let groups: Vec<PathBuf> = trees.map(|mount| mount.point).collect();
    for device in loop_device::attached_to(&layout.image).doing("look for the loop device of", &layout.image)? {
        clear(layout, &Throttled { device, groups: groups.clone() })?;
    }
    Ok(())
}

fn clear(layout: &Layout, Throttled { device, groups }: &Throttled) -> Result<(), ProvisionError> {
    let _lock = match device.lock() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock.doing("lock", &device.node)?,
    };
    if device.backing_file().is_some_and(|file| !loop_device::is_same(&file, &layout.image)) {
        return Ok(());
    }
    for file in groups.iter().flat_map(|group| THROTTLES.map(|throttle| group.join(throttle))) {
        unless_gone(fs::write(&file, format!("{} 0", device.number))).doing("clear the throttle in", &file)?;
    }
    Ok(())
}

/// Unmounts whatever is mounted on a directory.
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

/// The processes that work in a directory or have a file of it open, for a person.
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
