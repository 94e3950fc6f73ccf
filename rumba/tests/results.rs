//! The directory of a run's results: exclusive while it is written, kept when its disk is full, readable when it is
//! damaged.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use common::{CALM, TestDir, ended, phase, set, text};
use rumba_testkit::mounts::{Tmpfs, fill};
use serde_json::Value;

const SHORT: [&str; 7] = ["maxid1=2000", "clients=2", CALM, "load_clients=2", "warmup=200ms", "loops=1", "loop=1s"];

fn wait(run: Child) -> Output {
    run.wait_with_output().unwrap()
}

/// Starts a short run, whose output is piped.
fn start_short(place: &TestDir, engine: &str, more: &[&str]) -> Child {
    let mut command = place.rumba(&["run", "linkbench", "--engine", engine]);
    set(&mut command, SHORT);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn report(place: &TestDir, results: &Path) -> Value {
    let output = ended(0, place.rumba(&["report", "--json"]).arg(results));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Whether a trial completed. On a busy host its seconds may have been delayed, which this test ignores.
fn is_measured(trial: &Value) -> bool {
    let is_reported = phase(trial, "loops").is_some_and(|loops| loops["ops"].as_u64() > Some(0));
    is_reported && (trial["status"] == "done" || trial["status"] == "suspended")
}

fn missing(report: &Value) -> String {
    report["missing"].to_string()
}

#[test]
fn concurrent_run_into_one_directory_is_refused_by_name() {
    let place = TestDir::new();
    let runs = ["rocksdb", "sqlite"].map(|engine| (engine, start_short(&place, engine, &["--out", "here/out"])));
    let ended = runs.map(|(engine, run)| (engine, wait(run)));
    let (kept, refused): (Vec<_>, Vec<_>) = ended.iter().partition(|(_, output)| output.status.code() != Some(2));
    assert_eq!((kept.len(), refused.len()), (1, 1), "{}{}", text(&ended[0].1), text(&ended[1].1));
    assert!(text(&refused[0].1).contains("here/out is taken: another run"), "{}", text(&refused[0].1));
    let report = report(&place, &place.path("here/out"));
    assert_eq!((report["trials"][0]["engine"].as_str(), missing(&report)), (Some(kept[0].0), "[]".to_owned()));
    assert!(is_measured(&report["trials"][0]), "{}", report["trials"][0]["failure"]);
    assert!(place.is_clean());
}

/// A run whose results and data are in different directories, and its output.
struct Run {
    child: Child,
    said: JoinHandle<String>,
}

impl Run {
    /// Starts one, and waits until its first loop is under way.
    fn start(place: &TestDir, engine: &str, out: &Path, more: &[&str]) -> Self {
        let mut command = place.rumba(&["run", "linkbench", "--engine", engine, "--out"]);
        command.arg(out);
        let sets = ["maxid1=2000", "clients=2", CALM, "warmup=0s", "data_dir=data", "repeats_from=load"];
        set(&mut command, sets.iter().chain(more));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let said = std::thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n"));
        let intervals = trial(out, engine).join("intervals.ndjson");
        while !std::fs::read_to_string(&intervals).unwrap_or_default().contains("\"loop 1\"") {
            assert!(child.try_wait().unwrap().is_none(), "{engine} ended early: {}", said.join().unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, said }
    }

    fn wait(mut self) -> (ExitStatus, String) {
        (self.child.wait().unwrap(), self.said.join().unwrap())
    }
}

fn trial(results: &Path, engine: &str) -> PathBuf {
    results.join(format!("trials/001-{engine}-c2-r1"))
}

/// The readable seconds of a phase in a trial's intervals.
fn seconds_reported(trial: &Path, phase: &str) -> f64 {
    let intervals = std::fs::read_to_string(trial.join("intervals.ndjson")).unwrap();
    let intervals = intervals.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    intervals.filter(|interval| interval["phase"] == phase).map(|interval| interval["seconds"].as_f64().unwrap()).sum()
}

#[test]
#[needs(Tmpfs)]
fn full_results_disk_loses_at_most_one_interval() {
    // Guards against a late report: the error appeared only after all loops had been measured. No loop was kept, and
    // the record said that the trial was running.
    for engine in ["null", "sqlite"] {
        let place = TestDir::new();
        let memory = Tmpfs::at(&place.path("memory"), "size=24m");
        let out = memory.path().join("out");
        let run = Run::start(&place, engine, &out, &["loops=3", "loop=20s", "repeats=2"]);
        let taken = rustix::fs::statvfs(memory.path()).unwrap();
        let taken = (taken.f_blocks - taken.f_bfree) * taken.f_frsize;
        fill(memory.path());
        let (status, said) = run.wait();
        assert_eq!(status.code(), Some(1), "{engine}: {said}");
        let place_of = |words: &str| said.find(words).unwrap_or_else(|| panic!("{engine}: no {words} in {said}"));
        assert!(place_of("out is full; the run stops") < place_of("FAILED in loop 1"), "{engine}: {said}");
        assert!(said.contains("1 trial not run (make room there"), "{engine}: {said}");
        let report = report(&place, &out);
        let reported = &report["trials"][0];
        assert_eq!(
            (&reported["status"], &reported["failure"]["phase"]),
            (&"failed".into(), &"loop 1".into()),
            "{engine}"
        );
        let cause = reported["failure"]["cause"].as_str().unwrap();
        assert!(cause.starts_with("results-disk-full: "), "{engine}: {cause}");
        assert!(reported["warnings"].to_string().contains("\"results-disk-full\""), "{engine}");
        assert_eq!(missing(&report), "[\"002-ENGINE-c2-r2: was not run\"]".replace("ENGINE", engine));
        let (load, cut_off) = (phase(reported, "load").unwrap(), phase(reported, "loop 1").unwrap());
        assert!(load["ops"].as_u64().unwrap() > 0 && cut_off["ops"].as_u64().unwrap() > 0, "{engine}");
        assert_eq!(cut_off["complete"], false, "{engine}");
        let lost_s = cut_off["seconds"].as_f64().unwrap() - seconds_reported(&trial(&out, engine), "loop 1");
        assert!(lost_s < 1.1, "{engine}: {lost_s} s are lost");
        let page = std::fs::read_to_string(out.join("report.html")).unwrap();
        assert!(page.trim_end().ends_with("</html>") && page.contains("results-disk-full"), "{engine}");
        assert!(taken > 6 << 20, "{engine}: only {taken} bytes were held");
        assert!(place.is_clean(), "{engine}");
    }
}

#[test]
#[needs(Tmpfs)]
fn disk_too_small_for_the_record_is_refused_before_start() {
    let place = TestDir::new();
    let memory = Tmpfs::at(&place.path("memory"), "size=4m");
    let run = start_short(&place, "null", &["--set", "data_dir=data", "--out", "memory/out"]);
    let output = wait(run);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let words = text(&output).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
    assert!(words.contains("memory/out has no room for the 7 MiB that rumba reserves"), "{words}");
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0, "nothing is left");
    assert!(place.is_clean());
}

/// Guards against a late failure: InnoDB's log filled a volume of six times the data during the load, which only the
/// load detected.
#[test]
#[needs(MariaDb, LoopDevice)]
fn storage_smaller_than_the_log_is_refused_before_start() {
    let place = TestDir::new();
    let sets = ["cache=512MiB", "storage.size=900MiB", "storage.backing=file"];
    let sets: Vec<&str> = sets.into_iter().flat_map(|set| ["--set", set]).collect();
    let output = ended(2, place.short_run("innodb", &sets).arg("--dry-run"));
    let words = text(&output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(words.contains("plus 1.00 GiB of log that it allocates at once"), "{words}");
    assert!(place.is_clean());
}

/// SQLite's database has no log, but is next to one with a log of 1 GiB.
#[test]
#[needs(MariaDb)]
fn disk_forecast_counts_each_database_with_its_own_log() {
    let place = TestDir::new();
    let needed = |engines: &str| {
        let sets = ["--set", "cache=512MiB", "--set", "repeats=2", "--set", "repeats_from=kept", "--dry-run", "--json"];
        let output = ended(0, place.short_run(engines, &sets));
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |name: &str| plan["forecast"][name].as_u64().unwrap();
        (count("databases"), count("disk_bytes") - 3 * count("databases") * count("data_bytes"))
    };
    // One is kept of each, and one is at work.
    assert_eq!(needed("sqlite"), (2, 0));
    assert_eq!(needed("innodb"), (2, 2 << 30));
    assert_eq!(needed("innodb,sqlite"), (3, 2 << 30));
}

#[test]
#[needs(Tmpfs)]
fn a_page_that_finds_no_room_leaves_the_old_one() {
    // Guards against a truncated file: it was once emptied first, and then held only the part that fit.
    let place = TestDir::new();
    place.short_run("null", &[]).output().unwrap();
    assert!(is_measured(&place.report()["trials"][0]));
    let memory = Tmpfs::at(&place.path("memory"), "size=2m");
    let page = memory.path().join("page.html");
    std::fs::write(&page, "the old page").unwrap();
    fill(memory.path());
    let output = ended(1, place.rumba(&["report", "out", "--html"]).arg(&page));
    assert!(text(&output).contains("page.html cannot be written"), "{}", text(&output));
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "the old page");
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 2, "no part of one is left");
}

#[test]
fn an_engine_is_looked_at_while_clients_load_and_work() {
    let place = TestDir::new();
    let output = wait(start_short(&place, "sqlite,lmdb,null", &["--set", "loop=2s", "--quiet", "--out", "out"]));
    assert!(output.status.success(), "{}", text(&output));
    let out = place.path("out");
    let report = report(&place, &out);
    let file = |trial: &str| out.join(format!("trials/{trial}-c2-r1/engine.ndjson"));
    for (directory, engine) in [("001-sqlite", "sqlite"), ("002-lmdb", "lmdb")] {
        let looks = std::fs::read_to_string(file(directory)).unwrap();
        let looks: Vec<Value> = looks.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let at_s: Vec<f64> = looks.iter().map(|look| look["at_s"].as_f64().unwrap()).collect();
        assert!(at_s.is_sorted(), "{engine}: {at_s:?}");
        assert!(
            looks[0]["size_bytes"].as_f64() > Some(0.0) && looks[0]["counters"].is_object(),
            "{engine}: {}",
            looks[0]
        );
        let of_engine = |trial: &&Value| trial["engine"] == engine;
        let reported = report["trials"].as_array().unwrap().iter().find(of_engine).unwrap();
        for during in ["load", "warmup"] {
            let phase = phase(reported, during).unwrap();
            // A sample requested at the beginning of the phase is taken a moment later.
            let [from, until] = [-0.2, 5.0].map(|more| phase["start_s"].as_f64().unwrap() + more);
            assert!(at_s.iter().any(|at_s| (from..until).contains(at_s)), "{engine}, {during} from {from}: {at_s:?}");
        }
    }
    assert!(!file("003-null").exists(), "it keeps nothing: there is nothing to see");
}

#[test]
fn refusal_keeps_its_exit_code_when_output_is_closed() {
    let place = TestDir::new();
    for (words, code) in [(&["run", "no-such.toml"][..], 2), (&["sysbench", "--no-such-option=1", "cpu", "run"][..], 1)]
    {
        let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = place.rumba(words).stdout(full()).stderr(full()).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{words:?}");
    }
}

#[test]
fn tables_that_find_no_room_are_a_failure_and_cost_no_results() {
    // Guards against silent loss: results were once lost without a message, and the command ended well.
    let place = TestDir::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = ended(1, place.short_run("null", &[]).stdout(full));
    assert!(text(&output).contains("standard output: No space left on device"), "{}", text(&output));
    assert!(is_measured(&place.report()["trials"][0]));
    assert!(place.path("out/report.html").is_file());
}
