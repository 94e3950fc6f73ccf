//! The owner of a managed resource, and whether that process still lives.

use std::fmt;
use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::host::processes::ProcessStat;

/// The trial number of an owner without a trial: a server's keeper. Trials count from 1.
pub const NO_TRIAL: u32 = 0;

/// The owner of a managed resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    #[serde(flatten)]
    pub process: ProcessId,
    /// The experiment it ran, or the name of the server that it keeps.
    pub experiment: String,
    /// The trial of the experiment, from 1; [`NO_TRIAL`] for a server's keeper.
    pub trial: u32,
    /// When the resource was made, RFC 3339.
    pub created: String,
}

impl Owner {
    /// This process, running a trial of an experiment.
    ///
    /// # Errors
    /// When `/proc` does not identify this process.
    pub fn this_process(experiment: impl Into<String>, trial: u32) -> io::Result<Self> {
        Ok(Self {
            process: ProcessId::this()?,
            experiment: experiment.into(),
            trial,
            created: jiff::Timestamp::now().to_string(),
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, experiment, trial, created } = self;
        match *trial {
            NO_TRIAL => write!(f, "process {} (keeper of the server {experiment}, {created})", process.pid),
            trial => write!(f, "process {} (trial {trial} of {experiment}, {created})", process.pid),
        }
    }
}

/// A process, distinguishable from any later one with the same pid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub pid: u32,
    /// When it started, in clock ticks since the boot (field 22 of `/proc/PID/stat`). Each time namespace shifts it.
    pub start_ticks: u64,
    pub boot_id: String,
    /// The namespace of its pid: containers have separate ones.
    pub pid_namespace: String,
    /// The time namespace of its start ticks. Empty where the kernel has none, and in entries of an earlier version of
    /// rumba.
    #[serde(default)]
    pub time_namespace: String,
    /// The host on which it ran. It distinguishes another host's boot from an earlier boot of this host, because hosts
    /// may share a disk. Empty in entries of an earlier version of rumba.
    #[serde(default)]
    pub host: String,
}

/// Whether a process lives, as far as rumba can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Lives,
    Ended,
    /// It ran on another host, or in this boot in another namespace of pids or of time.
    OutOfSight,
}

impl ProcessId {
    /// This process.
    ///
    /// # Errors
    /// When `/proc` does not identify it.
    pub fn this() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// The process that has this pid now.
    ///
    /// # Errors
    /// When there is none, or `/proc` does not identify it.
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self {
            pid,
            start_ticks: start_ticks(pid)?,
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            pid_namespace: fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned(),
            time_namespace: time_namespace(),
            host: host(),
        })
    }

    /// Whether it still lives.
    pub fn life(&self) -> Life {
        match Self::this() {
            Ok(this) if this.boot_id != self.boot_id => {
                let is_of_this_host = self.host.is_empty() || this.host == self.host;
                if is_of_this_host { Life::Ended } else { Life::OutOfSight }
            }
            Ok(this) if this.pid_namespace == self.pid_namespace => match start_ticks(self.pid) {
                Ok(ticks) if ticks == self.start_ticks => Life::Lives,
                Ok(_) if self.time_namespace.is_empty() || self.time_namespace == this.time_namespace => Life::Ended,
                Err(error) if is_no_process(&error) => Life::Ended,
                _ => Life::OutOfSight,
            },
            _ => Life::OutOfSight,
        }
    }
}

fn time_namespace() -> String {
    fs::read_link("/proc/self/ns/time").unwrap_or_default().to_string_lossy().into_owned()
}

/// A short name of this host, derived from its machine-id(5), which must not be published as it is; otherwise from its
/// hostname.
fn host() -> String {
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let name = match id.trim() {
        "" | "uninitialized" => rustix::system::uname().nodename().to_string_lossy().into_owned(),
        id => id.to_owned(),
    };
    format!("{:08x}", crc32fast::hash(name.as_bytes()))
}

/// The error of a `/proc/PID` that does not exist, or disappears during the reading.
fn is_no_process(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

fn start_ticks(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let stat = ProcessStat::parse(&stat)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not as proc(5) describes it"))?;
    if stat.has_ended() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(stat.start_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_lives_until_it_has_ended_even_unwaited_for() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        assert_eq!(id.life(), Life::Lives);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(id.life(), Life::Ended);
        assert_eq!(ProcessId::this().unwrap().life(), Life::Lives);
    }

    #[test]
    fn a_later_process_with_the_same_number_is_another() {
        let this = ProcessId::this().unwrap();
        let earlier = ProcessId { start_ticks: this.start_ticks - 1, ..this.clone() };
        assert_eq!(earlier.life(), Life::Ended);
        let shifted = ProcessId { time_namespace: "time:[1]".to_owned(), ..earlier.clone() };
        assert_eq!(shifted.life(), Life::OutOfSight, "its ticks count from another moment");
        let of_old = ProcessId { time_namespace: String::new(), ..earlier };
        assert_eq!(of_old.life(), Life::Ended, "versions that did not write the time namespace");
        let earlier_boot = ProcessId { boot_id: "an earlier one".to_owned(), ..this.clone() };
        assert_eq!(earlier_boot.life(), Life::Ended);
        let elsewhere = ProcessId { host: "another".to_owned(), ..earlier_boot.clone() };
        assert_eq!(elsewhere.life(), Life::OutOfSight, "a process of another host of a shared disk may still run");
        let of_old = ProcessId { host: String::new(), ..earlier_boot };
        assert_eq!(of_old.life(), Life::Ended, "versions that did not write the host");
        let renamed = ProcessId { host: "another".to_owned(), ..this.clone() };
        assert_eq!(renamed.life(), Life::Lives, "a boot is one host's");
        let elsewhere = ProcessId { pid_namespace: "pid:[1]".to_owned(), ..this };
        assert_eq!(elsewhere.life(), Life::OutOfSight, "a process of another container may still run");
    }
}
