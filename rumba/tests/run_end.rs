//! Guards the end of a run, which must be measured like its middle. A server stall in the last second of a loop once
//! left no trace. Requests from before the end with later answers were in no percentile, and due arrivals were dropped.
//! Here a real server is stopped, and its figures are compared with computed ones. A server stopped by a user makes the
//! measurement suspended and excluded; its record is as exact as any other.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::{Child, Stdio};
use std::time::Duration;

use common::{TestDir, at_once, children, phase, set};
use rumba_lab::run::queue::{Queue, seed_of};
use serde_json::Value;

const RATE: f64 = 800.0;
const WARMUP_S: f64 = 1.0;
const LOOP_S: f64 = 5.0;
const CLIENTS: u64 = 4;

/// Seconds of a loop's figures that a run has written so far.
fn seconds_of_loop(place: &TestDir) -> usize {
    let directory = format!("out/trials/001-innodb-c{CLIENTS}-r1/intervals.ndjson");
    std::fs::read_to_string(place.path(&directory)).unwrap_or_default().matches("\"loop 1\"").count()
}

/// A run whose server stalls for this time from the given second of the loop; it provides the report and the actual
/// time.
struct Stalled {
    place: TestDir,
    run: Child,
}

impl Stalled {
    fn start(more: &[&str]) -> Self {
        let place = TestDir::new();
        let mut command = place.rumba(&["run", "linkbench", "--engine", "innodb", "--out", "out", "--quiet"]);
        set(
            &mut command,
            ["maxid1=500", "load_clients=2", "warmup=1s", "loops=1", "loop=5s", "clients=4"].iter().chain(more),
        );
        let run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { place, run }
    }

    fn await_second(&mut self, second: usize) {
        while seconds_of_loop(&self.place) < second {
            assert!(self.run.try_wait().unwrap().is_none(), "it ended early: {}", self.place.report());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn trial(mut self) -> Value {
        let status = self.run.wait().unwrap();
        let report = self.place.report();
        let trial = &report["trials"][0];
        assert_eq!((status.code(), &trial["status"]), (Some(1), &"suspended".into()), "{trial}");
        trial.clone()
    }
}

/// The operations begun in a phase: those that ended in it, that ended later, and that did not end.
fn begun(phase: &Value) -> u64 {
    let of = |op: &Value, name: &str| op[name].as_u64().unwrap_or(0);
    let ops = phase["op_types"].as_object().unwrap().values();
    ops.map(|op| of(op, "count") + of(op, "ended_late") + of(op, "open")).sum()
}

/// Every scheduled arrival that was due before the end is in the record once.
fn holds_every_arrival(trial: &Value) {
    let seed = (42u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let due_before = |seconds: f64| -> u64 {
        let arrivals = Queue::new(RATE, seed_of(seed, 0));
        arrivals.left_ns().take_while(|due| (*due as f64) < seconds * 1e9).count() as u64
    };
    let (warmup, run) = (phase(trial, "warmup").unwrap(), phase(trial, "loop 1").unwrap());
    let seconds = warmup["seconds"].as_f64().unwrap() + run["seconds"].as_f64().unwrap();
    let reported = begun(warmup) + begun(run) + run["backlog"]["not_begun"].as_u64().unwrap();
    // The phases' clock starts and ends almost at the same time as the clients'.
    let (least, most) = (due_before(seconds - 0.1), due_before(seconds + 0.1));
    assert!((least..=most).contains(&reported), "{reported} of {least} to {most} arrivals; {}", run["backlog"]);
    assert!(seconds >= WARMUP_S + LOOP_S, "{seconds}");
}

/// The response of the most common operation, which occurs often enough for a 99th percentile.
fn response<'a>(run: &'a Value, name: &str) -> &'a Value {
    &run["op_types"]["get_node"]["response"][name]
}

/// The server stalls for about the last second of the loop, and for another second.
fn across_the_end(more: &[&str]) -> (Value, f64) {
    let mut stalled = Stalled::start(more);
    stalled.await_second(4);
    let server = children(children(stalled.run.id())[0])[0];
    let stall_ms = common::stop_for(server, Duration::from_secs(2)).0 * 1e3;
    (stalled.trial(), stall_ms)
}

#[test]
#[needs(MariaDb)]
fn stall_at_open_loop_end_is_in_its_percentiles() {
    at_once(["driver=threads", "driver=loops"], |driver| {
        let (trial, stall_ms) = across_the_end(&["rate=800", driver]);
        holds_every_arrival(&trial);
        let run = phase(&trial, "loop 1").unwrap();
        assert_eq!(run["backlog"]["open"].as_u64().unwrap() + run["backlog"]["not_begun"].as_u64().unwrap(), 0);
        assert!(run["backlog"]["ended"].as_u64().unwrap() > 50, "{}", run["backlog"]);
        // The waits of the last fifth's arrivals are spread uniformly from the whole stall down to the time left of it.
        // Above the 95th percentile are the arrivals in the first 5% of the loop's length after the stall's start.
        // Above the 99th are those in the first 1%.
        for (percentile, beyond_ms) in [("p95_ms", 50.0 * LOOP_S), ("p99_ms", 10.0 * LOOP_S)] {
            let (seen_ms, expected_ms) = (response(run, percentile).as_f64().unwrap(), stall_ms - beyond_ms);
            let range = expected_ms - 300.0..stall_ms + 1_000.0;
            assert!(range.contains(&seen_ms), "{driver}: {percentile} {seen_ms} of {expected_ms} ms");
        }
        let ops = run["op_types"].as_object().unwrap().values();
        let max_ms = ops.map(|op| op["response"]["max_ms"].as_f64().unwrap()).fold(0.0, f64::max);
        assert!((stall_ms - 100.0..stall_ms + 1_000.0).contains(&max_ms), "{max_ms} of {stall_ms} ms");
        // The loop's own rate refers to its own time.
        let ops: u64 = run["op_types"].as_object().unwrap().values().map(|op| op["count"].as_u64().unwrap()).sum();
        assert_eq!(run["ops"].as_u64().unwrap(), ops);
        let backlog = phase(&trial, "backlog").unwrap();
        assert!(backlog["seconds"].as_f64().unwrap() > 0.3 && backlog["complete"] == true, "{backlog}");
        let loops = phase(&trial, "loops").unwrap();
        assert_eq!((&loops["backlog"], &loops["op_types"]), (&run["backlog"], &run["op_types"]));
        let queue = trial["conditions"]["queue"].as_str().unwrap();
        assert!(queue.starts_with("shared"), "{queue}");
    });
}

/// More operations arrive than SQLite serves, so those served after the last loop belong to the backlog, along with its
/// growth. Every moment between the first row and the end of the drain belongs to a phase, for any request between two
/// of them.
#[test]
fn work_after_the_last_sample_counts_in_the_next_phase() {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "linkbench", "--engine", "sqlite", "--out", "out", "--quiet"]);
    let sets = ["maxid1=2000", "load_clients=2", "warmup=1s", "loops=1", "loop=1s", "clients=2", "rate=200000"];
    set(&mut command, sets.into_iter().chain(["backlog=3s"]));
    assert!(command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    let report = place.report();
    let trial = &report["trials"][0];
    let of = |kind: &str| phase(trial, kind).unwrap();
    let number = |phase: &Value, name: &str| phase[name].as_f64().unwrap();
    for (one, next) in [("load", "settle"), ("warmup", "loop 1"), ("loop 1", "backlog"), ("backlog", "drain")] {
        let gap_s = number(of(next), "start_s") - number(of(one), "start_s") - number(of(one), "seconds");
        assert!(gap_s.abs() < 1e-3, "{gap_s} s between {one} and {next} are in neither");
    }
    let size = |kind: &str| number(of(kind), "size_bytes");
    let served_later = number(of("backlog"), "ops");
    assert!(served_later > number(of("loop 1"), "ops"), "{served_later}");
    assert!(size("backlog") - size("loop 1") > 100e3, "{} after {}", size("backlog"), size("loop 1"));
    assert_eq!(size("loops"), size("loop 1"));
    let growth = number(of("backlog"), "growth_bytes_per_op") * served_later;
    assert!(growth > 50e3, "{growth}");
}

#[test]
#[needs(MariaDb)]
fn arrivals_open_after_backlog_enter_no_percentile() {
    at_once([&["rate=800", "driver=threads", "backlog=500ms"][..], &["driver=loops", "backlog=500ms"][..]], |more| {
        let (trial, _) = across_the_end(more);
        let run = phase(&trial, "loop 1").unwrap();
        let backlog = &run["backlog"];
        assert_eq!(backlog["open"], CLIENTS, "{backlog}");
        let open: u64 = run["op_types"].as_object().unwrap().values().filter_map(|op| op["open"].as_u64()).sum();
        assert_eq!(open, CLIENTS);
        // The oldest requests had waited since the server stopped.
        let longest_ms = backlog["longest_wait_ms"].as_f64().unwrap();
        assert!((500.0..2_500.0).contains(&longest_ms), "{backlog}");
        let (p50_ms, max_ms) = (response(run, "p50_ms"), response(run, "max_ms"));
        assert!(p50_ms.is_number(), "half of the operations had ended: {p50_ms}");
        if more.contains(&"rate=800") {
            holds_every_arrival(&trial);
            assert!(backlog["not_begun"].as_u64().unwrap() > 50, "{backlog}");
            for unknown in [response(run, "p95_ms"), max_ms] {
                let why = unknown["absent"].as_str().unwrap();
                assert!(why.contains("had not ended at the end"), "{why}");
            }
        }
        let warned = trial["warnings"].as_array().unwrap().iter().any(|warning| warning["code"] == "open-at-end");
        assert!(warned, "{}", trial["warnings"]);
        assert_eq!(phase(&trial, "verify").unwrap()["complete"], true);
    });
}
