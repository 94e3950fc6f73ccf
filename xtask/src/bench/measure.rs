//! The measurements.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Failure, Line};

/// The binaries under measurement and a place for results.
pub struct Bench {
    root: PathBuf,
    release: PathBuf,
    out: tempfile::TempDir,
}

/// A measurement of one or more figures.
type Step = fn(&Bench) -> Result<Vec<Line>, Failure>;

/// All measurements, in order.
pub const STEPS: &[Step] = &[recording, instructions, harness, apart, memory, quickstart];

impl Bench {
    /// Builds what is measured.
    pub fn new(root: &Path) -> Result<Self, Failure> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        std::fs::create_dir_all(&target)?;
        // Beside the build and not in /tmp, which may be memory: the device is measured too.
        let out = tempfile::tempdir_in(&target)?;
        let bench = Self { root: root.to_owned(), release: target.join("release"), out };
        bench.cargo(&["build", "--release", "-p", "rumba", "--bin", "rumba", "--example", "harness_cost"])?;
        bench.cargo(&["build", "--release", "-p", "rumba-lab", "--example", "record_cost"])?;
        Ok(bench)
    }

    fn cargo(&self, args: &[&str]) -> Result<(), Failure> {
        let status = Command::new("cargo").args(args).current_dir(&self.root).status()?;
        if status.success() { Ok(()) } else { Err(format!("cargo {} failed", args.join(" ")).into()) }
    }

    /// The host, by name.
    pub fn conditions(&self) -> Result<Value, Failure> {
        Ok(self.json(Command::new(self.release.join("rumba")).args(["doctor", "--json"]))?["conditions"].clone())
    }

    /// Runs an experiment and gives its report.
    fn report(&self, name: &str, args: &[&str]) -> Result<Value, Failure> {
        let mut command = Command::new(self.release.join("rumba"));
        command.arg("run").args(args).args(["--json", "--quiet", "--out"]).arg(self.out.path().join(name));
        self.json(command.current_dir(&self.root))
    }

    fn example(&self, name: &str, ops: u64) -> Result<f64, Failure> {
        let value = self.json(Command::new(self.release.join("examples").join(name)).arg(ops.to_string()))?;
        number(&value["cpu_ns_per_op"])
    }

    fn json(&self, command: &mut Command) -> Result<Value, Failure> {
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Instructions that an example executes per operation: the difference
    /// between two runs takes the start of the process out.
    fn callgrind(&self, example: &str) -> Result<f64, Failure> {
        const OPS: u64 = 200_000;
        let count = |ops: u64| -> Result<f64, Failure> {
            let output = Command::new("valgrind")
                .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                .arg(self.release.join("examples").join(example))
                .arg(ops.to_string())
                .output()?;
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            if !output.status.success() {
                return Err(format!("{example} under callgrind: {text}").into());
            }
            let line =
                text.lines().find_map(|line| line.split_once("Collected : ")).ok_or("callgrind counted nothing")?;
            Ok(line.1.trim().parse()?)
        };
        Ok((count(2 * OPS)? - count(OPS)?) / OPS as f64)
    }
}

fn number(value: &Value) -> Result<f64, Failure> {
    value.as_f64().ok_or_else(|| format!("{value} is not a number").into())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn phase<'a>(trial: &'a Value, name: &str) -> Result<&'a Value, Failure> {
    let phases = trial["phases"].as_array().ok_or("a trial without phases")?;
    phases.iter().find(|phase| phase["phase"] == name).ok_or_else(|| format!("a trial without {name}").into())
}

/// A metric of a phase over the trials that `keep` keeps: the median.
fn over_trials(
    report: &Value,
    keep: &dyn Fn(&Value) -> bool,
    of: &dyn Fn(&Value) -> Result<f64, Failure>,
) -> Result<f64, Failure> {
    let trials = report["trials"].as_array().ok_or("a report without trials")?;
    Ok(median(trials.iter().filter(|trial| keep(trial)).map(of).collect::<Result<_, _>>()?))
}

fn recording(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let runs = (0..5).map(|_| bench.example("record_cost", 20_000_000)).collect::<Result<_, _>>()?;
    let ns = median(runs);
    Ok(vec![Line {
        what: "recording one operation: two clock readings, two histograms, counters (median of 5)".into(),
        goal: "≤ 45 ns".into(),
        measured: format!("{ns:.1} ns CPU"),
        met: Some(ns <= 45.0),
        command: "record_cost 20000000".into(),
    }])
}

fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    ["record_cost", "harness_cost"]
        .iter()
        .map(|example| {
            let count = bench.callgrind(example)?;
            let what = if *example == "record_cost" {
                "recording one operation"
            } else {
                "one LinkBench 2017 operation on null"
            };
            Ok(Line {
                what: format!("instructions: {what}"),
                goal: "none; free of the machine's noise".into(),
                measured: format!("{count:.0} instructions"),
                met: None,
                command: format!("valgrind --tool=callgrind {example} 400000, less the same with 200000"),
            })
        })
        .collect()
}

fn harness(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let args = [
        "linkbench",
        "--engine",
        "null",
        "--set",
        "maxid1=1000000",
        "--set",
        "clients=1,4",
        "--set",
        "load_clients=1",
        "--set",
        "warmup=1s",
        "--set",
        "loops=1",
        "--set",
        "loop=4s",
        "--set",
        "repeats=5",
    ];
    let report = bench.report("harness", &args)?;
    let command = format!("rumba run {}", args.join(" "));
    let clients = |count: u64| move |trial: &Value| trial["clients"] == count;
    let cpu = over_trials(&report, &clients(1), &|trial| number(&phase(trial, "loops")?["cpu_us_per_op"]))?;
    let rate = |count| over_trials(&report, &clients(count), &|trial| number(&phase(trial, "loops")?["ops_per_s"]));
    let (one, four) = (rate(1)?, rate(4)?);
    let cores = std::thread::available_parallelism()?.get();
    let load = over_trials(&report, &|_| true, &|trial| {
        let load = phase(trial, "load")?;
        Ok(number(&load["ops"])? / number(&load["spent"]["client_cpu_s"])?)
    })?;
    let line = |what: &str, goal: &str, measured: String, met| Line {
        what: what.into(),
        goal: goal.into(),
        measured,
        met,
        command: command.clone(),
    };
    Ok(vec![
        line(
            "harness cost on null, LinkBench 2017, one client (median of 5)",
            "≤ 0.6 µs CPU per operation",
            format!("{cpu:.3} µs CPU per operation; {one:.0} operations/s"),
            Some(cpu <= 0.6),
        ),
        line(
            "four clients against one",
            "≥ 3.5 × on 4 cores",
            format!("{:.2} × on {cores} cores; {four:.0} operations/s", four / one),
            (cores >= 4).then_some(four / one >= 3.5),
        ),
        line(
            "generating LinkBench load rows into null (median of 10)",
            "≥ 3 M rows/s per core",
            format!("{:.1} M rows per second of CPU", load / 1e6),
            Some(load >= 3e6),
        ),
    ])
}

/// The machine's own limit: the same work in processes that share nothing at all.
fn apart(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const OPS: &str = "20000000";
    let seconds = |processes: usize| -> Result<f64, Failure> {
        let start = std::time::Instant::now();
        let example = bench.release.join("examples/harness_cost");
        let children = (0..processes)
            .map(|_| Command::new(&example).arg(OPS).stdout(Stdio::null()).spawn())
            .collect::<Result<Vec<_>, _>>()?;
        for mut child in children {
            child.wait()?;
        }
        Ok(start.elapsed().as_secs_f64())
    };
    let ratios = (0..5).map(|_| Ok(4.0 * seconds(1)? / seconds(4)?)).collect::<Result<Vec<f64>, Failure>>()?;
    Ok(vec![Line {
        what: "the same work in four processes that share nothing, against one (median of 5)".into(),
        goal: "none: the machine's own limit".into(),
        measured: format!("{:.2} ×", median(ratios)),
        met: None,
        command: format!("harness_cost {OPS}, four at once and one alone"),
    }])
}

fn memory(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let args = [
        "linkbench",
        "--engine",
        "null",
        "--set",
        "maxid1=10000000",
        "--set",
        "clients=64",
        "--set",
        "load_clients=4",
        "--set",
        "warmup=2s",
        "--set",
        "loops=6",
        "--set",
        "loop=10s",
    ];
    let report = bench.report("memory", &args)?;
    let trial = &report["trials"][0];
    let rss =
        |loop_: u32| number(&phase(trial, &format!("loop {loop_}"))?["rss_bytes"]).map(|bytes| bytes / 1_048_576.0);
    let (first, last) = (rss(1)?, rss(6)?);
    Ok(vec![Line {
        what: "harness memory, 64 clients and 10 M ids".into(),
        goal: "≤ 64 MB resident, flat over time".into(),
        measured: format!("{first:.1} MB after 10 s, {last:.1} MB after 60 s"),
        met: Some(last <= 64.0 && last <= first * 1.05),
        command: format!("rumba run {}", args.join(" ")),
    }])
}

fn quickstart(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let report = bench.report("quickstart", &["experiments/quickstart.toml", "--set", "repeats=5"])?;
    let rows = report["summary"]["rows"].as_array().ok_or("a summary without rows")?;
    let mut lines = Vec::new();
    for row in rows {
        let engine = row["engine"].as_str().unwrap_or("?");
        for metric in ["ops_per_s", "wkb_per_op", "wkb_per_op_with_drain"] {
            let figure = &row["run"]["metrics"][metric];
            let share = |of: &str| {
                let spread = figure["spread"][of].as_f64();
                spread.map_or("not known".to_owned(), |spread| format!("{:.1}%", spread * 100.0))
            };
            let measured = match figure["median"].as_f64() {
                Some(median) => {
                    format!("median {median:.3}; largest over smallest +{}; variation {}", share("range"), share("cv"))
                }
                None => format!("absent: {}", figure["median"]["absent"].as_str().unwrap_or("no reason given")),
            };
            lines.push(Line {
                what: format!("quickstart, {engine}: {metric} over 5 repeats"),
                goal: "reported; reasons when above 10%".into(),
                measured,
                met: None,
                command: "rumba run experiments/quickstart.toml --set repeats=5".into(),
            });
        }
    }
    Ok(lines)
}
