//! Interrupts, kills, full disks and foreign directories: measurements are kept and readable, the cause is in the
//! record, and no leftovers remain.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/embedded.rs"]
mod embedded;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{TestDir, children, ended, is_alive, kill, phase, start_and_await, start_long_run, text};
use rumba_testkit::mounts::{LoopDevice, fill};

#[test]
fn a_killed_trial_is_named_as_that_and_the_next_one_runs() {
    let place = TestDir::new();
    let mut child = start_long_run(&place, "rocksdb", &place.path("out"), &["repeats=2", "repeats_from=load"]);
    let trial = children(child.id())[0];
    kill("-KILL", trial);
    // The second trial begins; it need not complete.
    while !place.path("out/trials/002-rocksdb-c2-r2/record.json").exists() {
        assert!(is_alive(child.id()), "the run went on to its next trial");
        std::thread::sleep(Duration::from_millis(50));
    }
    kill("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = place.report();
    assert_eq!(report["trials"][0]["status"], "failed");
    let failure = &report["trials"][0]["failure"];
    assert_eq!(failure["phase"], "loop 1");
    assert!(failure["cause"].as_str().unwrap().contains("signal 9"), "{failure}");
    assert!(phase(&report["trials"][0], "load").is_some(), "the load is kept");
    assert!(place.is_clean());
}

#[test]
fn an_interrupt_while_the_data_is_aged_keeps_the_load() {
    let place = TestDir::new();
    let mut child = start_and_await(&place, "sqlite", &place.path("out"), &["age=5m"], "age");
    kill("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "interrupted");
    assert_eq!(phase(trial, "load").unwrap()["complete"], true);
    let age = phase(trial, "age").unwrap();
    assert!(age["complete"] == false && age["ops"].as_u64().unwrap() > 0, "{age}");
    assert!(phase(trial, "loop 1").is_none(), "{trial}");
    assert!(place.is_clean());
}

#[test]
fn a_trial_that_is_killed_while_it_ages_is_named_as_that() {
    let place = TestDir::new();
    let mut child = start_and_await(&place, "sqlite", &place.path("out"), &["age=5m"], "age");
    kill("-KILL", children(child.id())[0]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let failure = &place.report()["trials"][0]["failure"];
    assert_eq!(failure["phase"], "age");
    assert!(failure["cause"].as_str().unwrap().contains("signal 9"), "{failure}");
    assert!(place.is_clean());
}

#[test]
fn results_stay_readable_and_cleanable_after_a_kill() {
    let place = TestDir::new();
    let mut child = start_long_run(&place, "rocksdb", &place.path("out"), &[]);
    let trial = children(child.id())[0];
    kill("-KILL", child.id());
    child.wait().unwrap();
    while is_alive(trial) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let report = place.report();
    assert!(phase(&report["trials"][0], "load").is_some(), "the load is kept");
    assert!(report["missing"].to_string().contains("cut off"), "{}", report["missing"]);
    assert!(!place.is_clean(), "the data directory was left behind");
    ended(0, place.rumba(&["doctor", "--clean"]));
    assert!(place.is_clean());
}

#[test]
#[needs(LoopDevice)]
fn full_disk_fails_the_trial_and_keeps_all_measurements() {
    for engine in embedded::of_linkbench() {
        let place = TestDir::new();
        let disk = LoopDevice::at(&place.path("disk"), 96);
        // Results and data share the disk, and another process fills it during the run.
        let out = disk.path().join("out");
        let mut more = vec!["cache=4MiB"];
        if engine == "wiredtiger" {
            more.push("wiredtiger.log.file_max=1MiB"); // It makes three log files at once, 100 MB each by default.
        }
        let mut child = start_long_run(&place, engine, &out, &more);
        fill(disk.path());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{engine}");
        let output = place.rumba(&["report", "--json"]).arg(&out).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["trials"][0]["status"], "failed", "{engine}");
        let failure = &report["trials"][0]["failure"];
        assert_eq!(failure["phase"], "loop 1", "{engine}: {failure}");
        assert!(failure["cause"].as_str().unwrap().contains("full"), "{engine}: {failure}");
        assert!(phase(&report["trials"][0], "loop 1").unwrap()["ops"].as_u64().unwrap() > 0, "{engine}");
        assert!(!out.join("data").exists(), "{engine}: the data is removed");
        assert!(place.is_clean(), "{engine}");
    }
}

#[test]
fn results_are_never_overwritten() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("out")).unwrap();
    std::fs::write(place.path("out/record.json"), "old").unwrap();
    ended(2, place.short_run("null", &[]));
    assert_eq!(std::fs::read_to_string(place.path("out/record.json")).unwrap(), "old");
}

#[test]
fn a_mistake_creates_nothing() {
    let place = TestDir::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let pipe = format!("rocksdb.library={}", place.path("pipe").display());
    for mistake in ["lopos=2", "loop=soon", "rocksdb.write_bufer_size=1", "rocksdb.library=nowhere.so", &pipe] {
        let output = place.short_run("rocksdb", &["--set", mistake]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{mistake}: {}", text(&output));
        assert!(!place.path("out").exists(), "{mistake}");
    }
}

#[test]
fn results_at_a_dangling_link_are_refused_by_its_name() {
    let place = TestDir::new();
    std::os::unix::fs::symlink("unplugged/disk", place.path("link")).unwrap();
    for out in ["link", "link/below"] {
        let output = place.rumba(&["run", "linkbench", "--engine", "null", "--out", out]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(text(&output).contains("link is a symbolic link to unplugged/disk"), "{}", text(&output));
    }
}

#[test]
fn a_reader_that_goes_away_costs_nothing() {
    let place = TestDir::new();
    // Standard error is closed at once, as by a pipe whose reader has died.
    let mut child = place.short_run("null", &[]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(place.report()["trials"][0]["status"], "done");
}

#[test]
fn a_second_interrupt_ends_the_trial_at_once_and_is_no_failure() {
    let place = TestDir::new();
    let mut child = start_long_run(&place, "rocksdb", &place.path("out"), &[]);
    let trial = children(child.id())[0];
    // The trial cannot answer the first one.
    kill("-STOP", trial);
    // Repeated, because two signals sent at once may arrive as one.
    let status = loop {
        kill("-INT", child.id());
        std::thread::sleep(Duration::from_millis(50));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    assert_eq!(status.code(), Some(130));
    assert_eq!(place.report()["trials"][0]["status"], "interrupted");
    assert!(place.is_clean());
}
