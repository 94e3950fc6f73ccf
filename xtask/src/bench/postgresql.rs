//! The cost of driving PostgreSQL: rumba's clients next to pgbench, in turns, in one run.

use std::path::Path;
use std::process::Command;

use super::clients::{Own, PREPARED, PointSelect, REPEATS, WINDOW_S, arguments};
use super::floor::loop_us;
use super::measure::{Bench, Spread};
use super::servers::{Cores, Server, Whose, Window, cpu_us, pinned};
use super::{Failure, Line};

/// The path of pgbench in Debian 12.
const PGBENCH: &str = "/usr/lib/postgresql/15/bin/pgbench";
/// The arguments of the null server.
const SPEAK: [&str; 2] = ["--protocol", "postgresql"];

/// Instructions of a point select.
pub fn instructions(bench: &Bench) -> Result<Vec<Line>, Failure> {
    PointSelect {
        call: PREPARED,
        speak: &SPEAK,
        session: "point_select_postgresql",
        clients: &["protocol=postgresql"],
        of: ", PostgreSQL",
        most: 650.0,
        adjacent: "",
    }
    .instructions(bench)
}

/// The client's CPU against a server with almost no cost, next to pgbench's.
pub fn null_server(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::null(bench, &cores, &SPEAK)?;
    let script = bench.path("point-select.sql");
    std::fs::write(&script, "\\set id random(1, 100000)\nSELECT c FROM sbtest1 WHERE id = :id;\n")?;
    [(8, 0.50), (64, 0.30), (256, 0.25)]
        .into_iter()
        .map(|(clients, most)| compare(bench, &server, &cores, clients, &script, most))
        .collect()
}

/// Alternates between the two; each ratio is of neighbours in time.
fn compare(
    bench: &Bench,
    server: &Server,
    cores: &Cores,
    clients: u32,
    script: &Path,
    most: f64,
) -> Result<Line, Failure> {
    let own_arguments = [vec!["protocol=postgresql".into()], arguments(clients)].concat();
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        let peer = pgbench(server, cores, clients, script)?;
        pairs.push((Own::run(bench, server, cores, &own_arguments)?, peer));
    }
    let over = |of: &dyn Fn(&(Own, Window)) -> f64| Spread::of(pairs.iter().map(of).collect());
    let ratio = over(&|(own, peer)| own.window.cpu_us_per_query / peer.cpu_us_per_query);
    let floor = loop_us(bench, &server.socket, cores, &own_arguments)?;
    let own = over(&|(own, _)| own.window.cpu_us_per_query).median;
    let peer = over(&|(_, peer)| peer.cpu_us_per_query).median;
    Ok(Line {
        what: format!(
            "client CPU per query against the null server, PostgreSQL, {clients} connections, ratio to pgbench"
        ),
        goal: format!("≤ {most:.2}"),
        measured: format!(
            "{}; {own:.2} µs over {peer:.2} µs, a minimal loop {floor:.2} µs; {}",
            ratio.reported(2),
            pairs[0].0.driver
        ),
        met: Some(ratio.median <= most),
        command: format!(
            "wire_clients SOCKET {}; in turns with pgbench -n -M prepared -c {clients} -j 1 -T {} less -T {WINDOW_S} ({})",
            own_arguments.join(" "),
            3 * WINDOW_S,
            cores.reported()
        ),
    })
}

/// pgbench's prepared point selects in a window: the work in three windows less the work in one. Connecting, preparing
/// and the first cold queries are therefore excluded.
fn pgbench(server: &Server, cores: &Cores, clients: u32, script: &Path) -> Result<Window, Failure> {
    let [short, long] = [1, 3].map(|windows| pgbench_for(server, cores, clients, script, windows * WINDOW_S));
    let ((few, short_us), (many, long_us)) = (short?, long?);
    let queries = many - few;
    Ok(Window { queries_per_s: queries / f64::from(2 * WINDOW_S), cpu_us_per_query: (long_us - short_us) / queries })
}

/// Its queries in this many seconds, and its total CPU time in microseconds. It has one thread, which its documentation
/// recommends for one core.
fn pgbench_for(
    server: &Server,
    cores: &Cores,
    clients: u32,
    script: &Path,
    seconds: u32,
) -> Result<(f64, f64), Failure> {
    let directory = server.socket.parent().ok_or("a socket has a directory")?;
    let mut command: Command = pinned(cores.clients.as_ref(), Path::new(PGBENCH));
    command.arg("-h").arg(directory).args(["-p", "5432", "-U", "root", "-n", "-M", "prepared", "-j", "1"]);
    command.args(["-c", &clients.to_string(), "-T", &seconds.to_string(), "-f"]).arg(script).arg("sbtest");
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
