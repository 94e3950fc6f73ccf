//! A PostgreSQL server for one test: private directory, Unix socket, a port on loopback.

use std::fs::{self, OpenOptions};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{process, template};

/// The directory of its programs in Debian 12.
pub const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

/// The server's superuser in these tests.
pub const SUPERUSER: &str = "tester";

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// A running server; it is stopped and removed when it is dropped, and stops when the test's process does.
pub struct PostgreSql {
    child: Mutex<Child>,
    options: Vec<String>,
    identity: Option<(u32, u32)>,
    dir: tempfile::TempDir,
    port: u16,
}

impl PostgreSql {
    /// Starts one with these settings: `max_connections=20`. All users may connect over the socket. The lines of `hba`
    /// decide whether TCP connections need a password.
    pub fn start(options: &[&str], hba: &[&str]) -> Self {
        let identity = identity();
        let dir = tempfile::Builder::new().prefix("rumba-pg-").tempdir_in(place(identity)).expect("a directory");
        if let Some((user, group)) = identity {
            std::os::unix::fs::chown(dir.path(), Some(user), Some(group)).expect("to give the directory away");
        }
        let data = dir.path().join("data");
        // The owner also distinguishes one template directory from another.
        let server = template::key("postgresql", &Path::new(PROGRAMS).join("postgres"));
        template::provide(&format!("{server}-{identity:?}"), &data, || {
            let mut install = program("initdb", identity);
            install.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER]);
            process::output_of(install.arg("--pgdata").arg(&data));
        });
        let lines = ["local all all trust"].iter().chain(hba).map(|line| format!("{line}\n")).collect::<String>();
        fs::write(data.join("pg_hba.conf"), lines).expect("pg_hba.conf");
        let port =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port").port();
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let child = Mutex::new(process::bound(command(dir.path(), port, &options, identity), Signal::QUIT));
        let server = Self { child, options, identity, dir, port };
        server.wait();
        server
    }

    /// The first of its processes, from which all others come.
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// The directory of its socket, which has the name that clients expect there.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(format!(".s.PGSQL.{}", self.port))
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Puts a file into its directory that only it may read, such as a key.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn keep(&self, name: &str, content: &[u8]) -> PathBuf {
        private_file(self.dir.path(), name, content, self.identity)
    }

    /// Starts a program as the server's user, with the server's log. It is killed when this process ends.
    pub fn start_program(&self, program: &str, argument: &Path) -> Child {
        let mut command = command_as(Path::new(program), self.identity);
        command.arg(argument).stdout(Stdio::null()).stderr(private_log(self.dir.path()));
        process::bound(command, Signal::KILL)
    }

    /// Kills it as a crash would, with its processes that serve clients, which could otherwise answer once more before
    /// they notice. The next start removes the remains.
    pub fn kill(&self) {
        let mut child = self.child();
        let serving = children(child.id());
        child.kill().and_then(|()| child.wait()).expect("to kill the server");
        for pid in serving {
            // An error is fine if the process has ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    /// Starts it again in its place after [`PostgreSql::kill`].
    pub fn start_again(&self) {
        // The processes that served clients end on their own, each in its own time, so wait for them.
        let since = Instant::now();
        loop {
            *self.child() =
                process::bound(command(self.dir.path(), self.port, &self.options, self.identity), Signal::QUIT);
            if self.is_up_within(Duration::from_secs(10)) {
                return;
            }
            assert!(since.elapsed() < START, "{}", self.log());
        }
    }

    fn wait(&self) {
        assert!(self.is_up_within(START), "{}", self.log());
    }

    fn is_up_within(&self, patience: Duration) -> bool {
        let since = Instant::now();
        while since.elapsed() < patience {
            if self.child().try_wait().expect("the server's process").is_some() {
                return false;
            }
            let mut ready = program("pg_isready", None);
            let ready =
                ready.arg("--quiet").arg("--host").arg(self.dir.path()).arg("--port").arg(self.port.to_string());
            if ready.status().is_ok_and(|status| status.success()) {
                return true;
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PostgreSql {
    /// Stops it immediately but cleanly, because its shared memory would remain otherwise.
    fn drop(&mut self) {
        let mut child = self.child();
        // The number of an ended process may belong to another one.
        if let Ok(None) = child.try_wait() {
            let _ = kill_process(Pid::from_child(&child), Signal::QUIT);
            let _ = child.wait();
        }
    }
}

/// The parent for temporary directories that the server's user can reach: the directory in TMPDIR may be below a home
/// directory.
fn place(identity: Option<(u32, u32)>) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS_MAY_PASS: u32 = 0o001;
    let usual = std::env::temp_dir();
    let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|found| found.permissions().mode() & OTHERS_MAY_PASS != 0);
    if identity.is_none() || usual.ancestors().all(is_open) { usual } else { "/tmp".into() }
}

/// Writes a file for the server's user only.
fn private_file(dir: &Path, name: &str, content: &[u8], identity: Option<(u32, u32)>) -> PathBuf {
    use std::os::unix::fs::{OpenOptionsExt, chown};
    let path = dir.join(name);
    let _ = fs::remove_file(&path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect(name);
    std::io::Write::write_all(&mut file, content).expect(name);
    if let Some((user, group)) = identity {
        chown(&path, Some(user), Some(group)).expect(name);
    }
    path
}

/// The user and group that run the server, because it refuses to run as root. The package creates a user; without it,
/// the ids of `no_user` are used.
fn identity() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of = |name: &str| {
        let fields: Vec<&str> =
            users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name)?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    };
    Some(of("postgres").unwrap_or((65534, 65534)))
}

fn program(name: &str, identity: Option<(u32, u32)>) -> Command {
    command_as(&Path::new(PROGRAMS).join(name), identity)
}

fn command_as(program: &Path, identity: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    if let Some((user, group)) = identity {
        command.uid(user).gid(group);
    }
    // It starts in a directory that it may enter.
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    command
}

fn command(dir: &Path, port: u16, options: &[String], identity: Option<(u32, u32)>) -> Command {
    let mut command = program("postgres", identity);
    command.arg("-D").arg(dir.join("data")).arg("-k").arg(dir).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    for option in ["fsync=off", "shared_buffers=32MB", "max_wal_size=256MB", "lc_messages=C"] {
        command.args(["-c", option]);
    }
    for option in options {
        command.args(["-c", option]);
    }
    let log = private_log(dir);
    command.stdout(Stdio::null()).stderr(log);
    command
}

fn private_log(dir: &Path) -> fs::File {
    OpenOptions::new().create(true).append(true).open(dir.join("log")).expect("the server's log")
}

/// The processes that a process has started.
fn children(pid: u32) -> Vec<Pid> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).filter_map(Pid::from_raw).collect()
}
