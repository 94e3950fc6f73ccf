//! A MariaDB server for one test: private directory, Unix socket, and no network unless requested.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{process, template};

/// The path of the server in Debian 12.
pub const PROGRAM: &str = "/usr/sbin/mariadbd";

/// How long a server may take to start.
const START: Duration = Duration::from_secs(120);

/// A data directory that no server has opened yet. Its `root` connects over the socket without a password.
pub struct Installed {
    dir: tempfile::TempDir,
}

impl Installed {
    /// Creates one.
    ///
    /// # Panics
    /// `mariadb-install-db` refuses; the panic has its message.
    #[allow(clippy::new_without_default)] // It starts a program.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("rumba-mariadb-").tempdir().expect("a directory");
        template::provide(&template::key("mariadb", Path::new(PROGRAM)), &dir.path().join("data"), || {
            let mut install = Command::new("mariadb-install-db");
            install.arg("--no-defaults").args(common(dir.path()));
            install.args(["--auth-root-authentication-method=normal", "--skip-test-db"]).stdin(Stdio::null());
            process::output_of(&mut install);
        });
        Self { dir }
    }

    /// The server's directory, for files that its options name.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Starts the server with these options, in addition to those that keep it in its directory.
    pub fn start(self, options: &[String]) -> MariaDb {
        let child = Mutex::new(spawn(self.dir.path(), options));
        let server = MariaDb { child, options: options.to_vec(), dir: self.dir };
        server.wait();
        server
    }
}

/// A running server; it is killed and removed when it is dropped, and dies when the test's process does.
pub struct MariaDb {
    child: Mutex<Child>,
    options: Vec<String>,
    dir: tempfile::TempDir,
}

impl MariaDb {
    /// Starts one with these options, such as `--max-connections=20`.
    pub fn start(options: &[&str]) -> Self {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        Installed::new().start(&options)
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        self.dir.path()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        socket(self.dir.path())
    }

    /// Sends its process a signal.
    ///
    /// # Panics
    /// It has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child()), signal).expect("to signal the server");
    }

    /// Kills it as a crash would.
    pub fn kill(&self) {
        let mut child = self.child();
        child.kill().and_then(|()| child.wait()).expect("to kill the server");
    }

    /// Ends it as an administrator would.
    pub fn end(&self) {
        self.signal(Signal::TERM);
        self.child().wait().expect("the server's end");
    }

    /// Starts it again in its place, after [`MariaDb::kill`] or [`MariaDb::end`].
    pub fn start_again(&self) {
        *self.child() = spawn(self.dir.path(), &self.options);
        self.wait();
    }

    fn wait(&self) {
        let since = Instant::now();
        while !answers(&self.socket()) {
            let ended = self.child().try_wait().expect("the server's process");
            let log = || fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            assert!(ended.is_none() && since.elapsed() < START, "the server does not start: {}", log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let mut child = self.child();
        // It may have ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("s")
}

/// Whether a server greets a client, which it does once its options have taken effect. It may accept a connection and
/// still not be ready.
fn answers(socket: &Path) -> bool {
    /// After a packet's length and number.
    const PROTOCOL_VERSION: u8 = 10;
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    let mut greeting = [0; 5];
    let patience = stream.set_read_timeout(Some(Duration::from_secs(1)));
    patience.and_then(|()| stream.read_exact(&mut greeting)).is_ok() && greeting[4] == PROTOCOL_VERSION
}

/// The options for both installing and running.
fn common(dir: &Path) -> Vec<String> {
    let data = format!("--datadir={}", dir.join("data").display());
    // Starting servers remove each other's files from a shared directory.
    let temporary = format!("--tmpdir={}", dir.display());
    // A server started by root needs this option.
    let user = rustix::process::geteuid().is_root().then(|| "--user=root".to_owned());
    // The default 96 MiB would be written for every server.
    let log = "--innodb-log-file-size=16M".to_owned();
    [data, temporary, log].into_iter().chain(user).collect()
}

fn spawn(dir: &Path, options: &[String]) -> Child {
    let log = OpenOptions::new().create(true).append(true).open(dir.join("log")).expect("the server's log");
    let mut command = Command::new(PROGRAM);
    command.args(["--no-defaults", "--skip-networking"]).args(common(dir));
    command.arg(format!("--socket={}", socket(dir).display()));
    command.arg(format!("--pid-file={}", dir.join("pid").display()));
    command.args(options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    process::bound(command, Signal::KILL)
}
