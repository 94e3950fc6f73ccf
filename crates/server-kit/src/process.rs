//! A server's process: it ends with the process that started it, whatever ends that.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::error::EngineError;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Resource, Rlimit, Signal};

/// Between two looks at a process that is about to start or to end.
pub const LOOK: Duration = Duration::from_millis(10);

/// The signals by which a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Cleanly, whoever is connected.
    pub stop: Signal,
    /// At once. A server of several processes that share memory has to be told, where one of a single process is killed.
    pub abort: Signal,
}

impl Signals {
    /// Of a server that is one process.
    pub const ONE_PROCESS: Self = Self { stop: Signal::TERM, abort: Signal::KILL };
}

/// How long a server that is told to end at once may take before it is killed.
const ABORT: Duration = Duration::from_secs(5);

/// Makes the kernel send the command's process this signal when the thread that starts it
/// ends. That must be a thread that lives as long as the server is wanted.
pub fn dies_with_us(command: &mut Command, signal: Signal) {
    let parent = std::process::id();
    // A terminal's interrupt is for the trial, which then stops the server.
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            let now = rustix::process::getppid().map(|pid| pid.as_raw_pid() as u32);
            if now != Some(parent) {
                return Err(io::Error::other("the process that started it is gone"));
            }
            // As many files as this user may open: a server asks for no more than it is allowed.
            let limit = rustix::process::getrlimit(Resource::Nofile);
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
            Ok(())
        });
    }
}

/// The process at the other end of a Unix socket, as far as this host tells.
pub fn listening_at(socket: &Path) -> Option<u32> {
    let peer = socket_peercred(UnixStream::connect(socket).ok()?).ok()?;
    Some(peer.pid.as_raw_pid() as u32).filter(|pid| *pid > 1)
}

/// The data directory that a server tells which works in it, if this user can list it and it is not seen that the server
/// works elsewhere.
pub fn data_here(pid: Option<u32>, told: PathBuf) -> Option<PathBuf> {
    let is_here = pid.and_then(|pid| works_in(pid, &told));
    unless_elsewhere(told, is_here)
}

/// The data directory that a server tells which works anywhere, and keeps this file of it open for as long as it runs; if
/// this user can list it and it is not seen that the server has no such file of it open.
pub fn data_held(pid: Option<u32>, told: PathBuf, file: &str) -> Option<PathBuf> {
    let is_here = pid.and_then(|pid| holds_open(pid, &told.join(file)));
    unless_elsewhere(told, is_here)
}

/// The path that a server tells is that of its own view of files: in a container it is another directory than here, and
/// there may be another server's data in the one that is here. One that is not absolute is of where the server works, or
/// did when it began.
fn unless_elsewhere(told: PathBuf, is_here: Option<bool>) -> Option<PathBuf> {
    (told.is_absolute() && is_here != Some(false) && std::fs::read_dir(&told).is_ok()).then_some(told)
}

/// Which file it is, whatever its path.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether a process works in a directory; `None` where that cannot be seen, as of another user's process.
fn works_in(pid: u32, directory: &Path) -> Option<bool> {
    let file = |path: &Path| std::fs::metadata(path).ok().map(|found| identity(&found));
    Some(file(Path::new(&format!("/proc/{pid}/cwd")))? == file(directory)?)
}

/// Whether a process has a file open; `None` where that cannot be seen, as of another user's process.
fn holds_open(pid: u32, file: &Path) -> Option<bool> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let Ok(wanted) = std::fs::metadata(file) else { return Some(false) };
    let mut open = open.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
    Some(open.any(|found| identity(&found) == identity(&wanted)))
}

/// The processes that another has started and that have not ended.
fn children_of(parent: i32) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name, which may hold anything: the state, and the parent.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) == Some(parent)
    };
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// A running server; killed when dropped.
pub struct Process {
    child: Child,
    signals: Signals,
}

impl Process {
    /// Starts it. The calling thread must live as long as the server is wanted.
    ///
    /// # Errors
    /// The system's words.
    pub fn start(command: &mut Command, signals: Signals) -> io::Result<Self> {
        dies_with_us(command, signals.abort);
        Ok(Self { child: command.spawn()?, signals })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, by its code or its signal; `None` while it runs. Does not wait.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks it to end and waits; kills it when it takes longer than `patience`.
    ///
    /// # Errors
    /// When it had to be killed, or ended otherwise than well.
    pub fn stop(&mut self, patience: Duration) -> Result<(), EngineError> {
        let call = "stop of the server";
        if let Some(status) = self.ended() {
            return Err(EngineError::failed(call, format!("it had ended before, with {status}")));
        }
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, self.signals.stop)
            .map_err(|error| EngineError::failed(call, error.to_string()))?;
        let asked = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return if status.success() {
                    Ok(())
                } else {
                    Err(EngineError::failed(call, format!("it ended with {status}")))
                };
            }
            if asked.elapsed() > patience {
                self.kill();
                let words = format!("it had not ended {} s after it was asked to, and was killed", patience.as_secs());
                return Err(EngineError::failed(call, words));
            }
            sleep(LOOK);
        }
    }

    /// Kills it and all processes that it has started, as a crash does: none of them is told, and none writes another
    /// byte on behalf of the others.
    ///
    /// # Errors
    /// That it had ended before.
    pub fn kill_all(&mut self) -> Result<(), EngineError> {
        if let Some(status) = self.ended() {
            return Err(EngineError::failed("kill of the server", format!("it had ended before, with {status}")));
        }
        let pid = Pid::from_child(&self.child);
        // Stopped, it starts no more of them.
        let _ = rustix::process::kill_process(pid, Signal::STOP);
        for child in children_of(pid.as_raw_pid()) {
            // One that has just ended needs no kill.
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        if self.signals.abort != Signal::KILL && self.ended().is_none() {
            let pid = Pid::from_child(&self.child);
            // One that has just ended is waited for below like any other.
            let _ = rustix::process::kill_process(pid, self.signals.abort);
            let asked = Instant::now();
            while asked.elapsed() < ABORT && self.ended().is_none() {
                sleep(LOOK);
            }
        }
        // It may have ended already; either way it is waited for, so that nothing of it is left.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size and the device of another server's data were told, which had the same path on the host.
    #[test]
    fn directory_of_same_path_is_the_servers_only_if_identical() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut server = Command::new("sleep").arg("60").current_dir(data.path()).spawn().unwrap();
        let found = [data.path(), other.path(), Path::new("/nowhere")].map(|path| works_in(server.id(), path));
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(found, [Some(true), Some(false), None]);
        assert_eq!(works_in(u32::MAX, data.path()), None, "there is no such process");
    }

    /// Servers that work elsewhere than in their data, as `mongod` does, are known by a file of it that they keep open.
    #[test]
    fn directory_is_the_servers_if_it_holds_its_file_open() {
        let (data, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for dir in [&data, &other] {
            std::fs::write(dir.path().join("lock"), "").unwrap();
        }
        let lock = std::fs::File::open(data.path().join("lock")).unwrap();
        let mut server = Command::new("sleep").arg("60").stdin(lock).current_dir("/").spawn().unwrap();
        let found = [data.path(), other.path(), Path::new("/nowhere"), Path::new("proc")]
            .map(|path| data_held(Some(server.id()), path.to_owned(), "lock"));
        let by_work = data_here(Some(server.id()), data.path().to_owned());
        server.kill().unwrap();
        server.wait().unwrap();
        assert_eq!(found, [Some(data.path().to_owned()), None, None, None]);
        assert_eq!(by_work, None, "it works elsewhere");
        assert_eq!(holds_open(u32::MAX, &data.path().join("lock")), None, "there is no such process");
        let unseen = |path: &Path| data_held(None, path.to_owned(), "lock");
        assert_eq!(unseen(other.path()), Some(other.path().to_owned()), "as of a process of another user's");
        assert_eq!(unseen(Path::new(".")), None, "it is there, and is where this process works");
    }
}
