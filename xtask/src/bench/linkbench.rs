//! LinkBench over the wire.

use serde_json::Value;

use super::measure::{Bench, Spread, number, over_trials, phase};
use super::{Failure, Line};

/// The figures of the Java original: InnoDB of MariaDB 10.11, TCP, 4 loaders, 8 requesters, on 4 cores.
const ORIGINAL_CPU_US: f64 = 87.0;
const ORIGINAL_ROWS_PER_S: f64 = 167_000.0;

/// Beside the figures of the Java original.
pub fn linkbench(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let seen = run(bench, "linkbench", "innodb")?;
    let most = ORIGINAL_CPU_US / 5.0;
    let goal = format!("≤ {most:.1} µs, a fifth of the original's {ORIGINAL_CPU_US:.0}");
    let rows = format!(
        "the server's CPU saturated, or ≥ {:.0}k rows/s, twice the original's (which had 4 cores)",
        2.0 * ORIGINAL_ROWS_PER_S / 1e3
    );
    let loads = seen.is_saturated() || seen.rows.median >= 2.0 * ORIGINAL_ROWS_PER_S;
    Ok(vec![seen.client("InnoDB", goal, most), seen.load("InnoDB", rows, loads)])
}

/// Client CPU per operation on PostgreSQL, µs.
const POSTGRESQL_CPU_US: f64 = 17.0;
/// Client CPU per row that is loaded by COPY, µs.
const COPY_CPU_US: f64 = 0.3;

/// The same on PostgreSQL, which loads by COPY.
pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let seen = run(bench, "linkbench-postgresql", "postgresql")?;
    let goal = format!("≤ {POSTGRESQL_CPU_US:.0} µs");
    let rows = format!("the server's CPU saturated, client ≤ {COPY_CPU_US} µs per row");
    let loads = seen.is_saturated() && seen.load_client.median <= COPY_CPU_US;
    Ok(vec![seen.client("PostgreSQL", goal, POSTGRESQL_CPU_US), seen.load("PostgreSQL", rows, loads)])
}

/// What runs over TCP came to.
struct Seen {
    command: String,
    driver: String,
    client: Spread,
    server: Spread,
    rate: Spread,
    rows: Spread,
    load_client: Spread,
    load_server: Spread,
    /// Of the whole host in the load, percent.
    host: f64,
}

fn run(bench: &Bench, name: &str, engine: &str) -> Result<Seen, Failure> {
    let tcp = format!("{engine}.tcp=true");
    let set = [
        tcp.as_str(),
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
        ["linkbench", "--engine", engine].into_iter().chain(set.into_iter().flat_map(|set| ["--set", set])).collect();
    let report = bench.report(name, &args)?;
    let metric = |of: &'static str, name: &'static str| {
        over_trials(&report, &|_| true, &|trial: &Value| number(&phase(trial, of)?[name]))
    };
    Ok(Seen {
        command: format!("rumba run {}", args.join(" ")),
        driver: report["trials"][0]["conditions"]["driver"].as_str().unwrap_or("driver not told").to_owned(),
        client: metric("loops", "client_cpu_us_per_op")?,
        server: metric("loops", "server_cpu_us_per_op")?,
        rate: metric("loops", "ops_per_s")?,
        rows: metric("load", "ops_per_s")?,
        load_client: metric("load", "client_cpu_us_per_op")?,
        load_server: metric("load", "server_cpu_us_per_op")?,
        host: metric("load", "host_cpu_percent")?.median,
    })
}

impl Seen {
    /// Nothing of the host idles in the load, and next to nothing of what is used is the client's.
    fn is_saturated(&self) -> bool {
        self.host >= 90.0 && self.load_server.median >= 9.0 * self.load_client.median
    }

    fn client(&self, on: &str, goal: String, most: f64) -> Line {
        Line {
            what: format!("LinkBench 2017 on {on} over TCP, 8 clients: client CPU per operation"),
            goal,
            measured: format!(
                "{} µs; server {} µs; {:.0} operations/s; {}",
                self.client.told(1),
                self.server.told(0),
                self.rate.median,
                self.driver
            ),
            met: Some(self.client.median <= most),
            command: self.command.clone(),
        }
    }

    fn load(&self, on: &str, goal: String, is_met: bool) -> Line {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = |us: Spread| us.median * self.rows.median / 1e4 / cores as f64;
        Line {
            what: format!("LinkBench load into {on} over TCP, 4 loaders"),
            goal,
            measured: format!(
                "{} rows/s; CPU per row: server {:.2} µs, client {:.2} µs; of all {cores} cores: server {:.0}%, \
                 client {:.0}%, whole host {:.0}%",
                self.rows.told(0),
                self.load_server.median,
                self.load_client.median,
                share(self.load_server),
                share(self.load_client),
                self.host,
            ),
            met: Some(is_met),
            command: self.command.clone(),
        }
    }
}
