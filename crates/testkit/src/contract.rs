//! The tests that every transactional key-value engine must pass. An engine instantiates all of them:
//!
//! ```no_run
//! use rumba_engine_api::engine::{Durability, Engine, EngineConfig};
//! use rumba_testkit::contract::{self, Contract};
//!
//! # fn of(engine: &'static dyn Engine, config: fn(Durability) -> EngineConfig) {
//! // #[test] #[each(contract::cases)]
//! let key_value_contract = |case: &'static str| {
//!     Contract { engine, config, writer: "commit_until_killed" }.holds(case);
//! };
//!
//! // #[test] #[ignore = "run by the contract in a separate process"]
//! let commit_until_killed = || rumba_testkit::crash::commit_until_killed(engine);
//! # }
//! ```
//!
//! The binary needs [`Counting`](crate::allocations::Counting) as its global allocator.

use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession, Scan};
use rumba_engine_api::setting::Value;

use crate::key_value::{Database, SPACES, agrees_with_a_map, get, put, scan, session};
use crate::{Each, allocations, crash};

/// A key-value engine under test.
pub struct Contract {
    /// The engine.
    pub engine: &'static dyn Engine,
    /// Its configuration for a durability.
    pub config: fn(Durability) -> EngineConfig,
    /// The path of the ignored test that calls [`crash::commit_until_killed`].
    pub writer: &'static str,
}

type Case = fn(&Contract);

const CASES: [(&str, Case); 9] = [
    ("agrees_with_a_map", |contract| agrees_with_a_map(contract.engine, &contract.fast())),
    ("writes_are_private_until_commit", writes_are_private_until_commit),
    ("dropped_session_rolls_back_and_frees_its_locks", dropped_session_rolls_back),
    ("calls_outside_a_transaction_are_refused", calls_outside_a_transaction_are_refused),
    ("concurrent_increments_lose_no_update", concurrent_increments_lose_no_update),
    ("rows_survive_settle_close_and_reopen", rows_survive_settle_close_and_reopen),
    ("killed_process_loses_no_acknowledged_commit", killed_process_loses_no_commit),
    ("close_with_an_open_session_is_refused", close_with_an_open_session_is_refused),
    ("warmed_up_session_allocates_nothing", warmed_up_session_allocates_nothing),
];

/// The names of the contract's tests.
pub fn cases() -> Vec<Each> {
    CASES.into_iter().map(|(name, _)| Each { name, need: None }).collect()
}

impl Contract {
    /// Runs the test of this name.
    ///
    /// # Panics
    /// The engine breaks the contract.
    pub fn holds(&self, case: &str) {
        let (_, test) = CASES.into_iter().find(|(name, _)| *name == case).expect("the name of a case");
        test(self);
    }

    fn fast(&self) -> EngineConfig {
        (self.config)(Durability::None)
    }

    fn open(&self) -> Database {
        Database::open(self.engine, &self.fast())
    }
}

/// Checks that an engine refuses a misspelt setting with the nearest name, and, if it compresses, an unknown compression
/// with its own.
///
/// # Panics
/// It accepts one of them, or the error lacks the remedy.
pub fn unknown_settings_are_refused(engine: &dyn Engine, config: &EngineConfig, misspelt: &str, nearest: &str) {
    let mut wrong = config.clone();
    wrong.settings.0.insert(misspelt.to_owned(), Value::Int(1));
    let error = engine.check(&wrong).expect_err("an unknown setting");
    assert_eq!((error.key.as_str(), error.remedy), (misspelt, format!("did you mean `{nearest}`?")));
    if engine.info().compressions == ["none"] {
        return;
    }
    let wrong = EngineConfig { compression: Some("brotli".to_owned()), ..config.clone() };
    let error = engine.check(&wrong).expect_err("an unknown compression");
    let has_all = engine.info().compressions.iter().all(|compression| error.remedy.contains(compression));
    assert!(error.key == "compression" && error.problem.contains("brotli") && has_all, "{error:?}");
    let opened = engine.open(Path::new("/nowhere"), &wrong, Schema::KeyValue(&SPACES));
    assert!(matches!(opened, Err(EngineError::Failed { .. })), "{}", config.name);
}

/// Two transactions wait for each other's row. With an infinite lock timeout only deadlock detection ends the wait, so a
/// failure is a hanging test.
///
/// # Panics
/// Both transactions end without an error.
pub fn deadlock_ends_one_of_the_two(engine: &dyn Engine, config: &EngineConfig) -> EngineError {
    let (database, both_hold) = (Database::open(engine, config), Barrier::new(2));
    let one = |mut session: Box<dyn KvSession>, mine: &[u8], other: &[u8]| {
        session.begin().expect("to begin");
        session.put(0, mine, b"x").expect("to put");
        both_hold.wait();
        let outcome = session.put(0, other, b"x");
        session.rollback().expect("to roll back");
        outcome
    };
    let (first, second) = (database.session(), database.session());
    let outcomes = std::thread::scope(|scope| {
        let first = scope.spawn(|| one(first, b"a", b"b"));
        let second = scope.spawn(|| one(second, b"b", b"a"));
        [first, second].map(|session| session.join().expect("no panic"))
    });
    outcomes.into_iter().find_map(Result::err).expect("a deadlock")
}

/// Users of an engine with a single writer need to know how long sessions wait for it. `wait` begins and ends a write
/// transaction, which another session delays until `release` ends its own.
///
/// # Panics
/// The counter differs from the wait.
pub fn waits_for_the_writer_are_counted(instance: &dyn Instance, wait: impl FnOnce() + Send, release: impl FnOnce()) {
    let waited_us = || {
        let counters = instance.counters();
        counters.iter().find(|counter| counter.name == "waited_writer_us").expect("a counter").value
    };
    let (before_us, begun) = (waited_us(), Instant::now());
    let (begins, seen) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || {
            begins.send(()).expect("the test waits for it");
            wait();
            begun.elapsed()
        });
        seen.recv().expect("it begins");
        std::thread::sleep(Duration::from_millis(200));
        release();
        let (waited, counted_us) = (waits.join().expect("no panic"), waited_us() - before_us);
        assert!(counted_us > 0.0 && counted_us <= waited.as_micros() as f64, "{counted_us} of {waited:?}");
    });
}

fn writes_are_private_until_commit(contract: &Contract) {
    let database = contract.open();
    let (mut writer, mut reader) = (database.session(), database.session());
    put(&mut *writer, 1, b"aa1", b"old");
    put(&mut *writer, 1, b"aa3", b"gone");
    for commits in [false, true] {
        writer.begin().expect("to begin");
        writer.put(1, b"aa1", b"new").expect("to put");
        writer.put(1, b"aa2", b"added").expect("to put");
        writer.delete(1, b"aa3").expect("to delete");
        let new = [(b"aa1".to_vec(), b"new".to_vec()), (b"aa2".to_vec(), b"added".to_vec())];
        let old = [(b"aa1".to_vec(), b"old".to_vec()), (b"aa3".to_vec(), b"gone".to_vec())];
        assert_eq!(scan(&mut *writer, 1, b"aa", b"ab", 9), new);
        assert_eq!(get(&mut *reader, 1, b"aa2"), None);
        assert_eq!(scan(&mut *reader, 1, b"aa", b"ab", 9), old);
        if commits {
            writer.commit().expect("to commit");
        } else {
            writer.rollback().expect("to roll back");
            writer.rollback().expect("a second rollback does nothing");
        }
        // A cursor that the reader keeps must show later commits.
        assert_eq!(scan(&mut *reader, 1, b"aa", b"ab", 9), if commits { new } else { old });
        assert_eq!(get(&mut *reader, 0, b"aa1"), None, "key spaces are separate");
    }
}

fn dropped_session_rolls_back(contract: &Contract) {
    let database = contract.open();
    let mut dropped = database.session();
    dropped.begin().expect("to begin");
    dropped.put(0, b"a", b"never committed").expect("to put");
    drop(dropped);
    let mut next = database.session();
    assert_eq!(get(&mut *next, 0, b"a"), None);
    put(&mut *next, 0, b"a", b"no conflict");
    assert_eq!(get(&mut *next, 0, b"a").as_deref(), Some(&b"no conflict"[..]));
}

fn calls_outside_a_transaction_are_refused(contract: &Contract) {
    let database = contract.open();
    let mut session = database.session();
    for space in 0..SPACES.len() {
        for refused in [
            session.put(space, b"a", b"1"),
            session.delete(space, b"a"),
            session.get_for_update(space, b"a", &mut Vec::new()).map(drop),
            session.commit(),
        ] {
            let error = refused.expect_err("there is no transaction").to_string();
            assert!(error.contains("begin"), "{error}");
        }
    }
    assert_eq!(get(&mut *session, 0, b"a"), None, "a refused write is not committed alone");
    session.begin().expect("to begin");
    session.begin().expect_err("a second transaction would lose the first");
}

/// The first increments of each key race to insert it.
fn concurrent_increments_lose_no_update(contract: &Contract) {
    const EACH: u64 = 2_000;
    const KEYS: u8 = 50;
    let database = contract.open();
    std::thread::scope(|scope| {
        for mut session in [database.session(), database.session()] {
            scope.spawn(move || (0..EACH).for_each(|turn| increment(&mut *session, (turn % u64::from(KEYS)) as u8)));
        }
    });
    let mut session = database.session();
    let counts = (0..KEYS).map(|key| number(&get(&mut *session, 0, &[key]).expect("a count")));
    assert_eq!(counts.sum::<u64>(), 2 * EACH);
}

fn increment(session: &mut dyn KvSession, key: u8) {
    while let Err(error) = try_increment(session, key) {
        assert!(error.is_conflict(), "{error}");
        session.rollback().expect("to roll back");
    }
}

fn try_increment(session: &mut dyn KvSession, key: u8) -> Result<()> {
    let mut value = Vec::new();
    session.begin()?;
    let found = session.get_for_update(0, &[key], &mut value)?;
    let count = if found { number(&value) } else { 0 };
    session.put(0, &[key], &(count + 1).to_le_bytes())?;
    session.commit()
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().expect("eight bytes"))
}

const ROWS: u32 = 5_000;

/// A value longer than a page, and others that compress well.
fn value(row: u32) -> Vec<u8> {
    if row == 7 { vec![7; 300_000] } else { format!("value {row:08} ").repeat(12).into_bytes() }
}

/// With every durability and every compression, and logs exactly where the engine says that it has one.
fn rows_survive_settle_close_and_reopen(contract: &Contract) {
    for (level, durability) in Durability::NAMES {
        let compressions: &[&str] = contract.engine.info().compressions;
        for compression in compressions {
            let config = EngineConfig { compression: Some((*compression).to_owned()), ..(contract.config)(durability) };
            if contract.engine.check(&config).is_err() {
                assert_eq!(durability, Durability::Buffered, "only this durability may be missing");
                continue;
            }
            let case = format!("{}, {level}, {compression}", config.name);
            let Database { instance, dir } = Database::open(contract.engine, &config);
            load(&mut *session(&*instance));
            has_log(contract.engine, &config, &*instance, dir.path());
            instance.settle().expect("to settle");
            has_rows(&mut *session(&*instance), &case);
            instance.drain().expect("to drain");
            instance.close().expect("to close");
            if contract.engine.reopens(&config) {
                let again = contract.engine.reopen(dir.path(), &config, Schema::KeyValue(&SPACES)).expect("to reopen");
                has_rows(&mut *session(&*again), &case);
                again.close().expect("to close");
            }
        }
    }
}

fn load(session: &mut dyn KvSession) {
    let mut batch = Batch::default();
    for row in 0..ROWS {
        batch.push(0, &row.to_be_bytes(), &value(row));
        if batch.len() == 1000 {
            session.load(&batch).expect("to load");
            batch.clear();
        }
    }
}

fn has_log(engine: &dyn Engine, config: &EngineConfig, instance: &dyn Instance, dir: &Path) {
    let files = std::fs::read_dir(dir).expect("its directory").map(|entry| entry.expect("a file").path());
    let logs = files.filter(|file| instance.is_log(file));
    let bytes: u64 = logs.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum();
    assert_eq!(bytes > 0, engine.nature(config).has_log == Some(true), "{} bytes, {config:?}", bytes);
}

fn has_rows(session: &mut dyn KvSession, case: &str) {
    let mut rows = |from: &[u8], to: u32, limit| {
        let rows = scan(session, 0, from, &to.to_be_bytes(), limit);
        rows.into_iter()
            .map(|(key, found)| {
                let row = u32::from_be_bytes(key.try_into().expect("four bytes"));
                assert!(found == value(row), "{case}: the value of row {row}");
                row
            })
            .collect::<Vec<u32>>()
    };
    assert_eq!(rows(&[], u32::MAX, usize::MAX), (0..ROWS).collect::<Vec<_>>(), "{case}");
    assert_eq!(rows(&[0, 0, 0, 7], 9, 99), [7, 8], "{case}: `to` is exclusive");
    assert_eq!(rows(&[0, 0, 0, 7, 0], 10, 99), [8, 9], "{case}: a bound that is not a key");
    assert_eq!(rows(&[0, 0, 1], u32::MAX, 3), [256, 257, 258], "{case}");
    assert_eq!([rows(&[9], u32::MAX, 9), rows(&[0, 0, 1], 9, 9), rows(&[], 9, 0)].concat(), [0; 0], "{case}");
}

fn killed_process_loses_no_commit(contract: &Contract) {
    for durability in [Durability::NoSync, Durability::Sync] {
        crash::loses_no_commit(contract.engine, &(contract.config)(durability), contract.writer);
    }
}

fn close_with_an_open_session_is_refused(contract: &Contract) {
    let database = contract.open();
    let _open = [database.session(), database.session()];
    let error = database.instance.close().expect_err("two sessions are open").to_string();
    assert!(error.contains("still open"), "{error}");
}

/// A session's buffers grow with the first calls. An allocation per call would count as the engine's cost.
fn warmed_up_session_allocates_nothing(contract: &Contract) {
    let database = contract.open();
    let mut session = database.session();
    let (mut value, mut batch, mut sum) = (Vec::new(), Batch::default(), 0);
    batch.push(0, b"loaded", b"value");
    let mut round = |rounds: u32| -> Result<()> {
        for id in 0..rounds {
            let key = (id % 100).to_be_bytes();
            let range = Scan { from: &key, to: &[0xff], limit: 10 };
            let keys: [&[u8]; 2] = [&key, b"absent"];
            session.load(&batch)?;
            session.begin()?;
            session.get_for_update(0, &key, &mut value)?;
            session.put(0, &key, &[7; 300])?;
            session.put(2, &key, b"entry")?;
            session.delete(2, &key)?;
            session.multi_get(0, &keys, &mut value, &mut |_, value| sum += value.len())?;
            sum += session.scan(0, range, &mut |_, _| {})?;
            session.commit()?;
            session.get(0, &key, &mut value)?;
            session.multi_get(0, &keys, &mut value, &mut |_, value| sum += value.len())?;
            sum += session.scan(0, range, &mut |_, _| {})?;
        }
        Ok(())
    };
    assert!(allocations::during(|| round(100).expect("to warm up")) > 0, "the global allocator does not count");
    assert_eq!(allocations::during(|| round(1000).expect("to go on")), 0);
    assert!(sum > 0);
}
