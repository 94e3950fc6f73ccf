//! YCSB over real engines: acknowledged writes are present after a run, and each kind of damage is found.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use common::{TestDir, ended, phase, set, two_at_a_time};
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{Client, block_on};
use rumba_engine_api::workload::{Bound, Workload};
use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;
use rumba_testkit::turns::{ALONE, Turns};
use rumba_workload_ycsb::Ycsb;

/// The operations of each core workload.
const PROFILES: [(&str, &[&str]); 6] = [
    ("a", &["read", "update"]),
    ("b", &["read", "update"]),
    ("c", &["read"]),
    ("d", &["insert", "read"]),
    ("e", &["insert", "scan"]),
    ("f", &["read", "read_modify_write"]),
];

/// Runs all core workloads, several clients each, over one load. The rarest operation is one in twenty, and a server on
/// a busy host does a few hundred per second. Embedded engines would do a hundred times as many, which would show no
/// more.
fn runs(engine: &str, server: Option<&str>) {
    let short = if server.is_some() { ["loop=1s", "rate=500"] } else { ["loop=250ms", "rate=4000"] };
    runs_with(&[&["recordcount=2000"], &short[..]].concat(), engine, server);
}

fn runs_with(more: &[&str], engine: &str, server: Option<&str>) {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "ycsb", "--engine", engine, "--out", "out", "--quiet"]);
    set(&mut command, ["profiles=\"a,b,c,d,e,f\"", "clients=4", "load_clients=2"]);
    set(&mut command, ["warmup=100ms", "loops=1"].iter().chain(more));
    if let Some(server) = server {
        command.args(["--set", &format!("server={server}")]);
    }
    ended(0, &mut command);
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    let mut seen = 0;
    for (profile, expected) in PROFILES {
        let trial = trials.iter().find(|trial| trial["engine"] == format!("{engine}/{profile}")).unwrap();
        assert_eq!(trial["status"], "done", "{}", trial["failure"]);
        let loops = phase(trial, "loops").unwrap();
        let ops = loops["op_types"].as_object().unwrap();
        assert_eq!(ops.keys().collect::<Vec<_>>(), expected, "{profile}");
        for (name, op) in ops {
            assert!(op["count"].as_u64().unwrap() > 0, "{profile}, {name}: {op}");
            assert_eq!(op["errors"].as_u64().unwrap(), 0, "{engine}, {profile}, {name}: {op}");
        }
        let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap();
        let updates = expected.iter().any(|name| ["update", "read_modify_write"].contains(name));
        assert_eq!(checks.len(), 4 + usize::from(updates), "{profile}: {checks:?}");
        for check in checks {
            assert_eq!(check["wrong"], 0, "{profile}: {check}");
            assert!(check["examined"].as_u64().unwrap() > 0, "{profile}: {check}");
        }
        seen += 1;
    }
    assert_eq!(seen, PROFILES.len());
    assert!(place.is_clean());
}

/// Those without transactions among them.
#[test]
fn core_workloads_run_over_embedded_engines() {
    two_at_a_time(&embedded::names(&embedded::here(), |_| true), |engine| runs(engine, None));
}

#[test]
#[each(embedded::brought)]
fn core_workloads_run_over_brought_engines(engine: &'static str) {
    runs(engine, None);
}

/// bf-tree does not count data that only its cache holds, and reports how much that can be.
#[test]
fn unwritten_data_of_bf_tree_raises_a_warning() {
    let place = TestDir::for_engines(false);
    ended(0, place.short_run("bf-tree", &["--quiet"]));
    let warnings = place.report()["trials"][0]["warnings"].to_string();
    assert!(warnings.contains("debt-unpaid") && warnings.contains("64.0 MiB at most"), "{warnings}");
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn core_workloads_run_over_innodb() {
    runs("innodb", Some("mariadb@10.11"));
}

#[test]
#[needs(Server("postgresql@15"))]
fn core_workloads_run_over_postgresql() {
    runs("postgresql", Some("postgresql@15"));
}

#[test]
#[needs(SecantusDb)]
fn core_workloads_run_over_documents() {
    // It sorts all records for each scan, and one operation in twenty is an insert.
    let server = rumba_testkit::secantusdb::program().canonicalize().unwrap().display().to_string();
    runs_with(&["recordcount=200", "loop=3s", "rate=100"], "secantusdb", Some(&server));
}

/// A small database on which a client has worked.
struct Worked {
    bound: Box<dyn Bound>,
    instance: Box<dyn Instance>,
    _dir: tempfile::TempDir,
}

fn settings(more: &[(&str, Value)]) -> Settings {
    // Few records, so that all of them are watched; every operation among the mix.
    let mix = [
        ("recordcount", Value::Int(100)),
        ("readproportion", Value::Float(0.2)),
        ("updateproportion", Value::Float(0.4)),
        ("insertproportion", Value::Float(0.1)),
        ("scanproportion", Value::Float(0.1)),
        ("readmodifywriteproportion", Value::Float(0.2)),
    ];
    mix.iter().chain(more).cloned().collect()
}

fn run(mut client: Box<dyn Client>, turns: usize) {
    block_on(client.run(&mut Turns::of(turns))).unwrap();
}

impl Worked {
    fn new(engine: &dyn Engine, more: &[(&str, Value)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bound = Ycsb.bind(&settings(more)).unwrap();
        let own = EngineConfig::new(engine.info().name);
        let config = EngineConfig { cache: 4 << 20, durability: Durability::None, ..own };
        let instance = engine.open(dir.path(), &config, bound.schema(engine.info().family)).unwrap();
        bound.create_schema(&mut instance.session().unwrap()).unwrap();
        run(bound.loader(0, instance.session().unwrap(), ALONE, 1).unwrap(), usize::MAX);
        let worked = Self { bound, instance, _dir: dir };
        worked.work(1000);
        worked
    }

    fn work(&self, turns: usize) {
        run(self.bound.client(self.instance.session().unwrap(), ALONE, 1).unwrap(), turns);
    }

    fn checks(&self) -> Vec<Check> {
        self.bound.verify(self.instance.session().unwrap()).unwrap()
    }

    /// The number of violations of each failed check, by the check's number.
    fn broken(&self) -> Vec<(usize, u64)> {
        let checks = self.checks().into_iter().enumerate().filter(|(_, check)| check.wrong > 0);
        checks
            .map(|(number, check)| {
                assert!(!check.examples.is_empty(), "{check:?}");
                (number, check.wrong)
            })
            .collect()
    }

    fn run(&self, sql: &str) {
        let Session::Sql(mut session) = self.instance.session().unwrap() else { panic!("SQLite speaks SQL") };
        session.run(sql).unwrap();
    }

    fn keys(&self) -> Box<dyn KvSession> {
        let Session::Kv(session) = self.instance.session().unwrap() else { panic!("LMDB has keys and values") };
        session
    }

    /// All records, by their keys.
    fn records(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut records = Vec::new();
        let all = Scan { from: &[], to: &[0xff], limit: usize::MAX };
        self.keys().scan(0, all, &mut |key, value| records.push((key.to_vec(), value.to_vec()))).unwrap();
        records
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        let mut keys = self.keys();
        keys.begin().unwrap();
        keys.put(0, key, value).unwrap();
        keys.commit().unwrap();
    }
}

/// The numbers of the checks.
const COUNT: usize = 0;
const KEYS: usize = 1;
const VALUES: usize = 2;
const UPDATES: usize = 3;
const REQUESTED: usize = 4;

fn uniform_lengths() -> [(&'static str, Value); 2] {
    [("fieldlengthdistribution", Value::Text("uniform".to_owned())), ("insertorder", Value::Text("ordered".to_owned()))]
}

#[test]
fn acknowledged_writes_are_present_and_all_are_checked() {
    let field = [("readallfields", Value::Bool(false)), ("writeallfields", Value::Bool(true))];
    for more in [&[][..], &uniform_lengths(), &field] {
        let both = [Worked::new(&Sqlite, more), Worked::new(&Lmdb, more)];
        for worked in &both {
            let checks = worked.checks();
            assert_eq!(checks.len(), 5);
            assert!(checks.iter().all(|check| check.wrong == 0 && check.examined > 0), "{checks:?}");
            assert!(checks[COUNT].examined > 150, "{checks:?}");
        }
        // Both have done the same work; only keys and values report the growth of a record.
        let [mut sql, mut keys] = both.map(|worked| worked.bound.state());
        if more.len() == 2 && more[0].0 == "fieldlengthdistribution" {
            sql.remove("bytes");
            keys.remove("bytes");
        }
        assert_eq!(sql, keys);
    }
}

#[test]
fn logical_bytes_are_those_of_the_records_that_are_there() {
    let worked = Worked::new(&Lmdb, &uniform_lengths());
    // A value has the lengths of its ten fields before them.
    let there: usize = worked.records().iter().map(|(key, value)| key.len() + value.len() - 40).sum();
    assert_eq!(worked.bound.logical_bytes(), there as u64);
}

#[test]
fn restored_state_knows_earlier_writes() {
    let worked = Worked::new(&Lmdb, &[]);
    let next = Ycsb.bind(&settings(&[])).unwrap();
    assert!(next.restore(&Default::default()).unwrap_err().to_string().contains("next_record"));
    // Without it, all writes of clients count as foreign.
    let wrong: u64 = next.verify(worked.instance.session().unwrap()).unwrap().iter().map(|check| check.wrong).sum();
    assert!(wrong > 300, "{wrong}");
    next.restore(&worked.bound.state()).unwrap();
    run(next.client(worked.instance.session().unwrap(), ALONE, 2).unwrap(), 1000);
    let checks = next.verify(worked.instance.session().unwrap()).unwrap();
    assert!(checks.iter().all(|check| check.wrong == 0 && check.examined > 0), "{checks:?}");
}

#[test]
fn each_kind_of_damage_is_found_over_keys_and_values() {
    let worked = Worked::new(&Lmdb, &[]);
    let before = worked.records();
    let damage = |plant: &dyn Fn(), expected: &[(usize, u64)]| {
        plant();
        assert_eq!(worked.broken(), expected);
        // And undone again.
        let mut keys = worked.keys();
        keys.begin().unwrap();
        worked.records().iter().for_each(|(key, _)| keys.delete(0, key).unwrap());
        before.iter().for_each(|(key, value)| keys.put(0, key, value).unwrap());
        keys.commit().unwrap();
        assert_eq!(worked.broken(), []);
    };
    let (first, second) = (&before[0], &before[1]);
    let remove = || {
        let mut keys = worked.keys();
        keys.begin().unwrap();
        keys.delete(0, &first.0).unwrap();
        keys.commit().unwrap();
    };
    damage(&remove, &[(COUNT, 1)]);
    // Ten values that no client wrote to that record.
    damage(&|| worked.put(&first.0, &second.1), &[(VALUES, 10)]);
    let changed = |at: usize, value: &[u8]| {
        let mut changed = value.to_vec();
        changed[at] ^= 1;
        changed
    };
    damage(&|| worked.put(&first.0, &changed(40 + 99, &first.1)), &[(VALUES, 1)]);
    // The length of a field, and a record cut short.
    damage(&|| worked.put(&first.0, &changed(0, &first.1)), &[(KEYS, 1)]);
    damage(&|| worked.put(&first.0, &first.1[..500]), &[(KEYS, 1)]);
    damage(&|| worked.put(b"users", &first.1), &[(COUNT, 1), (KEYS, 1)]);
}

/// A store that acknowledges updates and forgets them, like one that loses its log.
#[test]
fn updates_that_are_undone_are_missed() {
    let worked = Worked::new(&Lmdb, &[]);
    let before = worked.records();
    worked.work(1000);
    let mut changed = 0;
    for (key, value) in &before {
        let mut now = Vec::new();
        worked.keys().get(0, key, &mut now).unwrap();
        changed += u64::from(now != *value);
        worked.put(key, value);
    }
    let broken = worked.broken();
    let [(UPDATES, lost)] = broken[..] else { panic!("{broken:?}") };
    assert!(changed > 50 && lost >= changed / 2, "{lost} fields of {changed} records");
    let checks = worked.checks();
    assert!(checks[UPDATES].examples[0].contains("is gone"), "{checks:?}");
}

/// A session whose scans return at most this many records, and this many fewer where they reach the end.
struct Shortened {
    session: Box<dyn KvSession>,
    most: usize,
    fewer: usize,
}

impl KvSession for Shortened {
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.session.get(space, key, value)
    }

    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        let met = self.session.scan(space, Scan { limit: scan.limit.min(self.most), ..scan }, visit)?;
        Ok(if met < scan.limit { met.saturating_sub(self.fewer) } else { met })
    }

    fn begin(&mut self) -> Result<()> {
        self.session.begin()
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.session.get_for_update(space, key, value)
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.session.put(space, key, value)
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.session.delete(space, key)
    }

    fn commit(&mut self) -> Result<()> {
        self.session.commit()
    }

    fn rollback(&mut self) -> Result<()> {
        self.session.rollback()
    }
}

/// Each scan finds the record at its start, and verification finds all records, so the missed ones were once not
/// reported.
#[test]
fn scans_that_return_too_few_records_are_found() {
    // Without inserts, which could make up for missed records.
    let mix = [("insertproportion", Value::Float(0.0)), ("scanproportion", Value::Float(0.2))];
    for (most, fewer) in [(1, 0), (usize::MAX, 1)] {
        let worked = Worked::new(&Lmdb, &mix);
        assert_eq!(worked.broken(), []);
        let session = Shortened { session: worked.keys(), most, fewer };
        run(worked.bound.client(Session::Kv(Box::new(session)), ALONE, 2).unwrap(), 1000);
        let broken = worked.broken();
        let [(REQUESTED, missed)] = broken[..] else { panic!("{broken:?}") };
        // One row for each scan, or one row too few for scans of many lengths.
        assert!(if most == 1 { missed == 1 } else { missed > 10 }, "{missed}");
        let examples = &worked.checks()[REQUESTED].examples;
        assert!(examples.iter().any(|example| example.starts_with("a scan from user")), "{examples:?}");
    }
}

#[test]
fn each_kind_of_damage_is_found_over_sql() {
    let damage = |sql: &str, expected: &[(usize, u64)]| {
        let worked = Worked::new(&Sqlite, &[]);
        worked.run(sql);
        assert_eq!(worked.broken(), expected, "{sql}");
    };
    const FIRST: &str = "(SELECT MIN(YCSB_KEY) FROM usertable)";
    damage(&format!("DELETE FROM usertable WHERE YCSB_KEY = {FIRST}"), &[(COUNT, 1)]);
    damage(&format!("UPDATE usertable SET FIELD3 = FIELD4 WHERE YCSB_KEY = {FIRST}"), &[(VALUES, 1)]);
    damage(&format!("UPDATE usertable SET FIELD3 = FIELD3 || 'x' WHERE YCSB_KEY = {FIRST}"), &[(VALUES, 1)]);
    damage(&format!("UPDATE usertable SET FIELD3 = NULL WHERE YCSB_KEY = {FIRST}"), &[(VALUES, 1)]);
    damage(&format!("UPDATE usertable SET YCSB_KEY = 'user1' WHERE YCSB_KEY = {FIRST}"), &[(VALUES, 10)]);
}
