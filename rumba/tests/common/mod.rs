//! Shared code of the binary's tests.
#![allow(clippy::unwrap_used, dead_code)] // Each test file uses its part.

use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A rate at which clients mostly sleep, and a second has hundreds of operations.
pub const CALM: &str = "rate=1000";

/// A directory for a test's results, data and list of managed objects.
pub struct TestDir {
    dir: tempfile::TempDir,
    /// The workload of its runs, and its size.
    small: (&'static str, &'static str),
}

impl TestDir {
    pub fn new() -> Self {
        Self::for_engines(true)
    }

    /// For runs of LinkBench, or of YCSB over engines without transactions of several keys.
    pub fn for_engines(have_transactions: bool) -> Self {
        let small = if have_transactions { ("linkbench", "maxid1=2000") } else { ("ycsb", "recordcount=2000") };
        Self { dir: tempfile::tempdir().unwrap(), small }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `rumba` with these arguments; its list of managed objects is in this directory.
    pub fn rumba(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rumba"));
        command.args(args).env("XDG_STATE_HOME", self.path("state")).env("NO_COLOR", "1").current_dir(self.dir.path());
        command
    }

    /// A short run into `out`, with more arguments, at a rate that any engine can serve. Clients at full speed would
    /// take the processors from all parallel tests.
    pub fn short_run(&self, engines: &str, more: &[&str]) -> Command {
        self.run_of(engines, &[CALM], more)
    }

    /// The same in a closed loop at full speed, for tests about speed.
    pub fn fast_run(&self, engines: &str, more: &[&str]) -> Command {
        self.run_of(engines, &[], more)
    }

    fn run_of(&self, engines: &str, pace: &[&str], more: &[&str]) -> Command {
        let (workload, size) = self.small;
        let mut command = self.rumba(&["run", workload, "--engine", engines, "--out", "out"]);
        let short = [size, "clients=2", "load_clients=2", "warmup=200ms", "loops=2", "loop=500ms"];
        for set in short.iter().chain(pace) {
            command.args(["--set", set]);
        }
        command.args(more);
        command
    }

    pub fn report(&self) -> Value {
        let output = self.rumba(&["report", "out", "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Makes the results report an otherwise idle host. Verdicts about rates are withheld otherwise, and other tests
    /// run at the same time.
    pub fn undisturbed(&self, results: &str) {
        for trial in std::fs::read_dir(self.path(results).join("trials")).unwrap() {
            let file = trial.unwrap().path().join("record.json");
            let mut record: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            for phase in record["phases"].as_array_mut().unwrap() {
                (phase["stolen_cpu_percent"], phase["others_cpu_percent"]) = (0.0.into(), 0.0.into());
            }
            std::fs::write(&file, record.to_string()).unwrap();
        }
    }

    /// Whether no managed object is left: no entry in the list, no data directory.
    pub fn is_clean(&self) -> bool {
        let output = self.rumba(&["doctor", "--json"]).output().unwrap();
        let doctor: Value = serde_json::from_slice(&output.stdout).unwrap();
        doctor["leftovers"].as_array().unwrap().is_empty() && !self.path("out/data").exists()
    }
}

/// Starts a run of minutes with results in `out`, and waits until its first loop is under way.
pub fn start_long_run(place: &TestDir, engine: &str, out: &Path, more: &[&str]) -> Child {
    let (workload, size) = place.small;
    let mut command = place.rumba(&["run", workload, "--engine", engine, "--out"]);
    command.arg(out);
    for set in [size, "clients=2", CALM, "warmup=0s", "loops=2", "loop=5m"].iter().chain(more) {
        command.args(["--set", set]);
    }
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    // A process that writes to a closed pipe dies, so the pipe is read to its end.
    let said = std::thread::spawn(move || stderr.lines().map_while(Result::ok).collect::<Vec<_>>().join("\n"));
    let intervals = out.join(format!("trials/001-{engine}-c2-r1/intervals.ndjson"));
    // Events decide when that is, not a clock.
    while !std::fs::read_to_string(&intervals).unwrap_or_default().contains("\"loop 1\"") {
        assert!(child.try_wait().unwrap().is_none(), "{engine} ended early: {}", said.join().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

/// Runs this for each value, all at once, because most of the time is waiting.
pub fn at_once<T: Copy + Send>(with: impl IntoIterator<Item = T>, run: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for one in with {
            let run = &run;
            scope.spawn(move || run(one));
        }
    });
}

/// Runs this for each value, two at a time, because a machine with two cores has no room for more.
pub fn two_at_a_time<T: Copy + Sync>(with: &[T], run: impl Fn(T) + Sync) {
    assert!(!with.is_empty(), "nothing is tested");
    let left = Mutex::new(with.iter());
    let next = || left.lock().unwrap().next().copied();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(one) = next() {
                    run(one);
                }
            });
        }
    });
}

/// Stops a process for this time. Returns the minimum and the maximum time for which it was stopped, in seconds.
pub fn stop_for(pid: u32, time: Duration) -> (f64, f64) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let before = Instant::now();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let stopped = Instant::now();
    std::thread::sleep(time);
    let least = stopped.elapsed().as_secs_f64();
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    (least, before.elapsed().as_secs_f64())
}

pub fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The pids of a process's children.
pub fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The output of a command that ends with this exit code.
pub fn ended(code: i32, mut command: impl BorrowMut<Command>) -> Output {
    let output = command.borrow_mut().output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{:?}\n{}", command.borrow_mut(), text(&output));
    output
}

/// Adds `--set` with each of these.
pub fn set<S: AsRef<OsStr>>(mut command: impl BorrowMut<Command>, sets: impl IntoIterator<Item = S>) {
    for one in sets {
        command.borrow_mut().arg("--set").arg(one);
    }
}

pub fn phase<'a>(trial: &'a Value, name: &str) -> Option<&'a Value> {
    trial["phases"].as_array().unwrap().iter().find(|phase| phase["phase"] == name)
}

/// Checks a trial of TPC-C whose server was lost in the loop and returned: clients reconnected, the transactions in
/// progress failed, and the data is consistent.
pub fn survived_a_lost_server(trial: &Value, case: &str) {
    assert_eq!(trial["failure"], Value::Null, "{case}: {trial}");
    let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap();
    assert!(checks.len() == 16 && checks.iter().all(|check| check["wrong"] == 0), "{case}: {checks:?}");
    let counters = phase(trial, "drain").unwrap()["counters"].as_array().unwrap();
    let reconnects = counters.iter().find(|gauge| gauge["name"] == "client_reconnects").unwrap();
    assert!(reconnects["value"].as_f64().unwrap() >= 2.0, "{case}: {reconnects}");
    let types = phase(trial, "loop 1").unwrap()["op_types"].as_object().unwrap();
    let failed: u64 = types.values().map(|op| op["errors"].as_u64().unwrap_or_default()).sum();
    assert!(failed > 0, "{case}: what was cut off counts as failed");
}

/// The files below a directory that hold a text.
pub fn files_holding(directory: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let holds = |file: &Path| String::from_utf8_lossy(&std::fs::read(file).unwrap()).contains(text);
    entries
        .flat_map(|path| match path.is_dir() {
            true => files_holding(&path, text),
            false => {
                if holds(&path) {
                    vec![path]
                } else {
                    Vec::new()
                }
            }
        })
        .collect()
}
