//! A server that the user brings: what is not rumba's is not touched, what is
//! made is removed, the password is nowhere to be read.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::{Place, children, files_holding, kill, start_long_run, text};
use rumba_wire::{Address, Admin, Secret, Target, Tls};

const PASSWORD: &str = "hunter2-of-the-test";

/// A MariaDB of the test's own, run as a user would run it; gone when dropped.
struct Theirs {
    process: Child,
    socket: PathBuf,
}

impl Theirs {
    fn start(place: &Place) -> Self {
        let (data, socket) = (format!("--datadir={}", place.path("theirs").display()), place.path("theirs.sock"));
        let user = rustix::process::geteuid().is_root().then_some("--user=root");
        let mut install = Command::new("mariadb-install-db");
        // Servers that start remove each other's files from a directory that they share.
        let temporary = format!("--tmpdir={}", place.path("").display());
        let auth = "--auth-root-authentication-method=normal";
        install.args(["--no-defaults", &data, &temporary, auth, "--skip-test-db"]).args(user);
        let installed = install.output().unwrap();
        assert!(installed.status.success(), "{}", text(&installed));
        let first = place.path("first.sql");
        std::fs::write(&first, format!("ALTER USER 'root'@'localhost' IDENTIFIED BY '{PASSWORD}';\n")).unwrap();
        let process = Command::new("/usr/sbin/mariadbd")
            .args(["--no-defaults", &data, &temporary, "--skip-networking"])
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", place.path("theirs.pid").display()))
            .arg(format!("--log-error={}", place.path("theirs.err").display()))
            .arg(format!("--init-file={}", first.display()))
            .args(user)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { process, socket };
        while server.connect().is_none() {
            assert!(server.process.try_wait().unwrap().is_none(), "the server does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn connect(&self) -> Option<Admin> {
        let target = Target {
            address: Address::Socket(self.socket.clone()),
            user: "root".into(),
            password: Secret::new(PASSWORD.to_owned()),
            database: None,
            tls: Tls::Off,
        };
        Admin::connect(&target, Duration::from_secs(60)).ok()
    }

    fn ask(&self, sql: &str) -> Vec<String> {
        let rows = self.connect().unwrap().query(sql).unwrap().rows;
        rows.into_iter().filter_map(|row| row.into_iter().next()?).collect()
    }

    /// `server=` with a DSN of a schema, and more parameters.
    fn dsn(&self, schema: &str, more: &str) -> String {
        format!("server=mysql://root@/{schema}?socket={}{more}", self.socket.display())
    }

    fn run(&self, place: &Place, engine: &str, schema: &str, more: &str, password: &str) -> Output {
        let mut command = place.short_run(engine, &["--set", &self.dsn(schema, more)]);
        command.env("RUMBA_MYSQL_PASSWORD", password).output().unwrap()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn refused(place: &Place, output: &Output, words: &[&str]) {
    let said = text(output).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
    assert!(!place.path("out").exists(), "nothing was created");
}

#[test]
#[needs(MariaDb)]
fn a_run_on_a_users_server_leaves_it_as_it_was_and_its_password_nowhere() {
    let place = Place::new();
    let server = Theirs::start(&place);
    let schemas = server.ask("SHOW DATABASES");
    let output = server.run(&place, "innodb", "lab", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(place.report()["trials"][0]["status"], "done");
    assert!(!text(&output).contains(PASSWORD));
    assert_eq!(files_holding(&place.path("out"), PASSWORD), Vec::<PathBuf>::new());
    assert_eq!(files_holding(&place.path("state"), PASSWORD), Vec::<PathBuf>::new());
    assert_eq!(server.ask("SHOW DATABASES"), schemas, "the schema that was made is removed");
    // A schema that was there and empty stays, and stays empty.
    server.ask("CREATE DATABASE kept");
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = server.run(&place, "innodb", "kept", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(server.ask("SHOW TABLES FROM kept"), Vec::<String>::new());
}

#[test]
#[needs(MariaDb)]
fn no_process_of_a_run_shows_the_password() {
    let place = Place::new();
    let server = Theirs::start(&place);
    let file = place.path("client.cnf");
    std::fs::write(&file, format!("[client]\nuser = root\npassword = {PASSWORD}\n")).unwrap();
    let dsn = server.dsn("lab", &format!("&defaults-file={}", file.display()));
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &[&dsn]);
    let trial = children(run.id())[0];
    for pid in [run.id(), trial] {
        for what in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{pid}/{what}")).unwrap();
            assert!(!String::from_utf8_lossy(&shown).contains(PASSWORD), "{what}");
        }
    }
    kill("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(files_holding(&place.path("out"), PASSWORD), Vec::<PathBuf>::new());
    // What an interrupted run has left in its schema is marked as rumba's, so the next one may take it.
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = server.run(&place, "innodb", "lab", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
#[needs(MariaDb)]
fn a_wrong_password_a_refusal_of_tls_and_a_missing_engine_are_told_before_anything_is_made() {
    let place = Place::new();
    let server = Theirs::start(&place);
    let output = server.run(&place, "innodb", "lab", "", "wrong");
    refused(&place, &output, &["Access denied", "RUMBA_MYSQL_PASSWORD"]);
    let output = server.run(&place, "innodb", "lab", "&tls=required", PASSWORD);
    refused(&place, &output, &["TLS", "tls="]);
    let output = server.run(&place, "tokudb", "lab", "", PASSWORD);
    refused(&place, &output, &["has no engine TokuDB", "it has InnoDB"]);
    let output = place.short_run("innodb", &["--set", "server=mysql://root:another@/lab"]).output().unwrap();
    refused(&place, &output, &["must not hold a password", "RUMBA_MYSQL_PASSWORD"]);
}

#[test]
#[needs(MariaDb)]
fn a_schema_that_is_neither_empty_nor_rumbas_is_refused_and_untouched() {
    let place = Place::new();
    let server = Theirs::start(&place);
    server.ask("CREATE DATABASE thesis");
    server.ask("CREATE TABLE thesis.chapters SELECT 'irreplaceable' AS text");
    let output = server.run(&place, "innodb", "thesis", "", PASSWORD);
    refused(&place, &output, &["thesis is not empty", "chapters", "name a schema in the DSN that is empty"]);
    assert_eq!(server.ask("SELECT text FROM thesis.chapters"), ["irreplaceable"]);
    // Views and routines are somebody's as well.
    server.ask("CREATE DATABASE routines");
    server.ask("CREATE FUNCTION routines.answer() RETURNS INT RETURN 42");
    let output = server.run(&place, "innodb", "routines", "", PASSWORD);
    refused(&place, &output, &["routines is not empty", "answer"]);
}

#[test]
#[needs(MariaDb)]
fn a_setting_that_a_users_server_does_not_have_is_refused_with_both_values() {
    let place = Place::new();
    let server = Theirs::start(&place);
    let sets = ["--set", &server.dsn("lab", ""), "--set", "innodb.innodb_page_size=4k"];
    let mut command = place.short_run("innodb", &sets);
    let output = command.env("RUMBA_MYSQL_PASSWORD", PASSWORD).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let cause = place.report()["trials"][0]["failure"]["cause"].to_string();
    assert!(cause.contains("innodb_page_size was asked to be 4096 and is 16384"), "{cause}");
    assert!(!server.ask("SHOW DATABASES").contains(&"lab".to_owned()), "nothing was made");
}
