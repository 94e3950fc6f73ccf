//! Trials start from copies of a kept load. Every engine opens its copy and verifies it; a damaged copy is loaded
//! again; an interrupted run continues. With `repeats_from = "kept"` all repeats start from one load, and otherwise
//! each from its own.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use common::{CALM, TestDir, at_once, children, ended, is_alive, kill, phase, set, text};
use serde_json::Value;

fn is_verified(trial: &Value) -> bool {
    let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap().clone();
    !checks.is_empty() && checks.iter().all(|check| check["wrong"] == 0 && check["examined"].as_u64() > Some(0))
}

/// Every repeat of these engines starts from a copy of its engine's load, and verifies its data.
fn assert_repeats_from_one_load(place: &TestDir, engines: &[&str], more: &[&str]) {
    let mut command = place.short_run(&engines.join(","), &["--set", "repeats=2", "--set", "repeats_from=kept"]);
    set(&mut command, more);
    ended(0, &mut command);
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 3 * engines.len());
    for engine in engines {
        let of_engine: Vec<&Value> = trials.iter().filter(|trial| trial["engine"] == *engine).collect();
        let load = of_engine[0];
        assert_eq!((&load["part"], &load["status"]), (&"load".into(), &"done".into()), "{engine}");
        assert!(phase(load, "load").is_some() && phase(load, "loops").is_none(), "{engine}");
        let logical = phase(load, "settle").unwrap()["logical_bytes"].as_f64().unwrap();
        for run in &of_engine[1..] {
            assert_eq!((&run["part"], &run["status"]), (&"run".into(), &"done".into()), "{engine}: {}", run["failure"]);
            assert_eq!(run["loaded_by"], load["number"], "{engine}");
            assert!(phase(run, "load").is_none() && is_verified(run), "{engine}");
            assert!(run["conditions"]["data"].as_str().unwrap().contains("a copy of the data that trial"), "{engine}");
            let begun = phase(run, "settle").unwrap()["logical_bytes"].as_f64().unwrap();
            assert_eq!(begun, logical, "{engine}: the workload's count went with the data");
        }
    }
    for row in report["summary"]["rows"].as_array().unwrap() {
        assert_eq!((row["loads"].as_u64(), row["clients"].as_u64()), (Some(1), Some(2)), "{}", row["engine"]);
        assert_eq!(row["load"]["trials"].as_array().unwrap().len(), 1);
        assert_eq!(row["run"]["trials"].as_array().unwrap().len(), 2);
    }
    assert_eq!(report["summary"]["unfinished"].as_array().unwrap().len(), 0);
    assert!(place.is_clean());
}

#[test]
fn repeats_of_embedded_engines_start_from_one_load_and_verify() {
    let with = embedded::of_linkbench();
    let without = embedded::names(&embedded::here(), |engine| !engine.info().has_transactions);
    // A run has one workload, and those without transactions need another.
    at_once([&with[..], &without[..]].into_iter().filter(|engines| !engines.is_empty()), of_embedded);
}

fn of_embedded(engines: &[&str]) {
    let place = TestDir::for_engines(embedded::have_transactions(engines));
    assert_repeats_from_one_load(&place, engines, &[]);
}

#[test]
#[each(embedded::brought)]
fn repeats_of_brought_engines_start_from_one_load_and_verify(engine: &'static str) {
    of_embedded(&[engine]);
}

#[test]
#[needs(MariaDb, MyRocks)]
fn repeats_of_servers_start_from_one_load_and_verify() {
    let server = "server=mariadb@10.11";
    let runs: [(&[&str], &[&str]); 2] =
        [(&["innodb", "myrocks"], &[server]), (&["innodb"], &[server, "innodb.tcp=true"])];
    at_once(runs, |(engines, more)| assert_repeats_from_one_load(&TestDir::new(), engines, more));
}

/// MySQL 5.6 keeps purged transactions in its history, and after a restart it continues from a transaction number that
/// does not exist.
#[test]
#[needs(Server("mysql@5.6"))]
fn repeats_of_mysql_5_6_start_from_one_load_and_verify() {
    assert_repeats_from_one_load(&TestDir::new(), &["innodb"], &["server=mysql@5.6"]);
}

#[test]
#[needs(Server("mariadb-tokudb@10.5"))]
fn repeats_of_tokudb_start_from_one_load_and_verify() {
    assert_repeats_from_one_load(&TestDir::new(), &["tokudb"], &["durability=sync"]);
}

/// The set of replicas in the data names the port of the server that loaded it.
#[test]
#[needs(Server("mongodb@6.0"))]
fn repeats_of_mongodb_start_from_one_load_and_verify() {
    assert_repeats_from_one_load(&TestDir::new(), &["mongodb"], &["server=mongodb@6.0", "cache=256MiB"]);
}

/// Starts a run from one load, and waits until a trial is in its first loop.
fn start(place: &TestDir, trial: &str, more: &[&str]) -> Child {
    let mut command = place.rumba(&["run", "linkbench", "--engine", "rocksdb", "--out", "out"]);
    set(
        &mut command,
        ["maxid1=2000", "clients=2", CALM, "warmup=0s", "loops=1", "repeats_from=kept"].iter().chain(more),
    );
    let reported = std::fs::File::create(place.path("reported")).unwrap();
    let mut run = command.stdout(Stdio::null()).stderr(reported).spawn().unwrap();
    await_loop(place, &mut run, trial);
    run
}

/// Waits for the first second of a trial's loop.
fn await_loop(place: &TestDir, run: &mut Child, trial: &str) {
    let intervals = place.path(&format!("out/trials/{trial}/intervals.ndjson"));
    while !std::fs::read_to_string(&intervals).unwrap_or_default().contains("\"loop 1\"") {
        assert!(run.try_wait().unwrap().is_none(), "it ended before {trial}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn damaged_copy_is_loaded_again_and_recorded() {
    let place = TestDir::new();
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=3", "loop=3s"]);
    let files = std::fs::read_dir(place.path("out/data/001-rocksdb-load/data")).unwrap().flatten();
    let largest = files.map(|file| file.path()).max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(largest).unwrap();
    file.write_all_at(b"not what was kept", 4096).unwrap();
    assert!(run.wait().unwrap().success());
    let trials = place.report()["trials"].as_array().unwrap().clone();
    assert!(trials[1]["part"] == "run" && is_verified(&trials[1]));
    for again in &trials[2..] {
        assert!(again["part"] == "whole" && is_verified(again));
        assert!(again["warnings"].to_string().contains("loaded-again"), "{}", again["warnings"]);
    }
    let reported = std::fs::read_to_string(place.path("reported")).unwrap();
    assert_eq!(reported.matches("copy of ").count(), 2, "neither another try nor another repeat copies it: {reported}");
    assert!(place.is_clean());
}

#[test]
fn a_copy_that_does_not_open_is_tried_once_more() {
    let place = TestDir::new();
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=2s"]);
    // A process that holds the lock of a store keeps others from opening it; the next copy has its own lock.
    let lock = place.path("out/data/003-rocksdb-c2-r2/data/LOCK");
    let file = loop {
        if let Ok(file) = std::fs::OpenOptions::new().write(true).open(&lock) {
            break file;
        }
        assert!(run.try_wait().unwrap().is_none(), "it ended without a second copy");
    };
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).expect("before it is opened");
    assert!(run.wait().unwrap().success());
    let report = place.report();
    let second = &report["trials"][2];
    assert_eq!((&second["part"], &second["loaded_by"]), (&"run".into(), &1.into()), "{}", second["warnings"]);
    assert!(is_verified(second) && !second["warnings"].to_string().contains("loaded-again"));
    assert_eq!(report["summary"]["rows"][0]["run"]["repeats"], serde_json::json!([1, 2]));
    assert!(place.is_clean());
}

#[test]
fn a_copy_that_does_not_open_is_loaded_again() {
    let place = TestDir::new();
    let mut run = start(&place, "003-rocksdb-c2-r2", &["repeats=2", "loop=2s"]);
    kill_with_its_trial(&mut run);
    // The files are unchanged, but the facts that the workload needs are missing.
    let note = place.path("out/data/001-rocksdb-load/note.json");
    let reported = std::fs::read_to_string(&note).unwrap();
    assert!(reported.contains("\"next_node\""), "{reported}");
    std::fs::write(&note, reported.replace("\"next_node\"", "\"another\"")).unwrap();
    resumed(&place, &[]);
    let report = place.report();
    let (first, second) = (&report["trials"][1], &report["trials"][2]);
    assert_eq!((&first["part"], &second["part"]), (&"run".into(), &"whole".into()));
    assert!(is_verified(first) && is_verified(second));
    assert!(phase(second, "load").is_some() && second["loaded_by"].is_null());
    assert!(second["warnings"].to_string().contains("loaded-again"), "{}", second["warnings"]);
    let row = &report["summary"]["rows"][0];
    assert_eq!((&row["loads"], &row["run"]["repeats"]), (&1.into(), &serde_json::json!([1])));
    assert_eq!(row["left_out"][0]["reason"], "it loaded for itself, and the others started from a copy");
    assert!(place.is_clean());
}

fn kill_with_its_trial(run: &mut Child) {
    let trial = children(run.id())[0];
    kill("-KILL", run.id());
    run.wait().unwrap();
    while is_alive(trial) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A library for this test only, and the setting that names it.
fn own_library(place: &TestDir) -> (PathBuf, String) {
    let engine = place.rumba(&["engines", "rocksdb", "--json"]).output().unwrap();
    let engine: Value = serde_json::from_slice(&engine.stdout).unwrap();
    let library = place.path("librocksdb-other.so");
    std::fs::copy(engine["source"].as_str().unwrap(), &library).unwrap();
    let set = format!("rocksdb.library={}", library.display());
    (library, set)
}

/// The loader ignores bytes after the last section; the version stays the same.
fn build_again(library: &Path) {
    std::fs::OpenOptions::new().append(true).open(library).unwrap().write_all(b"another").unwrap();
}

#[test]
fn rebuilt_library_cannot_resume_a_run() {
    let place = TestDir::new();
    let (library, own) = own_library(&place);
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=5m", &own]);
    kill_with_its_trial(&mut run);
    build_again(&library);
    let output = place.rumba(&["run", "--resume", "out"]).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("when the run began, and is") && said.contains("CRC-32"), "{said}");
    assert!(place.path("out/data/001-rocksdb-load/data").is_dir(), "what was kept was left behind");
    ended(0, place.rumba(&["doctor", "--clean"]));
    assert!(place.is_clean());
}

#[test]
fn rebuilding_a_library_during_a_run_ends_the_run() {
    let place = TestDir::new();
    let (library, own) = own_library(&place);
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=2s", &own]);
    build_again(&library);
    assert_eq!(run.wait().unwrap().code(), Some(1));
    let statuses = statuses(&place.report());
    let names = ["001-rocksdb-load", "002-rocksdb-c2-r1"];
    assert_eq!(statuses, names.map(|name| (name.to_owned(), "done".to_owned())), "none ran what others did not");
    assert!(place.is_clean());
}

fn resumed(place: &TestDir, more: &[&str]) -> String {
    let output = ended(0, place.rumba(&["run", "--resume", "out"]).args(more));
    text(&output)
}

fn statuses(report: &Value) -> Vec<(String, String)> {
    let word = |trial: &Value, key: &str| trial[key].as_str().unwrap().to_owned();
    let trials = report["trials"].as_array().unwrap();
    trials.iter().map(|trial| (word(trial, "directory"), word(trial, "status"))).collect()
}

#[test]
fn stopped_run_resumes_from_its_kept_data() {
    goes_on_after(kill_with_its_trial);
    // An interrupt removed the load, and the repeats had two.
    goes_on_after(|run| {
        kill("-INT", run.id());
        assert_eq!(run.wait().unwrap().code(), Some(130));
    });
}

fn goes_on_after(end: fn(&mut Child)) {
    let place = TestDir::new();
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=2s"]);
    // It waits a second for the other to end, and a whole trial remains.
    let busy = place.rumba(&["run", "--resume", "out"]).output().unwrap();
    assert!(text(&busy).contains("out is taken: another run"), "{}", text(&busy));
    await_loop(&place, &mut run, "003-rocksdb-c2-r2");
    end(&mut run);
    let first = place.report()["trials"][1].clone();
    let said = resumed(&place, &[]);
    assert!(said.contains("need not load again"), "{said}");
    let report = place.report();
    let names = ["001-rocksdb-load", "002-rocksdb-c2-r1", "003-rocksdb-c2-r2"];
    assert_eq!(statuses(&report), names.map(|name| (name.to_owned(), "done".to_owned())));
    assert_eq!(report["trials"][1], first, "what had ended stays as it was");
    assert!(is_verified(&report["trials"][2]));
    assert_eq!(report["summary"]["rows"][0]["loads"], 1);
    assert_eq!(report["missing"].as_array().unwrap().len(), 0, "{}", report["missing"]);
    assert!(report["conditions"]["resumed"].is_string());
    assert!(place.is_clean());
    assert!(resumed(&place, &[]).contains("all trials have been run"));
}

/// A load is made for each repeat, and removed before the next one.
#[test]
fn killed_run_resumes_with_the_load_of_its_repeat() {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "linkbench", "--engine", "lmdb", "--out", "out"]);
    set(&mut command, ["maxid1=2000", "clients=[1,2]", CALM, "load_clients=2", "warmup=0s", "loops=1", "loop=1s"]);
    set(&mut command, ["interval=200ms", "repeats=2"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    await_loop(&place, &mut run, "005-lmdb-c1-r2");
    assert!(!place.path("out/data/001-lmdb-load").exists(), "the first repeat's load is still there");
    kill_with_its_trial(&mut run);
    assert!(resumed(&place, &[]).contains("trial 4 need not load again"));
    let report = place.report();
    let names =
        ["001-lmdb-load", "002-lmdb-c1-r1", "003-lmdb-c2-r1", "004-lmdb-load2", "005-lmdb-c1-r2", "006-lmdb-c2-r2"];
    assert_eq!(statuses(&report), names.map(|name| (name.to_owned(), "done".to_owned())));
    assert!(report["summary"]["rows"].as_array().unwrap().iter().all(|row| row["loads"] == 2));
    assert!(place.is_clean());
}

#[test]
fn load_with_a_lost_record_is_repeated_as_a_new_trial() {
    let place = TestDir::new();
    ended(0, place.short_run("lmdb", &["--set", "repeats=2", "--set", "repeats_from=kept"]));
    for trial in ["001-lmdb-load", "003-lmdb-c2-r2"] {
        std::fs::remove_dir_all(place.path("out/trials").join(trial)).unwrap();
    }
    resumed(&place, &[]);
    let report = place.report();
    let names = ["002-lmdb-c2-r1", "003-lmdb-c2-r2", "004-lmdb-load2"];
    assert_eq!(statuses(&report), names.map(|name| (name.to_owned(), "done".to_owned())));
    assert_eq!((&report["trials"][0]["loaded_by"], &report["trials"][1]["loaded_by"]), (&1.into(), &4.into()));
    assert_eq!(report["summary"]["rows"][0]["loads"], 2);
    assert!(place.is_clean());
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn data_to_keep_is_copied_off_limited_storage() {
    let place = TestDir::new();
    let sets = ["keep_data=true", "storage=slow-ssd", "storage.size=1GiB", "repeats=2", "repeats_from=kept"];
    ended(0, place.short_run("sqlite", &sets.map(|set| ["--set", set]).concat()));
    let entries = |name: &str| std::fs::read_dir(place.path(name)).unwrap().map(|entry| entry.unwrap());
    let mut names: Vec<_> = entries("out/data").map(|entry| entry.file_name()).collect();
    names.sort();
    assert_eq!(names, ["002-sqlite-c2-r1", "003-sqlite-c2-r2"], "the trials' data, no load and no volume");
    for trial in names {
        let data = format!("out/data/{}/data", trial.to_str().unwrap());
        let bytes: u64 = entries(&data).map(|file| file.metadata().unwrap().len()).sum();
        assert!(bytes > 100_000, "{bytes} bytes in {data}");
    }
    assert!(!text(&place.rumba(&["doctor", "--json"]).output().unwrap()).contains("sqlite"), "it is the user's");
}

/// Guards against a lost load: data that another process kept belongs to the run, and a refused resume must not take
/// it.
#[test]
fn refused_resume_leaves_the_kept_load_in_place() {
    let place = TestDir::new();
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=2s"]);
    kill_with_its_trial(&mut run);
    let (file, load) = (place.path("out/experiment.toml"), place.path("out/data/001-rocksdb-load/data"));
    let experiment = std::fs::read_to_string(&file).unwrap();
    let other = experiment.replace("repeats = 2", "repeats = 3");
    assert_ne!(other, experiment);
    std::fs::write(&file, other).unwrap();
    let refused = place.rumba(&["run", "--resume", "out"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("no longer plans the trials"), "{}", text(&refused));
    assert!(load.is_dir(), "it is the run's that goes on later");
    std::fs::write(&file, experiment).unwrap();
    let file = place.path("out/experiment.json");
    let begun = std::fs::read_to_string(&file).unwrap();
    let mut other: Value = serde_json::from_str(&begun).unwrap();
    other["build"]["commit"] = "0123456789abcdef0123456789abcdef01234567".into();
    std::fs::write(&file, other.to_string()).unwrap();
    let refused = place.rumba(&["run", "--resume", "out"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(text(&refused).contains("(commit 0123456789ab"), "another build of this version: {}", text(&refused));
    assert!(load.is_dir());
    std::fs::write(&file, begun).unwrap();
    assert!(resumed(&place, &[]).contains("need not load again"));
    assert!(place.is_clean());
}

#[test]
fn resumed_run_ends_with_the_status_of_all_its_trials() {
    let place = TestDir::new();
    let mut run = start(&place, "002-rocksdb-c2-r1", &["repeats=2", "loop=2s", "keep_data=true"]);
    kill("-KILL", children(run.id())[0]);
    while !place.path("out/trials/003-rocksdb-c2-r2").is_dir() {
        assert!(run.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let resumed = place.rumba(&["run", "--resume", "out"]).output().unwrap();
    let named = statuses(&place.report());
    assert!(named.iter().any(|(_, status)| status == "failed"), "{named:?}");
    assert!(named.iter().all(|(_, status)| status == "failed" || status == "done"), "{named:?}");
    assert_eq!(resumed.status.code(), Some(1), "one had failed before: {}", text(&resumed));
}

/// Ages the data that these settings load, and runs over copies of it. The data is verified after the aging mix, and
/// after the run over it.
fn assert_ages(engine: &str, workload: &str, sets: &[&str], aged: &str) {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", workload, "--engine", engine, "--out", "out", "--quiet"]);
    let short = ["clients=2", "load_clients=2", "warmup=100ms", "loops=1", "loop=300ms", "interval=200ms", "repeats=2"];
    set(&mut command, short.iter().chain(&["age=1500ms"]).chain(sets));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{engine}, {workload}: {}", text(&output));
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    // One trial of a repeat loads and ages its data itself.
    let load = trials.iter().find(|trial| phase(trial, "age").is_some()).unwrap();
    let age = phase(load, "age").unwrap();
    assert!(age["seconds"].as_f64().unwrap() >= 1.5, "{age}");
    assert!(load["warnings"].to_string().contains("\"not-aged\""), "too short to be sure: {}", load["warnings"]);
    assert!(age["op_types"][aged]["count"].as_u64().unwrap() > 0, "{engine}, {workload}: {}", age["op_types"]);
    let runs: Vec<&Value> = trials.iter().filter(|trial| trial["part"] != "load").collect();
    assert!(runs.len() >= 2 && runs.iter().all(|trial| is_verified(trial)), "{engine}, {workload}");
    assert!(place.is_clean());
}

#[test]
fn data_of_other_workloads_is_aged_alone_and_by_a_test_of_a_suite() {
    assert_ages("sqlite", "tpcc", &["warehouses=1", "customers=30", "items=200"], "new_order");
    assert_ages("rocksdb", "ycsb", &["recordcount=2000", "profiles=\"c,d\"", "age_by=d"], "insert");
    let tables = "options=\"--tables=2 --table-size=500\"";
    assert_ages("sqlite", "sysbench", &[tables, "suite=\"point-pk,insert\"", "age_by=insert"], "event");
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "ycsb", "--engine", "sqlite", "--dry-run"]);
    set(&mut command, ["recordcount=2000", "profiles=\"c,d\"", "age=1s"]);
    let output = ended(2, &mut command);
    assert!(text(&output).contains("age_by") && text(&output).contains("c, d"), "{}", text(&output));
}
