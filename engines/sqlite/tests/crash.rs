//! What a durability promises when the process is killed.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::*;
use rumba_core::engine::Durability;
use rumba_core::sql::Param;

const DIRECTORY: &str = "RUMBA_TEST_CRASH_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_CRASH_DURABILITY";
const JOURNAL_MODE: &str = "RUMBA_TEST_CRASH_JOURNAL_MODE";
const COMMITS: usize = 300;

/// Has a child insert rows, a transaction each, and kills it in the midst of that
/// once it has acknowledged rows 1 to [`COMMITS`].
fn kill_a_writer(dir: &Path, durability: Durability, journal_mode: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "commit_until_killed", "--ignored", "--nocapture"])
        .env(DIRECTORY, dir)
        .env(DURABILITY, durability.name())
        .env(JOURNAL_MODE, journal_mode)
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
        for journal_mode in ["wal", "delete"] {
            let dir = tempfile::tempdir().unwrap();
            kill_a_writer(dir.path(), durability, journal_mode);
            let instance = open_in(dir.path(), &config(durability, &[("journal_mode", text(journal_mode))]));
            let mut session = session(&*instance);
            let case = format!("{}, {journal_mode}", durability.name());
            let acknowledged = format!("SELECT count(*) FROM t WHERE id <= {COMMITS} AND b = 'committed'");
            assert_eq!(int(&mut *session, &acknowledged), COMMITS as i64, "{case}");
            // What it had not finished is gone whole, index and all, and no lock is left.
            assert_eq!(
                int(&mut *session, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                1,
                "{case}"
            );
            session.run("BEGIN IMMEDIATE; COMMIT").unwrap();
        }
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn commit_until_killed() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let asked = std::env::var(DURABILITY).unwrap();
    let (_, durability) = Durability::NAMES.into_iter().find(|(name, _)| *name == asked).unwrap();
    let journal_mode = std::env::var(JOURNAL_MODE).unwrap();
    let instance = open_in(Path::new(&dir), &config(durability, &[("journal_mode", text(&journal_mode))]));
    let mut session = session(&*instance);
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t (b, id)").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (?, 'committed')").unwrap();
    let mut out = std::io::stdout().lock();
    for row in 1i64.. {
        execute(&mut *session, insert, &[Param::Int(row)], &mut |_| {}).unwrap();
        writeln!(out, "row {row}").unwrap();
    }
}
