//! Point selects with few and many clients, over a Unix socket and TCP: rumba's scripts, its native client and a minimal
//! loop of blocking threads, each in turn with sysbench. With few clients the rate depends on which thread waits where.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use super::clients::example;
use super::measure::{Bench, Spread};
use super::servers::{Cores, DATABASE, SYSBENCH, Server, Sysbench, TABLE, free_port, run, words};
use super::{Failure, Line};

const COUNTS: [u32; 6] = [1, 2, 4, 8, 64, 256];
/// The smallest and the largest ratio of six turns enclose the median at 95%.
const TURNS: usize = 6;
/// With more clients than these, every program runs for longer before it is measured.
const FEW: u32 = 8;
const TEST: &str = "oltp_point_select";

/// How clients reach a server.
struct Route {
    /// As the page says it.
    name: &'static str,
    /// sysbench's arguments.
    words: Vec<String>,
    address: String,
}

/// A server with sysbench's table.
struct Served<'a> {
    bench: &'a Bench,
    name: &'static str,
    protocol: &'static str,
    routes: [Route; 2],
    /// How many seconds many clients run before they are measured.
    warmup_s: u64,
}

pub fn mariadb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let port = free_port()?;
    let listen = [format!("--port={port}"), "--bind-address=127.0.0.1".into(), "--innodb-buffer-pool-size=256M".into()];
    let server = Server::mariadb_with(bench, &Cores::FREE, &listen.each_ref().map(String::as_str))?;
    let user = "CREATE USER IF NOT EXISTS root@'127.0.0.1'; GRANT ALL ON *.* TO root@'127.0.0.1'";
    server.await_mariadb(user)?;
    server.fill_mariadb(DATABASE)?;
    let route = |name, place: String, address| {
        let words = vec![place, "--mysql-user=root".into(), format!("--mysql-db={DATABASE}")];
        Route { name, words, address }
    };
    let socket = server.socket.display().to_string();
    let mut tcp = route("TCP", "--mysql-host=127.0.0.1".into(), format!("127.0.0.1:{port}"));
    tcp.words.push(format!("--mysql-port={port}"));
    let routes = [route("Unix socket", format!("--mysql-socket={socket}"), socket), tcp];
    Served { bench, name: "MariaDB", protocol: "mysql", routes, warmup_s: 1 }.measure()
}

pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let port = free_port()?;
    let server = Server::postgresql(bench, port)?;
    let route = |name, host: String, address| {
        let user = ["--db-driver=pgsql", "--pgsql-user=root"].map(str::to_owned);
        let place = [format!("--pgsql-host={host}"), format!("--pgsql-port={port}"), format!("--pgsql-db={DATABASE}")];
        Route { name, words: [&user[..], &place].concat(), address }
    };
    let directory = server.socket.parent().ok_or("a socket has a directory")?.display().to_string();
    let routes = [
        route("Unix socket", directory, server.socket.display().to_string()),
        route("TCP", "127.0.0.1".into(), format!("127.0.0.1:{port}")),
    ];
    run(Command::new(SYSBENCH).arg(TEST).args(TABLE).args(&routes[0].words).arg("prepare"))?;
    // A new backend reads the catalogs first. With 256 of them that takes two seconds.
    Served { bench, name: "PostgreSQL", protocol: "postgresql", routes, warmup_s: 4 }.measure()
}

/// Queries per second with one number of clients, over sysbench's.
struct Ratios {
    script: Spread,
    native: Spread,
    blocking: Spread,
}

impl Served<'_> {
    fn measure(&self) -> Result<Vec<Line>, Failure> {
        self.routes.iter().map(|route| self.line(route)).collect()
    }

    fn line(&self, route: &Route) -> Result<Line, Failure> {
        let mut cells = Vec::new();
        let mut met = true;
        for clients in COUNTS {
            let Ratios { script, native, blocking } = self.turns(route, clients)?;
            // Ratios have two digits in the report.
            met &= [&script, &native].iter().all(|ratio| ratio.median >= 0.995);
            cells.push(format!(
                "{clients}: script {}, native {}, blocking loop {:.2}",
                script.reported(2),
                native.reported(2),
                blocking.median
            ));
        }
        let counts = COUNTS.map(|count| count.to_string()).join(", ");
        Ok(Line {
            what: format!(
                "queries per second, {TEST}, {}, {}, ratio to sysbench with {counts} clients",
                self.name, route.name
            ),
            goal: "≥ 1.00 each".into(),
            measured: cells.join("; "),
            met: Some(met),
            command: format!(
                "rumba sysbench {TEST} --threads=N; wire_clients protocol={} clients=N; minimal_loop clients=N blocking=1; \
                 in turns with sysbench (nothing pinned)",
                self.protocol
            ),
        })
    }

    /// Each turn runs the four programs one after the other, every second time in reverse.
    fn turns(&self, route: &Route, clients: u32) -> Result<Ratios, Failure> {
        let rumba = self.bench.rumba();
        let all = words(TEST, &route.words);
        let sysbench = |program: &[&OsStr]| -> Result<f64, Failure> {
            // sysbench first reports after a second. Many clients compile their scripts for longer.
            let warmup = if clients > FEW { Duration::from_secs(self.warmup_s) } else { Duration::ZERO };
            Ok(Sysbench::start(program, &all, &Cores::FREE, clients, warmup)?.seconds(1)?.queries_per_s)
        };
        let warmup_s = if clients > FEW { self.warmup_s } else { 1 };
        let mut args = vec![format!("clients={clients}"), format!("warmup={warmup_s}"), "seconds=1".into()];
        args.push(format!("protocol={}", self.protocol));
        let blocking_args = [&args[..], &["blocking=1".to_owned()]].concat();
        let native = || -> Result<f64, Failure> {
            Ok(example(self.bench, "wire_clients", &route.address, &args)?.queries_per_s)
        };
        let blocking = || -> Result<f64, Failure> {
            Ok(example(self.bench, "minimal_loop", &route.address, &blocking_args)?.queries_per_s)
        };
        let programs: [&dyn Fn() -> Result<f64, Failure>; 4] = [
            &|| sysbench(&[SYSBENCH.as_ref()]),
            &|| sysbench(&[rumba.as_os_str(), SYSBENCH.as_ref()]),
            &native,
            &blocking,
        ];
        let mut rates = [[0.0; 4]; TURNS];
        for (turn, rates) in rates.iter_mut().enumerate() {
            for step in 0..programs.len() {
                let place = if turn % 2 == 0 { step } else { programs.len() - 1 - step };
                rates[place] = programs[place]()?;
            }
        }
        let over = |place: usize| Spread::of(rates.iter().map(|rates| rates[place] / rates[0]).collect());
        Ok(Ratios { script: over(1), native: over(2), blocking: over(3) })
    }
}
