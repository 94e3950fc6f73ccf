//! A session's transactions on one key: alone, concurrent, after a restart and after a kill.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::setting::Value;
use rumba_engine_bf_tree::BfTree;
use rumba_testkit::crash::{self, Death, Writer};
use rumba_testkit::key_value::{SPACES, get, put, scan, session};

const ROWS: usize = 0;
const OTHERS: usize = 1;

fn config(durability: Durability) -> EngineConfig {
    with_segment(durability, "16KiB")
}

/// A configuration with log segments of this size.
fn with_segment(durability: Durability, segment: &str) -> EngineConfig {
    let settings = [("wal_flush_interval", "20us"), ("wal_segment_size", segment)];
    EngineConfig {
        // Small, so that the cache evicts records to the file and reads them back.
        cache: 64 << 10,
        durability,
        settings: settings.map(|(name, value)| (name, Value::Text(value.to_owned()))).into(),
        ..EngineConfig::new("bf-tree")
    }
}

fn open(dir: &Path, durability: Durability) -> Box<dyn Instance> {
    BfTree.open(dir, &config(durability), Schema::KeyValue(&SPACES)).unwrap()
}

fn reopen(dir: &Path, durability: Durability) -> Box<dyn Instance> {
    BfTree.reopen(dir, &config(durability), Schema::KeyValue(&SPACES)).unwrap()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(session: &mut dyn KvSession, space: usize) -> Rows {
    scan(session, space, &[], &[0xff; 8], usize::MAX).into_iter().collect()
}

/// A step of a linear congruential generator.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Writes random keys, and keeps the expected rows in `right`.
fn fill(session: &mut dyn KvSession, right: &mut [Rows; 2], state: &mut u64, writes: u64) {
    for _ in 0..writes {
        let (space, key) = (next(state) as usize % 2, format!("key{:05}", next(state) % 2000).into_bytes());
        if next(state).is_multiple_of(4) {
            session.begin().unwrap();
            session.delete(space, &key).unwrap();
            session.commit().unwrap();
            right[space].remove(&key);
        } else {
            let value = vec![b'a' + (next(state) % 26) as u8; 1 + next(state) as usize % 900];
            put(session, space, &key, &value);
            right[space].insert(key, value);
        }
    }
}

fn holds(session: &mut dyn KvSession, right: &[Rows; 2]) {
    for space in [ROWS, OTHERS] {
        assert!(rows(session, space) == right[space], "space {space} is not what was written");
    }
}

#[test]
fn spaces_hold_what_was_written_also_after_a_restart() {
    for durability in [Durability::None, Durability::NoSync] {
        let (dir, mut right, mut state) = (tempfile::tempdir().unwrap(), [Rows::new(), Rows::new()], 7);
        let instance = open(dir.path(), durability);
        fill(&mut *session(&*instance), &mut right, &mut state, 4000);
        holds(&mut *session(&*instance), &right);
        instance.close().unwrap();
        for _ in 0..2 {
            let instance = reopen(dir.path(), durability);
            holds(&mut *session(&*instance), &right);
            fill(&mut *session(&*instance), &mut right, &mut state, 1000);
            holds(&mut *session(&*instance), &right);
            instance.close().unwrap();
        }
    }
}

#[test]
fn one_key_is_written_and_a_second_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let instance = open(dir.path(), Durability::None);
    let mut session = session(&*instance);
    assert!(session.put(ROWS, b"a", b"1").unwrap_err().to_string().contains("begin"));
    session.begin().unwrap();
    session.put(ROWS, b"a", b"1").unwrap();
    assert_eq!(get(&mut *session, ROWS, b"a").as_deref(), Some(&b"1"[..]), "its own write");
    session.put(ROWS, b"a", b"2").unwrap();
    for refused in [session.put(ROWS, b"b", b"1"), session.put(OTHERS, b"a", b"1"), session.delete(ROWS, b"b")] {
        assert!(refused.unwrap_err().to_string().contains("no transactions"));
    }
    session.rollback().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"a"), None);
    put(&mut *session, ROWS, b"a", b"33");
    session.begin().unwrap();
    session.delete(ROWS, b"a").unwrap();
    assert_eq!(get(&mut *session, ROWS, b"a"), None, "its own delete");
    session.rollback().unwrap();
    assert_eq!(get(&mut *session, ROWS, b"a").as_deref(), Some(&b"33"[..]));
    for (value, setting) in [(&[1; 4000][..], "cb_max_record_size"), (&[1], "cb_min_record_size"), (&[], "empty")] {
        session.begin().unwrap();
        session.put(ROWS, b"b", value).unwrap();
        let error = session.commit().unwrap_err().to_string();
        assert!(error.contains(setting), "{error}");
    }
    put(&mut *session, ROWS, b"a", b"44");
}

#[test]
fn rows_read_for_update_stay_locked_until_the_end() {
    const CLIENTS: u64 = 4;
    const TURNS: u64 = 2000;
    let dir = tempfile::tempdir().unwrap();
    let instance = open(dir.path(), Durability::None);
    let add = |client: u64| {
        let mut session = session(&*instance);
        let mut value = Vec::new();
        for turn in 0..TURNS {
            let key = [(turn + client) as u8 % 3];
            session.begin().unwrap();
            let found = session.get_for_update(ROWS, &key, &mut value).unwrap();
            let count = if found { u64::from_le_bytes(value[..].try_into().unwrap()) } else { 0 };
            session.put(ROWS, &key, &(count + 1).to_le_bytes()).unwrap();
            session.commit().unwrap();
        }
        // A session dropped in the middle of a write must release its lock.
        session.begin().unwrap();
        session.get_for_update(ROWS, &[0], &mut value).unwrap();
    };
    std::thread::scope(|scope| (0..CLIENTS).for_each(|client| drop(scope.spawn(move || add(client)))));
    let counts = rows(&mut *session(&*instance), ROWS);
    let sum: u64 = counts.values().map(|value| u64::from_le_bytes(value[..].try_into().unwrap())).sum();
    assert_eq!(sum, CLIENTS * TURNS);
}

/// Sixteen YCSB clients overflowed their stacks in a debug build. Their pending entries exceeded a segment, and the
/// library waits for space by recursion until the thread that empties the segment runs.
#[test]
fn clients_wait_for_room_when_the_log_segment_is_full() {
    const CLIENTS: u32 = 64;
    const WRITES: u32 = 200;
    // Half of this is enough for writes that find space. A larger stack would rarely overflow.
    const STACK: usize = 128 << 10;
    let dir = tempfile::tempdir().unwrap();
    let mut config = EngineConfig { cache: 16 << 20, ..config(Durability::NoSync) };
    // Use the default flush interval.
    config.settings.0.remove("wal_flush_interval");
    let instance = BfTree.open(dir.path(), &config, Schema::KeyValue(&SPACES)).unwrap();
    let put = |client: u32| {
        let mut session = session(&*instance);
        for row in 0..WRITES {
            put(&mut *session, ROWS, &(row * CLIENTS + client).to_be_bytes(), &[7; 1000]);
        }
    };
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, move || put(client)).unwrap();
        }
    });
    assert_eq!(rows(&mut *session(&*instance), ROWS).len(), (CLIENTS * WRITES) as usize);
}

/// The library never empties a segment that is not half full, so an entry that did not fit waited forever.
#[test]
fn smallest_segment_fits_longest_record_at_any_offset() {
    let (dir, smallest) = (tempfile::tempdir().unwrap(), with_segment(Durability::NoSync, "4KiB"));
    assert!(BfTree.check(&with_segment(Durability::NoSync, "3584B")).is_err(), "it is the smallest");
    let instance = BfTree.open(dir.path(), &smallest, Schema::KeyValue(&SPACES)).unwrap();
    let mut session = session(&*instance);
    for row in 0..200_u32 {
        for length in [900, 1870, 40, 1100] {
            put(&mut *session, ROWS, &row.to_be_bytes(), &vec![7; length]);
        }
    }
    drop(session);
    instance.close().unwrap();
}

fn are_there(session: &mut dyn KvSession, last: u64) {
    for row in 1..=last {
        let value = get(session, ROWS, &row.to_be_bytes());
        assert_eq!(value, Some(row.to_le_bytes().repeat(12)), "row {row} of {last}");
    }
}

const WRITER: &str = "write_until_killed";

#[test]
fn wal_keeps_acknowledged_writes_after_two_kills() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = 0;
    // The second time there is a snapshot in addition to the log.
    for _ in 0..2 {
        crash::kill(WRITER, dir.path(), &config(Durability::NoSync), Death::InTheMidst);
        let instance = reopen(dir.path(), Durability::NoSync);
        let mut session = session(&*instance);
        are_there(&mut *session, before + crash::ROWS);
        before = rows(&mut *session, ROWS).len() as u64;
        drop(session);
        instance.close().unwrap();
    }
}

#[test]
fn kill_without_wal_loses_all_data_and_reports_it() {
    let dir = tempfile::tempdir().unwrap();
    crash::kill(WRITER, dir.path(), &config(Durability::None), Death::InTheMidst);
    let refused = BfTree.reopen(dir.path(), &config(Durability::None), Schema::KeyValue(&SPACES));
    let Err(error) = refused else { panic!("it opened what is not whole") };
    assert!(error.to_string().contains("snapshot is missing"), "{error}");
}

#[test]
#[ignore = "run by the tests above in a separate process"]
fn write_until_killed() {
    let Some(writer) = Writer::requested() else { return };
    let (dir, durability) = (writer.dir.as_path(), writer.config.durability);
    let instance = if dir.join("snapshot").exists() { reopen(dir, durability) } else { open(dir, durability) };
    let mut session = session(&*instance);
    let before = rows(&mut *session, ROWS).len() as u64;
    writer.write(|row| {
        let row = before + row;
        put(&mut *session, ROWS, &row.to_be_bytes(), &row.to_le_bytes().repeat(12));
    })
}
