//! Interrupts and kills: measurements are kept and readable, the cause is in the record, and no leftovers remain.

mod common;

use std::process::{Command, Stdio};
use std::time::Duration;

use common::{TestDir, children, ended, is_alive, kill, phase, start_long_run, text};

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
fn library_that_is_a_pipe_is_refused_without_waiting() {
    let place = TestDir::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let pipe = format!("rocksdb.library={}", place.path("pipe").display());
    let output = place.short_run("rocksdb", &["--set", &pipe]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(!place.path("out").exists());
}

#[test]
fn closed_reader_costs_nothing() {
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
