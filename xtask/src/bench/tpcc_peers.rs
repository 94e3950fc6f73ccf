//! TPC-C beside sysbench-tpcc and go-tpc: one server, a database each, in turns.
//!
//! Both are whoever measures' own: `SYSBENCH_TPCC` names the directory of Percona-Lab's scripts, `GO_TPC` the program
//! of PingCAP (`go install github.com/pingcap/go-tpc/cmd/go-tpc@latest`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::measure::{Bench, Spread, number, phase};
use super::servers::{Cores, SYSBENCH, Server, Whose, cpu_us};
use super::{Failure, Line};

const WAREHOUSES: &str = "10";
const CLIENTS: &str = "8";
const REPEATS: usize = 3;
const WARMUP_S: u32 = 5;
const RUN_S: u32 = 20;
/// The most client CPU of a transaction, ratio to either.
const MOST_CPU: f64 = 0.35;
/// The least tpmC, ratio to sysbench-tpcc (plain) and go-tpc (batched).
const LEAST_RATES: [f64; 2] = [1.15, 1.0];
/// How much sooner the load is to end.
const LEAST_LOAD: f64 = 3.0;
/// Of 23 transactions of sysbench-tpcc, so many are new orders.
const SYSBENCH_NEW_ORDERS: f64 = 10.0 / 23.0;

/// What a program came to in its turn.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// New orders per minute.
    tpm: f64,
    /// Client CPU time of a transaction, of any type, µs.
    cpu_us: f64,
    /// How long its load took.
    load_s: f64,
}

/// One server and the programs that go to it.
struct Contest<'a> {
    bench: &'a Bench,
    port: u16,
    scripts: PathBuf,
    go_tpc: PathBuf,
    _server: Server,
}

fn named(variable: &str, what: &str) -> Result<PathBuf, Failure> {
    let told = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    told.ok_or_else(|| format!("{what} is not here: name it by {variable}").into())
}

/// A port that nobody listens on at this moment.
fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What the process and those it has started spent while `command` ran, and what it said.
fn spent(command: &mut Command) -> Result<(f64, String), Failure> {
    let before = cpu_us("self", Whose::Children)?;
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let cpu = cpu_us("self", Whose::Children)? - before;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{command:?}: {told}{}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok((cpu, told))
}

/// The number behind a word in what a program said.
fn behind(told: &str, word: &str) -> Result<f64, Failure> {
    let rest = told.rsplit_once(word).ok_or_else(|| format!("{word} is not in: {told}"))?.1;
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    digits.parse().map_err(|error| format!("{word} {digits}: {error}").into())
}

impl<'a> Contest<'a> {
    fn new(bench: &'a Bench) -> Result<Self, Failure> {
        let scripts = named("SYSBENCH_TPCC", "sysbench-tpcc")?;
        let go_tpc = named("GO_TPC", "go-tpc")?;
        let port = free_port()?;
        let settings = [
            &format!("--port={port}"),
            "--bind-address=127.0.0.1",
            "--innodb-buffer-pool-size=2G",
            "--innodb-log-file-size=1G",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-autoinc-lock-mode=2",
        ];
        let server = Server::mariadb_with(bench, &Cores::FREE, &settings)?;
        server.await_mariadb(
            "CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'; CREATE DATABASE peer; CREATE DATABASE gotpc",
        )?;
        Ok(Self { bench, port, scripts, go_tpc, _server: server })
    }

    /// rumba's own turn: it loads each time, and is warm before it is measured.
    fn rumba(&self, statements: &str, round: usize) -> Result<Turn, Failure> {
        let server = format!("server=mysql://bench@127.0.0.1:{}/own", self.port);
        let set = [
            server,
            format!("warehouses={WAREHOUSES}"),
            format!("clients={CLIENTS}"),
            "load_clients=2".into(),
            format!("statements={statements}"),
            format!("warmup={WARMUP_S}s"),
            "loops=1".into(),
            format!("loop={RUN_S}s"),
        ];
        let set = set.iter().flat_map(|set| ["--set", set.as_str()]);
        let args: Vec<&str> = ["tpcc", "--engine", "innodb"].into_iter().chain(set).collect();
        let name = format!("tpcc-{statements}-{round}");
        let report = self.bench.report(&name, &args)?;
        let trial = report["trials"].as_array().and_then(|trials| trials.last()).ok_or("a report without trials")?;
        let (load, loops) = (phase(trial, "load")?, phase(trial, "loops")?);
        Ok(Turn {
            tpm: number(&loops["tpmC"])?,
            cpu_us: number(&loops["client_cpu_us_per_op"])?,
            load_s: number(&load["seconds"])?,
        })
    }

    fn sysbench_tpcc(&self, word: &str, threads: &str, seconds: u32) -> Result<(f64, String), Failure> {
        let mut command = Command::new(SYSBENCH);
        command.current_dir(&self.scripts).arg("./tpcc.lua").args([
            "--mysql-host=127.0.0.1".to_owned(),
            format!("--mysql-port={}", self.port),
            "--mysql-user=bench".into(),
            "--mysql-db=peer".into(),
            "--tables=1".into(),
            format!("--scale={WAREHOUSES}"),
            "--use_fk=0".into(),
            format!("--threads={threads}"),
            format!("--time={seconds}"),
        ]);
        spent(command.arg(word))
    }

    fn go_tpc(&self, word: &str, threads: &str, more: &[&str]) -> Result<(f64, String), Failure> {
        let mut command = Command::new(&self.go_tpc);
        command.args(["tpcc", word, "--warehouses", WAREHOUSES, "-T", threads, "-H", "127.0.0.1", "-U", "bench"]);
        spent(command.args(["-D", "gotpc", "-P", &self.port.to_string()]).args(more))
    }

    /// The turns of both peers: each warm first, as rumba is.
    fn peers(&self, loads: [f64; 2]) -> Result<[Turn; 2], Failure> {
        self.sysbench_tpcc("run", CLIENTS, WARMUP_S)?;
        let (cpu, told) = self.sysbench_tpcc("run", CLIENTS, RUN_S)?;
        let transactions = behind(&told, "transactions:")?;
        let seconds = behind(&told, "total time:")?;
        let sysbench = Turn {
            tpm: transactions / seconds * 60.0 * SYSBENCH_NEW_ORDERS,
            cpu_us: cpu / transactions,
            load_s: loads[0],
        };
        self.go_tpc("run", CLIENTS, &["--time", &format!("{WARMUP_S}s")])?;
        let (cpu, told) = self.go_tpc("run", CLIENTS, &["--time", &format!("{RUN_S}s")])?;
        let total = behind(&told, "tpmTotal:")? / 60.0 * f64::from(RUN_S);
        let go = Turn { tpm: behind(&told, "tpmC:")?, cpu_us: cpu / total, load_s: loads[1] };
        Ok([sysbench, go])
    }

    fn loads(&self) -> Result<[f64; 2], Failure> {
        let took = |load: &dyn Fn() -> Result<(f64, String), Failure>| -> Result<f64, Failure> {
            let start = Instant::now();
            load()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let sysbench = took(&|| self.sysbench_tpcc("prepare", "2", 1))?;
        let go = took(&|| self.go_tpc("prepare", "2", &["--no-check"]))?;
        Ok([sysbench, go])
    }
}

/// All programs in turns, round after round.
pub fn peers(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let contest = Contest::new(bench)?;
    let loads = contest.loads()?;
    let mut rounds: Vec<[Turn; 4]> = Vec::new();
    for round in 0..REPEATS {
        let (plain, batched) = (contest.rumba("plain", round)?, contest.rumba("batched", round)?);
        let [sysbench, go] = contest.peers(loads)?;
        rounds.push([plain, batched, sysbench, go]);
    }
    Ok(lines(&rounds))
}

fn lines(rounds: &[[Turn; 4]]) -> Vec<Line> {
    let over = |of: &dyn Fn(&[Turn; 4]) -> f64| Spread::of(rounds.iter().map(of).collect());
    let line = |what: String, goal: String, measured: String, is_met: Option<bool>| Line {
        what: format!("TPC-C, {WAREHOUSES} warehouses, {CLIENTS} clients, MariaDB over TCP: {what}"),
        goal,
        measured,
        met: is_met,
        command: "SYSBENCH_TPCC=DIR GO_TPC=PROGRAM cargo run --release -p xtask -- bench tpcc-peers".into(),
    };
    let mut lines = Vec::new();
    for (own, style) in ["plain", "batched"].into_iter().enumerate() {
        for (peer, name) in [(2, "sysbench-tpcc"), (3, "go-tpc")] {
            let ratio = over(&|round| round[own].cpu_us / round[peer].cpu_us);
            let [own_us, peer_us] = [over(&|round| round[own].cpu_us), over(&|round| round[peer].cpu_us)];
            lines.push(line(
                format!("client CPU per transaction, {style}, ratio to {name}"),
                format!("≤ {MOST_CPU}"),
                format!("{}; {:.0} µs over {:.0} µs", ratio.told(2), own_us.median, peer_us.median),
                Some(ratio.median <= MOST_CPU),
            ));
            let ratio = over(&|round| round[own].tpm / round[peer].tpm);
            let [own_tpm, peer_tpm] = [over(&|round| round[own].tpm), over(&|round| round[peer].tpm)];
            // Each style is held against the peer whose statements are alike.
            let goal = (own + 2 == peer).then(|| LEAST_RATES[own]);
            lines.push(line(
                format!("new orders per minute, {style}, ratio to {name}"),
                goal.map_or("reported".into(), |goal| format!("≥ {goal}")),
                format!("{}; {:.0} over {:.0}", ratio.told(2), own_tpm.median, peer_tpm.median),
                goal.map(|goal| ratio.median >= goal),
            ));
        }
    }
    let ratio = over(&|round| round[3].load_s / round[0].load_s);
    let told = format!(
        "{}; {:.1} s, go-tpc {:.1} s, sysbench-tpcc {:.1} s",
        ratio.told(1),
        over(&|round| round[0].load_s).median,
        rounds[0][3].load_s,
        rounds[0][2].load_s
    );
    let goal = format!("≥ {LEAST_LOAD:.0} times as fast as go-tpc's");
    lines.push(line("load, two loaders each".into(), goal, told, Some(ratio.median >= LEAST_LOAD)));
    lines
}
