//! How runs of `rumba sysbench` begin, go on and end: checkpoints, warm-ups, time limits, clients that block or never stop.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::Output;

use common::{Place, text};

fn sysbench(place: &Place, script: &str, words: &[&str]) -> Output {
    std::fs::write(place.path("own.lua"), format!("ffi.cdef[[int usleep(unsigned int);]]\n{script}")).unwrap();
    place.rumba(&["sysbench", "own.lua"]).args(words).output().unwrap()
}

fn succeeds(place: &Place, script: &str, words: &[&str]) -> String {
    let output = sysbench(place, script, words);
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// The number that follows a label.
fn figure(said: &str, label: &str) -> f64 {
    let (_, rest) = said.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {said}"));
    let is_part = |character: &char| character.is_ascii_digit() || *character == '.';
    rest.trim_start().chars().take_while(is_part).collect::<String>().parse().unwrap()
}

/// The lines of intervals.
fn intervals(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("[ ") && line.contains(" thds: ")).collect()
}

/// The counts of the interval in which a checkpoint fell were near 0, because it took them away.
#[test]
fn an_interval_with_a_checkpoint_tells_all_that_happened_in_it() {
    let place = Place::new();
    let script = "function event() ffi.C.usleep(2000) ffi.C.sb_counter_inc(0, ffi.C.SB_CNT_READ) end";
    let words = ["--time=4", "--report-interval=2", "--report-checkpoints=1,3", "run"];
    let said = succeeds(&place, script, &words);
    let lines = intervals(&said);
    assert!(!lines.is_empty(), "{said}");
    for line in lines {
        let (tps, qps) = (figure(line, "tps:"), figure(line, "qps:"));
        assert!(tps > 0.0 && (qps / tps - 1.0).abs() < 0.1, "each event is one query: {line}");
    }
    let reads: Vec<f64> = said.split("SQL statistics:").skip(1).map(|part| figure(part, "read:")).collect();
    let events: Vec<f64> =
        said.split("SQL statistics:").skip(1).map(|part| figure(part, "total number of events:")).collect();
    assert_eq!(reads.len(), 3, "{said}");
    for (reads, events) in reads.iter().zip(&events) {
        assert!((reads - events).abs() <= 2.0, "{said}");
    }
}

#[test]
fn clients_that_are_not_ready_in_time_end_the_program() {
    let place = Place::new();
    let script = "function thread_init() ffi.C.usleep(60e6) end function event() end";
    let output = sysbench(&place, script, &["--threads=2", "--thread-init-timeout=1", "run"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("FATAL: Worker threads failed to initialize within 1 seconds!"),
        "{}",
        text(&output)
    );
    let script = "function thread_init() ffi.C.usleep(1100000) end function event() end";
    succeeds(&place, script, &["--thread-init-timeout=0", "--events=1", "run"]);
}

/// What waited at the end of a warm-up was served after it, and its wait told as the response of what was measured.
#[test]
fn what_the_warm_up_made_wait_is_not_told_of_what_is_measured() {
    let place = Place::new();
    // The first event takes the whole warm-up and half a second more.
    let script = "local is_first = true
        function event() ffi.C.usleep(is_first and 3500000 or 1000) is_first = false end";
    let said = succeeds(&place, script, &["--rate=100", "--warmup-time=3", "--time=2", "run"]);
    let longest_ms = figure(&said, "max:");
    assert!((400.0..2500.0).contains(&longest_ms), "{said}");
    // Of 300 that had come none is begun any more.
    let events = figure(&said, "total number of events:");
    assert!(events > 20.0 && events < 300.0, "{said}");
}
