//! What driving a server costs beside the least that it can cost: an event loop of `epoll_wait`, `recv` and `send`.
//!
//! The server has cores of its own; beside it nearly all that a client spends is the kernel's, and no client can spend
//! less than such a loop. So the loop is the goal, for the native clients and for a script's.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rumba_testkit::postgresql::{PROGRAMS, PostgreSql, SUPERUSER};

use super::clients::{REPEATS, WINDOW_S, arguments};
use super::measure::{Bench, Spread, json, number};
use super::servers::{Cores, DATABASE, SYSBENCH, Server, Sysbench, Window, pinned, point_selects, run};
use super::{Failure, Line};

/// How long a script runs before it is looked at.
const WARMUP: Duration = Duration::from_secs(2);

/// An example that speaks over a socket, for a window.
fn example(
    bench: &Bench,
    name: &str,
    server: impl AsRef<OsStr>,
    cores: &Cores,
    args: &[String],
) -> Result<Window, Failure> {
    let told = json(pinned(cores.clients.as_ref(), &bench.example(name)).arg(server).args(args))?;
    let figure = |name: &str| number(&told[name]);
    Ok(Window { queries_per_s: figure("queries_per_s")?, cpu_us_per_query: figure("client_cpu_us_per_query")? })
}

/// The loop, for a window.
pub fn loop_window(bench: &Bench, socket: &Path, cores: &Cores, args: &[String]) -> Result<Window, Failure> {
    example(bench, "minimal_loop", socket, cores, args)
}

/// The loop's CPU per query, where others were measured: what is told beside them.
pub fn loop_us(bench: &Bench, socket: &Path, cores: &Cores, args: &[String]) -> Result<f64, Failure> {
    let windows = (0..REPEATS).map(|_| Ok(loop_window(bench, socket, cores, args)?.cpu_us_per_query));
    Ok(Spread::of(windows.collect::<Result<_, Failure>>()?).median)
}

/// The loop over TCP, in the turns of programs that share a server with all cores.
pub struct OverTcp {
    server: String,
    database: &'static str,
}

impl OverTcp {
    /// Makes the rows that the loop asks for, in a database of the server at this port, as the user `bench`.
    pub fn new(port: u16, database: &'static str) -> Result<Self, Failure> {
        let place = ["--mysql-host=127.0.0.1", "--mysql-user=bench"].map(str::to_owned);
        let place = [&place[..], &[format!("--mysql-port={port}"), format!("--mysql-db={database}")]].concat();
        run(Command::new(SYSBENCH).args(["oltp_point_select", "--table-size=100000"]).args(&place).arg("prepare"))?;
        Ok(Self { server: format!("127.0.0.1:{port}"), database })
    }

    /// Its turn: CPU per query, µs.
    pub fn us(&self, bench: &Bench, clients: &str) -> Result<f64, Failure> {
        let own = [format!("clients={clients}"), "user=bench".into(), format!("database={}", self.database)];
        let args = [&own[..], &["warmup=1".into(), "seconds=5".into()]].concat();
        Ok(example(bench, "minimal_loop", &self.server, &Cores::FREE, &args)?.cpu_us_per_query)
    }
}

/// One kind of client against the loop: what the page says of it.
fn line(what: String, most: f64, windows: &[(Window, Window)], command: &str) -> Line {
    let over = |of: &dyn Fn(&(Window, Window)) -> f64| Spread::of(windows.iter().map(of).collect());
    let ratio = over(&|(own, floor)| own.cpu_us_per_query / floor.cpu_us_per_query);
    let [own, floor] =
        [over(&|(own, _)| own.cpu_us_per_query), over(&|(_, floor)| floor.cpu_us_per_query)].map(|cpu| cpu.median);
    Line {
        what,
        goal: format!("≤ {most:.2}"),
        measured: format!("{}; {own:.2} µs over {floor:.2} µs", ratio.told(2)),
        met: Some(ratio.median <= most),
        command: command.to_owned(),
    }
}

/// MariaDB: the native client and the bundled script, in turns with the loop.
pub fn mariadb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = Server::mariadb(bench, &cores)?;
    let (rumba, words) = (bench.rumba(), point_selects(&server));
    let program: [&OsStr; 2] = [rumba.as_os_str(), SYSBENCH.as_ref()];
    let mut lines = Vec::new();
    for clients in [8, 64, 256, 1024] {
        let args = arguments(clients);
        let script = Sysbench::start(&program, &words, &cores, clients, WARMUP)?;
        // The first window stops it, so that the others run alone.
        script.window(1)?;
        let (mut native, mut scripted) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let floor = loop_window(bench, &server.socket, &cores, &args)?;
            native.push((example(bench, "wire_clients", &server.socket, &cores, &args)?, floor));
            scripted.push((script.window(WINDOW_S)?, floor));
        }
        let what = |who: &str| {
            format!(
                "client CPU per query against MariaDB on its own cores, {clients} connections, {who}, ratio to a minimal loop"
            )
        };
        let of = |own: &str| format!("{own}; in turns with minimal_loop SOCKET {} ({})", args.join(" "), cores.told());
        let own = of(&format!("wire_clients SOCKET {}", args.join(" ")));
        lines.push(line(what("native client"), 1.10, &native, &own));
        let own = of(&format!("rumba sysbench oltp_point_select --threads={clients}"));
        lines.push(line(what("our script"), 1.25, &scripted, &own));
    }
    Ok(lines)
}

/// PostgreSQL: the native client in turns with the loop.
pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let cores = Cores::halves()?;
    let server = PostgreSql::start(&["max_connections=300", "shared_buffers=256MB"], &[]);
    pin(&server, &cores)?;
    let (port, host) = (server.port().to_string(), server.directory().display().to_string());
    run(Command::new(Path::new(PROGRAMS).join("createdb")).args(["-h", &host, "-p", &port, "-U", SUPERUSER, DATABASE]))?;
    let place = [
        "--db-driver=pgsql".to_owned(),
        format!("--pgsql-host={host}"),
        format!("--pgsql-port={port}"),
        format!("--pgsql-user={SUPERUSER}"),
        format!("--pgsql-db={DATABASE}"),
    ];
    run(Command::new(SYSBENCH).args(["oltp_point_select", "--table-size=100000"]).args(&place).arg("prepare"))?;
    let mut lines = Vec::new();
    for clients in [8, 64, 256] {
        let given = ["protocol=postgresql".to_owned(), format!("user={SUPERUSER}")];
        let args = [&given[..], &arguments(clients)].concat();
        let mut pairs = Vec::new();
        for _ in 0..REPEATS {
            let floor = loop_window(bench, &server.socket(), &cores, &args)?;
            pairs.push((example(bench, "wire_clients", server.socket(), &cores, &args)?, floor));
        }
        let what = format!(
            "client CPU per query against PostgreSQL on its own cores, {clients} connections, ratio to a minimal loop"
        );
        let args = args.join(" ");
        let command =
            format!("wire_clients SOCKET {args}; in turns with minimal_loop SOCKET {args} ({})", cores.told());
        lines.push(line(what, 1.15, &pairs, &command));
    }
    Ok(lines)
}

/// Puts the server on its cores: its sessions come from the first of its processes, and stay where that is.
fn pin(server: &PostgreSql, cores: &Cores) -> Result<(), Failure> {
    let Some(cores) = &cores.server else { return Ok(()) };
    let first = server.pid().to_string();
    let others = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"))?;
    for pid in std::iter::once(first.as_str()).chain(others.split_whitespace()) {
        run(Command::new("taskset").args(["-a", "-c", "-p", cores, pid]))?;
    }
    Ok(())
}
