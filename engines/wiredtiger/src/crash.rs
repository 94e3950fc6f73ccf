//! What a durability promises when the process is killed.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use rumba_core::engine::{Durability, Engine, EngineConfig, Schema, Session as AnySession};
use rumba_core::kv::KeySpace;
use rumba_core::setting::{Settings, Value};

use crate::WiredTiger;
use crate::raw::{Connection, Library, Session};

const DIRECTORY: &str = "RUMBA_TEST_CRASH_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_CRASH_DURABILITY";
const COMMITS: u32 = 500;

/// How many of the committed rows are there after the crash and the recovery.
fn survivors(durability: Durability) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "crash::commit_and_die", "--ignored", "--nocapture"]);
    child.env(DIRECTORY, dir.path()).env(DURABILITY, durability.name());
    let status = child.status().unwrap();
    assert!(!status.success(), "the child should have died");

    let library = Library::load(None).unwrap();
    let connection = Connection::open(&library, dir.path(), "log=(enabled=true)").unwrap();
    let mut session = Session::open(&connection).unwrap();
    let cursor = session.open_cursor("table:rows").unwrap();
    let mut value = Vec::new();
    (0..COMMITS).filter(|row| session.search(cursor, &row.to_be_bytes(), &mut value).unwrap()).count() as u32
}

#[test]
fn a_killed_process_loses_no_commit_under_no_sync_and_sync() {
    for durability in [Durability::NoSync, Durability::Sync] {
        assert_eq!(survivors(durability), COMMITS, "{}", durability.name());
    }
}

/// The reason why `no-sync` is not the library's `transaction_sync=(enabled=false)`,
/// which is what `none` keeps a log with. Should this begin to fail, that cheaper
/// setting has become good enough.
#[test]
fn commits_that_stay_in_the_log_buffer_are_lost() {
    assert!(survivors(Durability::None) < COMMITS);
}

#[test]
#[ignore = "run by the tests above in a process of its own"]
fn commit_and_die() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let asked = std::env::var(DURABILITY).unwrap();
    let (_, durability) = Durability::NAMES.into_iter().find(|(name, _)| *name == asked).unwrap();
    let mut settings = Settings::default();
    settings.0.insert("log.enabled".into(), Value::Bool(true));
    settings.0.insert("log.file_max".into(), Value::Text("1MiB".into()));
    let config = EngineConfig {
        name: "crash".into(),
        engine: "wiredtiger".into(),
        cache: 16 << 20,
        durability,
        compression: None,
        library: None,
        server: None,
        limits: Default::default(),
        settings,
    };
    let spaces = [KeySpace { name: "rows", scan_prefix: 0, derived: false }];
    let instance = WiredTiger.open(Path::new(&dir), &config, Schema::KeyValue(&spaces)).unwrap();
    let AnySession::Kv(mut session) = instance.session().unwrap() else { panic!() };
    for row in 0..COMMITS {
        session.begin().unwrap();
        session.put(0, &row.to_be_bytes(), b"committed").unwrap();
        session.commit().unwrap();
    }
    std::process::abort();
}
