//! An existing server: a MariaDB for one test, run as a user would run it.
#![allow(clippy::unwrap_used, dead_code)] // Each test file uses its part.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::mariadb::{Installed, MariaDb};

use crate::common::TestDir;

/// The password of its root.
pub const PASSWORD: &str = "hunter2-of-the-test";

/// A running server; gone when dropped.
pub struct Existing {
    server: MariaDb,
    pub socket: PathBuf,
}

impl Existing {
    pub fn start(options: &[&str]) -> Self {
        let installed = Installed::new();
        let first = installed.directory().join("first.sql");
        std::fs::write(&first, format!("ALTER USER 'root'@'localhost' IDENTIFIED BY '{PASSWORD}';\n")).unwrap();
        let first = format!("--init-file={}", first.display());
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).chain([first]).collect();
        let server = installed.start(&options);
        Self { socket: server.socket(), server }
    }

    /// Stops it as an administrator would, and starts it again in its place.
    pub fn restart(&mut self) {
        self.server.end();
        self.server.start_again();
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
    pub fn fetch(&self, sql: &str) -> Vec<String> {
        let rows = self.connect().unwrap().query(sql).unwrap().rows;
        rows.into_iter().filter_map(|row| row.into_iter().next()?).collect()
    }

    pub fn dsn(&self, schema: &str, more: &str) -> String {
        self.dsn_of("root", schema, more)
    }

    pub fn dsn_of(&self, user: &str, schema: &str, more: &str) -> String {
        format!("server=mysql://{user}@/{schema}?socket={}{more}", self.socket.display())
    }

    pub fn run(&self, place: &TestDir, engine: &str, schema: &str, more: &str, password: &str) -> Output {
        let mut command = place.short_run(engine, &["--set", &self.dsn(schema, more)]);
        command.env("RUMBA_MYSQL_PASSWORD", password).output().unwrap()
    }
}
