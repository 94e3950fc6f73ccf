//! Processes that a trial has left behind: servers that outlived it.
//!
//! A trial's process has the mark of its data directory in its environment, and its children inherit it. No other
//! process of this user has the mark. A process of another user counts only if root runs a server as that user. Its
//! working directory must belong to that user and lie within the data directory, which only root can have set up. The
//! environment alone is no proof. A foreign process is therefore never waited for or ended, even with the same
//! directory or pid.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::{Doing, ProvisionError};
use super::owner::Owner;
use crate::host::parse::field;
use crate::host::processes::{ProcessStat, pids, stat_of};

/// The variable of the mark in the environment of a trial's processes.
pub const VARIABLE: &str = "RUMBA_TRIAL";
/// How long a server may take that the kernel ends with its trial's process.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a killed server may take: it may have gigabytes of memory to free.
const ENDING: Duration = Duration::from_secs(10);
/// The interval between two searches for the processes.
const NAP: Duration = Duration::from_millis(20);

/// The mark of an owner's data directory: unique among all trials of this host and of its containers.
pub fn mark(path: &Path, owner: &Owner) -> String {
    let process = &owner.process;
    let (pid, start, boot) = (process.pid, process.start_ticks, &process.boot_id);
    format!("{boot} {} {pid} {start} {} {}", process.pid_namespace, owner.trial, path.display())
}

/// Waits until no process has the mark any more, and kills those that do not end.
///
/// # Errors
/// When a process cannot be ended.
pub fn end(mark: &str, path: &Path) -> Result<(), ProvisionError> {
    end_within(mark, path, PATIENCE)
}

fn end_within(mark: &str, path: &Path, patience: Duration) -> Result<(), ProvisionError> {
    if all_end(mark, path, patience) {
        return Ok(());
    }
    for pid in marked(mark, path) {
        kill(pid, mark, path).doing("end the server that still works in", path)?;
    }
    if all_end(mark, path, ENDING) {
        return Ok(());
    }
    Err(io::Error::from(io::ErrorKind::TimedOut)).doing("end the server that still works in", path)
}

fn all_end(mark: &str, path: &Path, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    loop {
        let is_late = Instant::now() >= until;
        // After the time limit, ignore processes without a mark: they take long to end and may be foreign.
        if marked(mark, path).is_empty() && (is_late || !(any_is_ending(path) || any_works_unmarked(path))) {
            return true;
        }
        if is_late {
            return false;
        }
        std::thread::sleep(NAP);
    }
}

/// Whether a process without an environment works in the directory, and may belong to the trial. PostgreSQL overwrites
/// the environment, and the mark, with its process titles; its processes end when their parent does.
fn any_works_unmarked(path: &Path) -> bool {
    let is_bare = |pid| !fs::read(format!("/proc/{pid}/environ")).unwrap_or_default().contains(&b'=');
    pids().any(|pid| works_in(pid, path) && may_be_ours(pid, path) && is_bare(pid))
}

/// Whether a process that may belong to the trial is about to end. It loses its environment first, with the mark, then
/// its memory, and at last its files. A volume can be unmounted only after that.
fn any_is_ending(path: &Path) -> bool {
    pids().any(|pid| is_ending(&stat_of(pid)) && may_be_ours(pid, path))
}

/// Whether a line of `/proc/PID/stat` shows a process that the kernel is ending and that is not yet a zombie.
fn is_ending(stat: &str) -> bool {
    const ENDING: u64 = 0x4;
    let Some(ProcessStat { state, flags, threads, .. }) = ProcessStat::parse(stat) else { return false };
    flags & ENDING != 0 && state != 'X' && (state != 'Z' || threads > 1)
}

/// The processes with the mark. A zombie has no environment.
fn marked(mark: &str, path: &Path) -> Vec<u32> {
    pids().filter(|pid| carries(*pid, mark, path)).collect()
}

/// Whether a process that may belong to the trial has the mark. Only root can read other users' environments, and these
/// users could copy the mark, because it is no secret.
fn carries(pid: u32, mark: &str, path: &Path) -> bool {
    let wanted = format!("{VARIABLE}={mark}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()) && may_be_ours(pid, path)
}

/// Whether this user has started a process, or root a server under another user.
fn may_be_ours(pid: u32, path: &Path) -> bool {
    let real = real_user(pid);
    real == Some(rustix::process::getuid().as_raw())
        || works_in(pid, path) && fs::metadata(cwd(pid)).is_ok_and(|place| Some(place.uid()) == real)
}

/// The real user of a process, which stays the same when it runs with other rights.
fn real_user(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "Uid")?.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether the kernel reports a process's working directory within this one.
fn works_in(pid: u32, path: &Path) -> bool {
    fs::read_link(cwd(pid)).is_ok_and(|place| place.starts_with(path))
}

fn cwd(pid: u32) -> String {
    format!("/proc/{pid}/cwd")
}

/// Kills a process after checking its mark again. The descriptor pins the process, while a pid may be reused at any
/// moment.
fn kill(pid: u32, mark: &str, path: &Path) -> io::Result<()> {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let process = match pidfd_open(number, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        process => process?,
    };
    if !carries(pid, mark, path) {
        return Ok(());
    }
    match pidfd_send_signal(&process, Signal::KILL) {
        Err(rustix::io::Errno::SRCH) => Ok(()),
        sent => Ok(sent?),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(mark: &str) -> Child {
        Command::new("sleep").arg("1000").env(VARIABLE, mark).spawn().unwrap()
    }

    /// A killed server frees gigabytes of memory, and holds its files until that is done.
    #[test]
    fn ending_process_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let own = mark(dir.path(), &Owner::this_process("test", 1).unwrap());
        for _ in 0..5 {
            // dd reads without end into a buffer of this size.
            let mut large = Command::new("dd");
            large.args(["if=/dev/zero", "of=/dev/null", "bs=400M"]).stderr(Stdio::null()).env(VARIABLE, &own);
            let mut large = large.spawn().unwrap();
            let resident = || {
                let status = fs::read_to_string(format!("/proc/{}/status", large.id())).unwrap();
                field(&status, "VmRSS").and_then(|kb| kb.split_whitespace().next()?.parse().ok()).unwrap_or(0_u64)
            };
            while resident() < 350_000 {
                std::thread::sleep(NAP);
            }
            large.kill().unwrap();
            while carries(large.id(), &own, dir.path()) {
                std::hint::spin_loop();
            }
            end(&own, dir.path()).unwrap();
            let stat = fs::read_to_string(format!("/proc/{}/stat", large.id())).unwrap();
            assert!(stat.contains(") Z "), "{stat}");
            large.wait().unwrap();
        }
    }

    #[test]
    fn ending_process_is_distinguished_from_running_and_ended() {
        let stat = |state: &str, flags: u32, threads: u32| {
            format!("7 (a) b) {state} 1 7 7 0 -1 {flags} 0 0 0 0 1 1 0 0 20 0 {threads} 0 99 0 0")
        };
        assert!(!is_ending(&stat("S", 0x40_0100, 3)));
        assert!(is_ending(&stat("R", 0x40_0104, 1)) && is_ending(&stat("D", 0x4, 30)));
        assert!(!is_ending(&stat("Z", 0x4, 1)) && is_ending(&stat("Z", 0x4, 2)), "its other threads are not over");
        assert!(!is_ending(&stat("X", 0x4, 1)) && !is_ending(""));
    }

    #[test]
    fn leftover_server_is_ended_and_other_processes_are_spared() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Owner::this_process("test", 1).unwrap();
        let (own, other) = (mark(dir.path(), &owner), mark(&dir.path().join("other"), &owner));
        let (mut left, mut foreign) = (sleeper(&own), sleeper(&other));
        let mut bystander = Command::new("sleep").arg("1000").current_dir(dir.path()).spawn().unwrap();
        while !carries(left.id(), &own, dir.path()) || !carries(foreign.id(), &other, dir.path()) {
            std::thread::sleep(NAP);
        }
        end_within(&own, dir.path(), Duration::ZERO).unwrap();
        assert!(!left.wait().unwrap().success());
        for child in [&mut foreign, &mut bystander] {
            assert!(child.try_wait().unwrap().is_none(), "a process that is not this trial's was ended");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn owner_tag_distinguishes_owners_of_the_same_path() {
        let owner = Owner::this_process("test", 1).unwrap();
        let mut elsewhere = owner.clone();
        elsewhere.process.pid_namespace = "pid:[1]".to_owned();
        assert_ne!(mark(Path::new("/data"), &owner), mark(Path::new("/data"), &elsewhere));
    }
}
