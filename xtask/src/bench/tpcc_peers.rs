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
use super::servers::{Cores, SYSBENCH, Server, Status};
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
    /// Statements of a transaction, with those that begin and end it, and those of what was tried again or given up.
    statements: f64,
    /// How often a transaction waits for its server; nobody counts it where statements share a round trip.
    round_trips: Option<f64>,
    /// How long its load took.
    load_s: f64,
    /// What its load took of the CPUs, which only rumba tells.
    load: Option<Took>,
}

/// What was used of the host's CPUs in a load, by all and by the loaders, percent.
#[derive(Clone, Copy, Debug)]
struct Took {
    host: f64,
    loaders: f64,
}

/// What the server was asked in a run, by clients that waited for the answer.
///
/// `Questions` counts each statement that a client sends, as text or prepared before (COM_QUERY, COM_STMT_EXECUTE), where
/// one text has several, too. It leaves out pings, and that statements are prepared and closed (COM_STMT_PREPARE,
/// COM_STMT_CLOSE), which go-tpc does once a connection and `Queries` counts. The `Com_` counters are of kinds: what is
/// executed prepared is in two of them. Pings (COM_PING), of which go-tpc waits for one before each transaction, are in
/// `Com_admin_commands`.
///
/// What a program says as it connects and leaves is counted, and what this asks: a few dozen among hundreds of thousands.
#[derive(Clone, Copy, Debug)]
struct Asked {
    statements: f64,
    pings: f64,
}

impl Asked {
    /// What came between two moments.
    fn between(before: &Status, after: &Status) -> Result<Self, Failure> {
        let grown = |name: &str| Ok::<_, Failure>(after.counter(name)? - before.counter(name)?);
        Ok(Self { statements: grown("Questions")?, pings: grown("Com_admin_commands")? })
    }
}

/// What a run of Percona's scripts or of go-tpc came to.
#[derive(Debug)]
struct Run {
    /// Client CPU time, µs.
    cpu_us: f64,
    /// What it said.
    told: String,
    asked: Asked,
}

impl Run {
    /// As a turn with so many transactions, and new orders per minute.
    fn turn(&self, transactions: f64, tpm: f64, load_s: f64) -> Turn {
        let Asked { statements, pings } = self.asked;
        Turn {
            tpm,
            cpu_us: self.cpu_us / transactions,
            statements: statements / transactions,
            round_trips: Some((statements + pings) / transactions),
            load_s,
            load: None,
        }
    }
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
    server: Server,
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
        Ok(Self { bench, port, scripts, go_tpc, floor: OverTcp::new(port, "floor")?, server })
    }

    /// rumba's own turn: it loads each time, and is warm before it is measured.
    fn rumba(&self, style: &str, round: usize) -> Result<Turn, Failure> {
        let server = format!("server=mysql://bench@127.0.0.1:{}/own", self.port);
        let set = [
            server,
            format!("warehouses={WAREHOUSES}"),
            format!("clients={CLIENTS}"),
            format!("load_clients={LOADERS}"),
            // `auto` takes threads for so few clients, for throughput; most of the goals are of the client's CPU.
            "driver=loops".into(),
            format!("statements={style}"),
            format!("warmup={WARMUP_S}s"),
            "loops=1".into(),
            format!("loop={RUN_S}s"),
        ];
        // A group is one request of several texts.
        let is_grouped = style == "grouped";
        let text = is_grouped.then_some("innodb.prepared=false");
        let set = set.iter().map(String::as_str).chain(text).flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["tpcc", "--engine", "innodb"].into_iter().chain(set).collect();
        let report = self.bench.report(&format!("tpcc-{style}-{round}"), &args)?;
        let trial = report["trials"].as_array().and_then(|trials| trials.last()).ok_or("a report without trials")?;
        let (load, loops) = (phase(trial, "load")?, phase(trial, "loops")?);
        let statements = own_statements(loops)?;
        Ok(Turn {
            tpm: number(&trial["charged"]["tpmC"])?,
            cpu_us: number(&loops["client_cpu_us_per_op"])?,
            statements,
            // One for each statement, but that the first goes with what begins the transaction.
            round_trips: (!is_grouped).then_some(statements - 1.0),
            load_s: number(&load["seconds"])?,
            load: Some(Took {
                host: number(&load["host_cpu_percent"])?,
                loaders: number(&load["client_cpu_us_per_op"])? * number(&load["ops_per_s"])? / 1e4 / cores(),
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

    /// A run that counts, and what the server was asked meanwhile.
    fn counted(&self, run: impl FnOnce() -> Result<(f64, String), Failure>) -> Result<Run, Failure> {
        let before = self.server.mariadb_status()?;
        let (cpu_us, told) = run()?;
        Ok(Run { cpu_us, told, asked: Asked::between(&before, &self.server.mariadb_status()?)? })
    }

    /// A turn of the scripts, warm first, as rumba's own is.
    fn scripts_turn(&self, program: Runs, load_s: f64) -> Result<Turn, Failure> {
        self.scripts(program, "run", CLIENTS, WARMUP_S)?;
        let run = self.counted(|| self.scripts(program, "run", CLIENTS, RUN_S))?;
        let transactions = behind(&run.told, "transactions:")?;
        // The words of sysbench 1.0, and of 1.1, as which rumba speaks.
        let seconds = behind(&run.told, "total time:").or_else(|_| behind(&run.told, "time elapsed:"))?;
        Ok(run.turn(transactions, transactions / seconds * 60.0 * SYSBENCH_NEW_ORDERS, load_s))
    }

    /// A turn of go-tpc, likewise.
    fn go_tpc_turn(&self, load_s: f64) -> Result<Turn, Failure> {
        self.go_tpc("run", CLIENTS, &["--time", &format!("{WARMUP_S}s")])?;
        let run = self.counted(|| self.go_tpc("run", CLIENTS, &["--time", &format!("{RUN_S}s")]))?;
        let transactions = behind(&run.told, "tpmTotal:")? / 60.0 * f64::from(RUN_S);
        Ok(run.turn(transactions, behind(&run.told, "tpmC:")?, load_s))
    }

    /// Everybody's turn, one after the other.
    fn round(&self, nth: usize, loads: [f64; 2]) -> Result<Round, Failure> {
        let scripts = |program| self.scripts_turn(program, loads[0]);
        Ok(Round {
            plain: self.rumba("plain", nth)?,
            batched: self.rumba("batched", nth)?,
            grouped: self.rumba("grouped", nth)?,
            in_its_place: [scripts(Runs::Rumba("loops"))?, scripts(Runs::Rumba("auto"))?],
            sysbench: scripts(Runs::Sysbench)?,
            go: self.go_tpc_turn(loads[1])?,
            floor_us: self.floor.us(self.bench, CLIENTS)?,
        })
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

/// What everybody came to, in the order of the turns.
struct Round {
    plain: Turn,
    batched: Turn,
    /// With fewer round trips than either peer.
    grouped: Turn,
    /// rumba in sysbench's place, event loops and the usual driver.
    in_its_place: [Turn; 2],
    sysbench: Turn,
    go: Turn,
    /// CPU of a query of a minimal loop, µs.
    floor_us: f64,
}

/// A figure of a turn, and how it is told.
#[derive(Clone, Copy)]
struct Figure {
    name: &'static str,
    of: fn(Turn) -> Option<f64>,
    unit: &'static str,
    digits: usize,
}

const CPU: Figure =
    Figure { name: "client CPU per transaction", of: |turn| Some(turn.cpu_us), unit: " µs", digits: 0 };
const RATE: Figure = Figure { name: "new orders per minute", of: |turn| Some(turn.tpm), unit: "", digits: 0 };
const STATEMENTS: Figure =
    Figure { name: "statements per transaction", of: |turn| Some(turn.statements), unit: "", digits: 1 };
const ROUND_TRIPS: Figure = Figure { name: "round trips", of: |turn| turn.round_trips, unit: "", digits: 1 };
const LOAD_TIME: Figure = Figure { name: "time", of: |turn| Some(turn.load_s), unit: " s", digits: 0 };

/// Picks the two turns of a round that are set against each other.
type Pick<'a> = &'a dyn Fn(&Round) -> [Turn; 2];

/// A figure of two turns of a round over each other, round by round, with both beside it.
fn told(rounds: &[Round], turns: Pick<'_>, figure: Figure) -> (f64, String) {
    let Figure { of, unit, digits, .. } = figure;
    let pairs = rounds.iter().filter_map(|round| {
        let [own, peer] = turns(round).map(of);
        Some((own?, peer?))
    });
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let over = |of: &dyn Fn((f64, f64)) -> f64| Spread::of(pairs.iter().copied().map(of).collect());
    let ratio = over(&|(own, peer)| own / peer);
    let [own, peer] = [over(&|(own, _)| own), over(&|(_, peer)| peer)].map(|spread| spread.median);
    (ratio.median, format!("{}; {own:.digits$}{unit} over {peer:.digits$}{unit}", ratio.told(2)))
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

/// What no goal is of.
fn reported(what: String, measured: String) -> Line {
    line(what, "reported".into(), measured, None)
}

/// All programs in turns, round after round.
pub fn peers(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let contest = Contest::new(bench)?;
    let loads = contest.loads()?;
    let rounds = (0..REPEATS).map(|nth| contest.round(nth, loads)).collect::<Result<Vec<_>, _>>()?;
    let mut lines = styles(&rounds);
    lines.extend(grouped(&rounds));
    lines.push(floor(&rounds, "plain", |round| round.plain));
    lines.push(floor(&rounds, "batched", |round| round.batched));
    lines.extend(scripts(&rounds));
    lines.push(load(&rounds));
    Ok(lines)
}

/// Each style beside both peers, and held against the one whose statements are alike; how many those are is told there.
fn styles(rounds: &[Round]) -> Vec<Line> {
    let [plain_rate, batched_rate] = LEAST_RATES.map(Some);
    let pairs: [(&str, Option<f64>, Pick<'_>); 4] = [
        ("plain, ratio to sysbench-tpcc", plain_rate, &|round| [round.plain, round.sysbench]),
        ("plain, ratio to go-tpc", None, &|round| [round.plain, round.go]),
        ("batched, ratio to sysbench-tpcc", None, &|round| [round.batched, round.sysbench]),
        ("batched, ratio to go-tpc", batched_rate, &|round| [round.batched, round.go]),
    ];
    let mut lines = Vec::new();
    for (name, least, turns) in pairs {
        let (ratio, measured) = told(rounds, turns, CPU);
        let what = format!("{}, {name}", CPU.name);
        lines.push(line(what, format!("≤ {MOST_CPU}"), measured, Some(ratio <= MOST_CPU)));
        let (ratio, measured) = told(rounds, turns, RATE);
        let goal = least.map_or("reported".into(), |least| format!("≥ {least}"));
        lines.push(line(format!("{}, {name}", RATE.name), goal, measured, least.map(|least| ratio >= least)));
        if least.is_some() {
            let [(_, statements), (_, trips)] = [STATEMENTS, ROUND_TRIPS].map(|figure| told(rounds, turns, figure));
            let measured = format!("{statements}; {} {trips}", ROUND_TRIPS.name);
            lines.push(reported(format!("{}, {name}", STATEMENTS.name), measured));
        }
    }
    lines
}

/// What neither peer does, and no goal is of: it tells how much of the CPU is that of round trips.
fn grouped(rounds: &[Round]) -> [Line; 3] {
    [CPU, RATE, STATEMENTS].map(|figure| {
        let (_, measured) = told(rounds, &|round| [round.grouped, round.go], figure);
        reported(format!("{}, grouped, ratio to go-tpc", figure.name), measured)
    })
}

/// What rumba makes of Percona's scripts: what the goal is of with event loops, which take the least CPU, and beside it with
/// the driver that it takes where nobody says.
fn scripts(rounds: &[Round]) -> Vec<Line> {
    let drivers = ["in event loops", "with the usual driver"].into_iter().enumerate();
    let lines = drivers.flat_map(|(nth, driver)| {
        let turns = move |round: &Round| [round.in_its_place[nth], round.sysbench];
        let what = |figure: Figure| {
            format!("sysbench-tpcc's scripts, unchanged, {driver}, {}, ratio to sysbench", figure.name)
        };
        let (ratio, measured) = told(rounds, &turns, CPU);
        let cpu = match nth {
            0 => line(what(CPU), format!("≤ {MOST_SCRIPT_CPU}"), measured, Some(ratio <= MOST_SCRIPT_CPU)),
            _ => reported(what(CPU), measured),
        };
        let [rate, statements] =
            [RATE, STATEMENTS].map(|figure| reported(what(figure), told(rounds, &turns, figure).1));
        [cpu, rate, statements]
    });
    lines.collect()
}

/// What a minimal loop takes that waits as often as a style does, beside the style and beside both peers.
fn floor(rounds: &[Round], style: &str, of: fn(&Round) -> Turn) -> Line {
    let over = |figure: &dyn Fn(&Round, f64) -> f64| {
        Spread::of(rounds.iter().filter_map(|round| Some(figure(round, of(round).round_trips?))).collect())
    };
    let ratio = over(&|round, trips| of(round).cpu_us / (trips * round.floor_us));
    let [trips, each] = [over(&|_, trips| trips), over(&|round, _| round.floor_us)].map(|spread| spread.median);
    let [to_sysbench, to_go] = [
        over(&|round, trips| trips * round.floor_us / round.sysbench.cpu_us),
        over(&|round, trips| trips * round.floor_us / round.go.cpu_us),
    ];
    reported(
        format!("{}, {style}, ratio to as many queries of a minimal loop", CPU.name),
        format!(
            "{}; {trips:.1} × {each:.1} µs, which is {} of sysbench-tpcc's and {} of go-tpc's",
            ratio.told(2),
            to_sysbench.told(2),
            to_go.told(2)
        ),
    )
}

/// Statements of a transaction, as rumba's clients count what they send: the server's counters would have those of the load
/// and of the checks as well, which are of the same command.
fn own_statements(loops: &serde_json::Value) -> Result<f64, Failure> {
    let kinds = ["read_statements_per_op", "write_statements_per_op", "other_statements_per_op"];
    kinds.iter().map(|name| number(&loops[*name])).sum()
}

fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64)
}

fn load(rounds: &[Round]) -> Line {
    let (ratio, measured) = told(rounds, &|round| [round.go, round.plain], LOAD_TIME);
    let over = |of: &dyn Fn(Took) -> f64| {
        Spread::of(rounds.iter().filter_map(|round| Some(of(round.plain.load?))).collect()).median
    };
    let (host, loaders) = (over(&|took| took.host), over(&|took| took.loaders));
    let is_saturated = host >= SATURATED_PERCENT && loaders <= host / 10.0;
    let what = format!("load by {LOADERS} loaders each, go-tpc's {} over rumba's", LOAD_TIME.name);
    let goal = format!("≥ {LEAST_LOAD:.0}, or the server saturated");
    let measured = format!("{measured}; of the host's CPUs {host:.0}% in use, {loaders:.0}% by the loaders");
    line(what, goal, measured, Some(ratio >= LEAST_LOAD || is_saturated))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A turn of 100 transactions.
    fn turn(cpu_us: f64, statements: f64, pings: f64) -> Turn {
        Run { cpu_us, told: String::new(), asked: Asked { statements, pings } }.turn(100.0, 0.0, 0.0)
    }

    /// Of styles and peers alike in nothing, so that none is taken for another.
    fn round() -> Round {
        let own = |cpu_us, statements: f64| Turn {
            round_trips: Some(statements - 1.0),
            ..turn(cpu_us, statements * 100.0, 0.0)
        };
        Round {
            plain: own(22_000.0, 29.0),
            batched: own(12_000.0, 13.0),
            grouped: Turn { round_trips: None, ..own(6_500.0, 12.0) },
            in_its_place: [turn(30_000.0, 2_800.0, 0.0), turn(33_000.0, 2_800.0, 0.0)],
            sysbench: turn(40_000.0, 2_750.0, 0.0),
            go: turn(25_000.0, 1_500.0, 100.0),
            floor_us: 8.0,
        }
    }

    #[test]
    fn a_ping_is_waited_for_and_is_no_statement() {
        let go = round().go;
        assert_eq!((go.cpu_us, go.statements, go.round_trips), (250.0, 15.0, Some(16.0)));
    }

    #[test]
    fn statements_stand_beside_those_of_the_peer_that_has_them_alike() {
        let lines = styles(&[round()]);
        let lines = lines.iter().filter(|line| line.what.contains(STATEMENTS.name));
        let told: Vec<(&str, &str)> =
            lines.map(|line| (line.what.rsplit(": ").next().unwrap(), line.measured.as_str())).collect();
        let plain = "1.05 (1.05–1.05); 29.0 over 27.5; round trips 1.02 (1.02–1.02); 28.0 over 27.5";
        let batched = "0.87 (0.87–0.87); 13.0 over 15.0; round trips 0.75 (0.75–0.75); 12.0 over 16.0";
        let of = ["plain, ratio to sysbench-tpcc", "batched, ratio to go-tpc"]
            .map(|name| format!("statements per transaction, {name}"));
        assert_eq!(told, [(of[0].as_str(), plain), (of[1].as_str(), batched)]);
    }

    #[test]
    fn a_minimal_loop_waits_as_often_as_the_style_that_it_stands_for() {
        let plain = floor(&[round()], "plain", |round| round.plain).measured;
        let batched = floor(&[round()], "batched", |round| round.batched).measured;
        let of = |ratio: f64, trips: &str, sysbench: f64, go: f64| {
            let [ratio, sysbench, go] =
                [ratio, sysbench, go].map(|figure| format!("{figure:.2} ({figure:.2}–{figure:.2})"));
            format!("{ratio}; {trips} × 8.0 µs, which is {sysbench} of sysbench-tpcc's and {go} of go-tpc's")
        };
        assert_eq!((plain, batched), (of(0.98, "28.0", 0.56, 0.90), of(1.25, "12.0", 0.24, 0.38)));
    }

    #[test]
    fn what_rumba_sends_is_of_all_kinds_and_none_may_be_absent() {
        let mut loops = serde_json::json!({
            "read_statements_per_op": 11.5, "write_statements_per_op": 14.25, "other_statements_per_op": 2.0
        });
        assert_eq!(own_statements(&loops).unwrap(), 27.75);
        loops["other_statements_per_op"] = serde_json::Value::Null;
        assert!(own_statements(&loops).is_err());
    }
}
