//! The cost of driving a server: rumba's clients next to sysbench, in turns, in one run.

use std::time::Duration;

use super::floor::loop_us;
use super::measure::{Bench, Spread, callgrind, json, number};
use super::servers::{Cores, SYSBENCH, Server, Sysbench, Window, pinned, point_selects};
use super::{Failure, Line};

/// The warmup that sysbench needs with 256 threads and more before a comparison.
const SYSBENCH_WARMUP: Duration = Duration::from_secs(10);
/// The number of windows of each program, in turns.
pub const REPEATS: usize = 3;
/// Seconds of a window.
pub const WINDOW_S: u32 = 2;

/// rumba's side of a comparison, as `wire_clients` reports it.
pub struct Own {
    /// The work in the window.
    pub window: Window,
    p50_ms: f64,
    /// The driver that ran the clients.
    pub driver: String,
}

impl Own {
    /// Runs it for a window.
    pub fn run(bench: &Bench, server: &Server, cores: &Cores, args: &[String]) -> Result<Self, Failure> {
        let mut command = pinned(cores.clients.as_ref(), &bench.example("wire_clients"));
        let reported = json(command.arg(&server.socket).args(args))?;
        let figure = |name: &str| number(&reported[name]);
        let window =
            Window { queries_per_s: figure("queries_per_s")?, cpu_us_per_query: figure("client_cpu_us_per_query")? };
        let driver = reported["driver"].as_str().unwrap_or_default().to_owned();
        Ok(Self { window, p50_ms: figure("p50_ms")?, driver })
    }
}

/// rumba and sysbench at one number of clients.
struct Compared {
    clients: u32,
    /// rumba's CPU per query over sysbench's.
    cpu_ratio: Spread,
    cpu_us: [Spread; 2],
    /// rumba's queries per second over sysbench's.
    rate_ratio: Spread,
    rates: [Spread; 2],
    driver: String,
}

/// The arguments of `wire_clients` in a comparison.
pub fn arguments(clients: u32) -> Vec<String> {
    vec![format!("clients={clients}"), "warmup=1".into(), format!("seconds={WINDOW_S}")]
}

/// Alternates between the two; each ratio is of neighbours in time.
fn compare(bench: &Bench, server: &Server, cores: &Cores, clients: u32) -> Result<Compared, Failure> {
    let sysbench = Sysbench::start(&[SYSBENCH.as_ref()], &point_selects(server), cores, clients, SYSBENCH_WARMUP)?;
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        let peer = sysbench.window(WINDOW_S)?;
        pairs.push((Own::run(bench, server, cores, &arguments(clients))?, peer));
    }
    let over = |of: &dyn Fn(&(Own, Window)) -> f64| Spread::of(pairs.iter().map(of).collect());
    let driver = pairs[0].0.driver.clone();
    Ok(Compared {
        clients,
        cpu_ratio: over(&|(own, peer)| own.window.cpu_us_per_query / peer.cpu_us_per_query),
        cpu_us: [over(&|(own, _)| own.window.cpu_us_per_query), over(&|(_, peer)| peer.cpu_us_per_query)],
        rate_ratio: over(&|(own, peer)| own.window.queries_per_s / peer.queries_per_s),
        rates: [over(&|(own, _)| own.window.queries_per_s), over(&|(_, peer)| peer.queries_per_s)],
        driver,
    })
}

impl Compared {
    fn command(&self, cores: &Cores) -> String {
        let own = format!("wire_clients SOCKET {}", arguments(self.clients).join(" "));
        format!("{own}; in turns with sysbench oltp_point_select --threads={} ({})", self.clients, cores.reported())
    }

    /// Without a goal it is reported.
    fn cpu(&self, what: &str, most: Option<f64>, cores: &Cores) -> Line {
        let [own, peer] = self.cpu_us.map(|cpu| cpu.median);
        let ratio = self.cpu_ratio.reported(2);
        Line {
            what: format!("client CPU per query against {what}, {} connections, ratio to sysbench", self.clients),
            goal: most.map_or_else(|| "reported".to_owned(), |most| format!("≤ {most:.2}")),
            measured: format!("{ratio}; {own:.2} µs over {peer:.2} µs; {}", self.driver),
            met: most.map(|most| self.cpu_ratio.median <= most),
            command: self.command(cores),
        }
    }

    fn rate(&self, what: &str, least: f64, cores: &Cores) -> Line {
        let [own, peer] = self.rates.map(|rate| rate.median);
        let ratio = self.rate_ratio.reported(2);
        Line {
            what: format!("queries per second against {what}, {} connections, ratio to sysbench", self.clients),
            goal: format!("≥ {least:.1}"),
            measured: format!("{ratio}; {own:.0} over {peer:.0}; {}", self.driver),
            met: Some(self.rate_ratio.median >= least),
            command: self.command(cores),
        }
    }
}

/// A point select, or a find by _id, whose instructions are counted.
pub struct PointSelect {
    /// The name of the call.
    pub call: &'static str,
    /// The arguments of the null server.
    pub speak: &'static [&'static str],
    /// The example that sends them over one session and does nothing else.
    pub session: &'static str,
    /// The arguments of `wire_clients`.
    pub clients: &'static [&'static str],
    /// The server family, for a line's name.
    pub of: &'static str,
    /// The instructions that the session may take.
    pub most: f64,
    /// The program that the goal is compared with.
    pub adjacent: &'static str,
}

impl PointSelect {
    /// The session's instructions, which have a goal; and those of the same work within the harness.
    pub fn instructions(&self, bench: &Bench) -> Result<Vec<Line>, Failure> {
        const QUERIES: u64 = 50_000;
        let server = Server::null(bench, &Cores::FREE, &[self.speak, &["--threads", "1"]].concat())?;
        let session = callgrind(QUERIES, &|command, queries| {
            command.arg(bench.example(self.session)).arg(&server.socket).arg(queries.to_string());
        })?;
        let whole = callgrind(QUERIES, &|command, queries| {
            command.arg(bench.example("wire_clients")).arg(&server.socket).args(self.clients);
            command.arg(format!("queries={queries}"));
        })?;
        let twice = 2 * QUERIES;
        let given: String = self.clients.iter().map(|word| format!("{word} ")).collect();
        Ok(vec![
            Line {
                what: format!("user instructions per {}{}: sent and answered by a session", self.call, self.of),
                goal: format!("≤ {:.0}{}", self.most, self.adjacent),
                measured: format!("{session:.0} instructions"),
                met: Some(session <= self.most),
                command: format!(
                    "valgrind --tool=callgrind {} SOCKET {twice}, less the same with {QUERIES}",
                    self.session
                ),
            },
            Line {
                what: format!("the same{}, drawn, timed and recorded by a client", self.of),
                goal: "reported".into(),
                measured: format!("{whole:.0} instructions"),
                met: None,
                command: format!(
                    "valgrind --tool=callgrind wire_clients SOCKET {given}queries={twice}, less the same with {QUERIES}"
                ),
            },
        ])
    }
}

/// The name of the operation of SQL clients.
pub const PREPARED: &str = "prepared point select";

/// Instructions of a point select.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let adjacent = " (sysbench 1.0.20: 4,303)";
    PointSelect { call: PREPARED, speak: &[], session: "point_select", clients: &[], of: "", most: 600.0, adjacent }
        .instructions(bench)
}

/// With a server that has almost no cost, only the client is measured.
pub fn null_server(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &[])?;
    let mut lines = Vec::new();
    for (clients, most_cpu, least_rate) in [(8, 0.50, None), (64, 0.30, Some(3.0)), (256, 0.25, Some(3.0))] {
        let compared = compare(bench, &server, &cores, clients)?;
        let floor = loop_us(bench, &server.socket, &cores, &arguments(clients))?;
        let mut line = compared.cpu("the null server", Some(most_cpu), &cores);
        line.measured += &format!("; a minimal loop {floor:.2} µs");
        lines.push(line);
        lines.extend(least_rate.map(|least| compared.rate("the null server", least, &cores)));
    }
    Ok(lines)
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
