//! Kills the database while clients work, and checks that acknowledged writes remain. It covers real engines and the
//! workloads whose transactions do not conflict. The tests for TPC-C, whose transactions do, are in `tpcc`.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use common::{CALM, TestDir, ended, phase, set};
use rumba_engine_api::engine::Form;
use rumba_testkit::Each;
use serde_json::Value;

/// A workload over little data, and the findings expected for it.
#[derive(Clone, Copy)]
struct Work {
    name: &'static str,
    set: &'static [&'static str],
    needs_transactions: bool,
    /// The engine's name in each trial.
    trials: fn(&str) -> Vec<String>,
    /// The number of checks of the remaining data.
    checks: usize,
}

const YCSB: Work = Work {
    name: "ycsb",
    set: &["profiles=\"a,d\"", "recordcount=2000"],
    needs_transactions: false,
    trials: |engine| ["a", "d"].map(|profile| format!("{engine}/{profile}")).into(),
    checks: 3,
};

const LINKBENCH: Work = Work {
    name: "linkbench",
    set: &["maxid1=2000"],
    needs_transactions: true,
    trials: |engine| vec![engine.to_owned()],
    checks: 6,
};

/// Kills the database while clients write, and checks their acknowledged writes.
fn killed(work: &Work, engine: &str, durability: &str, server: Option<&str>) -> Vec<Value> {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", work.name, "--engine", engine, "--out", "out", "--quiet"]);
    command.args(["--verify", "acid", "--set", &format!("durability={durability}")]);
    // The loops are calm; until the kill clients run at full speed, and a server does far less in that time.
    let crash = if server.is_some() { "crash=2s" } else { "crash=1s" };
    let small = ["clients=4", "load_clients=2", crash, CALM, "warmup=100ms", "loops=1", "loop=200ms"];
    set(&mut command, small.iter().chain(work.set));
    if let Some(server) = server {
        command.args(["--set", &format!("server={server}")]);
    }
    ended(0, &mut command);
    let report = place.report();
    let found = (work.trials)(engine).into_iter().map(|name| {
        let trials = report["trials"].as_array().unwrap();
        let trial = trials.iter().find(|trial| trial["engine"] == name && trial["part"] != "load").unwrap();
        assert_eq!(trial["status"], "done", "{}", trial["failure"]);
        assert!(phase(trial, "isolation").unwrap()["promises"].as_array().is_none_or(Vec::is_empty));
        let recovery = phase(trial, "recovery").unwrap();
        let checks = recovery["checks"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["wrong"] == 0 && check["examined"] != 0), "{checks:?}");
        let found = recovery["recovery"].clone();
        assert!(found["acknowledged"].as_u64().unwrap() > 20, "{found}");
        assert_eq!(checks.len() + found["damage"].as_array().map_or(0, Vec::len), work.checks, "{recovery}");
        found
    });
    let found = found.collect();
    assert!(place.is_clean());
    found
}

/// A killed process loses no acknowledged write if commits are only written to the kernel. `tpcc` kills engines whose
/// commits are synced.
fn keeps(engines: &[&str], server: Option<&str>) {
    assert!(!engines.is_empty());
    for &engine in engines {
        let has_transactions = embedded::have_transactions(&[engine]);
        let works = [YCSB, LINKBENCH].into_iter().filter(|work| has_transactions || !work.needs_transactions);
        for found in works.flat_map(|work| killed(&work, engine, "no-sync", server)) {
            assert_eq!(found["lost"], 0, "{engine}: {found}");
        }
    }
}

/// The embedded engines whose commits can be synced. Engines that never sync are killed by separate tests, which check
/// their weaker promise.
fn synced(which: impl Fn(Form) -> bool) -> Vec<&'static str> {
    embedded::names(&embedded::here(), |engine| which(engine.info().form) && embedded::syncs(engine))
}

/// Those whose library the user must provide.
fn brought_and_synced() -> Vec<Each> {
    let mut brought = embedded::brought();
    brought.retain(|each| embedded::syncs(embedded::called(each.name).as_ref()));
    brought
}

#[test]
fn acknowledged_writes_of_library_engines_survive_a_kill() {
    keeps(&synced(|form| form == Form::Library), None);
}

#[test]
fn acknowledged_writes_of_built_in_engines_survive_a_kill() {
    keeps(&synced(|form| form != Form::Library), None);
}

/// Updates and counts of the fractal tree are messages, which are written without being read.
#[test]
#[each(brought_and_synced)]
fn acknowledged_writes_of_brought_engines_survive_a_kill(engine: &'static str) {
    keeps(&[engine], None);
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn acknowledged_writes_of_innodb_survive_a_kill() {
    keeps(&["innodb"], Some("mariadb@10.11"));
}

/// Guards against lost commits: with `no-sync`, MyRocks' log stayed in the process for up to a second, and a kill lost
/// it.
#[test]
#[needs(MyRocks, Server("mariadb@10.11"))]
fn acknowledged_writes_of_myrocks_survive_a_kill() {
    keeps(&["myrocks"], Some("mariadb@10.11"));
}

/// Guards against lost commits: with `no-sync`, the log stayed in shared memory until the next pass of the WAL writer,
/// and a kill lost it.
#[test]
#[needs(Server("postgresql@15"))]
fn acknowledged_writes_of_postgresql_survive_a_kill() {
    keeps(&["postgresql"], Some("postgresql@15"));
}

/// Guards against lost commits: the profile synced TokuDB's log once a second under `sync` as well.
#[test]
#[needs(Server("mariadb-tokudb@10.5"))]
fn synced_writes_of_tokudb_survive_a_kill() {
    for found in [YCSB, LINKBENCH].iter().flat_map(|work| killed(work, "tokudb", "sync", None)) {
        assert_eq!(found["lost"], 0, "{found}");
    }
}

/// The journal is synced before the answer only on request; otherwise a kill loses up to 100 ms.
#[test]
#[needs(Server("mongodb@4.2"), Server("mongodb@6.0"))]
fn journaled_writes_of_mongodb_survive_a_kill() {
    for server in ["mongodb@4.2", "mongodb@6.0"] {
        let work = Work { set: &["maxid1=2000", "cache=256MiB", "crash=6s"], ..LINKBENCH };
        for found in killed(&work, "mongodb", "sync", Some(server)) {
            assert_eq!(found["lost"], 0, "{server}: {found}");
        }
    }
}

/// The log stays in the process until the engine flushes it, once a second. A kill during that flush, which takes long
/// on a busy disk, may lose no commit. In several kills, this becomes too improbable to fail the test by chance.
#[test]
#[needs(MyRocks, Server("mariadb@10.11"))]
fn kill_loses_counted_buffered_commits_without_damage() {
    let mut lost = [0; 2];
    for _ in 0..4 {
        for (found, lost) in killed(&YCSB, "myrocks", "buffered", Some("mariadb@10.11")).iter().zip(&mut lost) {
            assert!(found["damage"].as_array().is_none_or(Vec::is_empty), "{found}");
            *lost += found["lost"].as_u64().unwrap();
        }
        if lost.iter().all(|&lost| lost > 0) {
            return;
        }
    }
    panic!("four kills of each profile lost {lost:?} commits");
}

/// RocksDB without its log.
#[test]
fn writes_lost_by_a_kill_are_counted() {
    for found in [YCSB, LINKBENCH].iter().flat_map(|work| killed(work, "rocksdb", "none", None)) {
        assert!(found["lost"].as_u64().unwrap() > 0, "{found}");
        assert!(!found["examples"].as_array().unwrap().is_empty(), "{found}");
    }
}
