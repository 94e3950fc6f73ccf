//! A full device ends a trial with an error that says so.

use rumba_engine_api::engine::{Durability, Engine, Schema};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::Param;
use rumba_engine_sqlite::Sqlite;
use rumba_testkit::mounts::Tmpfs;

use crate::*;

/// Writes until an error occurs, and rolls back. Returns the error and the number of committed rows.
fn fill(session: &mut Sql) -> (EngineError, i64) {
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB)").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
    for id in 0..1_000_000 {
        session.run("BEGIN IMMEDIATE").unwrap();
        let written = execute(session, insert, &[Param::Int(id), Param::Bytes(&[7; 3000])], &mut |_| {})
            .and_then(|_| session.run("COMMIT"));
        if let Err(error) = written {
            session.run("ROLLBACK").unwrap();
            return (error, id);
        }
    }
    panic!("a million rows fit into a few MiB");
}

#[test]
#[needs(Tmpfs)]
fn full_device_is_reported_and_commits_stay_readable() {
    for journal_mode in ["wal", "delete"] {
        let device = Tmpfs::of_mebibytes(8);
        let instance = open_in(device.path(), &config(Durability::NoSync, &[("journal_mode", text(journal_mode))]));
        let mut session = session(&*instance);
        let (error, rows) = fill(&mut *session);
        assert!(matches!(error, EngineError::DiskFull(_)), "{journal_mode}: {error:?}");
        assert!(rows > 0);
        assert_eq!(int(&mut *session, "SELECT count(*) FROM t"), rows, "{journal_mode}");
        assert_eq!(int(&mut *session, "SELECT max(id) FROM t"), rows - 1, "{journal_mode}");
        drop(session);
        instance.close().unwrap();
    }
}

#[test]
#[needs(Tmpfs)]
fn a_device_with_no_room_for_the_log_is_full_and_not_broken() {
    let mut met = 0;
    for kib_left in (0..80).step_by(4) {
        let device = Tmpfs::of_mebibytes(1);
        std::fs::write(device.path().join("filler"), vec![0; (1024 - kib_left) * 1024]).unwrap();
        match Sqlite.open(device.path(), &config(Durability::NoSync, &[]), Schema::BySession) {
            Ok(instance) => instance.close().unwrap(),
            Err(EngineError::DiskFull(_)) => met += 1,
            Err(error) => panic!("with {kib_left} KiB left: {error:?}"),
        }
    }
    assert!(met > 0);
}
