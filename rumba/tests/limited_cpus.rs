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

/// All CPUs of this process, and the first two of them.
fn here() -> (String, [String; 2]) {
    let all = cpus_of("self").unwrap();
    let set: CpuSet = all.parse().unwrap();
    let mut cpus = set.iter().map(|cpu| cpu.to_string());
    (all, [cpus.next().unwrap(), cpus.next().unwrap()])
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
    let (_, [first, _]) = here();
    let trial = looked_at("sqlite", &[&format!("cpus={first}")], |trial| assert_all_on(&first, trial));
    assert_eq!(trial["engine_settings"]["limits"]["cpus"], *first);
    let reported = trial["conditions"]["limit 1"].as_str().unwrap();
    assert!(reported.starts_with(&format!("limits.cpus = {first}: CPU affinity")), "{reported}");
}

#[test]
#[needs(TwoCpus, MariaDb)]
fn server_and_clients_stay_on_their_own_cpus() {
    let (all, [first, second]) = here();
    let engine = format!("cpus={first}");
    for (sets, of_clients) in [(vec![], &all), (vec![format!("client_cpus={second}")], &second)] {
        let sets: Vec<&str> = sets.iter().map(String::as_str).chain([engine.as_str()]).collect();
        let trial = looked_at("innodb", &sets, |trial| {
            assert_all_on(of_clients, trial);
            let [server] = children(trial)[..] else { panic!("one server") };
            assert_all_on(&first, server);
        });
        let limits = &trial["engine_settings"]["limits"];
        assert_eq!((limits["cpus"].as_str(), limits["client_cpus"].is_null()), (Some(&*first), sets.len() == 1));
        let reported = trial["conditions"]["limit 2"].as_str();
        let wanted = format!("limits.client_cpus = {second}: CPU affinity of rumba's loaders and clients");
        assert_eq!(reported, Some(&*wanted).filter(|_| sets.len() == 2));
    }
}

/// A server that forks: its backends inherit its CPUs.
#[test]
#[needs(TwoCpus, PostgreSql)]
fn backends_of_a_server_stay_on_its_cpus() {
    let (_, [first, second]) = here();
    looked_at("postgresql", &[&format!("cpus={second}"), &format!("client_cpus={first}")], |trial| {
        let [server] = children(trial)[..] else { panic!("one server") };
        let backends: Vec<_> = children(server).into_iter().flat_map(threads_of).collect();
        assert!(backends.len() > 2 && backends.iter().all(|(_, on)| *on == second), "{backends:?}");
        assert_all_on(&second, server);
        assert_all_on(&first, trial);
    });
}

#[test]
#[needs(TwoCpus, MariaDb)]
fn kept_server_stays_on_its_cpus_and_has_no_clients() {
    let (_, [first, second]) = here();
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

#[test]
#[needs(TwoCpus)]
fn dry_run_names_the_cpus_and_refuses_one_that_is_not_there() {
    let (all, [first, second]) = here();
    let place = TestDir::new();
    let each = format!("cpus={first},{second}");
    let output = ended(0, place.short_run("sqlite", &["--dry-run", "--set", &each]));
    for cpu in [&first, &second] {
        let line = format!("CPUs      sqlite[cpus={cpu}]: {cpu}\n");
        assert!(text(&output).contains(&line), "{}", text(&output));
    }
    let refused = ended(2, place.short_run("sqlite", &["--dry-run", "--set", "cpus=1023"]));
    let said = text(&refused).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(said.contains("limits.cpus = 1023 has CPUs that rumba may not use here: 1023"), "{said}");
    assert!(said.contains(&format!("name CPUs of {all}")), "{said}");
    let refused = ended(2, place.short_run("sqlite", &["--dry-run", "--set", "client_cpus=0"]));
    assert!(text(&refused).contains("one process with its clients"), "{}", text(&refused));
}
