//! The search for a rate, through the binary.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::{TestDir, ended, set, text};
use rumba_statistics::MOST_PROBES;
use rumba_testkit::queueing::READS_OF_NODES;
use serde_json::Value;

/// A search with reads of one key over the null engine, each of which takes 4 ms.
fn search(place: &TestDir, more: &[&str]) -> Command {
    let mut command = place.rumba(&["run", "linkbench", "--engine", "null", "--out", "out", "--quiet"]);
    let common = ["maxid1=1000", "load_clients=1", "loops=1", "null.delay_us=4000", "clients=4", "queue=shared"];
    set(&mut command, READS_OF_NODES.iter().chain(&common).chain(more));
    before_others(command)
}

#[test]
fn rate_search_finds_highest_rate_and_records_every_probe() {
    let place = TestDir::new();
    ended(0, search(&place, &["warmup=200ms", "loop=2s", "rate=max(p99 < 40ms)"]));
    let report = place.report();
    let found = &report["summary"]["searches"][0];
    let (highest, missed) = (found["highest"].as_f64().unwrap(), found["lowest_missed"].as_f64().unwrap());
    // With four clients and 4 ms each, no host serves more than that.
    assert!(highest <= 1000.0 * 1.05, "{found:#}");
    assert_eq!((&found["ended"], &found["search"]["limit_ms"]), (&true.into(), &40.0.into()));
    let probes = found["probes"].as_array().unwrap();
    // On a host that is disturbed all the time, a search tries each rate four times, and may have no probe left for the
    // confirmation.
    if probes.len() < MOST_PROBES {
        assert_eq!(found["confirmed"], true, "{found:#}");
        assert!(highest < missed && missed <= highest * 1.0101, "{found:#}");
    }
    assert_eq!((&probes[0]["found"], &probes[0]["rate"]), (&"reference".into(), &Value::Null));
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials.len(), probes.len(), "each probe is a trial");
    let chosen = trials.iter().find(|trial| trial["number"] == found["trial"]).unwrap();
    assert_eq!(chosen["run"]["rate"].as_f64(), Some(highest));
    let row = &report["summary"]["rows"][0]["run"];
    assert_eq!(row["trials"], serde_json::json!([found["trial"]]), "the row is of that rate alone");
    let shown = text(&place.rumba(&["report", "out"]).output().unwrap());
    assert!(
        shown.contains("\nHighest rate that keeps a response time\n  null, 4 clients, repeat 1, max(p99 < 40 ms): ")
    );
    // A search that has ended is not run again.
    let again = place.rumba(&["run", "--resume", "out", "--quiet"]).output().unwrap();
    assert!(text(&again).contains("all trials have been run"), "{}", text(&again));
}

/// The found rate is not compared, because the probes are so short that the next search finds another.
#[test]
fn search_restarts_when_a_probe_is_missing() {
    let place = TestDir::new();
    ended(0, search(&place, &["warmup=50ms", "loop=500ms", "rate=max(p95 < 40ms)"]));
    let report = place.report();
    assert_eq!(report["summary"]["searches"][0]["ended"], true);
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.len() > 4, "{}", report["summary"]["searches"][0]);
    let last = trials.last().unwrap()["directory"].as_str().unwrap();
    std::fs::remove_dir_all(place.path("out/trials").join(last)).unwrap();
    let again = before_others(place.rumba(&["run", "--resume", "out", "--quiet"])).output().unwrap();
    assert!(again.status.success(), "{}", text(&again));
    let report = place.report();
    assert_eq!(
        (&report["missing"], &report["summary"]["searches"][0]["ended"]),
        (&serde_json::json!([]), &true.into())
    );
}

/// A command whose processes have priority over all others on the host.
fn before_others(command: Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "-20"]).arg(command.get_program()).args(command.get_args());
    command.get_envs().filter_map(|(name, value)| Some((name, value?))).for_each(|(name, value)| {
        nice.env(name, value);
    });
    command.get_current_dir().map(|dir| nice.current_dir(dir));
    nice
}
