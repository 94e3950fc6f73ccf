//! The cost of the harness with an engine that answers at once.

use std::process::Command;

use super::measure::{Bench, Spread, callgrind, json, number, over_trials, phase};
use super::{Failure, Line};

/// Clocks, histograms, counters.
pub fn recording(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let run = || number(&json(Command::new(bench.example("record_cost")).arg("20000000"))?["cpu_ns_per_op"]);
    let ns = Spread::of((0..5).map(|_| run()).collect::<Result<_, _>>()?);
    Ok(vec![Line {
        what: "recording one operation: two clock readings, two histograms, counters".into(),
        goal: "≤ 45 ns".into(),
        measured: format!("{} ns CPU", ns.reported(1)),
        met: Some(ns.median <= 45.0),
        command: "record_cost 20000000".into(),
    }])
}

/// The same and a whole operation, in instructions.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const OPS: u64 = 200_000;
    [
        ("record_cost", "", "recording one operation"),
        ("record_cost", "queue", "the same, its arrival taken from a shared queue"),
        ("harness_cost", "", "one LinkBench 2017 operation on null"),
        ("harness_cost", "ycsb", "one YCSB A operation on null"),
    ]
    .into_iter()
    .map(|(example, more, what)| {
        let count = callgrind(OPS, &|command, ops| {
            command.arg(bench.example(example)).arg(ops.to_string());
            command.args((!more.is_empty()).then_some(more));
        })?;
        Ok(Line {
            what: format!("instructions: {what}"),
            goal: "none; free of the machine's noise".into(),
            measured: format!("{count:.0} instructions"),
            met: None,
            command: format!(
                "valgrind --tool=callgrind {}, less the same with {OPS}",
                format!("{example} {} {more}", 2 * OPS).trim_end()
            ),
        })
    })
    .collect()
}

/// The number of clients to compare with one: one per core, and at most four.
fn many() -> Result<usize, Failure> {
    Ok(std::thread::available_parallelism()?.get().min(4))
}

/// LinkBench on null: one client, one per core, and the generation of rows.
pub fn harness(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let many = many()?;
    let clients = format!("clients=1,{many}");
    let set = ["maxid1=1000000", &clients, "load_clients=1", "warmup=1s", "loops=1", "loop=3s", "repeats=3"];
    let args: Vec<&str> =
        ["linkbench", "--engine", "null"].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
    let report = bench.report("harness", &args)?;
    let command = format!("rumba run {}", args.join(" "));
    let of = |count: usize| move |trial: &serde_json::Value| trial["clients"] == count;
    let cpu = |count| over_trials(&report, &of(count), &|trial| number(&phase(trial, "loops")?["cpu_us_per_op"]));
    let (cpu, cpu_all) = (cpu(1)?, cpu(many)?);
    let rate = |count| over_trials(&report, &of(count), &|trial| number(&phase(trial, "loops")?["ops_per_s"]));
    let (one, all) = (rate(1)?, rate(many)?);
    let load = over_trials(&report, &|_| true, &|trial| {
        let load = phase(trial, "load")?;
        Ok(number(&load["ops"])? / number(&load["spent"]["client_cpu_s"])? / 1e6)
    })?;
    let scaling = all.median / one.median;
    let line = |what: String, goal: String, measured, met| Line { what, goal, measured, met, command: command.clone() };
    Ok(vec![
        line(
            "harness cost on null, LinkBench 2017, one client".into(),
            "≤ 0.6 µs CPU per operation".into(),
            format!("{} µs CPU per operation; {:.0} operations/s", cpu.reported(3), one.median),
            Some(cpu.median <= 0.6),
        ),
        line(
            format!("{many} clients against one, a core each"),
            format!("≥ {:.2} × (3.5 × on 4 cores; this machine has {many})", 0.875 * many as f64),
            // Clients that obstruct each other would show it here, but so would other processes that use the cores.
            format!("{scaling:.2} ×; {:.0} operations/s; CPU per operation {} µs", all.median, cpu_all.reported(3)),
            (many > 1).then_some(scaling >= 0.875 * many as f64),
        ),
        line(
            "generating LinkBench load rows into null".into(),
            "≥ 3 M rows per second of CPU".into(),
            format!("{} M", load.reported(1)),
            Some(load.median >= 3.0),
        ),
    ])
}

/// CPU per operation of YCSB, µs.
const YCSB_CPU_US: f64 = 0.3;

/// YCSB's core workloads on null, one client.
pub fn ycsb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const PROFILES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
    let profiles = format!("profiles=\"{}\"", PROFILES.join(","));
    let set = [&profiles, "load_clients=1", "clients=1", "warmup=1s", "loops=1", "loop=2s", "repeats=3"];
    let args: Vec<&str> =
        ["ycsb", "--engine", "null"].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
    let report = bench.report("ycsb", &args)?;
    let command = format!("rumba run {}", args.join(" ").replace(&profiles, &format!("'{profiles}'")));
    let line = |profile: &str| {
        let is_its = |trial: &serde_json::Value| trial["engine"] == format!("null/{profile}");
        let cpu = over_trials(&report, &is_its, &|trial| number(&phase(trial, "loops")?["cpu_us_per_op"]))?;
        Ok(Line {
            what: format!("harness cost on null, YCSB {}, one client", profile.to_uppercase()),
            goal: format!("≤ {YCSB_CPU_US} µs CPU per operation"),
            measured: format!("{} µs CPU per operation", cpu.reported(3)),
            met: Some(cpu.median <= YCSB_CPU_US),
            command: command.clone(),
        })
    };
    PROFILES.into_iter().map(line).collect()
}
