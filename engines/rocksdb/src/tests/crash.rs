//! What a durability promises when the process is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use super::*;

const DIRECTORY: &str = "RUMBA_TEST_CRASH_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_CRASH_DURABILITY";
const COMMITS: u64 = 500;
/// What the child says when all commits are acknowledged.
const DONE: &str = "all acknowledged";

fn row(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Rows of both key spaces that are there after a child has committed
/// [`COMMITS`] of each and was killed.
fn survivors(durability: Durability) -> [u64; 2] {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::crash::commit_and_wait", "--ignored", "--nocapture"])
        .env(DIRECTORY, dir.path())
        .env(DURABILITY, durability.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let done = lines.any(|line| line.unwrap().contains(DONE));
    // SIGKILL: nothing of the child runs any more.
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(done && status.code().is_none(), "the child ended by itself: {status}");

    let instance =
        RocksDb.open(dir.path(), &EngineConfig { durability, ..config() }, Schema::KeyValue(&SPACES)).unwrap();
    let mut session = session(&*instance);
    let counts = [NODE, INDEX]
        .map(|space| (0..COMMITS).filter(|number| get(&mut *session, space, &row(*number)).is_some()).count() as u64);
    drop(session);
    instance.close().unwrap();
    counts
}

#[test]
fn a_killed_process_loses_no_commit_under_no_sync_and_sync() {
    assert_eq!(survivors(Durability::NoSync), [COMMITS, COMMITS]);
    assert_eq!(survivors(Durability::Sync), [COMMITS, COMMITS]);
}

/// What `none` gives up; it also shows that the test above could fail.
#[test]
fn a_killed_process_loses_the_memtables_under_none() {
    assert_eq!(survivors(Durability::None), [0, 0]);
}

#[test]
#[ignore = "run by the tests above in a process of its own"]
fn commit_and_wait() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let name = std::env::var(DURABILITY).unwrap();
    let (_, durability) = Durability::NAMES.into_iter().find(|(known, _)| *known == name).unwrap();
    let instance =
        RocksDb.open(Path::new(&dir), &EngineConfig { durability, ..config() }, Schema::KeyValue(&SPACES)).unwrap();
    let mut session = session(&*instance);
    for number in 0..COMMITS {
        session.begin().unwrap();
        session.put(NODE, &row(number), b"committed").unwrap();
        session.put(INDEX, &row(number), b"with it").unwrap();
        session.commit().unwrap();
    }
    println!("{DONE}");
    // Until the kill; or, should the parent die first, until its end of the pipe closes.
    let _ = std::io::stdin().read(&mut [0]);
    std::process::abort();
}
