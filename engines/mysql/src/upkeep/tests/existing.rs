//! Settling and draining existing servers must not change them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rumba_protocol_mysql::{Admin, Rows, WireError};

use crate::counters::tests::server::{self, Private};
use crate::counters::{Kind, Request, counters, debt, purge_progress};
use crate::upkeep::{Patience, existing};

const UPDATE: &str = "UPDATE lab.rows_ SET k = k + 1, filler = REVERSE(filler) WHERE id % 3 = 0";

struct RecordingConnection {
    admin: Admin,
    said: Vec<String>,
}

impl Request for RecordingConnection {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        self.said.push(sql.to_owned());
        self.admin.fetch(sql)
    }
}

impl RecordingConnection {
    fn of(server: &Private) -> Self {
        Self { admin: server.connect(), said: Vec::new() }
    }

    /// The statements that change server variables.
    fn changes(&self) -> Vec<&String> {
        self.said.iter().filter(|sql| sql.to_ascii_uppercase().contains("SET GLOBAL")).collect()
    }
}

/// The number of dirty pages of `lab.rows_`. MariaDB uses 1 and 2 for clean and temporary pages.
fn dirty_pages(admin: &mut Admin) -> u64 {
    let sql = "SELECT COUNT(*) FROM information_schema.INNODB_BUFFER_PAGE \
               WHERE TABLE_NAME LIKE '%rows\\_%' AND OLDEST_MODIFICATION > 2";
    admin.fetch(sql).expect("pages").rows[0][0].as_deref().expect("a number").parse().expect("a number")
}

/// A kill -9 left an existing server with another I/O capacity, and the next run measured that.
#[test]
#[needs(MariaDb)]
fn innodb_pays_for_its_tables_and_no_variable_is_touched() {
    // A server that writes no page on its own while the buffer pool has space.
    let private = Private::start(&["--innodb-max-dirty-pages-pct=90", "--innodb-max-dirty-pages-pct-lwm=0"]);
    let (mut reported, innodb) = (RecordingConnection::of(&private), private.server(Kind::InnoDb));
    let mut admin = private.connect();
    server::load(&mut admin, "InnoDB", 50_000);
    let variables = server::variables(&mut admin, "%");
    existing::settle(&mut reported, &innodb, "lab", &Patience::default(), true).expect("settled");
    assert_eq!(dirty_pages(&mut admin), 0, "the load is written");
    server::run(&mut admin, &[UPDATE, UPDATE, "DELETE FROM lab.rows_ WHERE id % 10 = 0"]);
    let committed = purge_progress(&mut admin).expect("the monitor").next;
    assert!(dirty_pages(&mut admin) > 100);
    existing::drain(&mut reported, &innodb, "lab", &Patience::default()).expect("drained");
    assert_eq!(dirty_pages(&mut admin), 0);
    let purge = purge_progress(&mut admin).expect("the monitor");
    let history = debt(&mut admin, &innodb).get("history_list_length");
    assert!(purge.purged >= committed || history == Some(0.0) || purge.rests, "{purge:?} {history:?}");
    assert_eq!(reported.changes(), Vec::<&String>::new());
    assert_eq!(server::variables(&mut admin, "%"), variables);
    server::run(&mut admin, &["INSERT INTO lab.rows_ VALUES (1000000, 1, 'the tables are unlocked again')"]);
}

/// Other schemas of a server in use always have dirty pages and history. The run must not wait for them.
#[test]
#[needs(MariaDb)]
fn settle_does_not_wait_for_other_schemas() {
    let private = Private::start(&[]);
    let innodb = private.server(Kind::InnoDb);
    let mut admin = private.connect();
    server::load(&mut admin, "InnoDB", 5000);
    server::run(&mut admin, &["CREATE DATABASE other", "CREATE TABLE other.rows_ SELECT * FROM lab.rows_", UPDATE]);
    let (done, mut other) = (AtomicBool::new(false), private.connect());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let _ = other.fetch("UPDATE other.rows_ SET k = k + 1");
            }
        });
        let patience = Patience { poll: Duration::from_millis(20), stuck_after: Duration::from_secs(30) };
        let drained = existing::drain(&mut admin, &innodb, "lab", &patience);
        done.store(true, Ordering::Relaxed);
        assert_eq!(drained, Ok(()));
    });
}

/// Otherwise a run would wait forever for a forgotten transaction, or for another session's lock.
#[test]
#[needs(MariaDb)]
fn transactions_and_locks_of_others_end_a_drain_with_the_cause() {
    let private = Private::start(&[]);
    let innodb = private.server(Kind::InnoDb);
    let mut admin = private.connect();
    server::load(&mut admin, "InnoDB", 1000);
    let patience = Patience { poll: Duration::from_millis(20), stuck_after: Duration::from_secs(2) };
    let mut other = private.connect();
    server::run(&mut other, &["LOCK TABLES lab.rows_ WRITE"]);
    let error = existing::drain(&mut admin, &innodb, "lab", &patience).expect_err("locked").to_string();
    assert!(error.contains("FOR EXPORT") && error.contains("1205"), "{error}");
    server::run(&mut other, &["UNLOCK TABLES"]);
    existing::drain(&mut admin, &innodb, "lab", &Patience::default()).expect("drained");
    server::run(&mut other, &["START TRANSACTION WITH CONSISTENT SNAPSHOT"]);
    server::run(&mut admin, &[UPDATE, UPDATE]);
    let error = existing::drain(&mut admin, &innodb, "lab", &patience).expect_err("purge is held back").to_string();
    assert!(error.contains("transactions to purge"), "{error}");
    assert!(error.contains("an open transaction keeps purge back"), "{error}");
}

#[test]
#[needs(MariaDb)]
fn tables_in_the_system_tablespace_are_refused_with_remedy() {
    let private = Private::start(&["--innodb-file-per-table=OFF"]);
    let innodb = private.server(Kind::InnoDb);
    let mut admin = private.connect();
    server::load(&mut admin, "InnoDB", 1000);
    let error = existing::drain(&mut admin, &innodb, "lab", &Patience::default()).expect_err("not apart").to_string();
    assert!(error.contains("innodb_file_per_table = ON"), "{error}");
}

#[test]
#[needs(MariaDb, MyRocks)]
fn myrocks_is_flushed_and_its_options_stay_as_they_are() {
    let private = Private::with_myrocks();
    let (mut reported, myrocks) = (RecordingConnection::of(&private), private.server(Kind::RocksDb));
    let mut admin = private.connect();
    server::load(&mut admin, "RocksDB", 50_000);
    server::run(&mut admin, &[UPDATE]);
    let variables = server::variables(&mut admin, "%");
    let options = "SELECT * FROM information_schema.ROCKSDB_CF_OPTIONS ORDER BY 1, 2, 3";
    let before = admin.fetch(options).expect("options").rows;
    existing::settle(&mut reported, &myrocks, "lab", &Patience::default(), true).expect("settled");
    let left = debt(&mut admin, &myrocks);
    assert!(left.get("memtable_bytes").is_some_and(|bytes| bytes <= 65536.0), "{left:?}");
    assert_eq!(left.get("compacting_files"), Some(0.0), "{left:?}");
    assert_eq!(left.get("compaction_pending"), Some(0.0), "{left:?}");
    assert_eq!(server::variables(&mut admin, "%"), variables);
    assert_eq!(admin.fetch(options).expect("options").rows, before);
    assert_eq!(
        reported.changes(),
        ["SET GLOBAL rocksdb_force_flush_memtable_now = 1"],
        "a command, which leaves nothing"
    );
}

/// Only the tables of the tested engine are closed, also for an engine that rumba does not know. Its counters are
/// reported.
#[test]
#[needs(MariaDb)]
fn tables_of_another_engine_are_flushed_by_name() {
    let private = Private::start(&[]);
    let (mut reported, aria) = (RecordingConnection::of(&private), private.server(Kind::of("Aria")));
    let mut admin = private.connect();
    server::load(&mut admin, "Aria", 1000);
    existing::settle(&mut reported, &aria, "lab", &Patience::default(), true).expect("settled");
    assert!(reported.said.iter().any(|sql| sql == "FLUSH LOCAL TABLES `lab`.`rows_`"), "{:?}", reported.said);
    let reading = counters(&mut admin, &aria);
    assert!(reading.get("Aria_pagecache_write_requests").is_some_and(|requests| requests > 0.0), "{reading:?}");
    assert_eq!(debt(&mut admin, &aria).gauges, [], "what it puts off cannot be known");
}
