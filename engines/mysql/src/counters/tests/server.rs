//! A MariaDB of the test's own.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};
use tempfile::TempDir;

use crate::counters::{Ask, Kind, Server};

/// A running server; killed and removed at the end of the test.
pub(crate) struct Private {
    process: Child,
    options: Vec<String>,
    dir: TempDir,
}

impl Private {
    /// Starts it with `options`.
    pub(crate) fn start(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name).display().to_string();
        let data = format!("--datadir={}", path("data"));
        // Servers that start remove each other's files from a directory that they share.
        let temporary = format!("--tmpdir={}", dir.path().display());
        let installed = Command::new("mariadb-install-db")
            .args(["--no-defaults", &data, &temporary, "--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(user())
            .output();
        let installed = installed.expect("mariadb-install-db runs");
        let words = String::from_utf8_lossy(&installed.stderr);
        assert!(installed.status.success(), "mariadb-install-db: {words}");
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let server = Self { process: spawn(dir.path(), &options), options, dir };
        server.wait();
        server
    }

    /// Ends it, and starts it once more where it was.
    pub(crate) fn restart(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = spawn(self.dir.path(), &self.options);
        self.wait();
    }

    /// Starts it with MyRocks.
    pub(crate) fn with_myrocks() -> Self {
        Self::start(&["--plugin-load-add=ha_rocksdb", "--rocksdb=FORCE"])
    }

    fn wait(&self) {
        let since = Instant::now();
        while self.try_connect().is_err() {
            let log = std::fs::read_to_string(self.dir.path().join("log.err")).unwrap_or_default();
            assert!(since.elapsed() < Duration::from_secs(120), "the server does not start: {log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn try_connect(&self) -> Result<Admin, rumba_protocol_mysql::WireError> {
        Admin::connect(&self.target("root"), Duration::from_secs(60))
    }

    fn target(&self, user: &str) -> Target {
        Target {
            address: Address::Socket(self.dir.path().join("socket")),
            user: user.into(),
            password: Secret::default(),
            database: None,
            tls: Tls::Off,
        }
    }

    /// A connection of a user without a password.
    pub(crate) fn connect_as(&self, user: &str) -> Admin {
        Admin::connect(&self.target(user), Duration::from_secs(60)).expect("the user may come in")
    }

    /// A connection.
    pub(crate) fn connect(&self) -> Admin {
        self.try_connect().expect("the server answers")
    }

    /// What it is, for an engine.
    pub(crate) fn server(&self, kind: Kind) -> Server {
        let version = self.connect().ask("SELECT VERSION()").expect("a version");
        Server::new(kind, version.rows[0][0].as_deref().expect("a version"))
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(dir: &std::path::Path, options: &[String]) -> Child {
    let path = |name: &str| dir.join(name).display().to_string();
    let process = Command::new("mariadbd")
        .args(["--no-defaults", &format!("--datadir={}", path("data")), "--skip-networking"])
        .arg(format!("--tmpdir={}", dir.display()))
        .arg(format!("--socket={}", path("socket")))
        .arg(format!("--pid-file={}", path("pid")))
        .arg(format!("--log-error={}", path("log.err")))
        .args(user())
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    process.expect("mariadbd runs")
}

/// A server that root starts must be told so.
fn user() -> Option<&'static str> {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.starts_with(b"0\n"));
    root.then_some("--user=root")
}

/// Statements, one after the other.
pub(crate) fn run(admin: &mut Admin, statements: &[&str]) {
    for sql in statements {
        admin.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// A schema `lab` with a table of `rows` rows of 300 bytes each and an index.
pub(crate) fn load(admin: &mut Admin, engine: &str, rows: u32) {
    let insert = format!("INSERT INTO lab.rows_ SELECT seq, seq % 997, REPEAT(MD5(seq), 9) FROM seq_1_to_{rows}");
    let create = format!(
        "CREATE TABLE lab.rows_ (id INT PRIMARY KEY, k INT, filler VARCHAR(300), KEY (k)) CHARSET latin1 ENGINE = {engine}"
    );
    run(admin, &["CREATE DATABASE lab", "USE lab", &create, &insert]);
}

/// The values of global variables.
pub(crate) fn variables(admin: &mut Admin, like: &str) -> Vec<Vec<Option<String>>> {
    admin.ask(&format!("SHOW GLOBAL VARIABLES LIKE '{like}'")).expect("variables").rows
}
