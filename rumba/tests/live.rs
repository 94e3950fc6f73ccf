//! The live page over real runs: who is answered, what is told and in which order, and that its stop button leaves what
//! Ctrl-C leaves.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{Place, kill, phase, text};
use serde_json::Value;

/// No answer takes longer, whatever the machine is at.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that serves, and where.
struct Served {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    /// The secret below which everything is.
    secret: String,
    /// What else it says on standard error.
    said: Option<std::thread::JoinHandle<String>>,
}

impl Served {
    /// Waits for the line with the address; a run tells it on standard error, `serve` on standard output.
    fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        if command.get_args().next().is_some_and(|first| first == "serve") {
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        } else {
            while !line.contains("live page: ") {
                line.clear();
                assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended without an address");
            }
        }
        let address = line.trim().split("http://").nth(1).unwrap_or_else(|| panic!("no address: {line}"));
        let mut parts = address.split('/').map(str::to_owned);
        let (host, secret) = (parts.next().unwrap(), parts.next().unwrap());
        let said = std::thread::spawn(move || {
            let mut all = String::new();
            let _ = stderr.read_to_string(&mut all);
            all
        });
        Self { child, host, secret, said: Some(said) }
    }

    /// A run of minutes over LMDB, with results in `results/a`.
    fn long_run(place: &Place) -> Self {
        let mut command = place.rumba(&["run", "linkbench", "--engine", "lmdb", "--out", "results/a", "--live"]);
        for set in ["maxid1=2000", "clients=2", "warmup=0s", "loops=2", "loop=5m", "interval=200ms"] {
            command.args(["--set", set]);
        }
        Self::start(command)
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| *name != "Host") {
            request += &format!("Host: {}\r\n", self.host);
        }
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        stream
    }

    /// The status and the rest of an answer.
    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, headers, body).read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn get(&self, below: &str) -> (u16, String) {
        self.ask("GET", &format!("/{}/{below}", self.secret), &[], "")
    }

    fn post(&self, below: &str, body: &str) -> (u16, String) {
        let origin = format!("http://{}", self.host);
        let headers = [("Origin", origin.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        self.ask("POST", &format!("/{}/{below}", self.secret), &headers, body)
    }

    /// The JSON of an answer.
    fn data(&self, below: &str) -> Value {
        let (status, answer) = self.get(below);
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    /// What happens from now on.
    fn events(&self, headers: &[(&str, &str)]) -> Events {
        Events(BufReader::new(self.send("GET", &format!("/{}/live/events", self.secret), headers, "")))
    }

    /// Waits until a second of a loop has been told.
    fn await_loop(&self) {
        let mut events = self.events(&[]);
        events.find(|(_, kind, what)| kind == "interval" && what["phase"] == "loop 1").unwrap();
    }

    fn ended(mut self) -> (ExitStatus, String) {
        (self.child.wait().unwrap(), self.said.take().unwrap().join().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Of a test that failed; whoever has ended is not there any more.
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            kill("-INT", self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// Server-sent events: number, kind, and the rest.
struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = (u64, String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut id, mut kind, mut what) = (0, String::new(), Value::Null);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            if let Some((name, value)) = line.split_once(": ") {
                match name {
                    "id" => id = value.parse().unwrap(),
                    "event" => kind = value.to_owned(),
                    "data" => what = serde_json::from_str(value).unwrap(),
                    _ => {}
                }
            }
            if line.is_empty() && id > 0 {
                return Some((id, kind, what));
            }
        }
    }
}

#[test]
fn only_who_knows_the_address_is_answered_and_no_foreign_page_reads_or_stops() {
    let place = Place::new();
    let run = Served::long_run(&place);
    let live = format!("/{}/live", run.secret);
    let stop = format!("{live}/stop");
    let own = format!("http://{}", run.host);
    let port = run.host.split(':').nth(1).unwrap();
    let (rebound, elsewhere) = (format!("evil.example:{port}"), format!("/{}/live", "0".repeat(32)));
    assert_eq!(run.ask("GET", &live, &[], "").0, 200);
    for path in ["/", "/live", "/metrics", &elsewhere, &format!("/{}x/live", run.secret), "/../live"] {
        assert_eq!(run.ask("GET", path, &[], "").0, 404, "{path}");
    }
    for headers in [[("Host", rebound.as_str())], [("Origin", "http://evil.example")], [("Origin", "null")]] {
        let (status, answer) = run.ask("GET", &live, &headers, "");
        assert_eq!((status, answer.split("\r\n\r\n").nth(1)), (403, Some("")), "{headers:?}");
        assert_eq!(run.ask("POST", &stop, &headers, "").0, 403, "{headers:?}");
    }
    assert_eq!(run.ask("POST", &stop, &[], "").0, 403, "who changes something says from where");
    assert_eq!(run.ask("GET", &stop, &[("Origin", &own)], "").0, 405);
    let (_, answer) = run.get("live");
    for header in
        ["content-security-policy: default-src 'none'", "referrer-policy: same-origin", "cache-control: no-store"]
    {
        assert!(answer.contains(header), "{header}");
    }
    // None of this was heard as a wish to stop.
    run.await_loop();
    let (status, _) = run.post("live/stop", "");
    assert_eq!((status, run.ended().0.code()), (202, Some(130)));
}

#[test]
fn what_happens_is_told_in_order_and_from_where_a_listener_was() {
    let place = Place::new();
    let mut command = place.short_run("lmdb", &["--live", "--set", "repeats=2"]);
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
    // The second repeat is like the first: nothing unknown is left of it.
    let begins: Vec<&Value> = all.iter().filter(|(_, kind, _)| kind == "trial").map(|(_, _, what)| what).collect();
    assert_eq!((&begins[0]["left"]["is_whole"], &begins[2]["left"]["is_whole"]), (&false.into(), &true.into()));
    assert!(said.lines().any(|line| line.starts_with("[3/3]") && line.contains(" left, until ")), "{said}");
}

#[test]
fn a_listener_that_was_cut_off_goes_on_where_it_was() {
    let place = Place::new();
    let run = Served::long_run(&place);
    let (id, ..) = run.events(&[]).nth(3).unwrap();
    let (next, ..) = run.events(&[("Last-Event-ID", &id.to_string())]).next().unwrap();
    assert_eq!(next, id + 1);
    run.post("live/stop", "");
    run.ended();
}

#[test]
fn the_page_grows_with_the_run_and_a_scraper_reads_it() {
    let place = Place::new();
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
    run.post("live/stop", "");
    run.ended();
}

#[test]
fn the_stop_button_leaves_what_an_interrupt_leaves() {
    let outcomes = [true, false].map(|by_button| {
        let place = Place::new();
        let run = Served::long_run(&place);
        run.await_loop();
        let mut events = run.events(&[]);
        if by_button {
            assert_eq!(run.post("live/stop", "").0, 202);
        } else {
            kill("-INT", run.child.id());
        }
        let (_, _, how) = events.find(|(_, kind, _)| kind == "end").unwrap();
        assert_eq!(how["interrupted"], true);
        let last = run.data("live/data");
        assert_eq!(
            (&last["goes_on"], &last["data"]["trials"][0]["ended"]),
            (&false.into(), &"interrupted by its user".into())
        );
        let (status, said) = run.ended();
        let output = place.rumba(&["report", "results/a", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let trial = &report["trials"][0];
        assert_eq!(phase(trial, "loop 1").unwrap()["complete"], false, "{trial}");
        let phases: Vec<String> =
            trial["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].to_string()).collect();
        let words =
            ["stopping; what was measured is kept", "--resume results/a goes on"].map(|words| said.contains(words));
        assert!(place.is_clean());
        (status.code(), trial["status"].clone(), trial["failure"].clone(), phases, words)
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!((outcomes[0].0, &outcomes[0].1, outcomes[0].4), (Some(130), &"interrupted".into(), [true, true]));
}

#[test]
fn a_port_that_is_taken_refuses_the_run_before_anything_is_made() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = place.short_run("null", &["--live", "--port", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("choose another --port"), "{}", text(&output));
    assert!(!place.path("out").exists());
}

#[test]
fn past_results_are_listed_noted_compared_and_shown() {
    let place = Place::new();
    std::fs::create_dir(place.path("results")).unwrap();
    for name in ["a", "b"] {
        let output = place.short_run("null", &["--quiet"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
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
    let (status, both) = served.get("beside?base=a&other=b");
    assert!(status == 200 && both.contains("null@a") && both.contains("null@b"));
    assert!(served.get("results/a").1.contains("<title>linkbench"));
    assert_eq!(served.data("results/a/report.json")["experiment"], "linkbench");
    assert_eq!(served.get("results/..%2Fstate").0, 404);
    assert_eq!(served.get("live").0, 404, "no run belongs to this server");
    assert!(served.get("metrics").1.contains("rumba_results 2"));
    assert!(place.path("results/library.json").is_file());
    kill("-INT", served.child.id());
    assert_eq!(served.ended().0.code(), Some(0));
}
