//! The cost of the harness with an engine that answers at once.

use super::measure::{Bench, callgrind, number, over_trials, phase};
use super::{Failure, Line};

/// Recording an operation, and a whole operation, in instructions: free of the machine's noise.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const OPS: u64 = 200_000;
    [("record_cost", 250.0, "recording one operation"), ("harness_cost", 1600.0, "one LinkBench operation on null")]
        .into_iter()
        .map(|(example, most, what)| {
            let count = callgrind(OPS, &|command, ops| {
                command.arg(bench.example(example)).arg(ops.to_string());
            })?;
            Ok(Line {
                what: format!("instructions: {what}"),
                goal: format!("≤ {most:.0}"),
                measured: format!("{count:.0} instructions"),
                met: Some(count <= most),
                command: format!("valgrind --tool=callgrind {example} {}, less the same with {OPS}", 2 * OPS),
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
