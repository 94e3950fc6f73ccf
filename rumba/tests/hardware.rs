//! Hardware counters in real runs: counted, or absent with the reason. Most virtual machines have none.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::{TestDir, ended, phase, text};
use serde_json::Value;

/// A run's only trial.
fn trial(place: &TestDir, engine: &str, more: &[&str]) -> Value {
    ended(0, place.short_run(engine, more));
    place.report()["trials"][0].clone()
}

/// Whether a metric has a value; otherwise its reason must contain this.
fn is_counted(phase: &Value, metric: &str, reason: &str) -> bool {
    match phase[metric]["absent"].as_str() {
        Some(absent) => assert!(absent.contains(reason), "{metric}: {absent}"),
        None => assert!(phase[metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {}", phase[metric]),
    }
    phase[metric].is_number()
}

fn warns(trial: &Value) -> bool {
    trial["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "no-hardware-counters")
}

#[test]
fn counters_of_an_embedded_engine_are_the_clients() {
    let place = TestDir::new();
    let trial = trial(&place, "lmdb", &["--set", "hardware_counters=true"]);
    for name in ["loop 1", "loop 2", "loops"] {
        let phase = phase(&trial, name).unwrap();
        assert!(!is_counted(phase, "server_instructions_per_op", "the engine is embedded"), "{name}");
        let kinds = ["instructions_per_op", "cycles_per_op", "ipc", "llc_misses_per_op", "dtlb_misses_per_op"];
        let metrics = ["client", "kernel"].map(|of| kinds.map(|kind| format!("{of}_{kind}"))).concat();
        let counted = metrics.iter().filter(|metric| is_counted(phase, metric, "perf_event_open")).count();
        assert_eq!(counted < metrics.len(), warns(&trial), "{name}: {}", trial["warnings"]);
    }
    let drain = phase(&trial, "drain").unwrap();
    assert_eq!(drain["client_ipc"]["absent"], "not measured in this phase");
}

#[test]
#[needs(MariaDb)]
fn counters_of_a_server_are_those_of_its_processes() {
    let place = TestDir::new();
    let trial = trial(&place, "innodb", &["--set", "hardware_counters=true"]);
    let loops = phase(&trial, "loops").unwrap();
    let is_here = is_counted(loops, "client_instructions_per_op", "perf_event_open");
    assert_eq!(is_counted(loops, "server_instructions_per_op", "perf_event_open"), is_here, "{loops}");
}

#[test]
fn counters_are_off_by_default_with_the_way_to_get_them() {
    let place = TestDir::new();
    let trial = trial(&place, "null", &[]);
    assert!(!is_counted(phase(&trial, "loops").unwrap(), "client_ipc", "set hardware_counters = true in [run]"));
    assert!(!warns(&trial));
    let output = place.short_run("null", &["--set", "hardware_counters=2"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}
