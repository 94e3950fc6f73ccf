//! YCSB beside its port to Go, in turns: over one MariaDB, a database each, and over SQLite, a file each.
//!
//! The port is whoever measures' own: `GO_YCSB` names the program (github.com/pingcap/go-ycsb, `go build -tags libsqlite3
//! ./cmd/go-ycsb` in its sources: its module replaces others, which `go install` refuses).

use std::path::PathBuf;
use std::process::Command;

use rumba_core::units::counted;

use super::floor::OverTcp;
use super::measure::{Bench, Spread, number, phase};
use super::peers::{behind, free_port, named, spent};
use super::servers::{Cores, Server};
use super::{Failure, Line};

const RECORDS: u32 = 100_000;
/// Odd, for a median that was measured.
const REPEATS: usize = 5;
const WARMUP_S: u32 = 5;
const RUN_S: u32 = 10;
/// Operations of a turn of the port's: it counts them where rumba goes by the clock.
const OPERATIONS: u32 = 200_000;
/// The most client CPU of an operation, ratio to the port.
const MOST_CPU: f64 = 0.3;
/// Each profile with its shares of reads and updates.
const PROFILES: [(&str, &str, &str); 2] = [("a", "0.5", "0.5"), ("c", "1", "0")];

/// How rumba's clients are driven: the setting, the words for it, and whether the goal is of it.
type Driver = (&'static str, &'static str, bool);
/// Over a wire: event loops, which take the least CPU, and what it takes where nobody says, which is threads for so few
/// clients, for throughput.
const DRIVERS: &[Driver] = &[("loops", " in event loops", true), ("auto", " with the usual driver", false)];
/// An embedded engine has threads alone.
const THREADS: &[Driver] = &[("auto", "", true)];

/// What a program came to in its turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    per_s: f64,
    /// Client CPU time of an operation, µs.
    cpu_us: f64,
}

/// Where both keep their records.
struct Store {
    /// On the page.
    name: &'static str,
    /// What the port calls it.
    binding: &'static str,
    /// The port's properties.
    properties: Vec<String>,
    engine: &'static str,
    /// rumba's settings.
    settings: Vec<String>,
    drivers: &'static [Driver],
    /// A minimal loop, where there is a wire.
    floor: Option<OverTcp>,
    _server: Option<Server>,
}

impl Store {
    fn mariadb(bench: &Bench) -> Result<Self, Failure> {
        let port = free_port()?;
        let settings = [
            &format!("--port={port}"),
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=1G",
            "--innodb-flush-log-at-trx-commit=2",
        ];
        let server = Server::mariadb_with(bench, &Cores::FREE, &settings)?;
        server.await_mariadb("CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'; CREATE DATABASE peer")?;
        let place = format!("mysql.port={port}");
        Ok(Self {
            name: "MariaDB over TCP",
            binding: "mysql",
            properties: vec!["mysql.host=127.0.0.1".into(), place, "mysql.user=bench".into(), "mysql.db=peer".into()],
            engine: "innodb",
            settings: vec![format!("server=mysql://bench@127.0.0.1:{port}/own")],
            drivers: DRIVERS,
            floor: Some(OverTcp::new(port, "peer")?),
            _server: Some(server),
        })
    }

    /// As the port opens it: a write-ahead log that is not synced at each commit, 2 MB of cache for each connection. The
    /// port's clients share one connection unless told otherwise, and a cache of SQLite's own.
    fn sqlite(bench: &Bench, clients: u32) -> Self {
        let file = bench.path(&format!("go-ycsb-{clients}.db"));
        let connections = [format!("sqlite.maxopenconns={clients}"), format!("sqlite.maxidleconns={clients}")];
        let place = [format!("sqlite.db={}", file.display()), "sqlite.cache=private".into()];
        Self {
            name: "SQLite",
            binding: "sqlite",
            properties: [place, connections].concat(),
            engine: "sqlite",
            settings: vec!["durability=no-sync".into(), format!("cache={}MiB", 2 * clients)],
            drivers: THREADS,
            floor: None,
            _server: None,
        }
    }
}

/// A store and both programs.
struct Contest<'a> {
    bench: &'a Bench,
    go_ycsb: PathBuf,
    store: Store,
    clients: u32,
}

impl<'a> Contest<'a> {
    /// With the port's records loaded.
    fn new(bench: &'a Bench, store: Store, clients: u32) -> Result<Self, Failure> {
        let contest = Self { bench, go_ycsb: named("GO_YCSB", "go-ycsb")?, store, clients };
        contest.go_ycsb("load", "1", "0", clients.min(2))?;
        Ok(contest)
    }

    /// The port's `load` or `run`.
    fn go_ycsb(&self, word: &str, reads: &str, updates: &str, threads: u32) -> Result<(f64, String), Failure> {
        let mut command = Command::new(&self.go_ycsb);
        command.args([word, self.store.binding]);
        let properties = [
            "workload=core".to_owned(),
            "requestdistribution=zipfian".to_owned(),
            format!("readproportion={reads}"),
            format!("updateproportion={updates}"),
            "scanproportion=0".to_owned(),
            "insertproportion=0".to_owned(),
            format!("recordcount={RECORDS}"),
            format!("operationcount={OPERATIONS}"),
            format!("threadcount={threads}"),
        ];
        properties.iter().chain(&self.store.properties).for_each(|property| {
            command.args(["-p", property]);
        });
        spent(&mut command)
    }

    /// A turn of the port's, warm from the one before or from its load.
    fn peer(&self, reads: &str, updates: &str) -> Result<Turn, Failure> {
        let (cpu, told) = self.go_ycsb("run", reads, updates, self.clients)?;
        turn(cpu, &told)
    }

    /// rumba's own turn: it loads each time, and is warm before it is measured.
    fn own(&self, profile: &str, driver: &str, round: usize) -> Result<Turn, Failure> {
        let Self { clients, store, .. } = self;
        let set = [
            format!("profile={profile}"),
            format!("recordcount={RECORDS}"),
            format!("clients={clients}"),
            format!("driver={driver}"),
            "load_clients=2".into(),
            format!("warmup={WARMUP_S}s"),
            "loops=1".into(),
            format!("loop={RUN_S}s"),
        ];
        let set = set.iter().chain(&store.settings).flat_map(|set| ["--set", set.as_str()]);
        let args: Vec<&str> = ["ycsb", "--engine", store.engine].into_iter().chain(set).collect();
        let name = format!("ycsb-{}-{clients}-{profile}-{driver}-{round}", store.engine);
        let report = self.bench.report(&name, &args)?;
        let trial = report["trials"].as_array().and_then(|trials| trials.last()).ok_or("a report without trials")?;
        let loops = phase(trial, "loops")?;
        Ok(Turn { per_s: number(&loops["ops_per_s"])?, cpu_us: number(&loops["client_cpu_us_per_op"])? })
    }

    /// Everybody's turn; every second round the port goes first, so that what a turn leaves behind is in both's figures.
    fn round(&self, (profile, reads, updates): (&str, &str, &str), round: usize) -> Result<Round, Failure> {
        let own = || -> Result<Vec<Turn>, Failure> {
            self.store.drivers.iter().map(|(driver, ..)| self.own(profile, driver, round)).collect()
        };
        let (own, peer) = if round.is_multiple_of(2) {
            (own()?, self.peer(reads, updates)?)
        } else {
            let peer = self.peer(reads, updates)?;
            (own()?, peer)
        };
        let floor = self.store.floor.as_ref();
        let floor_us = floor.map(|floor| floor.us(self.bench, &self.clients.to_string())).transpose()?;
        Ok(Round { own, peer, floor_us })
    }

    /// Profile by profile, with a row for each of the drivers.
    fn lines(&self) -> Result<Vec<Line>, Failure> {
        let mut lines = Vec::new();
        for profile in PROFILES {
            let rounds = (0..REPEATS).map(|round| self.round(profile, round)).collect::<Result<Vec<_>, _>>()?;
            lines.extend((0..self.store.drivers.len()).map(|nth| self.line(profile.0, nth, &rounds)));
        }
        Ok(lines)
    }

    /// What stands on the page of a profile with a driver.
    fn line(&self, profile: &str, nth: usize, rounds: &[Round]) -> Line {
        let Self { clients, store, .. } = self;
        let over = |of: &dyn Fn(Turn, Turn) -> f64| {
            Spread::of(rounds.iter().map(|round| of(round.own[nth], round.peer)).collect())
        };
        let (cpu, rate) = (over(&|own, peer| own.cpu_us / peer.cpu_us), over(&|own, peer| own.per_s / peer.per_s));
        let [own_us, peer_us] = [over(&|own, _| own.cpu_us), over(&|_, peer| peer.cpu_us)].map(|cpu| cpu.median);
        let floors: Option<Vec<f64>> = rounds.iter().map(|round| round.floor_us).collect();
        let floor = floors.map_or_else(String::new, |floors| {
            format!("a query of a minimal loop {:.1} µs; ", Spread::of(floors).median)
        });
        let (_, driver, is_gated) = store.drivers[nth];
        Line {
            what: format!(
                "YCSB {profile}, {}{driver}, {}: client CPU per operation, ratio to go-ycsb",
                counted(*clients as usize, "client"),
                store.name
            ),
            goal: if is_gated { format!("≤ {MOST_CPU}") } else { "reported".into() },
            measured: format!(
                "{}; {own_us:.1} µs over {peer_us:.1} µs; {floor}operations per second {}",
                cpu.told(2),
                rate.told(2)
            ),
            met: is_gated.then_some(cpu.median <= MOST_CPU),
            command: format!(
                "GO_YCSB=PROGRAM cargo run --release -p xtask -- bench ycsb-{}",
                match store.floor {
                    Some(_) => "peers",
                    None => "sqlite",
                }
            ),
        }
    }
}

/// A turn of the port's, of its CPU and what it said: totals every ten seconds, and at the end.
fn turn(cpu_us: f64, told: &str) -> Result<Turn, Failure> {
    if let Some(failed) = told.lines().find(|line| line.contains("_ERROR")) {
        return Err(format!("operations of go-ycsb failed: {failed}").into());
    }
    let total = told.lines().rfind(|line| line.starts_with("TOTAL")).ok_or_else(|| format!("no totals in: {told}"))?;
    let count = behind(total, "Count:")?;
    Ok(Turn { per_s: count / behind(total, "Takes(s):")?, cpu_us: cpu_us / count })
}

/// Everybody's turn, one after the other.
struct Round {
    /// With each of the drivers.
    own: Vec<Turn>,
    peer: Turn,
    /// CPU of a query of a minimal loop, µs.
    floor_us: Option<f64>,
}

/// Over MariaDB.
pub fn mariadb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    Contest::new(bench, Store::mariadb(bench)?, 8)?.lines()
}

/// Over SQLite, whose own work is in the CPU of both's processes: by one client, and by as many as over MariaDB, which wait
/// for each other.
pub fn sqlite(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let of = |clients| Contest::new(bench, Store::sqlite(bench, clients), clients)?.lines();
    let mut lines = of(1)?;
    lines.extend(of(8)?);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// As version 1.0.3 ends.
    #[test]
    fn what_the_port_says_of_all_its_operations_is_read() {
        let told = "READ   - Takes(s): 0.5, Count: 1000, OPS: 2000.0, Avg(us): 517\n\
                    TOTAL  - Takes(s): 0.5, Count: 2000, OPS: 4000.0, Avg(us): 1613\nRun finished, takes 1.25s\n\
                    READ   - Takes(s): 1.2, Count: 2529, OPS: 2113.9, Avg(us): 517\n\
                    TOTAL  - Takes(s): 1.2, Count: 5000, OPS: 4179.9, Avg(us): 1613\n\
                    UPDATE - Takes(s): 1.2, Count: 2471, OPS: 2092.7, Avg(us): 2734\n";
        let turn = turn(250_000.0, told).unwrap();
        assert_eq!((turn.per_s.round(), turn.cpu_us), (4167.0, 50.0));
    }

    /// They end sooner than others, and would be counted as served.
    #[test]
    fn operations_of_the_port_that_failed_are_no_figures() {
        let told = "READ   - Takes(s): 1.2, Count: 2529, OPS: 2113.9, Avg(us): 517\n\
                    UPDATE_ERROR - Takes(s): 1.2, Count: 3, OPS: 2.5, Avg(us): 40\n\
                    TOTAL  - Takes(s): 1.2, Count: 5000, OPS: 4179.9, Avg(us): 1613\n";
        assert!(turn(250_000.0, told).unwrap_err().to_string().contains("UPDATE_ERROR"));
    }
}
