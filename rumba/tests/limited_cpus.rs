//! Limits of CPUs, through the binary: the affinity of each process and thread while clients work.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::{TestDir, children, ended, kill, start_long_run, text};
use rumba_engine_api::cpus::CpuSet;
use serde_json::Value;

/// The CPUs of a thread, as the kernel reports them; `None` if it has ended.
fn cpus_of(thread: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    Some(list.trim().to_owned())
}

/// The first two CPUs of this process.
fn here() -> [String; 2] {
    let set: CpuSet = cpus_of("self").unwrap().parse().unwrap();
    let mut cpus = set.iter().map(|cpu| cpu.to_string());
    [cpus.next().unwrap(), cpus.next().unwrap()]
}

/// The CPUs of each thread of a process, by its name. Threads and processes of a server may end at any time.
fn threads_of(pid: u32) -> Vec<(String, String)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let found = threads.filter_map(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        Some((name.trim().to_owned(), cpus_of(&format!("{pid}/task/{}", thread.file_name().to_str().unwrap()))?))
    });
    found.collect()
}

fn assert_all_on(cpus: &str, pid: u32) {
    let threads = threads_of(pid);
    assert!(!threads.is_empty() && threads.iter().all(|(_, on)| on == cpus), "not all on {cpus}: {threads:?}");
}

/// Runs an engine until clients work, calls this with the process of its trial, and returns the trial's report.
fn looked_at(engine: &str, sets: &[&str], look: impl Fn(u32)) -> Value {
    let place = TestDir::new();
    let more = [&["interval=100ms", "cache=16MiB"], sets].concat();
    let mut run = start_long_run(&place, engine, &place.path("out"), &more);
    let trial = children(run.id())[0];
    let names = threads_of(trial).into_iter().filter(|(name, _)| name.starts_with("clients-")).count();
    assert_eq!(names, 2, "both clients have a thread");
    look(trial);
    kill("-INT", run.id());
    run.wait().unwrap();
    let trial = place.report()["trials"][0].clone();
    assert!(place.is_clean());
    trial
}

#[test]
#[needs(TwoCpus)]
fn embedded_engine_and_its_clients_stay_on_its_cpus() {
    let [first, _] = here();
    let trial = looked_at("sqlite", &[&format!("cpus={first}")], |trial| assert_all_on(&first, trial));
    assert_eq!(trial["engine_settings"]["limits"]["cpus"], *first);
    let reported = trial["conditions"]["limit 1"].as_str().unwrap();
    assert!(reported.starts_with(&format!("limits.cpus = {first}: CPU affinity")), "{reported}");
}

#[test]
#[needs(TwoCpus, MariaDb)]
fn server_and_clients_stay_on_their_own_cpus() {
    let [first, second] = here();
    let sets = [format!("cpus={first}"), format!("client_cpus={second}")];
    let trial = looked_at("innodb", &sets.each_ref().map(String::as_str), |trial| {
        assert_all_on(&second, trial);
        let [server] = children(trial)[..] else { panic!("one server") };
        assert_all_on(&first, server);
    });
    let limits = &trial["engine_settings"]["limits"];
    assert_eq!((limits["cpus"].as_str(), limits["client_cpus"].as_str()), (Some(&*first), Some(&*second)));
    let reported = trial["conditions"]["limit 2"].as_str();
    let wanted = format!("limits.client_cpus = {second}: CPU affinity of rumba's loaders and clients");
    assert_eq!(reported, Some(&*wanted));
}

#[test]
#[needs(TwoCpus, MariaDb)]
fn kept_server_stays_on_its_cpus_and_has_no_clients() {
    let [first, second] = here();
    let place = TestDir::new();
    let start = ["server", "start", "innodb", "--json", "--set", "cache=16MiB", "--set"];
    let started = ended(0, place.rumba(&[&start[..], &[&format!("cpus={second}")]].concat()));
    let server: Value = serde_json::from_slice(&started.stdout).unwrap();
    assert_all_on(&second, server["pid"].as_u64().unwrap() as u32);
    let reported = server["limits"][0].as_str().unwrap();
    assert!(reported.starts_with(&format!("limits.cpus = {second}")), "{server}");
    ended(0, place.rumba(&["server", "stop", "innodb"]));
    let refused = ended(2, place.rumba(&[&start[..], &[&format!("client_cpus={first}")]].concat()));
    assert!(text(&refused).contains("start your client with taskset"), "{}", text(&refused));
}
