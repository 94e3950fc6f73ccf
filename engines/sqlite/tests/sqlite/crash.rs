//! Checks which commits survive a kill at each durability level.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::sql::Param;
use rumba_testkit::crash::{self, Death, ROWS, Writer};

use crate::*;

#[test]
fn a_killed_process_loses_no_acknowledged_commit() {
    for durability in [Durability::NoSync, Durability::Sync] {
        for journal_mode in ["wal", "delete"] {
            let dir = tempfile::tempdir().unwrap();
            let config = config(durability, &[("journal_mode", text(journal_mode))]);
            crash::kill("crash::commit_until_killed", dir.path(), &config, Death::InTheMidst);
            let instance = open_in(dir.path(), &config);
            let mut session = session(&*instance);
            let case = format!("{}, {journal_mode}", durability.name());
            let acknowledged = format!("SELECT count(*) FROM t WHERE id <= {ROWS} AND b = 'committed'");
            assert_eq!(int(&mut *session, &acknowledged), ROWS as i64, "{case}");
            // The unfinished transaction is rolled back completely, indexes included, and no lock remains.
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
#[ignore = "run by the test above in a separate process"]
fn commit_until_killed() {
    let Some(writer) = Writer::requested() else { return };
    let instance = open_in(&writer.dir, &writer.config);
    let mut session = session(&*instance);
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t (b, id)").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (?, 'committed')").unwrap();
    writer.write(|row| {
        execute(&mut *session, insert, &[Param::Int(row as i64)], &mut |_| {}).unwrap();
    })
}
