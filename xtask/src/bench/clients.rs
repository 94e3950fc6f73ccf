//! The cost of driving a server: rumba's clients next to other clients, in turns, in one run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::measure::{Bench, Spread, json, number};
use super::servers::{Cores, SYSBENCH, Server, Sysbench, Whose, Window, cpu_us, pinned, point_selects};
use super::{Failure, Line};

/// The warmup that sysbench needs with 256 threads and more before a comparison.
const SYSBENCH_WARMUP: Duration = Duration::from_secs(10);
/// The number of windows of each program, in turns.
const REPEATS: usize = 3;
/// Seconds of a window.
const WINDOW_S: u32 = 2;

/// rumba's side of a comparison, as `wire_clients` reports it.
struct Own {
    window: Window,
    p50_ms: f64,
    /// The driver that ran the clients.
    driver: String,
}

impl Own {
    fn run(bench: &Bench, server: &Server, cores: &Cores, args: &[String]) -> Result<Self, Failure> {
        let mut command = pinned(cores.clients.as_ref(), &bench.example("wire_clients"));
        let reported = json(command.arg(&server.socket).args(args))?;
        let driver = reported["driver"].as_str().unwrap_or_default().to_owned();
        Ok(Self { window: window(&reported)?, p50_ms: number(&reported["p50_ms"])?, driver })
    }
}

/// The window of an example that drives the server at a socket or `HOST:PORT`, without pinning.
pub fn example(bench: &Bench, name: &str, server: &str, args: &[String]) -> Result<Window, Failure> {
    window(&json(pinned(None, &bench.example(name)).arg(server).args(args))?)
}

/// The number of connections in a comparison.
const CLIENTS: u32 = 64;

/// The arguments of `wire_clients` and of the minimal loop.
pub fn arguments(clients: u32) -> Vec<String> {
    vec![format!("clients={clients}"), "warmup=1".into(), format!("seconds={WINDOW_S}")]
}

/// A minimal loop of `epoll_wait`, `recv` and `send`, for a window. The server has separate cores, so no client can use
/// less CPU than this loop.
pub fn minimal_loop(bench: &Bench, server: &Server, cores: &Cores, args: &[String]) -> Result<Window, Failure> {
    window(&json(pinned(cores.clients.as_ref(), &bench.example("minimal_loop")).arg(&server.socket).args(args))?)
}

fn window(reported: &Value) -> Result<Window, Failure> {
    let figure = |name: &str| number(&reported[name]).map_err(|error| format!("{name}: {error}: {reported}"));
    Ok(Window { queries_per_s: figure("queries_per_s")?, cpu_us_per_query: figure("client_cpu_us_per_query")? })
}

/// The most client CPU per query, as a ratio.
enum Goal {
    /// To a minimal loop in the same run.
    Loop(f64),
    /// To the peer, for a protocol that the loop does not speak.
    Peer(f64),
}

/// A protocol, and the client that rumba's is compared with.
struct Comparison {
    protocol: &'static str,
    peer: &'static str,
    peer_command: String,
    goal: Goal,
}

/// Prepared point selects over MySQL's protocol, next to sysbench.
pub fn mysql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &[])?;
    let sysbench = Sysbench::start(&[SYSBENCH.as_ref()], &point_selects(&server), &cores, CLIENTS, SYSBENCH_WARMUP)?;
    let peer_command = format!("sysbench oltp_point_select --threads={CLIENTS}");
    Comparison { protocol: "mysql", peer: SYSBENCH, peer_command, goal: Goal::Loop(1.25) }.measure(
        bench,
        &server,
        &cores,
        &|| sysbench.window(WINDOW_S),
    )
}

/// The same over PostgreSQL's protocol, next to pgbench.
pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &["--protocol", "postgresql"])?;
    let script = bench.path("point-select.sql");
    std::fs::write(&script, "\\set id random(1, 100000)\nSELECT c FROM sbtest1 WHERE id = :id;\n")?;
    let (short, long) = (WINDOW_S, 3 * WINDOW_S);
    let peer_command = format!("pgbench -n -M prepared -c {CLIENTS} -j 1 -T {long} less -T {short}");
    Comparison { protocol: "postgresql", peer: "pgbench", peer_command, goal: Goal::Loop(1.25) }.measure(
        bench,
        &server,
        &cores,
        &|| pgbench(&server, &cores, &script),
    )
}

/// Documents found by id over MongoDB's protocol, next to the official Rust driver.
pub fn mongodb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const DRIVER: &str = "mongodb-driver";
    let driver = bench.peer(DRIVER)?;
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &["--protocol", "mongodb"])?;
    let peer_command = format!("{DRIVER} SOCKET {}", arguments(CLIENTS).join(" "));
    Comparison { protocol: "mongodb", peer: "the official Rust driver", peer_command, goal: Goal::Peer(0.40) }.measure(
        bench,
        &server,
        &cores,
        &|| window(&json(pinned(cores.clients.as_ref(), &driver).arg(&server.socket).args(arguments(CLIENTS)))?),
    )
}

impl Comparison {
    /// Takes turns; each ratio is of neighbours in time.
    fn measure(
        &self,
        bench: &Bench,
        server: &Server,
        cores: &Cores,
        peer: &dyn Fn() -> Result<Window, Failure>,
    ) -> Result<Vec<Line>, Failure> {
        let protocol = (self.protocol != "mysql").then(|| format!("protocol={}", self.protocol));
        let args: Vec<String> = protocol.into_iter().chain(arguments(CLIENTS)).collect();
        let (mut turns, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let peer = peer()?;
            let own = Own::run(bench, server, cores, &args)?;
            if let Goal::Loop(_) = self.goal {
                let floor = minimal_loop(bench, server, cores, &args)?;
                floors.push(own.window.cpu_us_per_query / floor.cpu_us_per_query);
            }
            turns.push((own, peer));
        }
        let over = |of: &dyn Fn(&(Own, Window)) -> f64| Spread::of(turns.iter().map(of).collect());
        let cpu = over(&|(own, peer)| own.window.cpu_us_per_query / peer.cpu_us_per_query);
        let rate = over(&|(own, peer)| own.window.queries_per_s / peer.queries_per_s);
        let own_us = over(&|(own, _)| own.window.cpu_us_per_query);
        let (judged, most, to) = match self.goal {
            Goal::Loop(most) => (Spread::of(floors), most, "a minimal loop"),
            Goal::Peer(most) => (cpu, most, self.peer),
        };
        Ok(vec![Line {
            what: format!("client CPU per query, {}, null server, {CLIENTS} connections, ratio to {to}", self.protocol),
            goal: format!("≤ {most:.2}"),
            measured: format!(
                "{}; {:.2} µs; CPU {} and queries per second {} times those of {}; {}",
                judged.reported(2),
                own_us.median,
                cpu.reported(2),
                rate.reported(2),
                self.peer,
                turns[0].0.driver
            ),
            met: Some(judged.median <= most),
            command: format!(
                "wire_clients SOCKET {}; in turns with {} ({})",
                args.join(" "),
                self.peer_command,
                cores.reported()
            ),
        }])
    }
}

/// Whether clients that share a thread measure the server's time and not each other's. The server's time is how long it
/// holds its answers: its delay, plus the host's time to wake it.
pub fn delay(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let args = arguments(256);
    let (mut seen_ms, mut held_ms, mut off) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let server = Server::null(bench, &cores, &["--delay", "20ms"])?;
        let seen = Own::run(bench, &server, &cores, &args)?.p50_ms;
        let held = server.held_ms()?;
        seen_ms.push(seen);
        held_ms.push(held);
        off.push((seen / held - 1.0) * 100.0);
    }
    let (seen, held, off) = (Spread::of(seen_ms), Spread::of(held_ms), Spread::of(off));
    Ok(vec![Line {
        what: "median response time seen by 256 connections of a server that answers after 20 ms".into(),
        goal: "within 2% of the truth".into(),
        measured: format!(
            "{} ms, where the server held its answers for {} ms: {:+.1}%",
            seen.reported(2),
            held.reported(2),
            off.median
        ),
        met: Some(off.median.abs() <= 2.0),
        command: format!(
            "rumba null-server --delay 20ms; wire_clients SOCKET {} ({})",
            args.join(" "),
            cores.reported()
        ),
    }])
}

/// The path of pgbench in Debian 12.
const PGBENCH: &str = "/usr/lib/postgresql/15/bin/pgbench";

/// pgbench's prepared point selects in a window: the work in three windows less the work in one. Connecting, preparing
/// and the first cold queries are therefore excluded.
fn pgbench(server: &Server, cores: &Cores, script: &Path) -> Result<Window, Failure> {
    let [short, long] = [1, 3].map(|windows| pgbench_for(server, cores, script, windows * WINDOW_S));
    let ((few, short_us), (many, long_us)) = (short?, long?);
    let queries = many - few;
    Ok(Window { queries_per_s: queries / f64::from(2 * WINDOW_S), cpu_us_per_query: (long_us - short_us) / queries })
}

/// Its queries in this many seconds, and its total CPU time in microseconds. It has one thread, which its documentation
/// recommends for one core.
fn pgbench_for(server: &Server, cores: &Cores, script: &Path, seconds: u32) -> Result<(f64, f64), Failure> {
    let directory = server.socket.parent().ok_or("a socket has a directory")?;
    let mut command: Command = pinned(cores.clients.as_ref(), Path::new(PGBENCH));
    command.arg("-h").arg(directory).args(["-p", "5432", "-U", "root", "-n", "-M", "prepared", "-j", "1"]);
    command.args(["-c", &CLIENTS.to_string(), "-T", &seconds.to_string(), "-f"]).arg(script).arg("sbtest");
    let before = cpu_us("self", Whose::Children)?;
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let spent_us = cpu_us("self", Whose::Children)? - before;
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    const COUNT: &str = "number of transactions actually processed:";
    let line = reported.lines().find_map(|line| line.strip_prefix(COUNT)).ok_or_else(|| {
        format!("{command:?} does not say `{COUNT}`: {reported}{}", String::from_utf8_lossy(&output.stderr))
    })?;
    let queries = line.trim_start().split([' ', '/']).next().unwrap_or_default().parse()?;
    Ok((queries, spent_us))
}
