//! Effective settings, the cache budget, settle and drain.

use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, Instance, Schema};
use rumba_engine_api::setting::Value;
use rumba_engine_api::sql::Param;
use rumba_engine_sqlite::Sqlite;
use rumba_testkit::contract;

use crate::*;

/// A table of `rows` rows of about 1 KB.
fn fill(session: &mut Sql, rows: u32) {
    session.run("CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB); CREATE INDEX i ON t (substr(b, 1, 8))").unwrap();
    session.run("BEGIN IMMEDIATE").unwrap();
    let insert = session.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
    for id in 0..rows {
        let blob = [id.to_be_bytes(); 250].concat();
        execute(session, insert, &[Param::Int(id.into()), Param::Bytes(&blob)], &mut |_| {}).unwrap();
    }
    session.run("COMMIT").unwrap();
}

fn debt(instance: &dyn Instance) -> Option<f64> {
    instance.debt().into_iter().find(|gauge| gauge.name == "wal_uncheckpointed_bytes").map(|gauge| gauge.value)
}

fn refusal(durability: Durability, settings: &[(&str, Value)]) -> (String, String) {
    let error = Sqlite.check(&config(durability, settings)).unwrap_err();
    (error.key, error.remedy)
}

#[test]
fn unknown_settings_are_refused() {
    let config = config(Durability::NoSync, &[]);
    contract::unknown_settings_are_refused(&Sqlite, &config, "jurnal_mode", "journal_mode");
    assert!(refusal(Durability::NoSync, &[("page_size", Value::Int(5000))]).1.contains("power of two"));
}

#[test]
fn close_with_an_open_session_is_refused() {
    let (_dir, instance) = open();
    let _open = session(&*instance);
    let error = instance.close().unwrap_err();
    assert!(error.to_string().contains("1 sessions are still open"), "{error}");
}

#[test]
fn setting_that_contradicts_the_durability_is_refused() {
    for level in ["off", "normal"] {
        let (key, remedy) = refusal(Durability::Sync, &[("synchronous", text(level))]);
        assert_eq!(key, "synchronous");
        assert!(remedy.contains("full"), "{remedy}");
    }
    for mode in ["memory", "off"] {
        let (key, remedy) = refusal(Durability::NoSync, &[("journal_mode", text(mode))]);
        assert_eq!(key, "journal_mode");
        assert!(remedy.contains("durability = \"none\""), "{remedy}");
        Sqlite.check(&config(Durability::None, &[("journal_mode", text(mode))])).unwrap();
    }
}

#[test]
fn synchronous_follows_durability_and_journal_mode() {
    for (durability, journal_mode, expected) in [
        (Durability::Sync, "wal", "full"),
        (Durability::NoSync, "wal", "normal"),
        (Durability::None, "wal", "off"),
        (Durability::Sync, "delete", "full"),
        (Durability::NoSync, "truncate", "off"),
        (Durability::None, "memory", "off"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let instance = open_in(dir.path(), &config(durability, &[("journal_mode", text(journal_mode))]));
        assert_eq!(in_force(&*instance, "synchronous"), expected, "{durability:?}, {journal_mode}");
        // Most of these belong to a connection, so each session must have the same values.
        let mut session = session(&*instance);
        let level = ["off", "normal", "full"].into_iter().position(|word| word == expected).unwrap();
        assert_eq!(int(&mut *session, "PRAGMA synchronous"), level as i64);
        let select = session.prepare("PRAGMA journal_mode").unwrap();
        let mut mode = Vec::new();
        execute(&mut *session, select, &[], &mut |row| mode = row.bytes(0).to_vec()).unwrap();
        assert_eq!(mode, journal_mode.as_bytes());
    }
}

#[test]
fn every_setting_reaches_every_session() {
    let (_dir, instance) = open_with(&[
        ("page_size", text("16k")),
        ("mmap_size", text("1MiB")),
        ("wal_autocheckpoint", Value::Int(7)),
        ("auto_vacuum", text("incremental")),
        ("temp_store", text("memory")),
        ("busy_timeout", Value::Int(123)),
        ("busy_handler", text("sqlite")),
        ("cache_size", Value::Int(-333)),
    ]);
    let mut session = session(&*instance);
    for (name, value) in [
        ("page_size", 16384),
        ("mmap_size", 1 << 20),
        ("wal_autocheckpoint", 7),
        ("auto_vacuum", 2),
        ("temp_store", 2),
        ("busy_timeout", 123),
        ("cache_size", -333),
    ] {
        assert_eq!(int(&mut *session, &format!("PRAGMA {name}")), value, "{name}");
    }
    assert_eq!(in_force(&*instance, "auto_vacuum"), "incremental");
    assert_eq!(in_force(&*instance, "cache"), "333 KiB in each session");
    assert_eq!(in_force(&*instance, "SQLITE_CONFIG_MEMSTATUS"), "off");
}

#[test]
fn reported_busy_handler_is_used_in_every_session() {
    for (durability, requested, handler, answer) in [
        // SQLite resets its own timeout when another handler is set.
        (Durability::NoSync, None, "short", 0),
        (Durability::NoSync, Some("sqlite"), "sqlite", 5000),
        (Durability::Sync, None, "sqlite", 5000),
        (Durability::Sync, Some("short"), "short", 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let settings: Vec<_> = requested.map(|word| ("busy_handler", text(word))).into_iter().collect();
        let instance = open_in(dir.path(), &config(durability, &settings));
        assert_eq!(in_force(&*instance, "busy_handler"), handler);
        assert_eq!(in_force(&*instance, "busy_timeout"), "5000");
        assert_eq!(int(&mut *session(&*instance), "PRAGMA busy_timeout"), answer, "{durability:?}, {requested:?}");
    }
}

#[test]
fn writer_lock_wait_times_out_as_a_conflict() {
    for handler in ["short", "sqlite"] {
        let (_dir, instance) = open_with(&[("busy_handler", text(handler)), ("busy_timeout", Value::Int(20))]);
        let (mut first, mut second) = (session(&*instance), session(&*instance));
        first.run("BEGIN IMMEDIATE").unwrap();
        let error = second.run("BEGIN IMMEDIATE").unwrap_err();
        assert!(error.is_conflict(), "{handler}: {error}");
        assert!(second.run("CREATE TABLE t (n)").unwrap_err().is_conflict(), "{handler}, outside a transaction");
        first.run("ROLLBACK").unwrap();
        second.run("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }
}

#[test]
fn a_setting_that_does_not_take_effect_is_an_error_at_open() {
    let dir = tempfile::tempdir().unwrap();
    // This build's SQLite maps 2 GiB at most and silently reduces a larger size.
    let Err(error) =
        Sqlite.open(dir.path(), &config(Durability::NoSync, &[("mmap_size", text("1TiB"))]), Schema::BySession)
    else {
        panic!("a smaller map was taken silently");
    };
    assert!(error.to_string().contains("requested mmap_size = 1099511627776, but"), "{error}");
}

#[test]
fn session_caches_together_use_and_respect_the_budget() {
    const BUDGET: u64 = 4 << 20;
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(Durability::NoSync, &[]);
    config.cache = BUDGET;
    let instance = open_in(dir.path(), &config);
    fill(&mut *session(&*instance), 20_000);
    // A few sessions fill their caches, then more sessions open and the first ones must shrink.
    let mut sessions = Vec::new();
    for count in [1usize, 2, 8] {
        while sessions.len() < count {
            sessions.push(session(&*instance));
        }
        for round in 0..2 {
            for session in &mut sessions {
                let read = session.prepare("SELECT length(b) FROM t WHERE id = ?").unwrap();
                for id in 0..2560 {
                    execute(&mut **session, read, &[Param::Int(id * 7)], &mut |_| {}).unwrap();
                }
            }
            let used = counter(&*instance, "cache_used_bytes");
            // In addition to its pages a cache has a hash table, and some pages are always in use.
            let adjacent = 16 * 1024 * count as u64;
            assert!(used <= (BUDGET + adjacent) as f64, "{used} bytes of {BUDGET} in {count} sessions, round {round}");
            assert!(round == 0 || used > 0.7 * BUDGET as f64, "{used} bytes of {BUDGET} in {count} sessions");
        }
    }
    drop(sessions);
    assert_eq!(counter(&*instance, "cache_used_bytes"), 0.0);
    let (hit, miss) = (counter(&*instance, "cache_hit"), counter(&*instance, "cache_miss"));
    assert!(hit > 0.0 && miss > 0.0, "{hit} hits, {miss} misses: those of ended sessions are kept");
}

#[test]
fn the_log_is_debt_until_it_is_drained() {
    let (dir, instance) = open_with(&[("wal_autocheckpoint", Value::Int(0))]);
    instance.drain().unwrap();
    assert_eq!(debt(&*instance), Some(0.0));
    fill(&mut *session(&*instance), 1000);
    let owed = debt(&*instance).unwrap();
    // The session that wrote is closed, and closing it must not write a checkpoint.
    assert!(owed > 1_000_000.0, "{owed} bytes of debt for 1000 rows of 1000 bytes");
    assert!(counter(&*instance, "wal_file_bytes") >= owed);
    instance.drain().unwrap();
    assert_eq!(debt(&*instance), Some(0.0));
    assert_eq!(counter(&*instance, "wal_file_bytes"), 0.0);
    let data = std::fs::metadata(dir.path().join("rumba.sqlite")).unwrap().len();
    assert!(data > 1_000_000);
    // Without a log there is no deferred work.
    let (_dir, instance) = open_with(&[("journal_mode", text("delete"))]);
    fill(&mut *session(&*instance), 10);
    assert!(instance.debt().is_empty());
    instance.drain().unwrap();
}

#[test]
fn drain_with_an_open_transaction_is_an_error() {
    let (_dir, instance) = open_with(&[("wal_autocheckpoint", Value::Int(0)), ("busy_timeout", Value::Int(0))]);
    let (mut reader, mut writer) = (session(&*instance), session(&*instance));
    fill(&mut *writer, 10);
    reader.run("BEGIN; SELECT count(*) FROM t").unwrap();
    writer.run("DELETE FROM t").unwrap();
    assert!(instance.drain().is_err());
    reader.run("COMMIT").unwrap();
    instance.drain().unwrap();
}

#[test]
fn settle_gathers_statistics_for_the_planner() {
    let (_dir, instance) = open();
    let mut first = session(&*instance);
    fill(&mut *first, 2000);
    instance.settle().unwrap();
    let mut session = session(&*instance);
    assert!(int(&mut *session, "SELECT count(*) FROM sqlite_stat1 WHERE tbl = 't'") > 0);
    assert_eq!(debt(&*instance), Some(0.0));
    assert_eq!(int(&mut *first, "SELECT count(*) FROM t"), 2000);
}

#[test]
fn exclusive_lock_refuses_a_second_session_with_reason() {
    let (_dir, instance) = open_with(&[("locking_mode", text("exclusive")), ("busy_timeout", Value::Int(0))]);
    assert_eq!(in_force(&*instance, "locking_mode"), "exclusive");
    let mut only = session(&*instance);
    fill(&mut *only, 10);
    let Err(error) = instance.session() else { panic!("two sessions under an exclusive lock") };
    assert!(error.to_string().contains("allows one session"), "{error}");
    assert!(instance.drain().is_err());
    assert!(instance.debt()[0].value > 0.0);
    drop(only);
    instance.drain().unwrap();
    assert_eq!(int(&mut *session(&*instance), "SELECT count(*) FROM t"), 10);
}

#[test]
fn logs_are_distinguished_from_data() {
    let (_dir, instance) = open();
    for log in ["rumba.sqlite-wal", "rumba.sqlite-shm", "rumba.sqlite-journal"] {
        assert!(instance.is_log(&Path::new("/data").join(log)), "{log}");
    }
    assert!(!instance.is_log(Path::new("/data/rumba.sqlite")));
}
