//! TPC-C beside sysbench-tpcc and go-tpc: one server, a database each, in turns.
//!
//! Both are whoever measures' own: `SYSBENCH_TPCC` names the directory of Percona-Lab's scripts, `GO_TPC` the program
//! of PingCAP (`go install github.com/pingcap/go-tpc/cmd/go-tpc@latest`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::floor::OverTcp;
use super::measure::{Bench, Spread, number, phase};
use super::peers::{behind, free_port, named, spent};
use super::servers::{Cores, SYSBENCH, Server};
use super::{Failure, Line};

const WAREHOUSES: &str = "10";
const CLIENTS: &str = "8";
/// Loaders of each of the three. With two, an eighth of the host's CPUs was idle: while one draws rows, nobody writes its.
const LOADERS: &str = "4";
const REPEATS: usize = 3;
const WARMUP_S: u32 = 5;
const RUN_S: u32 = 20;
/// The most client CPU of a transaction, ratio to either.
const MOST_CPU: f64 = 0.35;
/// The same where rumba runs sysbench-tpcc's scripts unchanged, ratio to sysbench.
const MOST_SCRIPT_CPU: f64 = 0.6;
/// The least tpmC, ratio to sysbench-tpcc (plain) and go-tpc (batched).
const LEAST_RATES: [f64; 2] = [1.15, 1.0];
/// How much sooner the load is to end; or the server takes no more: so many percent of the host's CPUs are in use, and the
/// loaders have at most a tenth of that.
const LEAST_LOAD: f64 = 3.0;
const SATURATED_PERCENT: f64 = 90.0;
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
    /// What only rumba tells.
    own: Option<Own>,
}

/// What rumba tells of its own turn.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// What its load took of the CPUs.
    load: Took,
    /// How often a transaction waits for its server.
    round_trips: f64,
}

/// What was used of the host's CPUs in a load, by all and by the loaders, percent.
#[derive(Clone, Copy, Debug)]
struct Took {
    host: f64,
    loaders: f64,
}

/// Who runs Percona's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Sysbench,
    /// In its place, with this `--client-driver`.
    Rumba(&'static str),
}

/// One server and the programs that go to it.
struct Contest<'a> {
    bench: &'a Bench,
    port: u16,
    scripts: PathBuf,
    go_tpc: PathBuf,
    floor: OverTcp,
    _server: Server,
}

impl<'a> Contest<'a> {
    fn new(bench: &'a Bench) -> Result<Self, Failure> {
        let scripts = named("SYSBENCH_TPCC", "sysbench-tpcc")?;
        let go_tpc = named("GO_TPC", "go-tpc")?;
        let port = free_port()?;
        let settings = [
            &format!("--port={port}"),
            "--bind-address=127.0.0.1",
            // The data of all of them at once: nobody is to find its own pushed out by another's load.
            "--innodb-buffer-pool-size=6G",
            "--innodb-log-file-size=4G",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-autoinc-lock-mode=2",
        ];
        let server = Server::mariadb_with(bench, &Cores::FREE, &settings)?;
        server.await_mariadb(
            "CREATE USER bench@'%'; GRANT ALL ON *.* TO bench@'%'; \
             CREATE DATABASE peer; CREATE DATABASE gotpc; CREATE DATABASE floor",
        )?;
        Ok(Self { bench, port, scripts, go_tpc, floor: OverTcp::new(port, "floor")?, _server: server })
    }

    /// rumba's own turn: it loads each time, and is warm before it is measured.
    fn rumba(&self, statements: &str, round: usize) -> Result<Turn, Failure> {
        let server = format!("server=mysql://bench@127.0.0.1:{}/own", self.port);
        let set = [
            server,
            format!("warehouses={WAREHOUSES}"),
            format!("clients={CLIENTS}"),
            format!("load_clients={LOADERS}"),
            // `auto` takes threads for so few clients, for throughput; most of the goals are of the client's CPU.
            "driver=loops".into(),
            format!("statements={statements}"),
            format!("warmup={WARMUP_S}s"),
            "loops=1".into(),
            format!("loop={RUN_S}s"),
        ];
        // A group is one request of several texts.
        let text = (statements == "grouped").then_some("innodb.prepared=false");
        let set = set.iter().map(String::as_str).chain(text).flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["tpcc", "--engine", "innodb"].into_iter().chain(set).collect();
        let name = format!("tpcc-{statements}-{round}");
        let report = self.bench.report(&name, &args)?;
        let trial = report["trials"].as_array().and_then(|trials| trials.last()).ok_or("a report without trials")?;
        let (load, loops) = (phase(trial, "load")?, phase(trial, "loops")?);
        Ok(Turn {
            tpm: number(&trial["charged"]["tpmC"])?,
            cpu_us: number(&loops["client_cpu_us_per_op"])?,
            load_s: number(&load["seconds"])?,
            own: Some(Own {
                load: Took {
                    host: number(&load["host_cpu_percent"])?,
                    loaders: number(&load["client_cpu_us_per_op"])? * number(&load["ops_per_s"])? / 1e4 / cores(),
                },
                round_trips: round_trips(loops)?,
            }),
        })
    }

    /// Percona's scripts, by sysbench or by rumba in its place.
    fn scripts(&self, program: Runs, word: &str, threads: &str, seconds: u32) -> Result<(f64, String), Failure> {
        let mut command = match program {
            Runs::Sysbench => Command::new(SYSBENCH),
            Runs::Rumba(_) => Command::new(self.bench.rumba()),
        };
        if let Runs::Rumba(driver) = program {
            command.args([SYSBENCH, &format!("--client-driver={driver}")]);
        }
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

    /// A turn of the scripts, warm first, as rumba's own is.
    fn scripts_turn(&self, program: Runs, load_s: f64) -> Result<Turn, Failure> {
        self.scripts(program, "run", CLIENTS, WARMUP_S)?;
        let (cpu, told) = self.scripts(program, "run", CLIENTS, RUN_S)?;
        let transactions = behind(&told, "transactions:")?;
        // The words of sysbench 1.0, and of 1.1, as which rumba speaks.
        let seconds = behind(&told, "total time:").or_else(|_| behind(&told, "time elapsed:"))?;
        let tpm = transactions / seconds * 60.0 * SYSBENCH_NEW_ORDERS;
        Ok(Turn { tpm, cpu_us: cpu / transactions, load_s, own: None })
    }

    /// The turns of both peers.
    fn peers(&self, loads: [f64; 2]) -> Result<[Turn; 2], Failure> {
        let sysbench = self.scripts_turn(Runs::Sysbench, loads[0])?;
        self.go_tpc("run", CLIENTS, &["--time", &format!("{WARMUP_S}s")])?;
        let (cpu, told) = self.go_tpc("run", CLIENTS, &["--time", &format!("{RUN_S}s")])?;
        let total = behind(&told, "tpmTotal:")? / 60.0 * f64::from(RUN_S);
        let go = Turn { tpm: behind(&told, "tpmC:")?, cpu_us: cpu / total, load_s: loads[1], own: None };
        Ok([sysbench, go])
    }

    fn loads(&self) -> Result<[f64; 2], Failure> {
        let took = |load: &dyn Fn() -> Result<(f64, String), Failure>| -> Result<f64, Failure> {
            let start = Instant::now();
            load()?;
            Ok(start.elapsed().as_secs_f64())
        };
        let sysbench = took(&|| self.scripts(Runs::Sysbench, "prepare", LOADERS, 1))?;
        let go = took(&|| self.go_tpc("prepare", LOADERS, &["--no-check"]))?;
        Ok([sysbench, go])
    }
}

/// Everybody's turn, one after the other.
struct Round {
    plain: Turn,
    batched: Turn,
    /// With fewer round trips than either peer.
    grouped: Turn,
    sysbench: Turn,
    go: Turn,
    /// rumba in sysbench's place, event loops and the usual driver.
    in_its_place: [Turn; 2],
    /// CPU of a query of a minimal loop, µs.
    floor_us: f64,
}

/// A figure of a turn.
type Figure<'a> = &'a dyn Fn(Turn) -> f64;

/// Picks the two turns of a round that are set against each other.
type Pick<'a> = &'a dyn Fn(&Round) -> [Turn; 2];

/// A figure of two turns of a round over each other, round by round, with both beside it.
fn told(rounds: &[Round], turns: Pick<'_>, figure: Figure<'_>, unit: &str) -> (f64, String) {
    let over =
        |of: &dyn Fn([f64; 2]) -> f64| Spread::of(rounds.iter().map(|round| of(turns(round).map(figure))).collect());
    let ratio = over(&|[own, peer]| own / peer);
    let [own, peer] = [over(&|[own, _]| own), over(&|[_, peer]| peer)].map(|spread| spread.median);
    (ratio.median, format!("{}; {own:.0}{unit} over {peer:.0}{unit}", ratio.told(2)))
}

fn line(what: String, goal: String, measured: String, is_met: Option<bool>) -> Line {
    Line {
        what: format!("TPC-C, {WAREHOUSES} warehouses, {CLIENTS} clients, MariaDB over TCP: {what}"),
        goal,
        measured,
        met: is_met,
        command: "SYSBENCH_TPCC=DIR GO_TPC=PROGRAM cargo run --release -p xtask -- bench tpcc-peers".into(),
    }
}

/// All programs in turns, round after round.
pub fn peers(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let contest = Contest::new(bench)?;
    let loads = contest.loads()?;
    let mut rounds = Vec::new();
    for round in 0..REPEATS {
        let (plain, batched) = (contest.rumba("plain", round)?, contest.rumba("batched", round)?);
        let grouped = contest.rumba("grouped", round)?;
        let in_its_place = |driver| contest.scripts_turn(Runs::Rumba(driver), loads[0]);
        let in_its_place = [in_its_place("loops")?, in_its_place("auto")?];
        let [sysbench, go] = contest.peers(loads)?;
        let floor_us = contest.floor.us(bench, CLIENTS)?;
        rounds.push(Round { plain, batched, grouped, sysbench, go, in_its_place, floor_us });
    }
    // Each style is held against the peer whose statements are alike.
    let [plain_rate, batched_rate] = LEAST_RATES.map(Some);
    let pairs: [(&str, Option<f64>, Pick<'_>); 4] = [
        ("plain, ratio to sysbench-tpcc", plain_rate, &|round| [round.plain, round.sysbench]),
        ("plain, ratio to go-tpc", None, &|round| [round.plain, round.go]),
        ("batched, ratio to sysbench-tpcc", None, &|round| [round.batched, round.sysbench]),
        ("batched, ratio to go-tpc", batched_rate, &|round| [round.batched, round.go]),
    ];
    let mut lines = Vec::new();
    for (name, least, turns) in pairs {
        let (ratio, measured) = told(&rounds, turns, &|turn| turn.cpu_us, " µs");
        let what = format!("client CPU per transaction, {name}");
        lines.push(line(what, format!("≤ {MOST_CPU}"), measured, Some(ratio <= MOST_CPU)));
        let (ratio, measured) = told(&rounds, turns, &|turn| turn.tpm, "");
        let goal = least.map_or("reported".into(), |least| format!("≥ {least}"));
        lines.push(line(format!("new orders per minute, {name}"), goal, measured, least.map(|least| ratio >= least)));
    }
    // What neither peer does, and no goal is of: it tells how much of the CPU is that of round trips.
    let turns: Pick<'_> = &|round| [round.grouped, round.go];
    let figures: [(&str, Figure<'_>, &str); 2] =
        [("client CPU per transaction", &|turn| turn.cpu_us, " µs"), ("new orders per minute", &|turn| turn.tpm, "")];
    lines.extend(figures.map(|(name, figure, unit)| {
        let (_, measured) = told(&rounds, turns, figure, unit);
        line(format!("{name}, grouped, ratio to go-tpc"), "reported".into(), measured, None)
    }));
    lines.push(floor(&rounds));
    lines.extend(scripts(&rounds));
    lines.push(load(&rounds));
    Ok(lines)
}

/// What rumba makes of Percona's scripts: what the goal is of with event loops, which take the least CPU, and beside it with
/// the driver that it takes where nobody says.
fn scripts(rounds: &[Round]) -> Vec<Line> {
    let drivers = ["in event loops", "with the usual driver"].into_iter().enumerate();
    let lines = drivers.flat_map(|(nth, driver)| {
        let turns = move |round: &Round| [round.in_its_place[nth], round.sysbench];
        let of = format!("sysbench-tpcc's scripts, unchanged, {driver}");
        let (ratio, measured) = told(rounds, &turns, &|turn| turn.cpu_us, " µs");
        let (goal, is_met) = match nth {
            0 => (format!("≤ {MOST_SCRIPT_CPU}"), Some(ratio <= MOST_SCRIPT_CPU)),
            _ => ("reported".to_owned(), None),
        };
        let cpu = line(format!("{of}, client CPU per transaction, ratio to sysbench"), goal, measured, is_met);
        let (_, measured) = told(rounds, &turns, &|turn| turn.tpm, "");
        [cpu, line(format!("{of}, new orders per minute, ratio to sysbench"), "reported".into(), measured, None)]
    });
    lines.collect()
}

/// What no client is below that waits as often as *plain* does.
fn floor(rounds: &[Round]) -> Line {
    let over = |of: &dyn Fn(&Round, Own) -> f64| {
        Spread::of(rounds.iter().filter_map(|round| Some(of(round, round.plain.own?))).collect())
    };
    let ratio = over(&|round, own| round.plain.cpu_us / (own.round_trips * round.floor_us));
    let [trips, each] = [over(&|_, own| own.round_trips), over(&|round, _| round.floor_us)].map(|spread| spread.median);
    let [to_sysbench, to_go] = [
        over(&|round, own| own.round_trips * round.floor_us / round.sysbench.cpu_us),
        over(&|round, own| own.round_trips * round.floor_us / round.go.cpu_us),
    ];
    line(
        "client CPU per transaction, plain, ratio to as many queries of a minimal loop".into(),
        "reported".into(),
        format!(
            "{}; {trips:.1} × {each:.1} µs, which is {} of sysbench-tpcc's and {} of go-tpc's",
            ratio.told(2),
            to_sysbench.told(2),
            to_go.told(2)
        ),
        None,
    )
}

/// How often a transaction waits: once for each statement, but that its first goes with what begins it.
fn round_trips(loops: &serde_json::Value) -> Result<f64, Failure> {
    let statements = ["read_statements_per_op", "write_statements_per_op", "other_statements_per_op"];
    let each = statements.iter().map(|name| number(&loops[*name])).sum::<Result<f64, Failure>>()?;
    Ok(each - 1.0)
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

fn load(rounds: &[Round]) -> Line {
    let turns = |round: &Round| [round.go, round.plain];
    let (ratio, measured) = told(rounds, &turns, &|turn| turn.load_s, " s");
    let over = |of: &dyn Fn(Took) -> f64| {
        Spread::of(rounds.iter().filter_map(|round| Some(of(round.plain.own?.load))).collect()).median
    };
    let (host, loaders) = (over(&|took| took.host), over(&|took| took.loaders));
    let is_saturated = host >= SATURATED_PERCENT && loaders <= host / 10.0;
    let what = format!("load by {LOADERS} loaders each, go-tpc's time over rumba's");
    let goal = format!("≥ {LEAST_LOAD:.0}, or the server saturated");
    let measured = format!("{measured}; of the host's CPUs {host:.0}% in use, {loaders:.0}% by the loaders");
    line(what, goal, measured, Some(ratio >= LEAST_LOAD || is_saturated))
}
