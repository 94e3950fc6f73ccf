//! Loop devices: block devices over files. A device is found by the file behind it, because its number is known only
//! once it is attached. The kernel shows the file's path, but two containers may have files with one path, and a file in
//! a container's own tmpfs has no path outside. Each device therefore has a name that identifies its file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::host::block::DeviceFacts;
use crate::host::diskstats::DeviceNumber;

/// The requests of ioctl(2), from `linux/loop.h`.
const LOOP_SET_FD: libc::c_ulong = 0x4C00;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_SET_STATUS64: libc::c_ulong = 0x4C04;
const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_SET_DIRECT_IO: libc::c_ulong = 0x4C08;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;

/// The driver's number, from `linux/major.h`.
const LOOP_MAJOR: u32 = 7;
/// The device that allocates free loop devices.
pub const CONTROL: &str = "/dev/loop-control";
/// The kernel's default read-ahead: `VM_READAHEAD_PAGES`.
const KERNEL_READ_AHEAD_KIB: u64 = 128;
/// How long a device may take to release its file.
const PATIENCE: Duration = Duration::from_secs(10);

/// The prefix of names that rumba gives.
const NAMED: &str = "rumba ";

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl Info {
    /// A whole file, under a name.
    fn named(name: &str) -> Self {
        // SAFETY: it holds only numbers, for which all-zero bits are valid.
        let mut info: Self = unsafe { std::mem::zeroed() };
        info.file_name.iter_mut().take(63).zip(name.bytes()).for_each(|(place, byte)| *place = byte);
        info
    }
}

/// `struct loop_config` of `linux/loop.h`.
#[repr(C)]
struct Config {
    fd: i32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDevice {
    /// Its node: `/dev/loop3`.
    pub node: PathBuf,
    /// Its number as the kernel's files write it: `7:3`.
    pub number: String,
    /// The name that rumba gave it; empty if it has none, or was found by the path of its file.
    #[serde(default)]
    pub name: String,
}

impl LoopDevice {
    fn of_node(node: &Path) -> io::Result<Self> {
        let number = DeviceNumber::from_stat(fs::metadata(node)?.rdev());
        Ok(Self { node: node.to_owned(), number: number.to_string(), name: String::new() })
    }

    /// Whether node and number belong to one loop device of this host; `None` if the node is gone. Use it for names
    /// that were read from a file rather than seen on this host.
    ///
    /// # Errors
    /// When its node cannot be examined.
    pub fn is_genuine(&self) -> io::Result<Option<bool>> {
        let index = self.node.to_str().and_then(|node| node.strip_prefix("/dev/loop"));
        if !index.is_some_and(|index| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit())) {
            return Ok(Some(false));
        }
        let node = match fs::symlink_metadata(&self.node) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            node => node?,
        };
        let number = DeviceNumber::from_stat(node.rdev());
        let is_loop = node.file_type().is_block_device() && number.major == LOOP_MAJOR;
        Ok(Some(is_loop && number.to_string() == self.number))
    }

    /// Attaches a file to a free device. No descriptor of the device stays open.
    pub fn attach(image: &File) -> io::Result<Self> {
        let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        loop {
            let index = ioctl(&control, LOOP_CTL_GET_FREE, 0)?;
            let node = PathBuf::from(format!("/dev/loop{index}"));
            let device = OpenOptions::new().read(true).write(true).open(&node)?;
            match configure(&device, image, &name_of(&image.metadata()?)) {
                Ok(()) => return Ok(Self { name: given_name(&device).unwrap_or_default(), ..Self::of_node(&node)? }),
                // Another process was faster.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Requests direct I/O to the file, without the page cache; returns whether the device does so.
    pub fn go_direct(&self) -> bool {
        File::open(&self.node).and_then(|device| ioctl(&device, LOOP_SET_DIRECT_IO, 1)).is_ok()
    }

    /// Sets how the kernel treats the device. A device inherits the rotational flag of the disk below its file. Some
    /// kernels read 2.5 MB ahead on a device with that flag, so defaults depend on the host and differ between
    /// backings. Settings that already hold are not written.
    pub fn set_queue(&self, rotational: Option<bool>, read_ahead_bytes: Option<u64>) -> io::Result<()> {
        // This order, because a change of the first may reset the second.
        let settings =
            [("rotational", rotational.map(u64::from)), ("read_ahead_kb", read_ahead_bytes.map(|bytes| bytes / 1024))];
        for (name, value) in settings {
            let file = self.sysfs().join("queue").join(name);
            let Some(value) = value.map(|value| value.to_string()) else { continue };
            if fs::read_to_string(&file)?.trim() != value {
                fs::write(&file, &value)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))?;
            }
        }
        Ok(())
    }

    /// The kernel's current view of the device.
    pub fn facts(&self) -> DeviceFacts {
        DeviceFacts::of_sysfs(&self.sysfs())
    }

    fn sysfs(&self) -> PathBuf {
        PathBuf::from(format!("/sys/dev/block/{}", self.number))
    }

    /// The file behind the device now; `None` when it is free.
    pub fn backing_file(&self) -> Option<PathBuf> {
        backing_file(&self.sysfs())
    }

    /// Whether this file is behind the device, even after it was deleted. The device's name decides if it is known, then
    /// the path and the file's own name, and the path alone for a device without a name from rumba.
    pub fn is_over(&self, image: &Path) -> bool {
        // A container that cannot open the device's node did not attach the device.
        let given = || File::open(&self.node).and_then(|device| given_name(&device));
        if !self.name.is_empty() {
            return given().is_ok_and(|name| name == self.name);
        }
        let Some(shown) = self.backing_file().filter(|shown| is_same(shown, image)) else { return false };
        let name = match given() {
            Ok(name) if name.is_empty() => return true,
            Ok(name) => name,
            Err(_) => return false,
        };
        match fs::metadata(image) {
            Ok(metadata) => name == name_of(&metadata),
            // The device may belong to another container, unless the kernel reports that it is gone.
            Err(error) => error.kind() != io::ErrorKind::NotFound || shown != image,
        }
    }

    /// Excludes other rumba processes that examine this device, until it is dropped.
    pub fn lock(&self) -> io::Result<File> {
        let device = File::open(&self.node)?;
        flock(&device, FlockOperation::LockExclusive)?;
        Ok(device)
    }

    /// Detaches the device from this file, and waits until the device has released it.
    pub fn detach(&self, image: &Path) -> io::Result<()> {
        if self.is_over(image) {
            // Restore defaults for the next user, because some kernels do not reset the read-ahead at an attachment. A
            // setting that cannot be written now was not changed either.
            let _ = self.set_queue(Some(false), Some(KERNEL_READ_AHEAD_KIB * 1024));
        }
        let deadline = Instant::now() + PATIENCE;
        while self.is_over(image) {
            let device = File::open(&self.node)?;
            match ioctl(&device, LOOP_CLR_FD, 0) {
                Ok(_) => {}
                // Already detached: the device goes away when its last user closes it.
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
                Err(error) if error.raw_os_error() != Some(libc::EBUSY) => return Err(error),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => {}
            }
            drop(device);
            if Instant::now() > deadline {
                return Err(io::Error::from_raw_os_error(libc::EBUSY));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

pub fn attached_to(image: &Path) -> io::Result<Vec<LoopDevice>> {
    let mut devices = Vec::new();
    for block in fs::read_dir("/sys/block")? {
        let block = block?;
        if backing_file(&block.path()).is_some_and(|file| is_same(&file, image)) {
            let device = match LoopDevice::of_node(&Path::new("/dev").join(block.file_name())) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                device => device?,
            };
            devices.extend(Some(device).filter(|device| device.is_over(image)));
        }
    }
    Ok(devices)
}

fn backing_file(block: &Path) -> Option<PathBuf> {
    let path = fs::read_to_string(block.join("loop/backing_file")).ok()?;
    let path = path.trim_end_matches('\n');
    (!path.is_empty()).then(|| path.into())
}

/// The name of a device over a file: unique, and equal wherever the file is seen from. Without a birth time, the number
/// of the filesystem distinguishes files, because each file is the first one of a separate filesystem.
fn name_of(image: &fs::Metadata) -> String {
    let born = image.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let which = born.map_or_else(|| format!("on {}", image.dev()), |born| born.as_nanos().to_string());
    format!("{NAMED}{} {which}", image.ino())
}

/// The name that rumba gave an attached device; empty if another program named it.
fn given_name(device: &File) -> io::Result<String> {
    let named = info(device)?.file_name;
    let name: String = named.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
    Ok(if name.starts_with(NAMED) { name } else { String::new() })
}

/// Attaches a file under a name, atomically where the kernel can (5.8 and later): a device without a name is known by
/// its path.
fn configure(device: &File, image: &File, name: &str) -> io::Result<()> {
    let mut config = Config { fd: image.as_raw_fd(), block_size: 0, info: Info::named(name), reserved: [0; 8] };
    // SAFETY: the request reads a `loop_config`, which this is, and both descriptors are open.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw mut config) } >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EBUSY) {
        return Err(error);
    }
    ioctl(device, LOOP_SET_FD, image.as_raw_fd().into())?;
    // SAFETY: the request reads a `loop_info64`, which this is, and the descriptor is open.
    let _ = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_STATUS64 as _, &raw mut config.info) };
    Ok(())
}

fn info(device: &File) -> io::Result<Info> {
    let mut info = MaybeUninit::<Info>::zeroed();
    // SAFETY: the request writes a `loop_info64`, which this has room for, and the descriptor is open.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, info.as_mut_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it holds only numbers, for which all-zero bits are valid, and the kernel has filled it.
    Ok(unsafe { info.assume_init() })
}

/// Whether a path shown by sysfs is this path, even after the file was deleted.
fn is_same(shown: &Path, image: &Path) -> bool {
    let shown = shown.to_string_lossy();
    Path::new(shown.strip_suffix(" (deleted)").unwrap_or(&shown)) == image
}

fn ioctl(file: &File, request: libc::c_ulong, argument: libc::c_long) -> io::Result<i32> {
    // SAFETY: these requests take a number, not a pointer, and the descriptor is open.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
