//! LinkBench over the wire, beside the figures of the Java original.

use serde_json::Value;

use super::measure::{Bench, Spread, number, over_trials, phase};
use super::{Failure, Line};

/// The figures of the Java original: InnoDB of MariaDB 10.11, TCP, 4 loaders, 8 requesters, on 4 cores.
const ORIGINAL_CPU_US: f64 = 87.0;
const ORIGINAL_ROWS_PER_S: f64 = 167_000.0;

/// LinkBench over the wire.
pub fn linkbench(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let set = [
        "innodb.tcp=true",
        "profile=2017",
        "maxid1=100000",
        "clients=8",
        "load_clients=4",
        // `auto` takes threads for so few clients, for throughput; the goal is the client's CPU.
        "driver=loops",
        "warmup=3s",
        "loops=1",
        "loop=5s",
        "repeats=3",
        "repeats_from=load",
    ];
    let args: Vec<&str> =
        ["linkbench", "--engine", "innodb"].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
    let report = bench.report("linkbench", &args)?;
    let command = format!("rumba run {}", args.join(" "));
    let metric = |of: &'static str, name: &'static str| {
        over_trials(&report, &|_| true, &|trial: &Value| number(&phase(trial, of)?[name]))
    };
    let (client, server) = (metric("loops", "client_cpu_us_per_op")?, metric("loops", "server_cpu_us_per_op")?);
    let rate = metric("loops", "ops_per_s")?;
    let most = ORIGINAL_CPU_US / 5.0;
    let rows = metric("load", "ops_per_s")?;
    let [load_client, load_server] = [metric("load", "client_cpu_us_per_op")?, metric("load", "server_cpu_us_per_op")?];
    let cores = std::thread::available_parallelism()?.get();
    let share = |us: Spread| us.median * rows.median / 1e4 / cores as f64;
    let host = metric("load", "host_cpu_percent")?.median;
    // Saturated: nothing of the host idles, and next to nothing of what is used is the client's.
    let saturated = host >= 90.0 && load_server.median >= 9.0 * load_client.median;
    Ok(vec![
        Line {
            what: "LinkBench 2017 on InnoDB over TCP, 8 clients: client CPU per operation".into(),
            goal: format!("≤ {most:.1} µs, a fifth of the original's {ORIGINAL_CPU_US:.0}"),
            measured: format!(
                "{} µs; server {} µs; {:.0} operations/s; {}",
                client.told(1),
                server.told(0),
                rate.median,
                report["trials"][0]["conditions"]["driver"].as_str().unwrap_or("driver not told")
            ),
            met: Some(client.median <= most),
            command: command.clone(),
        },
        Line {
            what: "LinkBench load into InnoDB over TCP, 4 loaders".into(),
            goal: format!(
                "the server's CPU saturated, or ≥ {:.0}k rows/s, twice the original's (which had 4 cores)",
                2.0 * ORIGINAL_ROWS_PER_S / 1e3
            ),
            measured: format!(
                "{} rows/s; CPU per row: server {:.2} µs, client {:.2} µs; of all {cores} cores: server {:.0}%, \
                 client {:.0}%, whole host {host:.0}%",
                rows.told(0),
                load_server.median,
                load_client.median,
                share(load_server),
                share(load_client),
            ),
            met: Some(saturated || rows.median >= 2.0 * ORIGINAL_ROWS_PER_S),
            command,
        },
    ])
}
