//! The live page over real runs: which requests are answered, the events and their order, and a stop button that leaves
//! the same results as Ctrl-C.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/served.rs"]
mod served;

use std::time::{Duration, Instant};

use common::{CALM, TestDir, ended, kill, phase, set, text};
use rumba_testkit::mounts::{Tmpfs, fill};
use serde_json::Value;
use served::{PATIENCE, Served};

#[test]
fn live_page_rejects_unknown_address_and_foreign_origin() {
    let place = TestDir::new();
    let run = Served::long_run(&place);
    let live = format!("/{}/live", run.secret);
    let stop = format!("{live}/stop");
    let own = format!("http://{}", run.host);
    let port = run.host.split(':').nth(1).unwrap();
    let (rebound, elsewhere) = (format!("evil.example:{port}"), format!("/{}/live", "0".repeat(32)));
    assert_eq!(run.fetch("GET", &live, &[], "").0, 200);
    for path in ["/", "/live", "/metrics", &elsewhere, &format!("/{}x/live", run.secret), "/../live"] {
        assert_eq!(run.fetch("GET", path, &[], "").0, 404, "{path}");
    }
    for headers in [[("Host", rebound.as_str())], [("Origin", "http://evil.example")], [("Origin", "null")]] {
        let (status, answer) = run.fetch("GET", &live, &headers, "");
        assert_eq!((status, answer.split("\r\n\r\n").nth(1)), (403, Some("")), "{headers:?}");
        assert_eq!(run.fetch("POST", &stop, &headers, "").0, 403, "{headers:?}");
    }
    assert_eq!(run.fetch("POST", &stop, &[], "").0, 403, "who changes something says from where");
    assert_eq!(run.fetch("GET", &stop, &[("Origin", &own)], "").0, 405);
    let (_, answer) = run.get("live");
    for header in
        ["content-security-policy: default-src 'none'", "referrer-policy: same-origin", "cache-control: no-store"]
    {
        assert!(answer.contains(header), "{header}");
    }
    // These requests do not count as a request to stop.
    run.await_loop();
    let (status, _) = run.post("live/stop", "");
    assert_eq!((status, run.ended().0.code()), (202, Some(130)));
}

#[test]
fn events_arrive_in_order_and_resume_at_the_last_position() {
    let place = TestDir::new();
    let mut command = place.short_run("lmdb", &["--live", "--set", "repeats=2", "--set", "repeats_from=kept"]);
    command.env("TZ", "UTC");
    let run = Served::start(command);
    let all: Vec<_> = run.events(&[]).collect();
    assert!(all.windows(2).all(|two| two[0].0 < two[1].0), "each has its place");
    let kinds: Vec<&str> = all.iter().map(|(_, kind, _)| kind.as_str()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("trial", "end"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "trial").count(), 3, "a load, and two repeats from it");
    let mut phase = Value::Null;
    for (_, kind, what) in &all {
        match kind.as_str() {
            "phase" => phase = what["phase"].clone(),
            "interval" => assert_eq!(what["phase"], phase),
            _ => {}
        }
    }
    assert_eq!(all[all.len() - 1].2["done"], 3);
    let (status, said) = run.ended();
    assert!(status.success(), "{said}");
    // The second repeat equals the first: no fact about it is unknown.
    let begins: Vec<&Value> = all.iter().filter(|(_, kind, _)| kind == "trial").map(|(_, _, what)| what).collect();
    assert_eq!((&begins[0]["left"]["is_whole"], &begins[2]["left"]["is_whole"]), (&false.into(), &true.into()));
    assert!(said.lines().any(|line| line.starts_with("[3/3]") && line.contains(" left, until ")), "{said}");
}

#[test]
fn the_page_grows_with_the_run_and_a_scraper_reads_it() {
    let place = TestDir::new();
    let run = Served::long_run(&place);
    run.await_loop();
    let seconds = |data: &Value| data["data"]["trials"][0]["timeline"]["at_s"].as_array().unwrap().len();
    let first = run.data("live/data");
    let deadline = Instant::now() + PATIENCE;
    let mut later = run.data("live/data");
    while seconds(&later) <= seconds(&first) {
        assert!(Instant::now() < deadline, "nothing came: {}", later["newer_in_ms"]);
        std::thread::sleep(Duration::from_millis(100));
        later = run.data("live/data");
    }
    assert_eq!((&later["goes_on"], &later["data"]["trials"][0]["ended"]), (&true.into(), &Value::Null));
    assert!(later["data"]["summary"]["rows"][0]["load"].is_object(), "the load has ended, and has its figures");
    let (status, metrics) = run.get("metrics");
    assert!(status == 200 && metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    for line in ["rumba_trials_planned 1", "rumba_time_left_seconds ", "rumba_ops_total{trial=\"1\",engine=\"lmdb\""] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let (_, list) = run.get("");
    assert!(list.contains("running") && list.contains("href=\"live\""), "{list}");
    let (id, ..) = run.events(&[]).nth(3).unwrap();
    let (next, ..) = run.events(&[("Last-Event-ID", &id.to_string())]).next().unwrap();
    assert_eq!(next, id + 1, "a listener that was cut off goes on where it was");
    run.post("live/stop", "");
    run.ended();
}

#[test]
fn the_stop_button_leaves_what_an_interrupt_leaves() {
    let outcomes = [true, false].map(|by_button| {
        let place = TestDir::new();
        let run = Served::long_run(&place);
        run.await_loop();
        let mut events = run.events(&[]);
        events.next().expect("it arrives before the run ends");
        if by_button {
            assert_eq!(run.post("live/stop", "").0, 202);
        } else {
            kill("-INT", run.child.id());
        }
        // The result comes with the events, because after the last of them the server is gone.
        let (_, _, result) = events.find(|(_, kind, _)| kind == "result").unwrap();
        assert_eq!(result["trials"][0]["ended"], "interrupted by its user");
        let (_, kind, how) = events.next().unwrap();
        assert_eq!((kind.as_str(), &how["interrupted"]), ("end", &true.into()));
        let (status, said) = run.ended();
        let output = place.rumba(&["report", "results/a", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let trial = &report["trials"][0];
        assert_eq!(phase(trial, "loop 1").unwrap()["complete"], false, "{trial}");
        let phases: Vec<String> =
            trial["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].to_string()).collect();
        let words = ["stopping; all measurements so far are kept", "--resume results/a continues"]
            .map(|words| said.contains(words));
        assert!(place.is_clean());
        (status.code(), trial["status"].clone(), trial["failure"].clone(), phases, words)
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!((outcomes[0].0, &outcomes[0].1, outcomes[0].4), (Some(130), &"interrupted".into(), [true, true]));
}

#[test]
fn occupied_port_is_refused_before_creation() {
    let place = TestDir::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = ended(2, place.short_run("null", &["--live", "--port", &port]));
    assert!(text(&output).contains("choose another --port"), "{}", text(&output));
    assert!(!place.path("out").exists());
}

#[test]
fn past_results_are_listed_noted_compared_and_drawn() {
    let place = TestDir::new();
    std::fs::create_dir(place.path("results")).unwrap();
    for name in ["a", "b"] {
        ended(0, place.short_run("null", &["--set", "loops=1", "--quiet"]));
        std::fs::rename(place.path("out"), place.path("results").join(name)).unwrap();
    }
    let served = Served::start(place.rumba(&["serve"]));
    let deadline = Instant::now() + PATIENCE;
    while !served.get("").1.contains("1 done") {
        assert!(Instant::now() < deadline, "{}", served.get("").1);
        std::thread::sleep(Duration::from_millis(50));
    }
    let (status, answer) = served.post("note", "name=a&tags=%23wal+nvme&note=before");
    assert!(status == 303 && answer.contains("location: ./"), "{answer}");
    let (_, found) = served.get("?q=%23wal");
    assert!(found.contains("1 of 2 results") && found.contains("before"), "{found}");
    let (status, compared) = served.get("compare?base=a&other=b");
    assert!(status == 200 && compared.contains("null"), "{compared}");
    let (status, both) = served.get("together?base=a&other=b");
    assert!(status == 200 && both.contains("null@a") && both.contains("null@b"));
    assert!(served.get("results/a").1.contains("<title>linkbench"));
    assert_eq!(served.data("results/a/report.json")["experiment"], "linkbench");
    assert_eq!(served.get("results/..%2Fstate").0, 404);
    assert_eq!(served.get("live").0, 404, "no run belongs to this server");
    assert!(served.get("metrics").1.contains("rumba_results 2"));
    assert!(place.path("results/library.json").is_file());
    let (_, list) = served.get("");
    assert!(list.contains("history?experiment=linkbench&amp;q=") && list.contains("history of 2 runs"), "{list}");
    let (status, page) = served.get("history?experiment=linkbench&q=");
    assert!(status == 200 && page.contains("<title>linkbench: history of 2 runs"), "{page}");
    assert!(page.contains("\"library\":\"./\"") && page.contains("\"directory\":\"b\""));
    assert_eq!(served.get("history?experiment=other").0, 404);
    assert_eq!(served.get("history?experiment=linkbench&q=nothing-has-this").0, 404);
    // Damaged results are named, and do not hide the others.
    std::fs::write(place.path("results/a/trials/001-null-c2-r1/record.json"), "{").unwrap();
    assert_eq!(served.get("history?experiment=linkbench").0, 200);
    kill("-INT", served.child.id());
    assert_eq!(served.ended().0.code(), Some(0));
}

#[test]
#[needs(Tmpfs)]
fn live_page_shows_results_and_cause_after_a_full_disk() {
    let place = TestDir::new();
    let memory = Tmpfs::at(&place.path("memory"), "size=24m");
    let mut command = place.rumba(&["run", "linkbench", "--engine", "lmdb", "--out", "memory/out", "--live"]);
    let sets = ["maxid1=2000", "clients=2", CALM, "warmup=0s", "loops=2", "loop=5m", "interval=200ms", "data_dir=data"];
    set(&mut command, sets);
    let run = Served::start(command);
    run.await_loop();
    let mut events = run.events(&[]);
    events.next().expect("it arrives before the disk is full");
    fill(memory.path());
    let warned = events.find(|(_, kind, what)| kind == "warning" && what["code"] == "results-disk-full").unwrap();
    assert!(warned.2["message"].as_str().unwrap().contains("memory/out is full"), "{warned:?}");
    let (.., result) = events.find(|(_, kind, _)| kind == "result").unwrap();
    assert!(result["trials"][0]["ended"].as_str().unwrap().contains("results-disk-full"), "{result}");
    let (.., how) = events.find(|(_, kind, _)| kind == "end").unwrap();
    assert_eq!((&how["failed"], &how["interrupted"]), (&1.into(), &false.into()));
    let (status, said) = run.ended();
    assert_eq!(status.code(), Some(1), "{said}");
    let report = place.rumba(&["report", "memory/out", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["missing"], Value::Array(Vec::new()), "no line is left half-written");
    // Each line of the intervals and of the engine samples is complete.
    for file in ["intervals.ndjson", "engine.ndjson"] {
        let lines = std::fs::read_to_string(memory.path().join("out/trials/001-lmdb-c2-r1").join(file)).unwrap();
        assert!(lines.ends_with('\n') && lines.lines().count() > 1, "{file}");
        lines.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
    }
    assert!(place.is_clean());
}
