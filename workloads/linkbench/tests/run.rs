//! Loads, runs the mix and verifies the data, as a trial does.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::Session;
use rumba_engine_api::workload::Bound;
use rumba_testkit::sql::ints;
use rumba_workload_linkbench::conformance;
use support::memory::Memory;
use support::server::Server;
use support::sqlite::Sqlite;
use support::{address, bind, drive, load};

const NODES: usize = 0;
const LINKS: usize = 1;
const COUNTS: usize = 2;
const INDEX: usize = 3;

fn assert_right(checks: &[Check]) {
    for check in checks {
        assert_eq!(check.wrong, 0, "{check:?}");
        assert!(check.examined > 0, "{check:?}");
    }
}

/// Runs the mix with several clients at once, each on its own thread; returns the operations that were not given up.
fn run_clients(bound: &dyn Bound, open: &(dyn Fn() -> Session + Sync), clients: u32, ops: u64) -> u64 {
    std::thread::scope(|scope| {
        let run = |at| {
            let mut client = bound.client(open(), address(at, clients), 7).unwrap();
            drive(client.as_mut(), ops)
        };
        let threads: Vec<_> = (0..clients).map(|at| scope.spawn(move || run(at))).collect();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap());
        counts.map(|count| count.ops.iter().sum::<u64>() - count.failed).sum()
    })
}

#[test]
fn concurrent_clients_leave_correct_counts_and_indexes() {
    for (profile, index) in [("2011", "during"), ("2017", "after")] {
        // Few ids, so that clients collide.
        let bound = bind(&[("profile", profile), ("maxid1", "300"), ("index", index)]);
        let memory = Memory::default();
        load(bound.as_ref(), &mut || memory.session(), 2);
        assert_right(&bound.verify(memory.session()).unwrap());
        let ops = run_clients(bound.as_ref(), &|| memory.session(), 2, 20_000);
        assert!(ops > 39_000, "{ops}");
        assert_right(&bound.verify(memory.session()).unwrap());
    }
}

#[test]
fn counts_and_index_entries_over_sql_are_right() {
    for (profile, index) in [("2011", "during"), ("2017", "after")] {
        let bound = bind(&[("profile", profile), ("maxid1", "3000"), ("index", index)]);
        let sqlite = Sqlite::new();
        let rows = load(bound.as_ref(), &mut || sqlite.session(), 2);
        assert_eq!(rows, bound.expected_rows());
        assert_right(&bound.verify(sqlite.session()).unwrap());
        let ops = run_clients(bound.as_ref(), &|| sqlite.session(), 2, 1500);
        assert!(ops > 2900, "{ops}");
        assert_right(&bound.verify(sqlite.session()).unwrap());
    }
}

/// Settings of a small graph and a mix of one type.
fn only(name: &'static str) -> Vec<(&'static str, &'static str)> {
    [("maxid1", "3000")].into_iter().chain(support::only(name)).collect()
}

#[test]
fn conflicts_are_retried_counted_and_at_last_given_up() {
    let mut pairs = only("updatelink");
    pairs.extend([("maxid1", "3"), ("max_retries", "2")]);
    let bound = bind(&pairs);
    let memory = Memory::default();
    load(bound.as_ref(), &mut || memory.session(), 1);
    // A session that holds every link's lock.
    let mut holder = memory.kv();
    let keys: Vec<Vec<u8>> = memory.store().rows.keys().filter(|key| key.0 == LINKS).map(|key| key.1.clone()).collect();
    for key in &keys {
        rumba_engine_api::kv::KvSession::put(&mut holder, LINKS, key, b"").unwrap();
    }
    let mut client = bound.client(memory.session(), address(0, 1), 7).unwrap();
    let count = drive(client.as_mut(), 50);
    assert!(count.failed > 20, "{count:?}");
    assert_eq!(count.retries, 2 * count.failed, "{count:?}");
    // A failed operation did nothing.
    rumba_engine_api::kv::KvSession::rollback(&mut holder).unwrap();
    assert_right(&bound.verify(memory.session()).unwrap());
}

#[test]
fn the_data_depend_on_neither_the_loaders_nor_the_index_order() {
    let content = |loaders, index| {
        let bound = bind(&[("maxid1", "10000"), ("index", index)]);
        let memory = Memory::default();
        let rows = load(bound.as_ref(), &mut || memory.session(), loaders);
        assert_eq!(rows, bound.expected_rows());
        std::mem::take(&mut memory.store().rows)
    };
    let alone = content(1, "during");
    assert!(alone == content(3, "during") && alone == content(1, "after") && alone == content(3, "after"));
}

#[test]
fn logical_bytes_are_those_of_the_rows_and_were_foreseen() {
    for (profile, index) in [("2011", "during"), ("2017", "during"), ("2017", "after")] {
        let bound = bind(&[("profile", profile), ("maxid1", "20000"), ("index", index)]);
        let memory = Memory::default();
        load(bound.as_ref(), &mut || memory.session(), 2);
        let stored: usize = memory.store().rows.iter().map(|(key, value)| key.1.len() + value.len()).sum();
        assert_eq!(bound.logical_bytes(), stored as u64);
        let foreseen = bound.expected_logical_bytes() as f64;
        assert!((foreseen / stored as f64 - 1.0).abs() < 0.02, "{foreseen} {stored}");
    }
    // SQL builds the index in one statement, but with the same entries.
    let bound = bind(&[("maxid1", "3000"), ("index", "after")]);
    let sqlite = Sqlite::new();
    load(bound.as_ref(), &mut || sqlite.session(), 2);
    let other = bind(&[("maxid1", "3000"), ("index", "during")]);
    let memory = Memory::default();
    load(other.as_ref(), &mut || memory.session(), 1);
    assert_eq!(bound.logical_bytes(), other.logical_bytes());
}

/// The bytes of keys and values.
fn stored(memory: &Memory) -> u64 {
    memory.store().rows.iter().map(|(key, value)| (key.1.len() + value.len()) as u64).sum()
}

#[test]
fn logical_bytes_follow_what_clients_add_replace_and_delete() {
    for profile in ["2011", "2017"] {
        // Many deletes, and payloads of other lengths than the loaded ones.
        let bound = bind(&[("profile", profile), ("maxid1", "3000"), ("node_datasize", "300")]);
        let memory = Memory::default();
        load(bound.as_ref(), &mut || memory.session(), 2);
        let loaded = bound.logical_bytes();
        for seed in 1..4 {
            let mut client = bound.client(memory.session(), address(0, 1), seed).unwrap();
            drive(client.as_mut(), 20_000);
            assert_eq!(bound.logical_bytes(), stored(&memory), "profile {profile}, after client {seed}");
        }
        assert_ne!(bound.logical_bytes(), loaded);
    }
}

#[test]
fn sql_logical_bytes_are_right_except_for_new_counts() {
    for profile in ["2011", "2017"] {
        let bound = bind(&[("profile", profile), ("maxid1", "3000")]);
        let sqlite = Sqlite::new();
        load(bound.as_ref(), &mut || sqlite.session(), 1);
        let Session::Sql(mut session) = sqlite.session() else { unreachable!() };
        let mut fetch = |sum| ints(&mut *session, sum).unwrap()[0];
        let counts = fetch("SELECT count(*) FROM counttable");
        let mut client = bound.client(sqlite.session(), address(0, 1), 7).unwrap();
        drive(client.as_mut(), 20_000);
        // New counts are left out; updates and deletes are right on average.
        let new_counts = fetch("SELECT count(*) FROM counttable") - counts;
        assert_eq!(new_counts > 0, profile == "2011", "in 2017 every id has its counts from the load");
        let sum = "SELECT (SELECT sum(24 + length(data)) FROM nodetable) \
             + (SELECT 2 * sum(37 + length(data)) FROM linktable) + (SELECT 40 * count(*) FROM counttable)";
        let there = (fetch(sum) - 40 * new_counts) as f64;
        let counted = bound.logical_bytes() as f64;
        assert!((counted / there - 1.0).abs() < 0.01, "{profile}: counted {counted}, {there} are there");
    }
}

#[test]
fn loaded_rows_look_as_published() {
    let bound = bind(&[("maxid1", "5000")]);
    let memory = Memory::default();
    load(bound.as_ref(), &mut || memory.session(), 1);
    let store = memory.store();
    let table = |space| store.rows.iter().filter(move |(key, _)| key.0 == space);
    assert_eq!(table(NODES).count(), 4999);
    assert_eq!(table(INDEX).count(), table(LINKS).count());
    let base = 1_512_086_400_000u64;
    let times: Vec<u64> = table(LINKS).map(|(_, value)| u64::from_le_bytes(value[5..13].try_into().unwrap())).collect();
    assert!(times.iter().all(|&time| time <= base && time > base - (1 << 32)));
    let days = (times.iter().max().unwrap() - times.iter().min().unwrap()) as f64 / 86.4e6;
    assert!((49.0..49.8).contains(&days), "{days}");
    assert!(table(LINKS).all(|(_, value)| value[0] == 1), "every loaded link is visible");
    // Links go to id1, id1 + 1, and so on.
    let mut next: Option<(Vec<u8>, u64)> = None;
    for (key, _) in table(LINKS) {
        let (head, id2) = key.1.split_at(16);
        let id2 = u64::from_be_bytes(id2.try_into().unwrap());
        let right = match &next {
            Some((previous, next)) if previous == head => *next,
            _ => u64::from_be_bytes(head[8..].try_into().unwrap()),
        };
        assert_eq!(id2, right);
        next = Some((head.to_vec(), id2 + 1));
    }
    assert_eq!(table(COUNTS).count(), 2 * 4999, "in 2017 every id has links of both types");
}

/// The failed checks, with their numbers of violations.
fn wrong(checks: Vec<Check>) -> Vec<(String, u64)> {
    let wrong = checks.into_iter().filter(|check| check.wrong > 0);
    wrong.inspect(|check| assert!(!check.examples.is_empty())).map(|check| (check.name, check.wrong)).collect()
}

/// The key of a row somewhere in the middle of a table.
fn some(store: &support::memory::Store, space: usize) -> (usize, Vec<u8>) {
    let keys: Vec<_> = store.rows.keys().filter(|key| key.0 == space).collect();
    keys[keys.len() * 2 / 3].clone()
}

const NODE_ROWS_CHECK: &str = "the nodes are as many as loaded and added, less those deleted";
const NODE_CHECK: &str = "every node has the type and a version that were written";
const LINK_ROWS_CHECK: &str = "the links are as many as loaded and inserted";
const COUNT_CHECK: &str = "every count equals its visible links";
const INDEX_CHECK: &str = "the index entries of every id equal its links";
const TYPE_CHECK: &str = "every row has a known link type";

/// Loses a visible link like a lost transaction: from all three tables, which then agree.
fn lose_link(store: &mut support::memory::Store) {
    let visible = |key: &(usize, Vec<u8>)| key.0 == LINKS && store.rows[key][0] == 1;
    let key = store.rows.keys().filter(|key| visible(key)).nth(1000).unwrap().clone();
    let value = store.rows.remove(&key).unwrap();
    let (link_type, id1, id2) = (&key.1[..8], &key.1[8..16], &key.1[16..]);
    let inverted = |number: [u8; 8]| (!u64::from_be_bytes(number)).to_be_bytes();
    let mut time: [u8; 8] = value[5..13].try_into().unwrap();
    time.reverse();
    let entry = [id1, link_type, &[1], &inverted(time), &inverted(id2.try_into().unwrap())].concat();
    store.rows.remove(&(INDEX, entry)).unwrap();
    let count = store.rows.get_mut(&(COUNTS, [id1, link_type].concat())).unwrap();
    let less = i64::from_le_bytes(count[..8].try_into().unwrap()) - 1;
    count[..8].copy_from_slice(&less.to_le_bytes());
}

/// Copies a row of each of these tables with other bytes in its key.
fn copy_rows(store: &mut support::memory::Store, tables: &[(usize, usize)], bytes: u64) {
    for &(table, at) in tables {
        let mut key = some(store, table);
        let value = store.rows[&key].clone();
        key.1[at..at + 8].copy_from_slice(&bytes.to_be_bytes());
        store.rows.insert(key, value);
    }
}

#[test]
fn verification_finds_each_kind_of_damage() {
    /// Its name, its effect, and the checks that fail, with their numbers of violations.
    type Damage = (&'static str, fn(&mut support::memory::Store), &'static [(&'static str, u64)]);
    fn value(store: &mut support::memory::Store, table: usize) -> &mut Vec<u8> {
        let key = some(store, table);
        store.rows.get_mut(&key).unwrap()
    }
    fn lose(store: &mut support::memory::Store, table: usize) {
        let key = some(store, table);
        store.rows.remove(&key).unwrap();
    }
    let damages: [Damage; 11] = [
        ("wrong count", |store| value(store, COUNTS)[0] += 1, &[(COUNT_CHECK, 1)]),
        ("lost count", |store| lose(store, COUNTS), &[(COUNT_CHECK, 1)]),
        ("count without links", |store| copy_rows(store, &[(COUNTS, 0)], 999_999), &[(COUNT_CHECK, 1)]),
        ("lost index entry", |store| lose(store, INDEX), &[(INDEX_CHECK, 1)]),
        ("altered index entry", |store| value(store, INDEX)[0] ^= 1, &[(INDEX_CHECK, 1)]),
        ("lost link", |store| lose(store, LINKS), &[(LINK_ROWS_CHECK, 1), (COUNT_CHECK, 1), (INDEX_CHECK, 1)]),
        ("link lost from all three tables", lose_link, &[(LINK_ROWS_CHECK, 1)]),
        ("lost node", |store| lose(store, NODES), &[(NODE_ROWS_CHECK, 1)]),
        ("node that came back", |store| copy_rows(store, &[(NODES, 0)], 999_999), &[(NODE_ROWS_CHECK, 1)]),
        ("zeroed node", |store| value(store, NODES).fill(0), &[(NODE_CHECK, 1)]),
        ("rows of an unwritten type", |store| copy_rows(store, &[(LINKS, 0), (COUNTS, 8)], 5), &[(TYPE_CHECK, 2)]),
    ];
    let bound = bind(&[("maxid1", "3000")]);
    let memory = Memory::default();
    load(bound.as_ref(), &mut || memory.session(), 1);
    run_clients(bound.as_ref(), &|| memory.session(), 2, 5000);
    assert_right(&bound.verify(memory.session()).unwrap());
    let rows = memory.store().rows.clone();
    let found = |damage: fn(&mut support::memory::Store)| {
        memory.store().rows.clone_from(&rows);
        damage(&mut memory.store());
        wrong(bound.verify(memory.session()).unwrap())
    };
    for (name, damage, expected) in damages {
        let wrong = found(damage);
        let wrong: Vec<(&str, u64)> = wrong.iter().map(|(name, wrong)| (name.as_str(), *wrong)).collect();
        assert_eq!(wrong, expected, "{name}");
    }
    let nothing = found(|store| store.rows.clear());
    let names: Vec<&str> = nothing.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [NODE_ROWS_CHECK, NODE_CHECK, LINK_ROWS_CHECK, COUNT_CHECK, INDEX_CHECK, TYPE_CHECK]);
    memory.store().rows.clone_from(&rows);
    value(&mut memory.store(), NODES).truncate(15);
    let error = bound.verify(memory.session()).unwrap_err().to_string();
    assert!(error.contains("nodetable"), "{error}");
}

#[test]
fn verification_finds_lost_acknowledged_transactions() {
    let bound = bind(&[("maxid1", "3000")]);
    let memory = Memory::default();
    load(bound.as_ref(), &mut || memory.session(), 1);
    let mut session = memory.kv();
    session.forgets_every = Some(10);
    let mut client = bound.client(Session::Kv(Box::new(session)), address(0, 1), 7).unwrap();
    drive(client.as_mut(), 20_000);
    let wrong = wrong(bound.verify(memory.session()).unwrap());
    // The tables agree with each other, so only the numbers of rows differ.
    let names: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [NODE_ROWS_CHECK, LINK_ROWS_CHECK]);
}

/// Another client writes the link only after the lookup, as on engines without a lock on absent rows.
#[test]
fn concurrently_written_link_is_retried() {
    let server = Arc::new(Mutex::new(Server { has_link: true, misses: 5, ..Server::default() }));
    let bound = bind(&only("updatelink"));
    let mut client = bound.client(Server::session(&server, 2), address(0, 1), 7).unwrap();
    let count = drive(client.as_mut(), 100);
    assert!((1..=5).contains(&count.retries) && count.failed == 0, "{count:?}");
}

#[test]
fn operation_of_unknown_outcome_is_reported_but_not_as_lost() {
    for applied in [false, true] {
        let bound = bind(&only("addlink"));
        let memory = Memory::default();
        load(bound.as_ref(), &mut || memory.session(), 1);
        let mut session = memory.kv();
        session.fails_commit = Some((500, applied));
        let mut client = bound.client(Session::Kv(Box::new(session)), address(0, 1), 7).unwrap();
        assert!(support::try_drive(client.as_mut(), 1000).is_err());
        let checks = bound.verify(memory.session()).unwrap();
        assert_right(&checks);
        assert!(checks.iter().any(|check| check.name.contains("leaving open 1 that ended")), "{checks:?}");
        // It excuses no more than its own row.
        (0..2).for_each(|_| lose_link(&mut memory.store()));
        let lost = wrong(bound.verify(memory.session()).unwrap());
        assert_eq!(lost.iter().map(|(_, wrong)| *wrong).collect::<Vec<_>>(), [2 - u64::from(applied)]);
    }
}

#[test]
fn conflicting_load_is_retried_without_an_open_transaction() {
    for index in ["during", "after"] {
        let bound = bind(&[("maxid1", "3000"), ("index", index)]);
        let memory = Memory::default();
        let open = || {
            let mut session = memory.kv();
            session.conflicts = 20;
            Session::Kv(Box::new(session))
        };
        let rows = load(bound.as_ref(), &mut || open(), 2);
        assert_eq!(rows, bound.expected_rows());
        assert_right(&bound.verify(memory.session()).unwrap());
    }
}

#[test]
fn a_seed_writes_the_same_rows_again() {
    let content = |seed| {
        let bound = bind(&[("maxid1", "500")]);
        let memory = Memory::default();
        load(bound.as_ref(), &mut || memory.session(), 1);
        let mut client = bound.client(memory.session(), address(0, 1), seed).unwrap();
        drive(client.as_mut(), 5000);
        std::mem::take(&mut memory.store().rows)
    };
    assert!(content(3) == content(3));
    assert!(content(3) != content(4));
}

#[test]
fn conformance_detects_an_engine_that_loses_deletes() {
    let memory = Memory::default();
    let mut open = || {
        let mut session = memory.kv();
        session.loses_deletes = true;
        Session::Kv(Box::new(session))
    };
    let reported = conformance(&mut open, 1, 4000).unwrap_err();
    assert!(reported.contains("seed 1, step"), "{reported}");
}
