//! The control group that a trial's processes run in.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rumba_results::metric::Metric;

use super::owned;
use super::tree::{self, Version};
use crate::host::parse;
use crate::limits::error::{LimitError, MEMORY, refused};
use crate::provision::{Doing, Owner, Registration, ResourceRegistry};

/// Memory figures of a control group.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryReading {
    /// The most bytes it ever held, page cache included.
    pub peak_bytes: Metric,
    /// Bytes of the processes themselves now: anonymous and shared memory.
    pub process_bytes: Metric,
    /// Bytes of page cache now.
    pub page_cache_bytes: Metric,
    /// Its processes that the kernel has killed for lack of memory.
    pub oom_kills: Metric,
}

/// Memory that the group's processes share, such as a server's cache: the largest share that one process maps. The
/// group's own figure also includes the files of a volume in memory.
fn shared_bytes(group: &Path) -> f64 {
    let listed = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // A process that has just ended counts as sharing nothing.
    let status = |pid: &str| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let shared = listed.lines().filter_map(|pid| parse::meminfo_bytes(&status(pid), "RssShmem"));
    shared.max().unwrap_or_default() as f64
}

/// How close a memory group is to its limit. Page cache is included, so a full group alone is no sign of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPressure {
    /// Bytes used now, page cache included.
    pub held_bytes: u64,
    pub limit_bytes: u64,
}

/// A group for a trial's processes and their descendants. It is removed when dropped.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    version: Version,
    registration: Registration,
}

impl Group {
    /// Makes a group with these controllers below an existing one, under a name that only this process uses.
    ///
    /// # Errors
    /// When the group cannot be listed or made, or a controller cannot be enabled for it.
    pub fn create(
        version: Version,
        parent: &Path,
        controllers: &[&str],
        owner: &Owner,
        ledger: &ResourceRegistry,
    ) -> Result<Self, LimitError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if version == Version::Two {
            hand_down(parent, controllers)?;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{}{number}", owned::prefix(owner)));
        let mut registration = ledger.register(&owned::KIND, &path, owner)?;
        if let Err(error) = fs::create_dir(&path).doing("make the control group", &path) {
            registration.undo(|| Ok(()))?;
            return Err(error.into());
        }
        Ok(Self { path, version, registration })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Limits its memory. Swap is limited too where the kernel accounts for it. Returns how, for the conditions.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn limit_memory(&self, bytes: u64) -> Result<String, LimitError> {
        let (file, swap_file, swap, version) = match self.version {
            // Memory and swap together may be no more than memory alone.
            Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes, 1),
            Version::Two => ("memory.max", "memory.swap.max", 0, 2),
        };
        self.set(file, bytes)?;
        let swap_words = if self.path().join(swap_file).exists() {
            self.set(swap_file, swap)?;
            "no swap"
        } else {
            "swap not limited: this kernel does not account for it"
        };
        Ok(format!("control group version {version} ({file}), {swap_words}"))
    }

    /// Removes the memory limit.
    ///
    /// # Errors
    /// A file that could not be written.
    pub fn lift_memory(&self) -> Result<(), LimitError> {
        // In version 1, raise memory and swap together first, because that limit may not be below the memory limit.
        let files: [(&str, &dyn Display); 2] = match self.version {
            Version::One => [("memory.memsw.limit_in_bytes", &-1), ("memory.limit_in_bytes", &-1)],
            Version::Two => [("memory.swap.max", &"max"), ("memory.max", &"max")],
        };
        files
            .into_iter()
            .filter(|(file, _)| self.path().join(file).exists())
            .try_for_each(|(file, all)| self.set(file, all))
    }

    fn set(&self, file: &str, value: impl Display) -> Result<(), LimitError> {
        let path = self.path().join(file);
        fs::write(&path, value.to_string()).map_err(refused(MEMORY, format!("write {value} to {}", path.display())))
    }

    /// Lets a command run in this group from its first instruction.
    ///
    /// # Errors
    /// When the group cannot be opened.
    pub fn enter(&self, command: &mut Command) -> io::Result<()> {
        let processes = OpenOptions::new().write(true).open(self.path().join("cgroup.procs"))?;
        let enter = move || {
            // SAFETY: write(2) is safe after a fork, the descriptor is this closure's own and the text is constant.
            // Zero is the process that writes.
            let written = unsafe { libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            if written == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// Its memory figures now.
    pub fn reading(&self) -> MemoryReading {
        let path = self.path();
        match self.version {
            Version::One => MemoryReading {
                peak_bytes: number(&path.join("memory.max_usage_in_bytes")),
                process_bytes: keyed(&path.join("memory.stat"), "total_rss").map(|bytes| bytes + shared_bytes(path)),
                page_cache_bytes: keyed(&path.join("memory.stat"), "total_cache"),
                oom_kills: keyed(&path.join("memory.oom_control"), "oom_kill"),
            },
            Version::Two => MemoryReading {
                peak_bytes: number(&path.join("memory.peak")),
                process_bytes: keyed(&path.join("memory.stat"), "anon").map(|bytes| bytes + shared_bytes(path)),
                page_cache_bytes: keyed(&path.join("memory.stat"), "file"),
                oom_kills: keyed(&path.join("memory.events"), "oom_kill"),
            },
        }
    }

    /// Bytes used now; `None` if unreadable.
    pub fn held_bytes(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.usage_in_bytes",
            Version::Two => "memory.current",
        };
        number(&self.path().join(file)).value().map(|bytes| bytes as u64)
    }

    /// Ends the processes that are still in it.
    ///
    /// # Errors
    /// When a process does not end.
    pub fn vacate(&self) -> Result<(), LimitError> {
        Ok(owned::vacate(self.path())?)
    }

    /// Removes the group now, and returns the error if that fails.
    ///
    /// # Errors
    /// A resource that could not be undone; `rumba doctor --clean` finds it later.
    pub fn remove(mut self) -> Result<(), LimitError> {
        if self.version == Version::One {
            // Page cache left in a removed group would keep kernel memory of it alive. The write may fail while data is
            // still being written, which is harmless.
            let _ = fs::write(self.path().join("memory.force_empty"), "0");
        }
        Ok(self.registration.undo(|| owned::remove(&self.path))?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A resource that cannot be removed stays in the ledger for the next `leftovers`.
        let _ = self.registration.undo(|| owned::remove(&self.path));
    }
}

/// Enables these controllers for groups below. They stay enabled, because another run's groups may need them, and they
/// cost nothing.
fn hand_down(parent: &Path, controllers: &[&str]) -> Result<(), LimitError> {
    let file = parent.join("cgroup.subtree_control");
    let handed = tree::words(&file);
    for controller in controllers.iter().filter(|controller| !handed.iter().any(|word| word == *controller)) {
        fs::write(&file, format!("+{controller}"))
            .map_err(refused(MEMORY, format!("hand the controller {controller} down from {}", parent.display())))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn number(file: &Path) -> Metric {
    Metric::from(
        read(file).and_then(|text| text.trim().parse().map_err(|_| format!("{} holds no number", file.display()))),
    )
}

/// The value of a line such as `oom_kill 3`.
fn keyed(file: &Path, key: &str) -> Metric {
    Metric::from(read(file).and_then(|text| {
        let figure = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
        text.lines().find_map(figure).ok_or_else(|| format!("{} has no {key}", file.display()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_two_hands_its_controller_down_and_forbids_swap() {
        // Plain files stand in for the kernel's: the test checks the text that is written.
        let dir = tempfile::tempdir().unwrap();
        let (parent, ledger) = (dir.path().join("slice"), ResourceRegistry::at(dir.path()).unwrap());
        fs::create_dir(&parent).unwrap();
        fs::write(parent.join("cgroup.subtree_control"), "io").unwrap();
        let owner = Owner::this_process("test", 1).unwrap();
        let group = Group::create(Version::Two, &parent, &["io", "memory"], &owner, &ledger).unwrap();
        assert_eq!(fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap(), "+memory");
        fs::write(group.path().join("memory.swap.max"), "max").unwrap();
        let how = group.limit_memory(1 << 30).unwrap();
        assert_eq!(how, "control group version 2 (memory.max), no swap");
        assert_eq!(fs::read_to_string(group.path().join("memory.max")).unwrap(), "1073741824");
        assert_eq!(fs::read_to_string(group.path().join("memory.swap.max")).unwrap(), "0");
        group.lift_memory().unwrap();
        for file in ["memory.max", "memory.swap.max"] {
            assert_eq!(fs::read_to_string(group.path().join(file)).unwrap(), "max");
            fs::remove_file(group.path().join(file)).unwrap();
        }
        group.remove().unwrap();
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 1);
    }

    #[test]
    fn figure_is_found_by_its_whole_name_only() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("memory.events");
        fs::write(&file, "oom 5\noom_kill 2\noom_group_kill 7\n").unwrap();
        assert_eq!(keyed(&file, "oom_kill"), Metric::Value(2.0));
        assert!(keyed(&file, "low").reason().unwrap().contains("has no low"));
        assert!(number(&dir.path().join("memory.peak")).reason().unwrap().contains("No such file"));
    }
}
