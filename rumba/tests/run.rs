//! Whole runs over real engines, through the binary.

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use common::{TestDir, ended, phase, text};
use rumba_results::metric::METRICS;
use serde_json::Value;

#[test]
fn every_engine_runs_all_phases_and_explains_absent_metrics() {
    let place = TestDir::new();
    // One engine without data, those for LinkBench, and two of them with compression.
    let engines = [&["null"][..], &embedded::of_linkbench(), &["rocksdb.zstd", "wiredtiger.snappy"]].concat();
    ended(0, place.short_run(&engines.join(","), &[]));
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), engines.len());
    for trial in trials {
        let engine = trial["engine"].as_str().unwrap();
        assert_eq!(trial["status"], "done", "{engine}: {}", trial["failure"]);
        for name in ["load", "settle", "loop 1", "loop 2", "loops", "drain"] {
            let phase = phase(trial, name).unwrap_or_else(|| panic!("{engine} has no {name}"));
            every_metric_or_its_absence(engine, name, phase);
        }
        let loops = phase(trial, "loops").unwrap();
        assert!(loops["ops"].as_u64().unwrap() > 0, "{engine}");
        assert!(loops["cpu_us_per_op"].as_f64().unwrap() > 0.0, "{engine}");
        let off = loops["client_ipc"]["absent"].as_str().unwrap();
        assert!(off.contains("set hardware_counters = true in [run]"), "{off}");
        let harness = &trial["harness_cpu_us_per_op"];
        assert!(harness.as_f64().is_some_and(|us| us > 0.0), "{engine}: rumba's own part of a figure is {harness}");
        if engine == "null" {
            continue;
        }
        let verify = phase(trial, "verify").unwrap();
        for check in verify["checks"].as_array().unwrap() {
            assert_eq!(check["wrong"], 0, "{engine}: {check}");
            assert!(check["examined"].as_u64().unwrap() > 0, "{engine}: {check}");
        }
        assert!(phase(trial, "load").unwrap()["size_bytes"].as_f64().unwrap() > 0.0, "{engine}");
    }
    for file in ["experiment.toml", "report.html", "trials/002-rocksdb-c2-r1/record.json"] {
        assert!(place.path("out").join(file).is_file(), "{file}");
    }
    for file in ["intervals.ndjson", "latency.hlog"] {
        let path = place.path("out/trials/002-rocksdb-c2-r1").join(file);
        assert!(path.metadata().unwrap().len() > 0, "{file}");
    }
    assert!(place.is_clean());
}

fn every_metric_or_its_absence(engine: &str, name: &str, phase: &Value) {
    for info in METRICS {
        let value = &phase[info.name];
        let reason = value["absent"].as_str().unwrap_or_default();
        assert!(value.is_f64() || value.is_u64() || !reason.is_empty(), "{engine}, {name}: {} is {value}", info.name);
    }
}

#[test]
fn clients_in_steps_are_one_trial_with_active_clients() {
    let place = TestDir::new();
    let steps = "clients=[[\"0s\", 1], [\"400ms\", 3], [\"800ms\", 2]]";
    let sets = ["--set", steps, "--set", "interval=100ms"];
    let planned = text(&place.fast_run("sqlite", &[&sets[..], &["--dry-run"]].concat()).output().unwrap());
    assert!(planned.contains("active clients: 1 from 0 s, 3 from 0.4 s, 2 from 0.8 s"), "{planned}");
    let output = place.fast_run("sqlite", &sets).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("with 1→3→2 clients"), "{}", text(&output));
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &trials[0]["clients"]), (1, &3.into()));
    let condition = "1 from 0 s, 3 from 0.4 s, 2 from 0.8 s; all 3 are connected";
    assert_eq!(trials[0]["conditions"]["active clients"], condition);
    assert_eq!(report["summary"]["steadiness"], serde_json::json!([]), "the rate follows the clients");
    let intervals = std::fs::read_to_string(place.path("out/trials/001-sqlite-c3-r1/intervals.ndjson")).unwrap();
    let intervals: Vec<Value> = intervals.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |phase: &str| -> Vec<(f64, Option<f64>)> {
        let named = intervals.iter().filter(|one| one["phase"].as_str().unwrap().starts_with(phase));
        named.map(|one| (one["seconds"].as_f64().unwrap(), one["active_clients"].as_f64())).collect()
    };
    assert!(of("warmup").iter().all(|(_, active)| *active == Some(1.0)), "{:?}", of("warmup"));
    assert!(of("drain").iter().all(|(_, active)| active.is_none()), "{:?}", of("drain"));
    // 0.4 s of one client, 0.4 s of three, and two until the end: two on average, however late the end is noticed.
    let seconds: f64 = of("loop").iter().map(|(seconds, _)| seconds).sum();
    let active: f64 = of("loop").iter().map(|(seconds, active)| seconds * active.unwrap()).sum();
    assert!(seconds > 0.9 && (active - 2.0 * seconds).abs() < 0.01, "{active} of {seconds} s");
}

#[test]
fn the_experiment_in_the_readme_is_read() {
    let readme = include_str!("../../README.md");
    let experiment = readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let place = TestDir::new();
    std::fs::write(place.path("readme.toml"), experiment).unwrap();
    let output = ended(0, place.rumba(&["run", "readme.toml", "--dry-run", "--allow-unlimited"]));
    assert!(text(&output).contains("24 trials"), "{}", text(&output));
}

/// Hardware counters are counted, or absent with the reason. Most virtual machines have none.
#[test]
fn hardware_counters_of_an_embedded_engine_are_the_clients() {
    let place = TestDir::new();
    ended(0, place.short_run("lmdb", &["--set", "hardware_counters=true"]));
    let trial = &place.report()["trials"][0];
    let is_counted = |phase: &Value, metric: &str, reason: &str| {
        match phase[metric]["absent"].as_str() {
            Some(absent) => assert!(absent.contains(reason), "{metric}: {absent}"),
            None => assert!(phase[metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {}", phase[metric]),
        }
        phase[metric].is_number()
    };
    let warns = trial["warnings"].to_string().contains("\"no-hardware-counters\"");
    for name in ["loop 1", "loop 2", "loops"] {
        let phase = phase(trial, name).unwrap();
        assert!(!is_counted(phase, "server_instructions_per_op", "the engine is embedded"), "{name}");
        let kinds = ["instructions_per_op", "cycles_per_op", "ipc", "llc_misses_per_op", "dtlb_misses_per_op"];
        let metrics = ["client", "kernel"].map(|of| kinds.map(|kind| format!("{of}_{kind}"))).concat();
        let counted = metrics.iter().filter(|metric| is_counted(phase, metric, "perf_event_open")).count();
        assert_eq!(counted < metrics.len(), warns, "{name}: {}", trial["warnings"]);
    }
    let drain = phase(trial, "drain").unwrap();
    assert_eq!(drain["client_ipc"]["absent"], "not measured in this phase");
}
