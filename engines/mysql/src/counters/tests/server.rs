//! A private MariaDB for a test.

use std::time::Duration;

use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::mariadb::MariaDb;

use crate::counters::{Kind, Request, Server};

/// A running server, killed and removed at the end of the test.
pub(crate) struct Private(MariaDb);

impl Private {
    /// Starts a server with `options`.
    pub(crate) fn start(options: &[&str]) -> Self {
        Self(MariaDb::start(options))
    }

    /// Restarts the server on the same data.
    pub(crate) fn restart(&mut self) {
        self.0.kill();
        self.0.start_again();
    }

    /// Starts a server with MyRocks.
    pub(crate) fn with_myrocks() -> Self {
        Self::start(&["--plugin-load-add=ha_rocksdb", "--rocksdb=FORCE"])
    }

    /// The address of a schema for root, as an experiment names it.
    pub(crate) fn dsn(&self, schema: &str) -> String {
        format!("mysql://root@/{schema}?socket={}", self.0.socket().display())
    }

    fn target(&self, user: &str) -> Target {
        Target {
            address: Address::Socket(self.0.socket()),
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
        self.connect_as("root")
    }

    /// Describes the server for an engine.
    pub(crate) fn server(&self, kind: Kind) -> Server {
        let version = self.connect().fetch("SELECT VERSION()").expect("a version");
        Server::new(kind, version.rows[0][0].as_deref().expect("a version"))
    }
}

/// Runs statements one after the other.
pub(crate) fn run(admin: &mut Admin, statements: &[&str]) {
    for sql in statements {
        admin.fetch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
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
    admin.fetch(&format!("SHOW GLOBAL VARIABLES LIKE '{like}'")).expect("variables").rows
}
