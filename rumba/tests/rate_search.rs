//! Open loops through the binary: the search for a rate, arrivals by a schedule, connections that are mostly idle.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use common::{TestDir, ended, phase, set, text};
use rumba_statistics::MOST_PROBES;
use rumba_testkit::queueing::{READS_OF_NODES, highest_rate};
use serde_json::Value;

/// Reads of one key over the null engine, each of which takes as long as the next.
fn reads(place: &TestDir, delay_us: u32, more: &[&str]) -> Command {
    let mut command = place.rumba(&["run", "linkbench", "--engine", "null", "--out", "out", "--quiet"]);
    let delay = format!("null.delay_us={delay_us}");
    set(
        &mut command,
        READS_OF_NODES.iter().copied().chain(["maxid1=1000", "load_clients=1", "loops=1", delay.as_str()]),
    );
    set(&mut command, more);
    command
}

/// On a host that is disturbed all the time, a search tries each rate four times, and may have no probe left for the
/// confirmation.
fn has_run_out(search: &Value) -> bool {
    search["probes"].as_array().unwrap().len() == MOST_PROBES
}

#[test]
fn rate_search_finds_highest_rate_and_records_every_probe() {
    let place = TestDir::new();
    let search = ["clients=4", "warmup=200ms", "loop=2s", "queue=shared", "rate=max(p99 < 40ms)"];
    ended(0, before_others(reads(&place, 4000, &search)));
    let report = place.report();
    let found = &report["summary"]["searches"][0];
    let (highest, missed) = (found["highest"].as_f64().unwrap(), found["lowest_missed"].as_f64().unwrap());
    // With four clients and 4 ms each, no host serves more than that.
    assert!(highest <= 1000.0 * 1.05, "{found:#}");
    assert_eq!((&found["ended"], &found["search"]["limit_ms"]), (&true.into(), &40.0.into()));
    let probes = found["probes"].as_array().unwrap();
    if !has_run_out(found) {
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
    let search = ["clients=4", "warmup=50ms", "loop=500ms", "queue=shared", "rate=max(p95 < 40ms)"];
    ended(0, before_others(reads(&place, 4000, &search)));
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

#[test]
fn arrivals_follow_schedule_and_idle_clients_send_nothing() {
    let place = TestDir::new();
    let schedule = ["clients=40", "active=10%", "warmup=0s", "loop=2s", "rate=[[\"0s\", 100], [\"1s\", 900]]"];
    ended(0, reads(&place, 0, &schedule));
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["run"]["rate"].as_f64(), Some(500.0), "the mean over the loops");
    assert_eq!(trial["conditions"]["arrivals"], "100/s at 0 s, 900/s at 1 s in steps");
    assert_eq!(trial["conditions"]["active clients"], "4 of 40; the others are connected and idle");
    let ops = phase(trial, "loops").unwrap()["ops"].as_u64().unwrap();
    // The host decides how many of the expected 1000 it serves in time.
    assert!((1..1400).contains(&ops), "{ops}");
}

/// A null server with MongoDB's protocol, whose answers LinkBench can read; it ends with the test.
struct NullServer {
    process: Child,
    /// Kept open while it runs, because it writes there when it ends.
    _said: BufReader<ChildStdout>,
    socket: PathBuf,
}

impl NullServer {
    fn start(place: &TestDir, delay: &str) -> Self {
        let socket = place.path("null.sock");
        let mut command = before_others(Command::new(env!("CARGO_BIN_EXE_rumba")));
        command.args(["null-server", "--protocol", "mongodb", "--threads", "1", "--delay", delay]);
        command.args(["--columns", "type:int,version:int,time:int,data", "--socket"]).arg(&socket);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on "), "{line}");
        Self { process, _said: said, socket }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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

/// Clients with one connection each; in queueing theory, this many servers.
const CLIENTS: usize = 64;
const DELAY_MS: f64 = 20.0;
const LIMIT_MS: f64 = 60.0;

/// The result of a search over the null server.
fn search_over_null_server() -> Value {
    let place = TestDir::new();
    let server = NullServer::start(&place, &format!("{DELAY_MS}ms"));
    let at = format!("server=mongodb:///null?socket={}", server.socket.display());
    let (clients, rate) = (format!("clients={CLIENTS}"), format!("rate=max(p99 < {LIMIT_MS}ms)"));
    let mut command = place.rumba(&["run", "linkbench", "--engine", "mongodb", "--out", "out", "--quiet"]);
    let reported =
        ["maxid1=1000", "load_clients=1", "loops=1", "verify=false", "warmup=500ms", "loop=2s", "backlog=1s"];
    set(
        &mut command,
        READS_OF_NODES.iter().copied().chain(reported).chain([at.as_str(), clients.as_str(), rate.as_str()]),
    );
    ended(0, before_others(command));
    drop(server);
    place.report()["summary"]["searches"][0].take()
}

/// Random arrivals at servers with equal service times. On no host can they serve more than one client each per delay.
/// How close the search comes to queueing theory, within 3% on a quiet host, is the figure of
/// `xtask bench rate-search`, because a disturbed host serves less.
#[test]
#[needs(Root)]
fn null_server_rate_is_confirmed_and_bounded_by_its_delay() {
    let found = search_over_null_server();
    let probes = found["probes"].as_array().unwrap();
    let highest = found["highest"].as_f64().unwrap();
    let most = highest_rate(CLIENTS, DELAY_MS / 1e3, 0.99, LIMIT_MS / 1e3);
    assert!(highest <= most * 1.03 && highest >= most / 2.0, "{highest} of {most}/s; {found:#}");
    if has_run_out(&found) {
        return;
    }
    // A rate that a disturbed host made the search repeat is confirmed as well as by a second probe on a quiet host.
    let seen =
        |rate: &Value, what: &str| probes.iter().filter(|one| one["rate"] == *rate && one["found"] == what).count();
    assert_eq!(found["confirmed"], true, "{found:#}");
    assert!(seen(&found["highest"], "kept") >= 2 && seen(&found["lowest_missed"], "missed") >= 2, "{found:#}");
}
