//! `rumba server`: a server outlives the command that started it, accepts a user's client, and leaves no trace when it
//! is stopped or killed. On data that a run has kept, it works on a copy.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{TestDir, ended, is_alive, kill, text};
use rustix::process::Signal;
use serde_json::Value;

/// A directory whose servers end with the test, for any outcome.
struct Servers(TestDir);

impl Drop for Servers {
    fn drop(&mut self) {
        // An error has no remedy in a test that already fails.
        let _ = self.0.rumba(&["server", "stop", "--all"]).output();
    }
}

impl Servers {
    fn new() -> Self {
        Self(TestDir::new())
    }

    /// Starts a server with these arguments; returns its description.
    fn start(&self, args: &[&str]) -> Value {
        let output = ended(0, self.0.rumba(&["server", "start", "--json"]).args(args));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn list(&self) -> Vec<Value> {
        let output = self.0.rumba(&["server", "list", "--json"]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Stops a server; neither processes nor files nor an entry of it remain.
    fn stop(&self, server: &Value) {
        let name = server["name"].as_str().unwrap();
        let output = self.0.rumba(&["server", "stop", name]).output().unwrap();
        assert!(output.status.success() && text(&output).contains("removed completely"), "{}", text(&output));
        self.assert_nothing_is_left(server);
    }

    fn assert_nothing_is_left(&self, server: &Value) {
        assert!(!is_alive(pid(server)) && self.list().is_empty());
        assert!(!self.0.path("servers").exists(), "directories that were made are removed");
        let doctor = self.0.rumba(&["doctor", "--json"]).output().unwrap();
        let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
        assert_eq!(doctor["leftovers"].as_array().unwrap().len(), 0, "{doctor}");
    }
}

fn pid(server: &Value) -> u32 {
    server["pid"].as_u64().unwrap() as u32
}

/// The answer of a user's client: the printed command line, with a statement for its standard input.
fn fetch(server: &Value, sql: &str) -> Output {
    let access = &server["access"];
    let words: Vec<&str> = access["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    for pair in access["environment"].as_array().unwrap() {
        command.env(pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
    }
    let mut client = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut client.stdin.take().unwrap(), sql.as_bytes()).unwrap();
    client.wait_with_output().unwrap()
}

fn assert_answers(server: &Value, sql: &str, answer: &str) {
    let output = fetch(server, sql);
    assert!(output.status.success() && text(&output).contains(answer), "{sql}: {}", text(&output));
}

#[test]
#[needs(MariaDb, MariaDbClient)]
fn started_server_outlives_its_command_and_leaves_nothing() {
    let servers = Servers::new();
    let server = servers.start(&["mariadb@10.11", "--set", "cache=32MiB"]);
    assert_eq!(server["name"], "innodb");
    assert!(is_alive(pid(&server)));
    assert_answers(&server, "SELECT @@innodb_buffer_pool_size, DATABASE();", "33554432\trumba");
    let listed = servers.list();
    assert_eq!((listed.len(), &listed[0]["server"]), (1, &server));
    let shown = text(&servers.0.rumba(&["server", "list"]).output().unwrap());
    assert!(shown.contains("--defaults-file=") && shown.contains("rumba server stop innodb"), "{shown}");
    let password = server["access"]["password_file"].as_str().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(password).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "the password is its owner's");
    let again = servers.0.rumba(&["server", "start", "innodb"]).output().unwrap();
    assert!(again.status.code() == Some(2) && text(&again).contains("innodb is up"), "{}", text(&again));
    servers.stop(&server);
}

#[test]
#[needs(MariaDb)]
fn killed_supervisor_ends_its_server_and_doctor_cleans_up() {
    let servers = Servers::new();
    let server = servers.start(&["innodb"]);
    kill("-KILL", servers.list()[0]["keeper"]["pid"].as_u64().unwrap() as u32);
    while is_alive(pid(&server)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = servers.0.rumba(&["doctor", "--clean"]).output().unwrap();
    assert!(output.status.success() && text(&output).contains("keeper of the server innodb"), "{}", text(&output));
    servers.assert_nothing_is_left(&server);
}

#[test]
#[needs(MariaDb)]
fn a_start_that_is_interrupted_leaves_nothing() {
    let servers = Servers::new();
    let mut start = servers.0.rumba(&["server", "start", "innodb"]);
    let mut start = start.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while servers.list().is_empty() {
        assert!(start.try_wait().unwrap().is_none(), "it is up already, or failed");
    }
    start.kill().unwrap();
    start.wait().unwrap();
    while !servers.list().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!servers.0.path("servers").exists());
}

/// If a user shuts the server down through its client, the supervisor must not wait for a stop that never comes.
#[test]
#[needs(MariaDb)]
fn exited_server_is_unlisted_and_leaves_nothing() {
    let servers = Servers::new();
    let server = servers.start(&["innodb"]);
    kill("-KILL", pid(&server));
    while !servers.list().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    servers.assert_nothing_is_left(&server);
}

/// A short run of InnoDB that keeps its data; returns the directory of its only trial.
fn run_that_keeps(place: &TestDir, more: &[&str]) -> PathBuf {
    let sets = ["server=mariadb@10.11", "keep_data=true", "repeats_from=load"];
    let sets = sets.iter().chain(more).flat_map(|set| ["--set", set]);
    ended(0, place.short_run("innodb", &sets.collect::<Vec<_>>()));
    place.path("out/data/001-innodb-c2-r1/data")
}

const COUNT: &str = "SELECT COUNT(*) FROM nodetable;";

fn rows(server: &Value) -> u64 {
    let output = fetch(server, COUNT);
    let reported = text(&output);
    reported.lines().last().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{reported}"))
}

#[test]
#[needs(MariaDb, MariaDbClient)]
fn kept_data_is_served_from_a_copy_and_stays_unchanged() {
    let servers = Servers::new();
    let kept = run_that_keeps(&servers.0, &[]);
    let server = servers.start(&["out"]);
    assert_eq!(server["name"], "001-innodb-c2-r1");
    assert_eq!(server["from"], kept.display().to_string());
    let loaded = rows(&server);
    assert!(loaded > 1000, "{loaded} rows");
    assert_answers(&server, "DELETE FROM nodetable; SELECT COUNT(*) FROM nodetable;", "\n0");
    servers.stop(&server);
    let again = servers.start(&["out", "--name", "again"]);
    assert_eq!(rows(&again), loaded, "what was done to one copy is in no other");
    servers.stop(&again);
    assert_serves_by_its_configuration(&kept);
}

/// Statistics gathered again from each copy would differ between repeats, and would warm caches that must be cold.
#[test]
#[needs(PostgreSql)]
fn a_trial_from_a_copy_gathers_no_statistics_again() {
    let servers = Servers::new();
    let run = servers
        .0
        .short_run("postgresql", &["--set", "keep_data=true", "--set", "repeats=2", "--set", "repeats_from=kept"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run));
    let refused = servers.0.rumba(&["server", "start", "out", "--set", "cache=64MiB"]).output().unwrap();
    assert!(text(&refused).contains("--set and --engine do not apply to kept data"), "{}", text(&refused));
    let server = servers.start(&["out", "--trial", "003-postgresql-c2-r2"]);
    assert!(server["access"]["environment"][0][0] == "PGPASSFILE", "{server}");
    let gathered = "SELECT 'gathered ' || min(analyze_count) || ' to ' || max(analyze_count) FROM pg_stat_user_tables;";
    assert_answers(&server, gathered, "gathered 1 to 1");
    servers.stop(&server);
}

#[test]
#[needs(MariaDb, MariaDbClient, LoopDevice, StorageRates)]
fn kept_limited_storage_serves_in_place_and_on_a_volume() {
    let servers = Servers::new();
    let kept = run_that_keeps(&servers.0, &["storage=fast-ssd", "storage.size=1GiB"]);
    assert_serves_by_its_configuration(&kept);
    let server = servers.start(&["out"]);
    assert!(server["limits"][0].as_str().unwrap().contains("loop device"), "{server}");
    assert!(server["directory"].as_str().unwrap().contains("servers/001-innodb-c2-r1.storage"), "{server}");
    assert!(rows(&server) > 1000);
    servers.stop(&server);
}

/// Starts MariaDB manually with the kept configuration, and connects with the client's file next to it. Guards against
/// an unusable configuration: a kept one named a deleted file of initial statements, so no server started from it.
fn assert_serves_by_its_configuration(kept: &std::path::Path) {
    let option = |file: &str| format!("--defaults-file={}", kept.join(file).display());
    let mut server = Command::new("/usr/sbin/mariadbd");
    let log = std::fs::File::create(kept.join("by-hand.log")).unwrap();
    server.arg(option("my.cnf")).stdout(log.try_clone().unwrap()).stderr(log);
    let mut server = Ended(rumba_testkit::process::bound(server, Signal::KILL));
    let client = || {
        let mut command = Command::new("mariadb");
        command.args([option("client.cnf"), "rumba".into(), "-e".into(), COUNT.into()]).output().unwrap()
    };
    loop {
        let output = client();
        if output.status.success() {
            assert!(text(&output).lines().last().unwrap().parse::<u64>().unwrap() > 1000, "{}", text(&output));
            break;
        }
        let log = || std::fs::read_to_string(kept.join("by-hand.log")).unwrap();
        assert!(server.0.try_wait().unwrap().is_none(), "{}: {}", text(&output), log());
        std::thread::sleep(Duration::from_millis(50));
    }
    kill("-TERM", server.0.id());
    assert!(server.0.wait().unwrap().success());
}

/// A process that ends with the test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // One that has ended needs no kill.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn invalid_server_commands_are_refused_with_choices() {
    let servers = Servers::new();
    for (args, words) in [
        (&["start", "rocksdb"][..], "is no server"),
        (&["start", "mariadb@10"], "did you mean `mariadb@10.11`?"),
        (&["start", "innodb", "--name", "../mine"], "cannot be called"),
        (&["stop", "mine"], "none is kept"),
    ] {
        let output = servers.0.rumba(&["server"]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(words), "{args:?}: {}", text(&output));
    }
    ended(0, servers.0.short_run("sqlite", &["--set", "keep_data=true"]));
    let output = servers.0.rumba(&["server", "start", "out"]).output().unwrap();
    assert!(text(&output).contains("no kept data of a server"), "{}", text(&output));
}
