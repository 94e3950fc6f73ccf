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
use std::time::{Duration, Instant};

use common::{TestDir, at_once, children, ended, phase, set, text};
use rumba_lab::run::queue::{Queue, seed_of};
use rumba_testkit::mounts::LoopDevice;
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
        Self::start_in(TestDir::new(), more)
    }

    fn start_in(place: TestDir, more: &[&str]) -> Self {
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

    fn stop_for(&mut self, stall: Duration) -> f64 {
        let server = children(children(self.run.id())[0])[0];
        common::stop_for(server, stall).0 * 1e3
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
    let kind = trial["conditions"]["queue"].as_str().unwrap();
    let queues = if kind.starts_with("shared") { 1 } else { CLIENTS };
    let due_before = |seconds: f64| -> u64 {
        let of_queue = |queue: u64| {
            let arrivals = Queue::new(RATE / queues as f64, seed_of(seed, queue));
            arrivals.left_ns().take_while(|due| (*due as f64) < seconds * 1e9).count() as u64
        };
        (0..queues).map(of_queue).sum()
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
    let stall_ms = stalled.stop_for(Duration::from_secs(2));
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
fn stall_at_closed_loop_end_is_the_largest_response() {
    at_once(["driver=threads", "driver=loops"], |driver| {
        let (trial, stall_ms) = across_the_end(&[driver]);
        let run = phase(&trial, "loop 1").unwrap();
        assert_eq!(run["backlog"]["ended"], CLIENTS, "{driver}: each client had one operation at hand");
        let ops = run["op_types"].as_object().unwrap().values();
        let late: Vec<&Value> = ops.filter(|op| op["ended_late"].as_u64().is_some()).collect();
        assert_eq!(late.iter().map(|op| op["ended_late"].as_u64().unwrap()).sum::<u64>(), CLIENTS);
        for op in late {
            let max_ms = op["response"]["max_ms"].as_f64().unwrap();
            assert!((stall_ms - 300.0..stall_ms + 1_000.0).contains(&max_ms), "{driver}: {max_ms} of {stall_ms} ms");
            assert!(op["service"]["max_ms"].as_f64().unwrap() > stall_ms - 300.0);
        }
        assert!(trial["conditions"]["queue"].is_null(), "a closed loop has no queue");
    });
}

#[test]
#[needs(MariaDb)]
fn stall_inside_open_loop_delays_every_waiting_arrival() {
    let mut stalled = Stalled::start(&["rate=800", "queue=client"]);
    stalled.await_second(1);
    let stall_ms = stalled.stop_for(Duration::from_secs(1));
    let trial = stalled.trial();
    holds_every_arrival(&trial);
    let run = phase(&trial, "loop 1").unwrap();
    // A fifth of the arrivals waited, uniformly between nothing and the whole stall.
    let of = |name: &str| response(run, name).as_f64().unwrap();
    let (p95_ms, p99_ms, max_ms) = (of("p95_ms"), of("p99_ms"), of("max_ms"));
    assert!((stall_ms - 500.0..stall_ms + 500.0).contains(&p95_ms), "{p95_ms} of {stall_ms} ms");
    assert!((stall_ms - 300.0..stall_ms + 800.0).contains(&p99_ms) && p95_ms < p99_ms, "{p99_ms} of {stall_ms} ms");
    assert!((stall_ms - 200.0..stall_ms + 1_000.0).contains(&max_ms), "{max_ms} of {stall_ms} ms");
    assert_eq!(run["backlog"]["open"].as_u64().unwrap() + run["backlog"]["not_begun"].as_u64().unwrap(), 0);
    assert!(trial["conditions"]["queue"].as_str().unwrap().starts_with("client"));
}

#[test]
#[needs(MariaDb)]
fn stall_in_closed_loop_is_one_long_response_per_client() {
    at_once(["driver=threads", "driver=loops"], |driver| {
        let mut stalled = Stalled::start(&[driver]);
        stalled.await_second(1);
        let stall_ms = stalled.stop_for(Duration::from_secs(1));
        let trial = stalled.trial();
        let run = phase(&trial, "loop 1").unwrap();
        let ops: Vec<&Value> = run["op_types"].as_object().unwrap().values().collect();
        let held = |op: &&&Value| op["response"]["max_ms"].as_f64().unwrap_or(0.0) > stall_ms - 300.0;
        let held: Vec<&Value> = ops.iter().filter(held).copied().collect();
        assert!((1..=CLIENTS as usize).contains(&held.len()), "{driver}: {} types waited for it", held.len());
        for op in &held {
            let max_ms = op["response"]["max_ms"].as_f64().unwrap();
            assert!(max_ms < stall_ms + 1_000.0, "{driver}: {max_ms} of {stall_ms} ms");
        }
        // Four slow operations among hundreds: no other client had a request meanwhile, so none waited.
        let requested = response(run, "p99_ms").as_f64().unwrap();
        assert!(run["ops"].as_u64().unwrap() > 100 * CLIENTS && requested < 0.5 * stall_ms, "{driver}: {requested} ms");
        assert_eq!(run["backlog"]["open"], 0);
        assert_eq!(run["ops"].as_u64().unwrap(), ops.iter().map(|op| op["count"].as_u64().unwrap()).sum::<u64>());
    });
}

/// A server that is slow at the end because its disk takes no writes is measured. The effect is in the medians, in the
/// tables and in all conclusions from them.
#[test]
#[needs(MariaDb, LoopDevice)]
fn a_late_tail_reaches_the_median_and_the_tables() {
    let place = TestDir::new();
    let disk = LoopDevice::at(&place.path("disk"), 500);
    let data = format!("data_dir={}", disk.path().join("data").display());
    let sets = ["rate=800", "cache=16MiB", "durability=sync", &data];
    let mut stalled = Stalled::start_in(place, &sets);
    stalled.await_second(4);
    let frozen = disk.freeze();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_secs(2));
    let stall_ms = begun.elapsed().as_secs_f64() * 1e3;
    drop(frozen);
    assert_eq!(stalled.run.wait().unwrap().code(), Some(0), "{}", stalled.place.report());
    let report = stalled.place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "done", "{trial}");
    holds_every_arrival(trial);
    let run = phase(trial, "loops").unwrap();
    let p99_ms = response(run, "p99_ms").as_f64().unwrap();
    let expected_ms = stall_ms - 10.0 * LOOP_S;
    // Reads continue until each client has a waiting write; then all new ones wait.
    assert!((expected_ms - 500.0..stall_ms + 2_000.0).contains(&p99_ms), "{p99_ms} of {expected_ms} ms");
    let row = &report["summary"]["rows"][0]["run"]["op_types"]["get_node"]["response"]["p99_ms"];
    assert_eq!(row["median"], response(run, "p99_ms").clone(), "{row}");
    let tables = text(&stalled.place.rumba(&["report", "out"]).output().unwrap());
    let (_, transactions) = tables.split_once("\nTransactions\n").unwrap();
    let mut lines = transactions.lines();
    let heads: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    // Warning letters precede some of the numbers.
    let is_number = |cell: &&str| !cell.starts_with(char::is_alphabetic);
    let cells: Vec<&str> = lines.next().unwrap().split_whitespace().filter(is_number).collect();
    let at = heads.iter().position(|head| *head == "gn").unwrap();
    assert_eq!(cells[at], format!("{p99_ms:.0}"), "{tables}");
    drop(disk);
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

#[test]
fn a_run_whose_operations_end_at_once_has_no_backlog_of_its_own() {
    let place = TestDir::new();
    ended(0, place.short_run("null", &["--set", "rate=2000"]));
    let trial = place.report()["trials"][0].clone();
    assert!(phase(&trial, "backlog").is_none(), "{trial}");
    let (last, first) = (phase(&trial, "loop 2").unwrap(), phase(&trial, "loop 1").unwrap());
    assert_eq!(last["backlog"]["open"], 0);
    assert!(last["backlog"]["longest_wait_ms"]["absent"].is_string() && first["backlog"].is_null());
}
