//! Guards against counting a suspended measurement. Loops of 5 s once lasted 58, 26 and 14 s, because a user had
//! stopped the server, rumba or both. They ended as "done", and their figures were compared with others. A measurement
//! that was only slow does count.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::{TestDir, at_once, children, phase, set, stop_for, text};
use rumba_testkit::mounts::LoopDevice;
use serde_json::Value;

/// Operations per second in tests whose number does not matter: without a rate they would take the whole host.
const CALM: &str = "rate=400";

/// A run under way.
struct Run {
    place: TestDir,
    child: Child,
    engine: &'static str,
}

/// The results of a run.
struct Ended {
    place: TestDir,
    code: Option<i32>,
    report: Value,
    intervals: Vec<Value>,
}

impl Run {
    fn start(engine: &'static str, more: &[&str]) -> Self {
        Self::start_in(TestDir::new(), engine, more)
    }

    fn start_in(place: TestDir, engine: &'static str, more: &[&str]) -> Self {
        let mut command = place.rumba(&["run", "linkbench", "--engine", engine, "--out", "out", "--quiet"]);
        set(&mut command, ["maxid1=2000", "clients=2", "load_clients=2", "warmup=0s"].iter().chain(more));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { place, child, engine }
    }

    fn file(&self, name: &str) -> String {
        let path = format!("out/trials/001-{}-c2-r1/{name}", self.engine);
        std::fs::read_to_string(self.place.path(&path)).unwrap_or_default()
    }

    /// Waits for this many seconds of a phase, as counted in the written intervals.
    fn await_seconds(&mut self, phase: &str, seconds: usize) {
        while self.file("intervals.ndjson").matches(&format!("\"{phase}\"")).count() < seconds {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended early: {}", self.place.report());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn trial(&self) -> u32 {
        children(self.child.id())[0]
    }

    fn server(&self) -> u32 {
        children(self.trial())[0]
    }

    fn end(mut self) -> Ended {
        let code = self.child.wait().unwrap().code();
        let report = self.place.report();
        let intervals = self.file("intervals.ndjson");
        let intervals = intervals.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Ended { place: self.place, code, report, intervals }
    }
}

/// Whether this many lost seconds match a stop, within the precision of the heartbeat.
fn is_of(lost_s: f64, (least, most): (f64, f64)) -> bool {
    (least - 0.3..most + 0.5).contains(&lost_s)
}

impl Ended {
    fn trial(&self) -> &Value {
        &self.report["trials"][0]
    }

    fn phase(&self, name: &str) -> &Value {
        phase(self.trial(), name).unwrap_or_else(|| panic!("no {name}: {}", self.trial()))
    }

    fn seconds(&self, name: &str) -> f64 {
        self.phase(name)["seconds"].as_f64().unwrap()
    }

    /// The time for which a phase was suspended; 0 if it is not marked.
    fn suspended_s(&self, name: &str) -> f64 {
        self.phase(name)["suspended"]["seconds"].as_f64().unwrap_or(0.0)
    }

    /// Length and suspended part of each second of a phase.
    fn timeline(&self, name: &str) -> Vec<(f64, f64)> {
        let of_phase = self.intervals.iter().filter(|interval| interval["phase"] == name);
        of_phase.map(|one| (one["seconds"].as_f64().unwrap(), one["suspended_s"].as_f64().unwrap_or(0.0))).collect()
    }

    /// The trial is marked, its figures appear nowhere, and the report says so.
    fn counts_for_nothing(&self, engine: &str) {
        assert_eq!(
            (self.code, &self.trial()["status"]),
            (Some(1), &"suspended".into()),
            "{}",
            self.trial()["warnings"]
        );
        let warnings = self.trial()["warnings"].as_array().unwrap();
        let warning = warnings.iter().find(|warning| warning["code"] == "suspended").unwrap();
        assert_eq!(warning["rank"], "void");
        let row = &self.report["summary"]["rows"][0];
        assert!(row["run"].is_null() && row["load"].is_object(), "{row}");
        assert_eq!((&row["suspended"][0]["part"], &row["suspended"][0]["trial"]), (&"run".into(), &1.into()));
        assert_eq!(self.report["summary"]["steadiness"], Value::Array(Vec::new()));
        let claim = format!("ops_per_s(\"{engine}\") > 1");
        let checked = self.place.rumba(&["report", "out", "--check", "--claim", &claim]).output().unwrap();
        assert_eq!(checked.status.code(), Some(1), "{}", text(&checked));
        let said = text(&checked);
        assert!(said.contains("undecided") && said.contains("1 were suspended"), "{said}");
        assert!(said.contains("Suspended while they were measured, and in no figure, verdict or claim"), "{said}");
        assert!(said.contains(&format!("repeat 1 of {engine} was suspended in loop 1")), "{said}");
        assert!(std::fs::read_to_string(self.place.path("out/report.html")).unwrap().contains("\"suspended\":[["));
        assert!(self.place.is_clean());
    }

    /// The trial is a normal measurement.
    fn is_sound(&self) {
        assert_eq!((self.code, &self.trial()["status"]), (Some(0), &"done".into()), "{}", self.trial()["warnings"]);
        let marked = self.trial()["phases"].as_array().unwrap().iter().find(|phase| phase["suspended"].is_object());
        assert!(marked.is_none(), "{}", marked.unwrap());
        assert!(self.report["summary"]["rows"][0]["run"].is_object());
        assert!(self.place.is_clean());
    }
}

#[test]
fn paused_trial_is_marked_and_reruns_on_resume() {
    let mut run = Run::start("sqlite", &["loops=2", "loop=4s", CALM]);
    run.await_seconds("loop 1", 1);
    // The loop ends in time, so only the work that could not run in it shows the stop.
    let stopped = stop_for(run.trial(), Duration::from_millis(2500));
    let ended = run.end();
    ended.counts_for_nothing("sqlite");
    let lost_s = ended.suspended_s("loop 1");
    assert!(is_of(lost_s, stopped), "{lost_s} of {stopped:?} s");
    assert!((4.0..4.8).contains(&ended.seconds("loop 1")), "{}", ended.seconds("loop 1"));
    assert_eq!(ended.suspended_s("loop 2"), 0.0, "each loop is looked at by itself");
    assert!(ended.suspended_s("loops") > 0.0, "their sum is no better than its parts");
    let timeline = ended.timeline("loop 1");
    assert!(timeline.iter().all(|(seconds, _)| *seconds < 1.5), "{timeline:?}");
    let (whole, lost) = timeline.iter().fold((0.0, 0.0), |(whole, lost), (seconds, s)| (whole + seconds, lost + s));
    assert!((whole - ended.seconds("loop 1")).abs() < 0.05 && (lost - lost_s).abs() < 0.2, "{timeline:?}");
    let ops: u64 =
        ended.intervals.iter().filter(|one| one["phase"] == "loop 1").map(|one| one["ops"].as_u64().unwrap()).sum();
    assert_eq!(ops, ended.phase("loop 1")["ops"].as_u64().unwrap(), "no operation is lost or reported twice");
    let again = ended.place.rumba(&["run", "--resume", "out", "--quiet"]).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let report = ended.place.report();
    assert_eq!(report["trials"][0]["status"], "done");
    assert!(report["summary"]["rows"][0]["run"].is_object());
}

#[test]
#[needs(MariaDb)]
fn stopped_server_marks_only_its_loops_and_lengthens_none() {
    // The stall watch does not report so short a stop, and reports none when it is off.
    at_once(["driver=threads", "driver=loops"], |driver| {
        let mut run = Run::start("innodb", &["loops=5", "loop=2s", "stall=0s", driver, CALM]);
        run.await_seconds("loop 1", 1);
        let stopped = stop_for(run.server(), Duration::from_millis(5500));
        let ended = run.end();
        ended.counts_for_nothing("innodb");
        let cause = ended.phase("loop 1")["suspended"]["cause"].as_str().unwrap();
        assert!(cause.contains("the server, mariadbd (pid") && cause.contains("state T"), "{driver}: {cause}");
        for name in ["loop 1", "loop 2", "loop 3", "loop 4", "loop 5"] {
            // The server's counters were requested between two loops: the second one lasted until the server continued.
            assert!((2.0..2.8).contains(&ended.seconds(name)), "{driver}: {name} lasted {} s", ended.seconds(name));
            let timeline = ended.timeline(name);
            assert!(timeline.iter().all(|(seconds, _)| *seconds < 1.5), "{driver}, {name}: {timeline:?}");
        }
        let lost_s = ended.suspended_s("loops");
        assert!(is_of(lost_s + 0.2, stopped), "{driver}: {lost_s} of {stopped:?} s");
        let whole = ["loop 2", "loop 3"].map(|name| ended.suspended_s(name));
        assert!(whole.iter().all(|lost_s| (1.9..2.8).contains(lost_s)), "{driver}: {whole:?}");
        assert_eq!(ended.suspended_s("loop 5"), 0.0, "{driver}");
        let phases: Vec<&str> =
            ended.trial()["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
        let order: Vec<&str> = phases.into_iter().filter(|name| name.starts_with("loop")).collect();
        assert_eq!(order, ["loop 1", "loop 2", "loop 3", "loop 4", "loop 5", "loops"], "{driver}");
    });
}

#[test]
#[needs(MariaDb, LoopDevice)]
fn blocked_disk_is_a_finding_and_not_a_pause() {
    at_once(["sqlite", "innodb"], |engine| {
        let place = TestDir::new();
        let disk = LoopDevice::at(&place.path("disk"), 500);
        let data = format!("data_dir={}", disk.path().join("data").display());
        let mut run = Run::start_in(place, engine, &["loops=2", "loop=4s", "cache=16MiB", "durability=sync", &data]);
        run.await_seconds("loop 1", 2);
        let frozen = disk.freeze();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_secs(3));
        let stall_ms = begun.elapsed().as_secs_f64() * 1e3;
        drop(frozen);
        let ended = run.end();
        ended.is_sound();
        for name in ["loop 1", "loop 2"] {
            assert!((4.0..4.8).contains(&ended.seconds(name)), "{engine}: {name} lasted {} s", ended.seconds(name));
        }
        let ops = ended.phase("loops")["op_types"].as_object().unwrap().values();
        let max_ms = ops.filter_map(|op| op["response"]["max_ms"].as_f64()).fold(0.0, f64::max);
        // Two writers of SQLite may wait for each other longer than for the disk.
        assert!(max_ms > stall_ms - 200.0, "{engine}: {max_ms} of {stall_ms} ms");
        // Before the place that it is in.
        drop(disk);
    });
}
