//! A SecantusDB for one test: it serves MongoDB's protocol over a real WiredTiger, with transactions. Its program comes
//! from the Python package index; `scripts/setup test` puts it into the build's tools.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process;

/// How long a server may take to start: a Python program under load.
const START: Duration = Duration::from_secs(60);

/// A running server; it is killed and removed when it is dropped, and ends when the test's process does.
pub struct SecantusDb {
    child: Child,
    port: u16,
    dir: PathBuf,
    /// Removed with it, unless the test has named another directory.
    _own: Option<tempfile::TempDir>,
}

/// The path of its program.
pub fn program() -> PathBuf {
    let built = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let built = built.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    built.join("tools/secantusdb/bin/secantusd-py")
}

impl SecantusDb {
    /// Starts a new one with these arguments: `--standalone`.
    pub fn start(arguments: &[&str]) -> Self {
        let own = tempfile::Builder::new().prefix("rumba-secantusdb-").tempdir().expect("a directory");
        let mut server = Self::start_in(own.path(), arguments);
        server._own = Some(own);
        server
    }

    /// Starts one on the data that another has left in a directory.
    pub fn start_in(dir: &Path, arguments: &[&str]) -> Self {
        let port =
            TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port").port();
        let child = process::bound(command(dir, port, arguments), Signal::KILL);
        let server = Self { child, port, dir: dir.to_owned(), _own: None };
        server.wait();
        server
    }

    /// Stops it cleanly: all acknowledged writes are on disk.
    pub fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("to stop the server");
        self.child.wait().expect("to wait for the server");
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("to kill the server");
    }

    fn wait(&self) {
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(since.elapsed() < START, "{}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for SecantusDb {
    fn drop(&mut self) {
        let _it_may_have_ended = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(dir: &Path, port: u16, arguments: &[&str]) -> Command {
    let log = std::fs::File::create(dir.join("log")).expect("a log");
    let mut command = Command::new(program());
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--cache-size", "64M"]);
    command.arg("--storage-path").arg(dir.join("data")).args(arguments);
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    command
}
