//! A MariaDB of the test's own, run as a user would run it.
#![allow(dead_code)] // Each test file uses its part.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};

use crate::common::{Place, kill, text};

/// The password of its root.
pub const PASSWORD: &str = "hunter2-of-the-test";

/// A running server; gone when dropped.
pub struct Theirs {
    process: Child,
    pub socket: PathBuf,
    arguments: Vec<String>,
}

impl Theirs {
    pub fn start(place: &Place, options: &[&str]) -> Self {
        let socket = place.path("theirs.sock");
        let at = |option: &str, name: &str| format!("--{option}={}", place.path(name).display());
        // Servers that start remove each other's files from a directory that they share.
        let (data, temporary) = (at("datadir", "theirs"), at("tmpdir", ""));
        let user = rustix::process::geteuid().is_root().then_some("--user=root");
        let mut install = Command::new("mariadb-install-db");
        let auth = "--auth-root-authentication-method=normal";
        install.args(["--no-defaults", &data, &temporary, auth, "--skip-test-db"]).args(user);
        let installed = install.output().unwrap();
        assert!(installed.status.success(), "{}", text(&installed));
        let first = place.path("first.sql");
        std::fs::write(&first, format!("ALTER USER 'root'@'localhost' IDENTIFIED BY '{PASSWORD}';\n")).unwrap();
        let mut arguments = vec!["--no-defaults".to_owned(), data, temporary, "--skip-networking".to_owned()];
        arguments.extend([at("socket", "theirs.sock"), at("pid-file", "theirs.pid"), at("log-error", "theirs.err")]);
        arguments.push(at("init-file", "first.sql"));
        arguments.extend(user.into_iter().chain(options.iter().copied()).map(str::to_owned));
        let mut server = Self { process: spawn(&arguments), socket, arguments };
        server.wait();
        server
    }

    /// Ends it as an administrator would, and starts it once more where it was.
    pub fn restart(&mut self) {
        kill("-TERM", self.process.id());
        self.process.wait().unwrap();
        self.process = spawn(&self.arguments);
        self.wait();
    }

    fn wait(&mut self) {
        while self.connect().is_none() {
            assert!(self.process.try_wait().unwrap().is_none(), "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn connect(&self) -> Option<Admin> {
        let target = Target {
            address: Address::Socket(self.socket.clone()),
            user: "root".into(),
            password: Secret::new(PASSWORD.to_owned()),
            database: None,
            tls: Tls::Off,
        };
        Admin::connect(&target, Duration::from_secs(60)).ok()
    }

    /// The first columns of an answer.
    pub fn ask(&self, sql: &str) -> Vec<String> {
        let rows = self.connect().unwrap().query(sql).unwrap().rows;
        rows.into_iter().filter_map(|row| row.into_iter().next()?).collect()
    }

    /// `server=` with a DSN of a schema, and more parameters.
    pub fn dsn(&self, schema: &str, more: &str) -> String {
        self.dsn_of("root", schema, more)
    }

    pub fn dsn_of(&self, user: &str, schema: &str, more: &str) -> String {
        format!("server=mysql://{user}@/{schema}?socket={}{more}", self.socket.display())
    }

    pub fn run(&self, place: &Place, engine: &str, schema: &str, more: &str, password: &str) -> Output {
        let mut command = place.short_run(engine, &["--set", &self.dsn(schema, more)]);
        command.env("RUMBA_MYSQL_PASSWORD", password).output().unwrap()
    }
}

fn spawn(arguments: &[String]) -> Child {
    let mut command = Command::new("/usr/sbin/mariadbd");
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
