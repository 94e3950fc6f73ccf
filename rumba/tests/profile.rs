//! The samples of `--profile` in real runs, and its message if sampling is not possible.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::{TestDir, ended, text};

/// Runs an engine; returns the samples, and their name in the record.
fn sampled(place: &TestDir, engine: &str) -> (String, String) {
    ended(0, place.fast_run(engine, &["--profile", "--set", "loop=2s", "--quiet"]));
    let trial = place.path(&format!("out/trials/001-{engine}-c2-r1"));
    let words = place.report()["trials"][0]["conditions"]["profile"].as_str().unwrap().to_owned();
    let stacks = std::fs::read_to_string(trial.join("stacks.folded"));
    (stacks.unwrap_or_else(|error| panic!("{words}: {error}")), words)
}

#[test]
#[needs(Perf)]
fn embedded_engine_is_profiled_and_drawn_on_the_page() {
    let place = TestDir::new();
    let (stacks, words) = sampled(&place, "lmdb");
    let samples: u64 = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert!(samples > 0 && words.contains("of the clients' process"), "{words}");
    assert!(stacks.contains(";mdb_"), "LMDB's functions have names: {stacks}");
    let page = std::fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(page.contains("\"flames\":[{\"engine\":\"lmdb\",\"clients\":2"));
    assert!(place.is_clean());
}

#[test]
#[needs(Perf, MariaDb)]
fn profile_of_a_server_engine_samples_the_server() {
    let place = TestDir::new();
    let (stacks, words) = sampled(&place, "innodb");
    assert!(words.contains("of the server's processes"), "{words}");
    assert!(!stacks.contains("rumba"), "the clients are not among them: {stacks}");
}

#[test]
fn missing_perf_is_refused_with_remedy_before_creation() {
    let place = TestDir::new();
    // A dry run is refused as the run would be.
    for more in [&["--profile"][..], &["--profile", "--dry-run"]] {
        let output = place.short_run("null", more).env("PATH", "/nowhere").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", text(&output));
        assert!(text(&output).contains("apt-get install linux-perf"), "{more:?}: {}", text(&output));
        assert!(!place.path("out").exists(), "{more:?}");
    }
}
