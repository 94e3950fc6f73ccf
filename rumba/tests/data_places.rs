//! The directory of an engine's data is exclusive. Foreign files in it are neither used nor changed, and only one of
//! two simultaneous runs gets it. The lab ensures this, not the engines; the test checks for each engine that its way
//! of opening does not undo it.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{TestDir, kill, set, start_long_run, text, two_at_a_time};
use serde_json::Value;

/// A user that no system has.
const OUTSIDER: u32 = 12_345;
const PRECIOUS: &str = "irreplaceable";
/// Foreign files with the names that engines give to their own.
const THEIRS: [&str; 9] = [
    "thesis.txt",
    "data/CURRENT",
    "data/WiredTiger",
    "data/data",
    "data/data.mdb",
    "data/rumba.sqlite",
    "data/snapshot",
    "data/tokudb.directory",
    "data/wal",
];

/// An engine, and its additional options.
struct Over {
    engine: &'static str,
    sets: Vec<String>,
}

impl Over {
    fn library(engine: &'static str) -> Self {
        Self { engine, sets: Vec::new() }
    }

    fn secantusdb() -> Self {
        let program = rumba_testkit::secantusdb::program().canonicalize().unwrap();
        // Each record takes a millisecond and more, and their number does not matter here.
        let sets = vec![format!("server={}", program.display()), "maxid1=200".to_owned(), "rate=100".to_owned()];
        Self { engine: "secantusdb", sets }
    }

    fn place(&self) -> TestDir {
        TestDir::for_engines(embedded::have_transactions(&[self.engine]))
    }

    fn run(&self, place: &TestDir, data: &str) -> Command {
        let mut command = place.short_run(self.engine, &["--quiet", "--set", &format!("data_dir={data}")]);
        set(&mut command, &self.sets);
        command
    }

    /// The data directory of its only trial.
    fn trial(&self, data: &Path) -> PathBuf {
        data.join(format!("001-{}-c2-r1", self.engine))
    }

    fn all(&self) {
        self.files_of_others_stay_theirs();
        self.of_two_runs_at_once_one_has_it();
    }

    fn files_of_others_stay_theirs(&self) {
        let place = self.place();
        let trial = self.trial(&place.path("mine"));
        fs::create_dir_all(trial.join("data")).unwrap();
        for name in THEIRS {
            fs::write(trial.join(name), PRECIOUS).unwrap();
        }
        let output = self.run(&place, "mine").output().unwrap();
        self.assert_refused(&place, &output, "not made by rumba");
        for name in THEIRS {
            assert_eq!(fs::read_to_string(trial.join(name)).unwrap(), PRECIOUS, "{}: {name}", self.engine);
        }
    }

    fn of_two_runs_at_once_one_has_it(&self) {
        let place = self.place();
        let more: Vec<&str> = ["data_dir=shared"].into_iter().chain(self.sets.iter().map(String::as_str)).collect();
        let mut first = start_long_run(&place, self.engine, &place.path("first"), &more);
        let second = self.run(&place, "shared").output().unwrap();
        kill("-INT", first.id());
        let ended = first.wait().unwrap();
        self.assert_refused(&place, &second, "is in use by");
        assert_eq!(ended.code(), Some(130), "{}", self.engine);
        let report = place.rumba(&["report", "first", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        let trial = &report["trials"][0];
        assert_eq!(trial["status"], "interrupted", "{}: {}", self.engine, trial["failure"]);
        assert!(common::phase(trial, "loop 1").unwrap()["ops"].as_u64() > Some(0), "{}", self.engine);
        assert!(place.is_clean(), "{}", self.engine);
        let again = self.run(&place, "shared").output().unwrap();
        assert_eq!(again.status.code(), Some(0), "{}: {}", self.engine, text(&again));
    }

    /// Another user's link in a directory like /tmp, to a directory of root's.
    fn untrusted_symlink_is_not_followed(&self) {
        let place = self.place();
        fs::set_permissions(place.path("."), Permissions::from_mode(0o755)).unwrap();
        let (shared, target) = (place.path("shared"), place.path("target"));
        for (directory, mode) in [(&shared, 0o1777), (&target, 0o755)] {
            fs::create_dir(directory).unwrap();
            fs::set_permissions(directory, Permissions::from_mode(mode)).unwrap();
        }
        let link = self.trial(&shared);
        symlink(&target, &link).unwrap();
        lchown(&link, Some(OUTSIDER), Some(OUTSIDER)).unwrap();
        let output = self.run(&place, "shared").output().unwrap();
        self.assert_refused(&place, &output, "12345");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0, "{}", self.engine);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{}", self.engine);
    }

    fn assert_refused(&self, place: &TestDir, output: &Output, why: &str) {
        let said: String = text(output).chars().filter(|c| !c.is_whitespace() && *c != '│').collect();
        assert_eq!(output.status.code(), Some(2), "{}: {}", self.engine, text(output));
        assert!(said.contains(&why.replace(' ', "")), "{}: {}", self.engine, text(output));
        assert!(!place.path("out").exists(), "{}: nothing was created", self.engine);
    }
}

#[test]
fn data_directory_of_embedded_engines_is_exclusive() {
    two_at_a_time(&embedded::names(&embedded::here(), |_| true), |engine| Over::library(engine).all());
}

#[test]
#[each(embedded::brought)]
fn data_directory_of_external_engines_is_exclusive(engine: &'static str) {
    Over::library(engine).all();
}

#[test]
#[needs(SecantusDb)]
fn data_directory_of_document_servers_is_exclusive() {
    Over::secantusdb().all();
}

#[test]
#[needs(Root)]
fn untrusted_symlink_is_not_followed_by_embedded_engines() {
    let engines = embedded::names(&embedded::here(), |_| true);
    two_at_a_time(&engines, |engine| Over::library(engine).untrusted_symlink_is_not_followed());
}

#[test]
#[needs(Root)]
#[each(embedded::brought)]
fn untrusted_symlink_is_not_followed_by_external_engines(engine: &'static str) {
    Over::library(engine).untrusted_symlink_is_not_followed();
}

#[test]
#[needs(Root, SecantusDb)]
fn untrusted_symlink_is_not_followed_by_document_servers() {
    Over::secantusdb().untrusted_symlink_is_not_followed();
}
