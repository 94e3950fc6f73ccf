//! An existing server: rumba does not touch foreign objects, removes its own, and writes the password nowhere.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/existing.rs"]
mod existing;

use std::path::PathBuf;
use std::process::Output;

use common::{TestDir, children, ended, files_holding, kill, start_long_run, text};
use existing::{Existing, PASSWORD};

fn refused(place: &TestDir, output: &Output, words: &[&str]) {
    let said = text(output).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    assert!(!said.contains(PASSWORD), "{said}");
    assert!(!place.path("out").exists(), "nothing was created");
}

#[test]
#[needs(MariaDb)]
fn run_restores_an_existing_server_and_stores_no_password() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let schemas = server.fetch("SHOW DATABASES");
    let output = server.run(&place, "innodb", "lab", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(place.report()["trials"][0]["status"], "done");
    assert!(!text(&output).contains(PASSWORD));
    assert_eq!(files_holding(&place.path("out"), PASSWORD), Vec::<PathBuf>::new());
    assert_eq!(files_holding(&place.path("state"), PASSWORD), Vec::<PathBuf>::new());
    assert_eq!(server.fetch("SHOW DATABASES"), schemas, "the schema that was made is removed");
    // An empty schema that existed before stays, and stays empty.
    server.fetch("CREATE DATABASE kept");
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = server.run(&place, "innodb", "kept", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(server.fetch("SHOW TABLES FROM kept"), Vec::<String>::new());
}

#[test]
#[needs(MariaDb)]
fn no_process_of_a_run_shows_the_password() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
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
    // An interrupted run's remains in its schema are marked as rumba's, so the next run may take the schema.
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = server.run(&place, "innodb", "lab", "", PASSWORD);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
#[needs(MariaDb)]
fn wrong_password_and_foreign_objects_are_refused_unchanged() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let output = server.run(&place, "innodb", "lab", "", "wrong");
    refused(&place, &output, &["Access denied", "RUMBA_MYSQL_PASSWORD"]);
    let output = server.run(&place, "innodb", "lab", "&tls=required", PASSWORD);
    refused(&place, &output, &["TLS", "tls="]);
    server.fetch("CREATE DATABASE thesis");
    server.fetch("CREATE TABLE thesis.chapters SELECT 'irreplaceable' AS text");
    let output = server.run(&place, "innodb", "thesis", "", PASSWORD);
    refused(&place, &output, &["thesis is not empty", "chapters", "name a schema in the DSN that is empty"]);
    assert_eq!(server.fetch("SELECT text FROM thesis.chapters"), ["irreplaceable"]);
    // Views and routines count as foreign objects as well.
    server.fetch("CREATE DATABASE routines");
    server.fetch("CREATE FUNCTION routines.answer() RETURNS INT RETURN 42");
    let output = server.run(&place, "innodb", "routines", "", PASSWORD);
    refused(&place, &output, &["routines is not empty", "answer"]);
}

/// Guards against dropping foreign tables: a foreign marker table with the right column would have allowed it. The
/// error was "Unknown column".
#[test]
#[needs(MariaDb)]
fn schema_with_foreign_marker_table_is_refused_unchanged() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    server.fetch("CREATE DATABASE thesis");
    server.fetch("CREATE TABLE thesis.rumba_marker SELECT 'blue' AS colour");
    let output = server.run(&place, "innodb", "thesis", "", PASSWORD);
    refused(&place, &output, &["thesis is not empty", "rumba_marker that rumba did not make"]);
    // Even with the column, it does not identify rumba.
    server.fetch("CREATE OR REPLACE TABLE thesis.rumba_marker SELECT 1 AS made_schema");
    let output = server.run(&place, "innodb", "thesis", "", PASSWORD);
    refused(&place, &output, &["rumba_marker that rumba did not make"]);
    assert_eq!(server.fetch("SELECT made_schema FROM thesis.rumba_marker"), ["1"]);
}

#[test]
#[needs(MariaDb)]
fn setting_unlike_the_existing_server_shows_both_values() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let sets = ["--set", &server.dsn("lab", ""), "--set", "innodb.innodb_page_size=4k"];
    let mut command = place.short_run("innodb", &sets);
    ended(1, command.env("RUMBA_MYSQL_PASSWORD", PASSWORD));
    let cause = place.report()["trials"][0]["failure"]["cause"].to_string();
    assert!(cause.contains("innodb_page_size was set to 4096 and is 16384"), "{cause}");
    assert!(!server.fetch("SHOW DATABASES").contains(&"lab".to_owned()), "nothing was made");
}

#[test]
#[needs(MariaDb)]
fn doctor_lists_and_removes_what_a_killed_run_left_on_a_server() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let schemas = server.fetch("SHOW DATABASES");
    let file = place.path("client.cnf");
    std::fs::write(&file, format!("[client]\npassword = {PASSWORD}\n")).unwrap();
    let dsn = server.dsn("lab", &format!("&defaults-file={}", file.display()));
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &[&dsn]);
    let doctor = |args: &[&str]| place.rumba(&[&["doctor"], args].concat()).output().unwrap();
    assert!(text(&doctor(&[])).contains("no leftovers"), "the run lives");
    kill("-KILL", run.id());
    run.wait().unwrap();
    let listed = text(&doctor(&[]));
    let shown = dsn.strip_prefix("server=").unwrap();
    assert!(listed.contains(&format!("on the server innodb {shown}, left by process {}", run.id())), "{listed}");
    assert_eq!(files_holding(&place.path("state"), PASSWORD), Vec::<PathBuf>::new());
    // Without the password it stays listed.
    std::fs::write(&file, "[client]\n").unwrap();
    let output = doctor(&["--clean"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("RUMBA_MYSQL_PASSWORD"), "{}", text(&output));
    let mut clean = place.rumba(&["doctor", "--clean"]);
    let output = clean.env("RUMBA_MYSQL_PASSWORD", PASSWORD).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(server.fetch("SHOW DATABASES"), schemas);
    assert!(text(&doctor(&[])).contains("no leftovers"));
}
