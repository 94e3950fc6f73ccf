//! A server's process, which ends with the process that started it, even after a kill.

use std::fs::Metadata;
use std::io;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::error::{EngineError, Result};
use rumba_transport::Address;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Resource, Rlimit, Signal};

/// Pause between two checks of a process that is starting or ending.
pub const LOOK: Duration = Duration::from_millis(10);

/// The signals that end a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    /// Clean shutdown, even with open connections.
    pub stop: Signal,
    /// Immediate end. A server of several processes with shared memory needs a signal that it can handle; a single
    /// process is killed.
    pub abort: Signal,
}

impl Signals {
    /// The signals for a server with a single process.
    pub const ONE_PROCESS: Self = Self { stop: Signal::TERM, abort: Signal::KILL };
}

/// How long a server may take to end immediately before it is killed.
const ABORT: Duration = Duration::from_secs(5);

/// Makes the kernel send this signal to the command's process when the thread that starts it ends. That thread must
/// therefore live as long as the server is needed.
pub fn dies_with_us(command: &mut Command, signal: Signal) {
    let parent = std::process::id();
    // A terminal's interrupt must reach only the trial, which then stops the server.
    command.process_group(0);
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            let now = rustix::process::getppid().map(|pid| pid.as_raw_pid() as u32);
            if now != Some(parent) {
                return Err(io::Error::other("the process that started it is gone"));
            }
            // Raise the limit of open files to the maximum, because servers adapt to the soft limit.
            let limit = rustix::process::getrlimit(Resource::Nofile);
            rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
            Ok(())
        });
    }
}

/// The process that serves this address of a running server, and the server's data directory from its report, as far as
/// this user can determine them.
///
/// Another process may listen on a loopback port for a server elsewhere, such as a container's proxy. `is_server` decides
/// whether it is the server itself.
pub fn place_of(
    address: &Address,
    reported: Option<PathBuf>,
    is_server: impl Fn(u32) -> bool,
) -> (Option<u32>, Option<PathBuf>) {
    let pid = serving(address);
    if matches!(address, Address::Tcp { .. }) && !pid.is_some_and(is_server) {
        return (None, None);
    }
    (pid, reported.and_then(|data| data_here(pid, data)))
}

/// The process that accepts connections at an address of this host, if this user can determine it. For a TCP address,
/// the user must have the right to see the process's open files.
pub fn serving(address: &Address) -> Option<u32> {
    match address {
        Address::Socket(path) => listening_at(path),
        Address::Tcp { host, port } => {
            let mut addresses = (host.as_str(), *port).to_socket_addrs().ok()?;
            addresses.all(|address| is_of_this_host(address.ip())).then(|| listening_on(*port)).flatten()
        }
    }
}

/// Whether an address is this host's: only such an address can be bound.
fn is_of_this_host(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// The only process that listens on a port of this host, without the children that inherited its socket.
fn listening_on(port: u16) -> Option<u32> {
    let sockets: Vec<PathBuf> =
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().flat_map(|table| listening_sockets(table, port)).collect();
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let listens = |pid: &u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|file| sockets.contains(&file))
    };
    let holders: Vec<u32> = pids.filter(listens).collect();
    let mut servers = holders.iter().filter(|&&pid| parent_of(pid).is_none_or(|parent| !holders.contains(&parent)));
    servers.next().copied().filter(|_| servers.next().is_none())
}

/// The sockets that listen on a port, as `/proc/PID/fd` names them. In the table, the second column is the address, the
/// fourth the state, and the tenth the inode (Linux, `Documentation/networking/proc_net_tcp.rst`).
fn listening_sockets(table: &str, port: u16) -> Vec<PathBuf> {
    const LISTEN: &str = "0A";
    let table = std::fs::read_to_string(table).unwrap_or_default();
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let is_wanted = u16::from_str_radix(local, 16) == Ok(port) && fields.get(3) == Some(&LISTEN);
        is_wanted.then(|| PathBuf::from(format!("socket:[{}]", fields.get(9).unwrap_or(&""))))
    };
    table.lines().filter_map(socket).collect()
}

/// The process at the other end of a Unix socket, if this host knows it.
fn listening_at(socket: &Path) -> Option<u32> {
    let peer = socket_peercred(UnixStream::connect(socket).ok()?).ok()?;
    Some(peer.pid.as_raw_pid() as u32).filter(|pid| *pid > 1)
}

/// The reported data directory of a server that uses it as its working directory. `None` if this user cannot list it,
/// or if the server is known to work elsewhere.
fn data_here(pid: Option<u32>, reported: PathBuf) -> Option<PathBuf> {
    let is_here = pid.and_then(|pid| works_in(pid, &reported));
    unless_elsewhere(reported, is_here)
}

/// The reported data directory of a server that keeps `file` in it open. `None` if this user cannot list it, or if the
/// server is known not to have that file open.
pub fn data_held(pid: Option<u32>, reported: PathBuf, file: &str) -> Option<PathBuf> {
    let is_here = pid.and_then(|pid| holds_open(pid, &reported.join(file)));
    unless_elsewhere(reported, is_here)
}

/// Drops a reported path that is not valid on this host. In a container the path means another directory, and this
/// host's directory may hold another server's data. A relative path depends on the server's working directory.
fn unless_elsewhere(reported: PathBuf, is_here: Option<bool>) -> Option<PathBuf> {
    (reported.is_absolute() && is_here != Some(false) && std::fs::read_dir(&reported).is_ok()).then_some(reported)
}

/// Identifies a file independently of its path.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Whether a directory is a process's working directory; `None` if unknown, for example for another user's process.
pub fn works_in(pid: u32, directory: &Path) -> Option<bool> {
    let file = |path: &Path| std::fs::metadata(path).ok().map(|found| identity(&found));
    Some(file(Path::new(&format!("/proc/{pid}/cwd")))? == file(directory)?)
}

/// Whether a process has a file open; `None` if unknown, for example for another user's process.
fn holds_open(pid: u32, file: &Path) -> Option<bool> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let Ok(wanted) = std::fs::metadata(file) else { return Some(false) };
    let mut open = open.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
    Some(open.any(|found| identity(&found) == identity(&wanted)))
}

/// The parent of a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may contain anything, come the state and the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The living child processes of a process.
fn children_of(parent: i32) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child = |pid: &i32| parent_of(*pid as u32) == u32::try_from(parent).ok();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// A running server; killed when dropped.
pub struct Process {
    child: Child,
    signals: Signals,
}

impl Process {
    /// Starts a server. The calling thread must live as long as the server is needed.
    pub fn start(command: &mut Command, signals: Signals) -> io::Result<Self> {
        dies_with_us(command, signals.abort);
        Ok(Self { child: command.spawn()?, signals })
    }

    /// The process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, or `None` while the process runs. Does not block.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops the process cleanly, and kills it if it takes longer than `patience`.
    ///
    /// # Errors
    /// The process had to be killed, or did not end cleanly.
    pub fn stop(&mut self, patience: Duration) -> Result<()> {
        let call = "stop of the server";
        if let Some(status) = self.ended() {
            return Err(EngineError::failed(call, format!("it had ended before, with {status}")));
        }
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, self.signals.stop)
            .map_err(|error| EngineError::failed(call, error.to_string()))?;
        let requested = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return if status.success() {
                    Ok(())
                } else {
                    Err(EngineError::failed(call, format!("it ended with {status}")))
                };
            }
            if requested.elapsed() > patience {
                self.kill();
                let words = format!("it had not ended {} s after the request, and was killed", patience.as_secs());
                return Err(EngineError::failed(call, words));
            }
            sleep(LOOK);
        }
    }

    /// Kills the process and all its children, as a crash does. They get no signal before, so they write
    /// no more data for each other.
    ///
    /// # Errors
    /// The process had ended before.
    pub fn kill_all(&mut self) -> Result<()> {
        if let Some(status) = self.ended() {
            return Err(EngineError::failed("kill of the server", format!("it had ended before, with {status}")));
        }
        let pid = Pid::from_child(&self.child);
        // A stopped process cannot start more children.
        let _ = rustix::process::kill_process(pid, Signal::STOP);
        for child in children_of(pid.as_raw_pid()) {
            // If it has just ended, the error can be ignored.
            let _ = rustix::process::kill_process(child, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        Ok(())
    }

    /// Ends the process immediately.
    pub fn kill(&mut self) {
        if self.signals.abort != Signal::KILL && self.ended().is_none() {
            let pid = Pid::from_child(&self.child);
            // A process that has just ended is reaped below like any other.
            let _ = rustix::process::kill_process(pid, self.signals.abort);
            let requested = Instant::now();
            while requested.elapsed() < ABORT && self.ended().is_none() {
                sleep(LOOK);
            }
        }
        // It may have ended already; reap it in any case, so that no zombie remains.
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

    /// rumba reported the size and device of another server's data that had the same path on the host.
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

    /// A loopback address of a local server left its process unknown, so it had no local figures.
    #[test]
    fn process_at_a_loopback_port_is_a_server_only_in_its_directory() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp { host: "localhost".into(), port: listener.local_addr().unwrap().port() };
        let (own, here) = (std::process::id(), std::env::current_dir().unwrap());
        assert_eq!(serving(&address), Some(own));
        let place = |data: &Path| place_of(&address, Some(data.into()), |pid| works_in(pid, data) == Some(true));
        assert_eq!(place(&here), (Some(own), Some(here)));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(place(elsewhere.path()), (None, None), "a proxy, whose server works in another directory");
        drop(listener);
        assert_eq!(serving(&address), None);
        assert_eq!(serving(&Address::Tcp { host: "192.0.2.1".into(), port: 80 }), None, "another host");
    }

    /// Servers that do not work in their data directory, such as `mongod`, are identified by a file in it that they
    /// keep open.
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
