//! The objects that a run has made on the host, found without rumba's help.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::trouble::{Doing, Trouble, run};

/// The name of the mark in the environment of every process of a case.
pub const MARK: &str = "RUMBA_FAULTS_CASE";
/// The root of control groups.
const GROUPS: &str = "/sys/fs/cgroup";

/// The processes that carry a mark. One that has ended and waits to be reaped has no environment.
pub fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(carries).collect()
}

/// The same, once they had time to end.
pub fn marked_after(mark: &str, patience: Duration) -> Vec<u32> {
    let since = Instant::now();
    loop {
        let pids = marked(mark);
        if pids.is_empty() || since.elapsed() > patience {
            return pids;
        }
        sleep(Duration::from_millis(50));
    }
}

/// A process for a person.
pub fn in_words(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("process {pid} ({})", name.trim())
}

/// The pids of a process's children.
pub fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// The process of a run's trial: another rumba with the argument `trial`.
pub fn trial_of(rumba: u32) -> Option<u32> {
    children(rumba).into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).nth(1) == Some(b"trial")
    })
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) -> Result<(), Trouble> {
    kill_process(number(pid)?, signal).doing(&format!("a signal to process {pid}"))
}

/// Sends a signal to a process and those of its group, as a terminal does.
pub fn signal_group(pid: u32, signal: Signal) -> Result<(), Trouble> {
    kill_process_group(number(pid)?, signal).doing(&format!("a signal to the group of process {pid}"))
}

fn number(pid: u32) -> Result<Pid, Trouble> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| Trouble::new("a signal", format!("{pid} is no process")))
}

/// The mount points below a directory, the last mounted one first.
pub fn mounts_below(dir: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    let mut below: Vec<PathBuf> = points.filter(|point| point.starts_with(dir)).collect();
    below.reverse();
    below
}

/// Loop devices over a file below a directory. A removed file is shown with a word after its path.
pub fn devices_below(dir: &Path) -> Vec<String> {
    let blocks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backed = blocks.filter_map(|block| {
        let file = fs::read_to_string(block.path().join("loop/backing_file")).ok()?;
        Path::new(file.trim()).starts_with(dir).then(|| block.file_name().to_string_lossy().into_owned())
    });
    backed.collect()
}

/// Control groups that a process of rumba has made.
pub fn groups_of(rumba: u32) -> Vec<PathBuf> {
    let mut found = Vec::new();
    look_for_groups(Path::new(GROUPS), &format!("rumba-{rumba}-"), &mut found);
    found
}

fn look_for_groups(dir: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        // Version 1 names some controllers twice through links, which do not count as directories here.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        }
        look_for_groups(&entry.path(), prefix, found);
    }
}

/// A file system in memory, unmounted when dropped.
#[derive(Debug)]
pub struct Tmpfs {
    point: PathBuf,
}

impl Tmpfs {
    /// Mounts one with this many MiB on a directory that is made for it.
    pub fn mount(point: &Path, mebibytes: u32) -> Result<Self, Trouble> {
        fs::create_dir_all(point).doing("making a mount point")?;
        let options = format!("size={mebibytes}m,mode=755");
        run("mount", &["-t", "tmpfs", "-o", &options, "rumba-faults", &point.to_string_lossy()])?;
        Ok(Self { point: point.to_owned() })
    }

    /// The mount point.
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Makes it read-only, or writable again.
    pub fn set_read_only(&self, is_read_only: bool) -> Result<(), Trouble> {
        let option = if is_read_only { "remount,ro" } else { "remount,rw" };
        run("mount", &["-o", option, &self.point.to_string_lossy()])
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A failed case may still have open files; the lazy unmount takes effect with the last user.
        let _ = run("umount", &["-l", &self.point.to_string_lossy()]);
    }
}

/// Fills the file system of a directory to its last byte; the caller removes the file later.
pub fn fill(dir: &Path) -> Result<PathBuf, Trouble> {
    use std::io::Write;
    let path = dir.join("ballast");
    let mut ballast = fs::File::create(&path).doing("making the ballast")?;
    for size in [4 << 20, 64 << 10, 4096, 1] {
        let bytes = vec![1; size];
        while ballast.write_all(&bytes).is_ok() {}
    }
    Ok(path)
}

/// Ends the processes of a case.
pub fn end(mark: &str) {
    for pid in marked(mark) {
        // The process may have ended since it was found.
        let _ = signal(pid, Signal::KILL);
    }
    marked_after(mark, Duration::from_secs(5));
}

/// Removes all mounts and attached devices below a directory.
pub fn sweep(dir: &Path) {
    // Remaining ones are found by the next check.
    for point in mounts_below(dir) {
        let _ = run("umount", &["-l", &point.to_string_lossy()]);
    }
    for device in devices_below(dir) {
        let _ = run("losetup", &["-d", &format!("/dev/{device}")]);
    }
}
