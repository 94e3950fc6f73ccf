//! What a durability promises when the process is killed.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::*;
use rumba_core::engine::Durability;
use rumba_core::setting::Value;

const DIRECTORY: &str = "RUMBA_TEST_CRASH_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_CRASH_DURABILITY";
const COMMITS: usize = 300;

fn settings() -> [(&'static str, Value); 1] {
    [("map_size", Value::Text("1GiB".into()))]
}

/// Has a child commit rows, each in two spaces, and kills it in the midst of that
/// once it has acknowledged rows 1 to [`COMMITS`].
fn kill_a_writer(dir: &Path, durability: Durability) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "commit_until_killed", "--ignored", "--nocapture"])
        .env(DIRECTORY, dir)
        .env(DURABILITY, durability.name())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Open until the child is dead: it is to die of the kill and not of a closed pipe.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let rows = lines.by_ref().map_while(Result::ok).filter_map(|line| line.strip_prefix("row ")?.parse::<u32>().ok());
    let acknowledged = rows.take(COMMITS).count();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "{}", durability.name());
    assert_eq!(acknowledged, COMMITS, "{}", durability.name());
}

#[test]
fn a_killed_process_loses_no_acknowledged_commit() {
    for durability in [Durability::NoSync, Durability::Sync] {
        let dir = tempfile::tempdir().unwrap();
        kill_a_writer(dir.path(), durability);
        let instance = open_in(dir.path(), &config(durability, &settings()));
        let mut session = session(&*instance);
        for row in 1..=COMMITS as u32 {
            for space in [ROWS, INDEX] {
                let value = get(&mut *session, space, &row.to_be_bytes());
                assert_eq!(value.as_deref(), Some(&b"committed"[..]), "{}: row {row}", durability.name());
            }
        }
        // What it had not finished is gone whole, and the writer lock it held is free.
        assert_eq!(counter(&*instance, "rows.entries"), counter(&*instance, "index.entries"));
        session.begin().unwrap();
        session.commit().unwrap();
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn commit_until_killed() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let asked = std::env::var(DURABILITY).unwrap();
    let (_, durability) = Durability::NAMES.into_iter().find(|(name, _)| *name == asked).unwrap();
    let instance = open_in(Path::new(&dir), &config(durability, &settings()));
    let mut session = session(&*instance);
    let mut out = std::io::stdout().lock();
    for row in 1u32.. {
        session.begin().unwrap();
        session.put(ROWS, &row.to_be_bytes(), b"committed").unwrap();
        session.put(INDEX, &row.to_be_bytes(), b"committed").unwrap();
        session.commit().unwrap();
        writeln!(out, "row {row}").unwrap();
    }
}
