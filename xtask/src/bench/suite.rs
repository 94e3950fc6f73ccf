//! The bundled scripts over real servers: `rumba sysbench` next to sysbench with the same arguments, in turns.

use std::ffi::OsStr;
use std::time::Duration;

use super::measure::{Bench, Spread};
use super::servers::{Cores, DATABASE, SYSBENCH, Server, Sysbench, Window, at, words};
use super::{Failure, Line};

/// The placement of a process's threads changes its rate by a third, and lasts as long as the process. Each turn of a
/// test is therefore a new process, and there are many short turns.
const TURNS: usize = 9;
const WINDOW_S: u32 = 1;
/// How long a process runs before it is measured, after the first second that it reports. Each client compiles the
/// script itself, so at first both programs measure LuaJIT's compiler.
const WARMUP: Duration = Duration::from_secs(2);
const CLIENTS: u32 = 8;
/// Point selects are in `client_counts`.
const TESTS: [&str; 2] = ["oltp_write_only", "oltp_read_write"];

/// One database for each program, filled before every test. Otherwise the faster program would have to read more rows
/// that the previous test inserted and deleted.
const DATABASES: [&str; 2] = [DATABASE, "peer"];

/// Bundled tests over MariaDB without pinning, as a user would run them.
pub fn mariadb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let server = Server::mariadb(bench, &Cores::FREE)?;
    let rumba = bench.rumba();
    let mut lines = Vec::new();
    for test in TESTS {
        DATABASES.into_iter().try_for_each(|database| server.fill_mariadb(database))?;
        let turn = |program: &[&OsStr], database: &str| {
            let words = words(test, &at(&server.socket, database));
            Sysbench::start(program, &words, &Cores::FREE, CLIENTS, WARMUP)?.seconds(WINDOW_S)
        };
        let own = || turn(&[rumba.as_os_str(), SYSBENCH.as_ref()], DATABASES[0]);
        let peer = || turn(&[SYSBENCH.as_ref()], DATABASES[1]);
        let mut pairs = Vec::new();
        for number in 0..TURNS {
            // Every second time the order is reversed, so that the after-effects of a turn affect both.
            pairs.push(if number.is_multiple_of(2) {
                (own()?, peer()?)
            } else {
                let peer = peer()?;
                (own()?, peer)
            });
        }
        // Each ratio is of neighbours in time.
        let over = |of: &dyn Fn(&(Window, Window)) -> f64| Spread::of(pairs.iter().map(of).collect());
        let rate = over(&|(own, peer)| own.queries_per_s / peer.queries_per_s);
        let cpu = over(&|(own, peer)| own.cpu_us_per_query / peer.cpu_us_per_query);
        let (own_us, peer_us) = (over(&|(own, _)| own.cpu_us_per_query), over(&|(_, peer)| peer.cpu_us_per_query));
        lines.push(Line {
            what: format!("queries per second, {test}, MariaDB, {CLIENTS} clients, ratio to sysbench"),
            goal: "≥ 1.00".into(),
            measured: format!(
                "{}; client CPU {}: {:.2} µs over {:.2} µs",
                rate.reported_with_surety(2),
                cpu.reported(2),
                own_us.median,
                peer_us.median
            ),
            met: Some(rate.median >= 1.0),
            command: format!(
                "rumba sysbench {test} --threads={CLIENTS}; in turns with sysbench and the same words (nothing pinned)"
            ),
        });
    }
    Ok(lines)
}
