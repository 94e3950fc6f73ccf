//! TPC-C over real engines: its data is consistent after a run, and each kind of inconsistency is found.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[allow(dead_code)] // Of it, the engines alone are wanted here.
#[path = "../src/registry.rs"]
mod registry;

use std::task::{Context, Poll};

use common::{Place, phase, text};
use rumba_core::check::Check;
use rumba_core::engine::{Durability, Engine, EngineConfig, Instance, Session};
use rumba_core::setting::{Settings, Value};
use rumba_core::worker::{Client, ClientAddress, Op, OpKind, Pace, block_on};
use rumba_core::workload::{Bound, Workload};
use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;
use rumba_workload_tpcc::TpcC;

/// The twelve conditions, the scale, and what was acknowledged: orders and payments.
const CHECKS: usize = 12 + 3;

/// Promises of a transaction: two of atomicity, nine of isolation.
const PROMISES: usize = 2 + 9;

fn runs_over(engine: &str, server: Option<&str>) -> Vec<String> {
    runs(engine, server, "batched");
    runs(engine, server, "plain")
}

/// Runs the mix, makes transactions meet, kills the database and looks for what it had acknowledged; the promises that
/// were not kept in full, each with what was seen.
fn runs(engine: &str, server: Option<&str>, statements: &str) -> Vec<String> {
    let place = Place::new();
    let mut command = place.rumba(&["run", "tpcc", "--engine", engine, "--out", "out", "--quiet", "--verify", "acid"]);
    let small = ["warehouses=2", "customers=60", "items=500", "crash=700ms", "durability=sync"];
    for set in small.into_iter().chain(["clients=4", "load_clients=2", "warmup=100ms", "loops=1", "loop=1s"]) {
        command.args(["--set", set]);
    }
    command.args(["--set", &format!("statements={statements}")]);
    if let Some(server) = server {
        command.args(["--set", &format!("server={server}")]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    let ops = &phase(trial, "loop 1").unwrap()["op_types"];
    for kind in ["new_order", "payment", "order_status", "delivery", "stock_level"] {
        assert!(ops[kind]["count"].as_u64().unwrap() > 0, "{kind}: {ops}");
        assert_eq!(ops[kind]["failed"].as_u64().unwrap_or(0), 0, "{kind}: {ops}");
    }
    let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap();
    assert_eq!(checks.len(), CHECKS, "{checks:?}");
    for check in checks {
        assert_eq!(check["wrong"], 0, "{check}");
        assert!(check["examined"].as_u64().unwrap() > 0, "{check}");
    }
    let recovery = &phase(trial, "recovery").unwrap();
    let found = &recovery["recovery"];
    assert!(found["acknowledged"].as_u64().unwrap() > 20, "{found}");
    assert_eq!(found["lost"], 0, "{found}");
    assert!(found["open_s"].as_f64().unwrap() > 0.0, "{found}");
    assert_eq!(recovery["checks"].as_array().unwrap().len(), CHECKS);
    assert!(phase(trial, "crash").unwrap()["ops"].as_u64().unwrap() > 20);
    assert!(place.is_clean());
    let promises = phase(trial, "isolation").unwrap()["promises"].as_array().unwrap();
    assert_eq!(promises.len(), PROMISES);
    let not_kept = promises.iter().filter(|promise| promise["outcome"] != "kept");
    not_kept
        .map(|promise| format!("{} {}", promise["short"].as_str().unwrap(), promise["how"].as_str().unwrap()))
        .collect()
}

#[test]
fn tpcc_runs_over_keys_and_values() {
    // What a transaction reads and does not change is read as it was committed last.
    assert_eq!(runs("rocksdb", None, "plain"), ["i7 non-repeatable read", "i8 phantom", "i9 phantom"]);
    // A transaction has a snapshot; an order status is none.
    assert_eq!(runs("wiredtiger", None, "plain"), ["i9 phantom"]);
    // It has one writer; an order status is no transaction.
    assert_eq!(runs("lmdb", None, "plain"), ["i9 phantom"]);
}

#[test]
fn tpcc_runs_over_sqlite() {
    assert_eq!(runs_over("sqlite", None), [""; 0], "one transaction at a time");
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn tpcc_runs_over_innodb() {
    assert_eq!(runs_over("innodb", Some("mariadb@10.11")), [""; 0], "REPEATABLE READ, and gaps are locked");
}

#[test]
#[needs(Server("mysql@5.6"))]
fn tpcc_runs_over_an_old_mysql() {
    runs_over("innodb", Some("mysql@5.6"));
}

#[test]
#[needs(Server("mariadb@11.8"))]
fn tpcc_runs_over_myrocks() {
    let not_kept = runs_over("myrocks", Some("mariadb@11.8"));
    assert_eq!(not_kept, ["i7 non-repeatable read", "i8 phantom", "i9 phantom"], "READ COMMITTED");
}

#[test]
#[needs(Server("postgresql@15"))]
fn tpcc_runs_over_postgresql() {
    let not_kept = runs_over("postgresql", Some("postgresql@15"));
    assert_eq!(not_kept, ["i7 non-repeatable read", "i8 phantom", "i9 phantom"], "READ COMMITTED");
}

/// So many turns, as fast as possible.
struct Turns(usize);

impl Pace for Turns {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let is_left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        Poll::Ready(is_left)
    }

    fn start(&mut self, _: OpKind) {}

    fn done(&mut self, _: OpKind, op: Op) -> u64 {
        assert!(!op.failed);
        0
    }
}

const ALONE: ClientAddress = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };

fn config(engine: &str) -> EngineConfig {
    EngineConfig {
        name: engine.to_owned(),
        engine: engine.to_owned(),
        cache: 4 << 20,
        durability: Durability::None,
        compression: None,
        library: None,
        server: None,
        limits: Default::default(),
        settings: Settings::default(),
    }
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

    /// With so many data sets, and a client on each.
    fn in_sets(engine: &dyn Engine, statements: &str, sets: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let small = [("warehouses", 1), ("customers", 20), ("items", 200), ("data_sets", i64::from(sets))];
        let mut settings = Settings(small.map(|(name, number)| (name.to_owned(), Value::Int(number))).into());
        settings.0.insert("statements".to_owned(), Value::Text(statements.to_owned()));
        let bound = TpcC.bind(&settings).unwrap();
        let config = config(engine.info().name);
        let instance = engine.open(dir.path(), &config, bound.schema(engine.info().family)).unwrap();
        bound.create_schema(&mut instance.session().unwrap()).unwrap();
        let run = |mut client: Box<dyn Client>, turns| block_on(client.run(&mut Turns(turns))).unwrap();
        for stage in 0..bound.load_stages().len() {
            run(bound.loader(stage, instance.session().unwrap(), ALONE, 1).unwrap(), usize::MAX);
        }
        for client in 0..sets {
            let at = ClientAddress { client, clients: sets, ..ALONE };
            run(bound.client(instance.session().unwrap(), at, 1).unwrap(), 400);
        }
        Self { bound, instance, _dir: dir }
    }

    fn checks(&self) -> Vec<Check> {
        self.bound.verify(self.instance.session().unwrap()).unwrap()
    }

    /// The clauses of the conditions that do not hold.
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
        let Session::Sql(mut session) = self.instance.session().unwrap() else { panic!("SQLite speaks SQL") };
        session.run(sql).unwrap();
    }
}

#[test]
fn a_client_leaves_the_data_consistent_and_nothing_is_looked_at_in_vain() {
    let worked = [Worked::new(&Sqlite, "plain"), Worked::new(&Sqlite, "batched"), Worked::new(&Lmdb, "plain")];
    worked.iter().for_each(|worked| looked_at(&worked.checks()));
    // With the same inputs they have done the same: orders, lines, payments, their cents, deliveries.
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
    // As much in one set as is missing in another.
    worked.run("UPDATE warehouse2 SET w_ytd = w_ytd + 1; UPDATE warehouse3 SET w_ytd = w_ytd - 1");
    let broken: Vec<Check> = worked.checks().into_iter().filter(|check| check.wrong > 0).collect();
    assert_eq!(broken.len(), 3, "{broken:?}");
    assert!(broken.iter().all(|check| check.wrong == 2), "{broken:?}");
    assert!(broken[0].examples[0].starts_with("data set 2: "), "{broken:?}");
}

fn settings(numbers: &[(&str, i64)]) -> Settings {
    Settings(numbers.iter().map(|(name, number)| ((*name).to_owned(), Value::Int(*number))).collect())
}

#[test]
fn the_rate_of_new_orders_is_tpmc_and_every_answer_has_its_limit() {
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

/// A fault of each kind, and the conditions that it breaks.
const FAULTS: [(&str, &[&str]); 15] = [
    ("UPDATE warehouse SET w_ytd = w_ytd + 1", &["3.3.2.1", "3.3.2.8", "every payment that was acknowledged is there"]),
    ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4", &["3.3.2.2"]),
    (
        "DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id = (SELECT MAX(no_o_id) - 1 FROM new_order WHERE no_d_id = 1)",
        &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
    ),
    ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 2 AND o_id = 3", &["3.3.2.4", "3.3.2.6"]),
    (
        "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 3 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 3)",
        &["3.3.2.5", "3.3.2.7"],
    ),
    // Their sum is as it was.
    (
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 3 THEN 1 ELSE -1 END WHERE o_d_id = 2 AND o_id IN (3, 4)",
        &["3.3.2.6"],
    ),
    ("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1", &["3.3.2.7"]),
    // Both of a district's and of the warehouse's payments.
    ("UPDATE history SET h_amount = h_amount + 1 WHERE rowid = 1", &["3.3.2.8", "3.3.2.9", "3.3.2.10"]),
    ("UPDATE history SET h_d_id = h_d_id % 10 + 1 WHERE rowid = 1", &["3.3.2.9"]),
    (
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 1",
        &["3.3.2.10"],
    ),
    ("INSERT INTO new_order VALUES (1, 5, 1)", &["3.3.2.3", "3.3.2.5", "3.3.2.11"]),
    ("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1", &["3.3.2.12"]),
    // A whole order whose end was lost, as if it had never been.
    (
        "DELETE FROM order_line WHERE ol_d_id = 6 AND ol_o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 6); \
         DELETE FROM new_order WHERE no_d_id = 6 AND no_o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 6); \
         DELETE FROM orders WHERE o_d_id = 6 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 6); \
         UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 6",
        &["every new order that was acknowledged is there"],
    ),
    ("DELETE FROM stock WHERE s_i_id = 17", &["tables have the rows of the scale"]),
    // A line of an order that is not there.
    (
        "INSERT INTO order_line SELECT ol_w_id, ol_d_id, 999, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
      ol_quantity, ol_amount, ol_dist_info FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
        &["3.3.2.4", "3.3.2.6"],
    ),
];

#[test]
fn a_fault_of_each_kind_is_found_by_its_condition() {
    for (fault, broken) in FAULTS {
        let worked = Worked::new(&Sqlite, "plain");
        worked.run(fault);
        assert_eq!(worked.broken(), broken, "{fault}");
    }
}

/// A server's adapters answer as the oracle does.
fn conforms(engine: &str, server: &str) {
    let engines = registry::engines();
    let engine = engines.iter().find(|known| known.info().name == engine).unwrap();
    for seed in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig { server: Some(server.to_owned()), cache: 64 << 20, ..config(engine.info().name) };
        let instance = engine.open(dir.path(), &config, rumba_workload_tpcc::schema(engine.info().family)).unwrap();
        let mut open = || instance.session().unwrap();
        rumba_workload_tpcc::conformance(&mut open, seed, 400).unwrap_or_else(|why| panic!("{server}: {why}"));
        instance.close().unwrap();
    }
}

#[test]
#[needs(Server("mariadb@10.11"), Server("mariadb@11.8"))]
fn servers_of_mysqls_family_answer_as_the_oracle_does() {
    conforms("innodb", "mariadb@10.11");
    conforms("myrocks", "mariadb@11.8");
}

#[test]
#[needs(Server("postgresql@15"))]
fn postgresql_answers_as_the_oracle_does() {
    conforms("postgresql", "postgresql@15");
}
