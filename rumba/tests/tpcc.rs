//! TPC-C over real engines: its data is consistent after a run, and each kind of inconsistency is found.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "tpcc/bad_luck.rs"]
mod bad_luck;
#[path = "tpcc/clients.rs"]
mod clients;
mod common;
#[path = "tpcc/deliveries.rs"]
mod deliveries;
#[path = "tpcc/planted.rs"]
mod planted;
#[path = "tpcc/planted_on_servers.rs"]
mod planted_on_servers;
#[allow(dead_code)] // Only its engines are used.
#[path = "../src/registry.rs"]
mod registry;
#[path = "tpcc/serializable.rs"]
mod serializable;

use common::{TestDir, ended, phase, set, text};
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Session};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{Client, ClientAddress, block_on};
use rumba_engine_api::workload::{Bound, Workload};
use rumba_engine_fractal_tree::LIBRARY;
use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;
use rumba_testkit::turns::{ALONE, Turns};
use rumba_workload_tpcc::TpcC;

const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// The twelve conditions, the scale, the acknowledged orders and payments, and stock.
const CHECKS: usize = 12 + 4;

/// Promises of transactions: two of atomicity, nine of isolation.
const PROMISES: usize = 2 + 9;

/// A count of a phase's operations, of all types together.
fn total(phase: &serde_json::Value, count: &str) -> u64 {
    phase["op_types"].as_object().unwrap().values().map(|op| op[count].as_u64().unwrap()).sum()
}

/// Runs the mix, makes transactions meet, kills the database and looks for acknowledged work. Returns the promises that
/// were not fully kept, each with its observation.
fn runs(engine: &str, server: Option<&str>, statements: &str) -> Vec<String> {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "tpcc", "--engine", engine, "--out", "out", "--quiet", "--verify", "acid"]);
    // A server prepares its statements first, and does far less until the kill than an embedded engine.
    let crash = if server.is_some() { "crash=3s" } else { "crash=1s" };
    let small = ["warehouses=2", "customers=60", "items=500", crash, "durability=sync"];
    set(
        &mut command,
        small.into_iter().chain(["clients=4", "load_clients=2", "warmup=100ms", "loops=1", "loop=500ms"]),
    );
    command.args(["--set", &format!("statements={statements}")]);
    if statements == "grouped" && engine == "innodb" {
        command.args(["--set", "innodb.prepared=false"]);
    }
    if let Some(server) = server {
        command.args(["--set", &format!("server={server}")]);
    }
    ended(0, &mut command);
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    // A client over the null engine, whose rows are zeros, shows the client's own cost.
    assert!(!report.to_string().contains("panicked"), "{}", trial["conditions"]);
    let ops = &phase(trial, "loop 1").unwrap()["op_types"];
    let count = |kind: &str| ops[kind]["count"].as_u64().unwrap_or(0);
    let all: u64 = KINDS.iter().map(|kind| count(kind)).sum();
    assert!(all > 0, "{ops}");
    for kind in KINDS {
        // A busy host may complete few transactions. Any 45 consecutive cards, from a deck of 23, include some of each
        // kind.
        assert!(count(kind) > 0 || all < 4 * 45, "{kind}: {ops}");
    }
    let loops = phase(trial, "loops").unwrap();
    let (retries, errors) = (total(loops, "retries"), total(loops, "errors"));
    // A transaction is retried a hundred times, for about half a second, before it fails. WiredTiger refuses the second
    // writer of a row at once; on a device with slow syncs the first may take that long.
    assert!(errors <= (retries / 100).min(1 + all / 100), "{errors} were given up: {loops}");
    let conflicts: u64 = loops["conflicts"]
        .as_object()
        .into_iter()
        .flat_map(|all| all.values())
        .map(|count| count.as_u64().unwrap())
        .sum();
    // Both are counted: one when it occurs, and one when its operation ends.
    assert!(
        conflicts.abs_diff(retries) <= 100 * 4 && ((conflicts > 0) == (retries > 0) || conflicts.max(retries) <= 4),
        "{conflicts}, {retries}: {loops}"
    );
    let reported = place.rumba(&["report", "out"]).output().unwrap();
    assert_eq!(text(&reported).contains("Tried again in the loops"), conflicts > 0, "{}", text(&reported));
    let rolled_back = loops["op_types"]["new_order_rolled_back"]["count"].as_u64().unwrap_or_default();
    let apart = format!("clients: {rolled_back} undone on purpose");
    assert_eq!(text(&reported).contains(&apart), rolled_back > 0, "{}", text(&reported));
    for proof in ["verify load", "verify"] {
        let checks = phase(trial, proof).unwrap()["checks"].as_array().unwrap();
        assert_eq!(checks.len(), CHECKS, "{proof}: {checks:?}");
        for check in checks {
            assert_eq!(check["wrong"], 0, "{proof}: {check}");
            assert!(check["examined"].as_u64().unwrap() > 0, "{proof}: {check}");
        }
    }
    let recovery = &phase(trial, "recovery").unwrap();
    let found = &recovery["recovery"];
    assert!(found["acknowledged"].as_u64().unwrap() > 20, "{found}");
    assert_eq!(found["lost"], 0, "{found}");
    assert!(found["open_s"].as_f64().unwrap() > 0.0, "{found}");
    let checks = recovery["checks"].as_array().unwrap();
    assert_eq!(checks.len(), CHECKS + 1, "no half of a delivery: {checks:?}");
    assert!(phase(trial, "crash").unwrap()["ops"].as_u64().unwrap() > 20);
    // Three processes have a part in the trial, and their seconds count from the trial's start.
    let phases = trial["phases"].as_array().unwrap().iter().filter(|phase| phase["phase"] != "loops");
    let starts = phases.map(|phase| phase["start_s"].as_f64().unwrap());
    assert!(starts.clone().is_sorted(), "{:?}", starts.collect::<Vec<_>>());
    assert!(place.is_clean());
    let promises = phase(trial, "isolation").unwrap()["promises"].as_array().unwrap();
    assert_eq!(promises.len(), PROMISES);
    if engine == "sqlite" {
        let how = |short: &str| promises.iter().find(|promise| promise["short"] == short).unwrap()["how"].as_str();
        assert_eq!(["i1", "i3"].map(how), [Some("apart"), Some("waited")], "what only reads waits for no writer");
    }
    let not_kept = promises.iter().filter(|promise| promise["outcome"] != "kept");
    not_kept
        .map(|promise| format!("{} {}", promise["short"].as_str().unwrap(), promise["how"].as_str().unwrap()))
        .collect()
}

#[test]
fn tpcc_runs_over_keys_and_values() {
    // Rows that a transaction reads without changing them are read as last committed.
    assert_eq!(runs("rocksdb", None, "plain"), ["i7 non-repeatable read", "i8 phantom", "i9 phantom"]);
    // A transaction has a snapshot; an order status is not a transaction.
    assert_eq!(runs("wiredtiger", None, "plain"), ["i9 phantom"]);
    // It has one writer; an order status is not a transaction.
    assert_eq!(runs("lmdb", None, "plain"), ["i9 phantom"]);
}

/// As with WiredTiger: a transaction has a snapshot; an order status is not a transaction.
#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn tpcc_runs_over_the_fractal_tree() {
    assert_eq!(runs("fractal-tree", None, "plain"), ["i9 phantom"]);
}

#[test]
fn tpcc_runs_over_sqlite() {
    assert_eq!(runs("sqlite", None, "batched"), [""; 0], "one transaction that writes at a time");
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn tpcc_runs_over_innodb() {
    let kept = "REPEATABLE READ, and gaps are locked";
    assert_eq!(runs("innodb", Some("mariadb@10.11"), "plain"), [""; 0], "{kept}");
    assert_eq!(runs("innodb", Some("mariadb@10.11"), "grouped"), [""; 0], "{kept}");
}

#[test]
#[needs(Server("mysql@5.6"))]
fn tpcc_runs_over_an_old_mysql() {
    runs("innodb", Some("mysql@5.6"), "batched");
}

#[test]
#[needs(Server("mariadb@11.8"))]
fn tpcc_runs_over_myrocks() {
    let not_kept = runs("myrocks", Some("mariadb@11.8"), "plain");
    assert_eq!(not_kept, ["i7 non-repeatable read", "i8 phantom", "i9 phantom"], "READ COMMITTED");
}

#[test]
#[needs(Server("postgresql@15"))]
fn tpcc_runs_over_postgresql() {
    let read_committed = ["i7 non-repeatable read", "i8 phantom", "i9 phantom"];
    assert_eq!(runs("postgresql", Some("postgresql@15"), "plain"), read_committed);
    assert_eq!(runs("postgresql", Some("postgresql@15"), "grouped"), read_committed[1..], "each price is read once");
}

/// Several statements in one round trip require an engine that supports it.
#[test]
#[needs(Server("mariadb@10.11"))]
fn ungroupable_statements_are_refused_before_the_load() {
    for (engine, remedy) in [("innodb", "set prepared = false"), ("sqlite", "it is embedded and has no round trips")] {
        let place = TestDir::new();
        let mut command = place.rumba(&["run", "tpcc", "--engine", engine, "--out", "out", "--quiet"]);
        set(&mut command, ["warehouses=1", "statements=grouped", "clients=1", "loops=1", "loop=1s"]);
        let output = command.output().unwrap();
        let words: String = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!output.status.success() && words.contains(remedy), "{engine}: {words}");
        assert!(place.is_clean());
    }
}

/// Each durability is a separate engine, with its own losses. RocksDB without its log loses the rows that it had not
/// written to a table, space by space. That loss and the damage are reported, and the trial does not fail.
#[test]
fn losses_are_counted_for_each_durability() {
    let place = TestDir::new();
    let mut command =
        place.rumba(&["run", "tpcc", "--engine", "rocksdb", "--out", "out", "--quiet", "--verify", "acid"]);
    let small = ["warehouses=2", "customers=60", "items=500", "crash=1s", "durability=sync,no-sync,none"];
    set(
        &mut command,
        small.into_iter().chain(["clients=4", "load_clients=2", "warmup=100ms", "loops=1", "loop=300ms"]),
    );
    ended(0, &mut command);
    let report = place.report();
    let reported = text(&place.rumba(&["report", "out"]).output().unwrap());
    for durability in ["sync", "no-sync", "none"] {
        let engine = format!("rocksdb[durability={durability}]");
        let trials = report["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["engine"] == engine.as_str()).unwrap();
        assert_eq!(trial["status"], "done", "{}", trial["failure"]);
        let recovery = &phase(trial, "recovery").unwrap()["recovery"];
        let number = |name: &str| recovery[name].as_u64().unwrap();
        let (acknowledged, lost) = (number("acknowledged"), number("lost"));
        let damage = recovery["damage"].as_array().map_or(0, Vec::len);
        let is_warned = trial["warnings"].to_string().contains("lost-commits");
        assert!(acknowledged > 20, "{engine}: {recovery}");
        assert_eq!(lost > 0, durability == "none", "{engine}: {recovery}");
        assert_eq!(is_warned, lost > 0, "{engine}: {}", trial["warnings"]);
        assert!(damage == 0 || durability == "none", "{engine}: {recovery}");
        let row =
            reported.lines().find(|line| line.ends_with(&engine) && line.contains("non-repeatable read")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let row = [durability, &acknowledged.to_string(), &lost.to_string(), &damage.to_string()];
        assert!(cells.windows(row.len()).any(|cells| cells == row), "{row:?}: {reported}");
    }
}

/// Terminals key and think as the specification requires, from the first second on, and none of that is response time.
#[test]
fn terminals_key_before_they_enter() {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "tpcc", "--engine", "sqlite", "--out", "out", "--quiet"]);
    set(&mut command, ["warehouses=2", "customers=60", "items=500", "think=spec", "clients=20", "load_clients=1"]);
    set(&mut command, ["warmup=0s", "loops=1", "loop=7s"]);
    ended(0, &mut command);
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    assert!(trial["conditions"]["tpcc_think"].as_str().unwrap().contains("keying and think times"));
    let loops = phase(trial, "loops").unwrap();
    let ops = loops["op_types"].as_object().unwrap();
    // The terminals start in the middle of their pauses. One enters a new order in these seconds if it was about to,
    // and no second one, which is keyed for 18 s. On average all of them together enter seven transactions, three of
    // them new orders.
    let count = |name: &str| ops.get(name).map_or(0, |op| op["count"].as_u64().unwrap());
    assert!(count("new_order") + count("new_order_rolled_back") <= 20 && ops.contains_key("payment"), "{ops:?}");
    assert!((1..60).contains(&loops["ops"].as_u64().unwrap()), "{loops}");
    for (name, op) in ops {
        assert!(op["response"]["max_ms"].as_f64().unwrap() < 1500.0, "{name}: {op}");
    }
    let wrong = |proof: &str| {
        let checks = phase(trial, proof).unwrap()["checks"].as_array().unwrap();
        checks.iter().filter(|check| check["wrong"] != 0).count()
    };
    assert_eq!((wrong("verify load"), wrong("verify")), (0, 0));
}

/// A different division is different data: each has its own load, from which its runs start.
#[test]
fn each_warehouse_split_is_a_test_with_its_own_load() {
    let place = TestDir::new();
    let toml = "name = \"splits\"\n[workload.tpcc]\nwarehouses = 2\nsplits = \"1,2\"\ncustomers = 20\nitems = 200\n\
                [run]\nload_clients = 1\nclients = [2, 4]\nwarmup = \"0s\"\nloops = 1\nloop = \"300ms\"\n\
                [[engine]]\nname = \"sqlite\"\n\
                [[claim]]\ntext = \"Both work.\"\nholds = 'tpmC(\"sqlite/1x2\", 4) > 1 && tpmC(\"sqlite/2x1\", 4) > 1'\n";
    std::fs::write(place.path("splits.toml"), toml).unwrap();
    ended(0, place.rumba(&["run", "splits.toml", "--out", "out", "--quiet"]));
    let report = place.report();
    let reported: Vec<String> = report["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| {
            assert_eq!(trial["status"], "done", "{}", trial["failure"]);
            let settings = &trial["workload_settings"];
            let (engine, from) = (trial["engine"].as_str().unwrap(), &trial["loaded_by"]);
            format!("{engine}: {} of {}, from {from}", settings["data_sets"], settings["warehouses"])
        })
        .collect();
    let (one, two) = ("sqlite/1x2: 1 of 2, from", "sqlite/2x1: 2 of 1, from");
    let expected = [(one, "null"), (two, "null"), (one, "1"), (two, "2"), (one, "1"), (two, "2")];
    assert_eq!(reported, expected.map(|(what, from)| format!("{what} {from}")));
    assert_ne!(report["summary"]["claims"][0]["seen"], false, "{}", report["summary"]["claims"]);
}

fn config(engine: &str) -> EngineConfig {
    EngineConfig { cache: 4 << 20, durability: Durability::None, ..EngineConfig::new(engine) }
}

fn run(mut client: Box<dyn Client>, turns: usize) {
    block_on(client.run(&mut Turns::of(turns))).unwrap();
}

/// A small database on which a client has worked.
struct Worked {
    bound: Box<dyn Bound>,
    instance: Box<dyn Instance>,
    _dir: tempfile::TempDir,
}

impl Worked {
    fn new(engine: &dyn Engine, statements: &str) -> Self {
        Self::in_sets(engine, statements, 1)
    }

    /// With this many data sets, and a client on each.
    fn in_sets(engine: &dyn Engine, statements: &str, sets: u32) -> Self {
        Self::loaded(engine, statements, sets).worked_on(sets)
    }

    fn worked_on(self, sets: u32) -> Self {
        for client in 0..sets {
            let at = ClientAddress { client, clients: sets, ..ALONE };
            run(self.bound.client(self.instance.session().unwrap(), at, 1).unwrap(), 400);
        }
        self
    }

    /// The same before any client has worked on it.
    fn loaded(engine: &dyn Engine, statements: &str, sets: u32) -> Self {
        Self::loaded_as(engine, &config(engine.info().name), statements, sets)
    }

    fn loaded_as(engine: &dyn Engine, config: &EngineConfig, statements: &str, sets: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let small = [("warehouses", 1), ("customers", 20), ("items", 200), ("data_sets", i64::from(sets))];
        let mut settings = Settings::from(small.map(|(name, number)| (name, Value::Int(number))));
        settings.0.insert("statements".to_owned(), Value::Text(statements.to_owned()));
        let bound = TpcC.bind(&settings).unwrap();
        let instance = engine.open(dir.path(), config, bound.schema(engine.info().family)).unwrap();
        bound.create_schema(&mut instance.session().unwrap()).unwrap();
        for stage in 0..bound.load_stages().len() {
            run(bound.loader(stage, instance.session().unwrap(), ALONE, 1).unwrap(), usize::MAX);
        }
        Self { bound, instance, _dir: dir }
    }

    fn checks(&self) -> Vec<Check> {
        self.bound.verify(self.instance.session().unwrap()).unwrap()
    }

    /// The clauses of the violated conditions.
    fn broken(&self) -> Vec<String> {
        let broken = self.checks().into_iter().filter(|check| check.wrong > 0);
        broken
            .map(|check| {
                assert!(!check.examples.is_empty(), "{check:?}");
                check.name.split(':').next().unwrap().to_owned()
            })
            .collect()
    }

    fn run(&self, sql: &str) {
        let Session::Sql(mut session) = self.instance.session().unwrap() else { panic!("it speaks SQL") };
        session.run(sql).unwrap();
    }
}

#[test]
fn client_leaves_consistent_data_and_checks_examine_rows() {
    let worked = [Worked::new(&Sqlite, "plain"), Worked::new(&Sqlite, "batched"), Worked::new(&Lmdb, "plain")];
    worked.iter().for_each(|worked| looked_at(&worked.checks()));
    // With the same inputs they have the same results: orders, lines, payments, their cents, deliveries.
    let [plain, batched, keys] = worked.map(|worked| worked.bound.state());
    assert_eq!(plain, batched);
    assert_eq!(plain, keys);
    assert!(plain["deliveries"] > 50 && plain["orders"] > 100, "{plain:?}");
}

#[test]
fn data_sets_are_proven_each_by_itself() {
    for worked in [Worked::in_sets(&Sqlite, "batched", 3), Worked::in_sets(&Lmdb, "plain", 3)] {
        looked_at(&worked.checks());
        let state = worked.bound.state();
        assert!(["orders", "orders_2", "orders_3"].iter().all(|orders| state[*orders] > 100), "{state:?}");
        let other = TpcC.bind(&settings(&[("data_sets", 4)])).unwrap();
        assert!(other.restore(&state).unwrap_err().to_string().contains("orders_4"), "a set that was not loaded");
    }
    let worked = Worked::in_sets(&Sqlite, "plain", 3);
    // One set has as much too many as another has too few.
    worked.run("UPDATE warehouse2 SET w_ytd = w_ytd + 1; UPDATE warehouse3 SET w_ytd = w_ytd - 1");
    let broken: Vec<Check> = worked.checks().into_iter().filter(|check| check.wrong > 0).collect();
    assert_eq!(broken.len(), 3, "{broken:?}");
    assert!(broken.iter().all(|check| check.wrong == 2), "{broken:?}");
    assert!(broken[0].examples[0].starts_with("data set 2: "), "{broken:?}");
}

fn settings(numbers: &[(&str, i64)]) -> Settings {
    numbers.iter().map(|(name, number)| (*name, Value::Int(*number))).collect()
}

/// The keys of payments contain the numbers of their clients, including those that continue with the data in another
/// process.
#[test]
fn restored_clients_write_distinct_payment_keys() {
    let worked = Worked::new(&Lmdb, "plain");
    let next = TpcC.bind(&settings(&[("warehouses", 1), ("customers", 20), ("items", 200)])).unwrap();
    next.restore(&worked.bound.state()).unwrap();
    for seed in 2..5 {
        run(next.client(worked.instance.session().unwrap(), ALONE, seed).unwrap(), 2000);
    }
    for check in next.verify(worked.instance.session().unwrap()).unwrap() {
        assert_eq!(check.wrong, 0, "{check:?}");
    }
}

#[test]
fn new_order_rate_is_tpmc_and_every_response_has_a_limit() {
    let bound = TpcC.bind(&settings(&[("warehouses", 4), ("data_sets", 2)])).unwrap();
    let ops = bound.ops();
    let rate = ops[0].rate.as_ref().unwrap();
    assert_eq!((rate.name.as_ref(), rate.most), ("tpmC", None), "without think times nothing bounds it");
    assert!(ops.iter().all(|op| op.limit.as_ref().is_some_and(|limit| limit.percent == 90.0)));
    let mut thinking = settings(&[("warehouses", 4), ("data_sets", 2)]);
    thinking.0.insert("think".to_owned(), Value::Text("spec".to_owned()));
    let most = TpcC.bind(&thinking).unwrap().ops()[0].rate.as_ref().unwrap().most.unwrap();
    assert!((most - 8.0 * 12.86).abs() < 1e-9, "{most}");
}

fn looked_at(checks: &[Check]) {
    assert_eq!(checks.len(), CHECKS);
    for check in checks {
        assert!(check.wrong == 0 && check.examined > 0, "{check:?}");
    }
    let clauses: Vec<&str> = checks.iter().filter_map(|check| check.name.split(':').next()).take(12).collect();
    let expected: Vec<String> = (1..=12).map(|number| format!("3.3.2.{number}")).collect();
    assert_eq!(clauses, expected);
}

fn on_server(engine: &str, server: &str) -> EngineConfig {
    EngineConfig { server: Some(server.to_owned()), cache: 64 << 20, ..config(engine) }
}

fn registered(engine: &str) -> Box<dyn Engine> {
    registry::engines().into_iter().find(|known| known.info().name == engine).unwrap()
}

/// Guards against memory use: ten thousand terminals, each with all of its statements prepared, took 24 GB of a
/// server's memory.
#[test]
#[needs(Server("mariadb@10.11"))]
fn a_server_keeps_no_statement_that_a_client_has_not_run_yet() {
    let worked = Worked::loaded_as(&*registered("innodb"), &on_server("innodb", "mariadb@10.11"), "batched", 1);
    let worked = worked.worked_on(1);
    let prepared = || {
        let gauges = worked.instance.counters();
        gauges.iter().find(|gauge| gauge.name == "Com_stmt_prepare").unwrap().value
    };
    let client = |client| {
        let at = ClientAddress { client, clients: 20, ..ALONE };
        worked.bound.client(worked.instance.session().unwrap(), at, 1).unwrap()
    };
    let before = prepared();
    let mut others: Vec<_> = (1..11).map(client).collect();
    // Only the statements that begin and end transactions.
    assert_eq!(prepared() - before, 3.0 * 10.0);
    block_on(others[0].run(&mut Turns::of(2))).unwrap();
    let ran = prepared() - before - 30.0;
    assert!((2.0..25.0).contains(&ran), "{ran} for two transactions");
    let before = prepared();
    drop(client(0));
    // The first client prepares all statements at once, so that a refusal is known before anything runs.
    assert!(prepared() - before > 60.0, "{}", prepared() - before);
}
