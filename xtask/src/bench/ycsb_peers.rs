//! YCSB beside its port to Go: one MariaDB, a database each, in turns.
//!
//! The port is whoever measures' own: `GO_YCSB` names the program (github.com/pingcap/go-ycsb, `go build ./cmd/go-ycsb` in
//! its sources: its module replaces others, which `go install` refuses).

use std::path::PathBuf;
use std::process::Command;

use super::floor::OverTcp;
use super::measure::{Bench, Spread, number, phase};
use super::peers::{behind, free_port, named, spent};
use super::servers::{Cores, Server};
use super::{Failure, Line};

const RECORDS: u32 = 100_000;
const CLIENTS: u32 = 8;
/// Odd, for a median that was measured.
const REPEATS: usize = 5;
const WARMUP_S: u32 = 5;
const RUN_S: u32 = 10;
/// Operations of a turn of the port's: it counts them where rumba goes by the clock.
const OPERATIONS: u32 = 200_000;
/// The most client CPU of an operation, ratio to the port.
const MOST_CPU: f64 = 0.3;
/// Drivers of rumba's clients, each in a turn of its own: event loops, which take the least CPU and which the goal is of, and
/// what it takes where nobody says, which is threads for so few clients, for throughput.
const DRIVERS: [(&str, &str); 2] = [("loops", "in event loops"), ("auto", "with the usual driver")];
/// Each profile with its shares of reads and updates.
const PROFILES: [(&str, &str, &str); 2] = [("a", "0.5", "0.5"), ("c", "1", "0")];

/// What a program came to in its turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    per_s: f64,
    /// Client CPU time of an operation, µs.
    cpu_us: f64,
}

/// One server and both programs.
struct Contest<'a> {
    bench: &'a Bench,
    port: u16,
    go_ycsb: PathBuf,
    floor: OverTcp,
    _server: Server,
}

impl<'a> Contest<'a> {
    fn new(bench: &'a Bench) -> Result<Self, Failure> {
        let go_ycsb = named("GO_YCSB", "go-ycsb")?;
        let port = free_port()?;
        let settings = [
            &format!("--port={port}"),
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=1G",
            "--innodb-flush-log-at-trx-commit=2",
        ];
        let server = Server::mariadb_with(bench, &Cores::FREE, &settings)?;
        server.await_mariadb("CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'; CREATE DATABASE peer")?;
        Ok(Self { bench, port, go_ycsb, floor: OverTcp::new(port, "peer")?, _server: server })
    }

    /// The port's `load` or `run`.
    fn go_ycsb(&self, word: &str, reads: &str, updates: &str, threads: u32) -> Result<(f64, String), Failure> {
        let mut command = Command::new(&self.go_ycsb);
        command.args([word, "mysql"]);
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
            "mysql.host=127.0.0.1".to_owned(),
            format!("mysql.port={}", self.port),
            "mysql.user=bench".to_owned(),
            "mysql.db=peer".to_owned(),
        ];
        properties.iter().for_each(|property| {
            command.args(["-p", property]);
        });
        spent(&mut command)
    }

    /// A turn of the port's, warm from the one before or from its load.
    fn peer(&self, reads: &str, updates: &str) -> Result<Turn, Failure> {
        let (cpu, told) = self.go_ycsb("run", reads, updates, CLIENTS)?;
        turn(cpu, &told)
    }

    /// rumba's own turn: it loads each time, and is warm before it is measured.
    fn own(&self, profile: &str, driver: &str, round: usize) -> Result<Turn, Failure> {
        let set = [
            format!("server=mysql://bench@127.0.0.1:{}/own", self.port),
            format!("profile={profile}"),
            format!("recordcount={RECORDS}"),
            format!("clients={CLIENTS}"),
            format!("driver={driver}"),
            "load_clients=2".into(),
            format!("warmup={WARMUP_S}s"),
            "loops=1".into(),
            format!("loop={RUN_S}s"),
        ];
        let set = set.iter().flat_map(|set| ["--set", set.as_str()]);
        let args: Vec<&str> = ["ycsb", "--engine", "innodb"].into_iter().chain(set).collect();
        let report = self.bench.report(&format!("ycsb-{profile}-{driver}-{round}"), &args)?;
        let trial = report["trials"].as_array().and_then(|trials| trials.last()).ok_or("a report without trials")?;
        let loops = phase(trial, "loops")?;
        Ok(Turn { per_s: number(&loops["ops_per_s"])?, cpu_us: number(&loops["client_cpu_us_per_op"])? })
    }

    /// Everybody's turn; every second round the port goes first, so that what a turn leaves behind is in both's figures.
    fn round(&self, (profile, reads, updates): (&str, &str, &str), round: usize) -> Result<Round, Failure> {
        let own = || {
            let [loops, usual] = DRIVERS.map(|(driver, _)| self.own(profile, driver, round));
            Ok::<_, Failure>([loops?, usual?])
        };
        let (own, peer) = if round.is_multiple_of(2) {
            (own()?, self.peer(reads, updates)?)
        } else {
            let peer = self.peer(reads, updates)?;
            (own()?, peer)
        };
        Ok(Round { own, peer, floor_us: self.floor.us(self.bench, &CLIENTS.to_string())? })
    }
}

/// A turn of the port's, of its CPU and what it said: totals every ten seconds, and at the end.
fn turn(cpu_us: f64, told: &str) -> Result<Turn, Failure> {
    let total = told.lines().rfind(|line| line.starts_with("TOTAL")).ok_or_else(|| format!("no totals in: {told}"))?;
    let count = behind(total, "Count:")?;
    Ok(Turn { per_s: count / behind(total, "Takes(s):")?, cpu_us: cpu_us / count })
}

/// Everybody's turn, one after the other.
struct Round {
    /// With each of the drivers.
    own: [Turn; 2],
    peer: Turn,
    /// CPU of a query of a minimal loop, µs.
    floor_us: f64,
}

/// What stands on the page of a profile with a driver, the first of which the goal is of.
fn line(profile: &str, nth: usize, rounds: &[Round]) -> Line {
    let over = |of: &dyn Fn(Turn, Turn) -> f64| {
        Spread::of(rounds.iter().map(|round| of(round.own[nth], round.peer)).collect())
    };
    let (cpu, rate) = (over(&|own, peer| own.cpu_us / peer.cpu_us), over(&|own, peer| own.per_s / peer.per_s));
    let [own_us, peer_us] = [over(&|own, _| own.cpu_us), over(&|_, peer| peer.cpu_us)].map(|cpu| cpu.median);
    let floor_us = Spread::of(rounds.iter().map(|round| round.floor_us).collect()).median;
    let driver = DRIVERS[nth].1;
    Line {
        what: format!(
            "YCSB {profile}, {CLIENTS} clients {driver}, MariaDB over TCP: client CPU per operation, ratio to go-ycsb"
        ),
        goal: if nth == 0 { format!("≤ {MOST_CPU}") } else { "reported".into() },
        measured: format!(
            "{}; {own_us:.1} µs over {peer_us:.1} µs; a query of a minimal loop {floor_us:.1} µs; operations per second {}",
            cpu.told(2),
            rate.told(2)
        ),
        met: (nth == 0).then_some(cpu.median <= MOST_CPU),
        command: "GO_YCSB=PROGRAM cargo run --release -p xtask -- bench ycsb-peers".into(),
    }
}

/// All in turns, profile by profile.
pub fn peers(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let contest = Contest::new(bench)?;
    contest.go_ycsb("load", "1", "0", 2)?;
    let mut lines = Vec::new();
    for (profile, reads, updates) in PROFILES {
        let mut rounds = Vec::new();
        for round in 0..REPEATS {
            rounds.push(contest.round((profile, reads, updates), round)?);
        }
        lines.extend((0..DRIVERS.len()).map(|nth| line(profile, nth, &rounds)));
    }
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
}
