//! TPC-C: over keys and values, and by ten thousand terminals that think.

use serde_json::Value;

use super::measure::{Bench, Spread, number, over_trials, phase};
use super::{Failure, Line};

/// Transactions per second over RocksDB, on two cores.
const ROCKSDB_PER_S: f64 = 5_000.0;

/// The terminals of a thousand warehouses.
const TERMINALS: u32 = 10_000;
/// What their clients may take of one core, percent.
const CORE_PERCENT: f64 = 10.0;
/// How late they may start, on the mean; the median of what is never early lies below twice that.
const LATE_US: f64 = 500.0;
/// What their process may hold in memory, bytes.
const RSS_BYTES: f64 = 300.0 * 1e6;

fn args<'a>(engine: &'a str, set: &[&'a str]) -> Vec<&'a str> {
    let set = set.iter().flat_map(|set| ["--set", *set]);
    ["tpcc", "--engine", engine].into_iter().chain(set).collect()
}

/// How many properties of the data were proven, after the load and after the runs; an error where one is broken.
fn proven(report: &Value) -> Result<usize, Failure> {
    let trials = report["trials"].as_array().ok_or("a report without trials")?;
    let phases = trials.iter().filter_map(|trial| trial["phases"].as_array()).flatten();
    let checks: Vec<&Value> = phases.filter_map(|phase| phase["checks"].as_array()).flatten().collect();
    match checks.iter().find(|check| check["wrong"] != 0) {
        Some(broken) => Err(format!("the data is not consistent: {broken}").into()),
        None if checks.is_empty() => Err("nothing was proven".into()),
        None => Ok(checks.len()),
    }
}

fn over_runs(report: &Value, name: &'static str) -> Result<Spread, Failure> {
    let is_run = |trial: &Value| trial["part"] != "load";
    over_trials(report, &is_run, &|trial| number(&phase(trial, "loops")?[name]))
}

/// Over the store that is built in.
pub fn rocksdb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let set = [
        "warehouses=4",
        "clients=4",
        "load_clients=2",
        "cache=512MiB",
        "compression=none",
        "warmup=5s",
        "loops=1",
        "loop=20s",
        "repeats=3",
    ];
    let args = args("rocksdb", &set);
    let report = bench.report("tpcc-rocksdb", &args)?;
    let (checks, rate) = (proven(&report)?, over_runs(&report, "ops_per_s")?);
    let cpu = over_runs(&report, "cpu_us_per_op")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What runs on more cores says nothing of two.
    let judged = (cores <= 2).then_some(rate.median >= ROCKSDB_PER_S);
    Ok(vec![Line {
        what: "TPC-C over RocksDB, 4 warehouses, 4 clients: transactions per second".to_owned(),
        goal: format!("≥ {ROCKSDB_PER_S:.0} on 2 cores, all conditions holding"),
        measured: format!("{} on {cores} cores; {} µs of CPU each; {checks} checks hold", rate.told(0), cpu.told(0)),
        met: judged,
        command: format!("rumba run {}", args.join(" ")),
    }])
}

/// Terminals with keying and think times: connections that do next to nothing. The tables are small, for it is the
/// clients that are measured.
pub fn terminals(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let clients = format!("clients={TERMINALS}");
    let set = [
        "warehouses=1000",
        "customers=10",
        "items=100",
        "think=spec",
        // A wait each costs more than what is waited for.
        "statements=grouped",
        clients.as_str(),
        "load_clients=4",
        "cache=512MiB",
        // With all of their statements prepared these connections took more than 24 GB of MariaDB: where it needs more than
        // this, it is to be killed in its own group, and nobody beside it.
        "memory=16GiB",
        // A terminal that thinks runs a statement a few times an hour. Prepared when it is first run, nearly every
        // statement of the loop would be a first one, for which a loop of clients waits: transactions began half a second late.
        "innodb.prepared=false",
        "innodb.max_connections=10200",
        "innodb.thread_handling=pool-of-threads",
        "driver=loops",
        "warmup=60s",
        "loops=1",
        "loop=60s",
    ];
    let args = args("innodb", &set);
    let report = bench.report("tpcc-terminals", &args)?;
    let checks = proven(&report)?;
    let [rate, cpu_us, late_us, rss] = ["ops_per_s", "client_cpu_us_per_op", "late_us_per_op", "client_rss_bytes"]
        .map(|name| over_runs(&report, name));
    let (rate, cpu_us, late_us, rss) = (rate?.median, cpu_us?.median, late_us?.median, rss?.median);
    let core_percent = cpu_us * rate / 1e4;
    let line = |what: &str, goal: String, measured: String, is_met: bool| Line {
        what: format!("{TERMINALS} terminals that key and think, InnoDB: {what}"),
        goal,
        measured,
        met: Some(is_met),
        command: format!("rumba run {}", args.join(" ")),
    };
    Ok(vec![
        line(
            "client CPU",
            format!("≤ {CORE_PERCENT:.0}% of a core"),
            format!("{core_percent:.1}%: {cpu_us:.0} µs for each of {rate:.0} transactions/s; {checks} checks hold"),
            core_percent <= CORE_PERCENT,
        ),
        line(
            "how late transactions start",
            format!("≤ {:.1} ms on the mean", LATE_US / 1e3),
            format!("{:.3} ms", late_us / 1e3),
            late_us <= LATE_US,
        ),
        line(
            "memory of the clients' process",
            format!("≤ {:.0} MB", RSS_BYTES / 1e6),
            format!("{:.0} MB", rss / 1e6),
            rss <= RSS_BYTES,
        ),
    ])
}
