//! Control groups by their names and paths: whose they are, and how they are removed.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::provision::{Doing, Kind, Owner, ProvisionError};

/// How long killed processes may take to leave their group.
const PATIENCE: Duration = Duration::from_secs(10);

/// The filesystems of control groups, by their numbers in `linux/magic.h`.
const CGROUP: u64 = 0x0027_e0eb;
const CGROUP2: u64 = 0x6367_7270;

/// A control group with the processes in it, as the ledger lists it.
pub const KIND: Kind =
    Kind { name: "control-group", words: "control group", is_owned: |path, owner| Ok(is_owned(path, owner)), clean };

/// The prefix of an owner's group names: no other process has its pid and start time.
pub fn prefix(owner: &Owner) -> String {
    format!("rumba-{}-{}-", owner.process.pid, owner.process.start_ticks)
}

/// Opens a control group without following a link; `None` if there is none. The directory must be in the kernel's own
/// filesystem. In any other, a user could have written the list of processes.
pub fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        dir => dir?,
    };
    let filesystem = rustix::fs::fstatfs(&dir)?.f_type as u64;
    Ok([CGROUP, CGROUP2].contains(&filesystem).then_some(dir))
}

/// Whether a group exists and belongs to this owner.
fn is_owned(path: &Path, owner: &Owner) -> bool {
    let named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix(owner)));
    named && open(path).is_ok_and(|group| group.is_some())
}

/// Removes the group of an owner that has ended, and ends the processes in it.
fn clean(path: &Path, owner: &Owner) -> Result<(), ProvisionError> {
    if is_owned(path, owner) { remove(path) } else { Ok(()) }
}

/// Ends the processes of a group and removes it.
///
/// # Errors
/// When a process does not end, or the group cannot be removed.
pub fn remove(path: &Path) -> Result<(), ProvisionError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        // Repeat this, because a process whose parent was killed during a fork enters its group a moment later.
        vacate(path)?;
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A process that has ended leaves its group a moment later.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < deadline => {
                sleep(Duration::from_millis(20));
            }
            result => return result.doing("remove the control group", path),
        }
    }
}

/// Ends the processes that are still in a group.
///
/// # Errors
/// When a process does not end.
pub fn vacate(path: &Path) -> Result<(), ProvisionError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let members = members(path).doing("read the processes of", path)?;
        if members.is_empty() {
            return Ok(());
        }
        for pid in members {
            kill_member(path, pid);
        }
        if Instant::now() > deadline {
            return Err(io::Error::from_raw_os_error(libc::EBUSY)).doing("end all processes of", path);
        }
        sleep(Duration::from_millis(20));
    }
}

/// Kills a process that is certainly a member. The descriptor pins the process while the list is read again, so that a
/// reused pid is not mistaken for it.
fn kill_member(path: &Path, pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    if pid == rustix::process::getpid() {
        return;
    }
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if members(path).is_ok_and(|members| members.contains(&pid.as_raw_pid())) {
        // The process may have ended meanwhile, which is as good.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

fn members(path: &Path) -> io::Result<Vec<i32>> {
    match fs::read_to_string(path.join("cgroup.procs")) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
