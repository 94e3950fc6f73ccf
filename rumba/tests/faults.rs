//! Cases of the fault suite that run with every change: a fault, a moment, an engine, a kind of limits, and the five
//! questions after it. `make faults` runs a hundred others; docs/reliability.md explains their purpose.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::path::Path;
use std::time::Duration;

use rumba_faults::{Again, Bench, Case, Engine, Limit, Moment, fault};

/// Runs a case; every answer must match the table of faults.
fn holds(name: &str, moment: Moment, engine: Engine, limit: Limit, again: Again) {
    let base = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(Path::new(env!("CARGO_BIN_EXE_rumba")), base.path()).unwrap();
    let fault = fault(name).unwrap_or_else(|| panic!("there is no fault `{name}`"));
    let case = Case { number: 1, fault, moment, engine, limit, delay: Duration::from_millis(20), again };
    let outcome = bench.try_case(&case).unwrap();
    assert!(outcome.injected.is_some(), "{case}: the run had ended before it was struck");
    let misses: Vec<String> = outcome.misses.iter().map(ToString::to_string).collect();
    assert!(misses.is_empty(), "{case}\n{}", misses.join("\n"));
}

#[test]
fn interrupted_run_resumes_after_any_signal_in_any_phase() {
    for (name, moment, engine) in [
        ("INT to rumba", Moment::Settle, Engine::Sqlite),
        ("QUIT to rumba", Moment::Loops, Engine::RocksDb),
        ("HUP to rumba", Moment::Drain, Engine::Lmdb),
    ] {
        holds(name, moment, engine, Limit::None, Again::Resume);
    }
}

#[test]
#[needs(LoopDevice, StorageRates, MemoryGroup)]
fn next_run_removes_leftovers_of_a_kill_under_limits() {
    holds("kill -9 of rumba", Moment::Drain, Engine::RocksDb, Limit::Both, Again::Run);
}

#[test]
#[needs(MariaDb)]
fn server_death_during_load_is_reported_with_its_signal() {
    holds("kill -9 of the server", Moment::Load, Engine::InnoDb, Limit::None, Again::Run);
}

#[test]
fn temporarily_stopped_run_is_reported() {
    for name in ["STOP and CONT of the trial", "STOP and CONT of rumba and its trial (Ctrl-Z)"] {
        holds(name, Moment::Loops, Engine::Sqlite, Limit::None, Again::Run);
    }
}

#[test]
#[needs(LoopDevice)]
fn lmdb_reports_a_full_data_disk_as_disk_full() {
    holds("the disk of the data is full", Moment::Loops, Engine::Lmdb, Limit::Storage, Again::DoctorThenRun);
}

#[test]
fn removed_results_are_reported_and_leave_nothing() {
    holds("the results directory is removed", Moment::Loops, Engine::Lmdb, Limit::None, Again::Run);
}

#[test]
#[needs(MariaDb)]
fn restart_of_an_existing_server_loses_only_open_operations() {
    holds("an existing server is restarted (TERM)", Moment::Loops, Engine::Existing, Limit::None, Again::Run);
}

#[test]
#[needs(MariaDb)]
fn kill_during_a_drain_of_an_existing_server_alters_nothing() {
    holds(
        "kill -9 of rumba over an existing server",
        Moment::Drain,
        Engine::Existing,
        Limit::None,
        Again::DoctorThenRun,
    );
}
