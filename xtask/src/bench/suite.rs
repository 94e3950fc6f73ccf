//! The bundled scripts over real servers: `rumba sysbench` beside sysbench, the same words given to both, in turns.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rumba_testkit::postgresql::{PROGRAMS, PostgreSql, SUPERUSER};

use super::clients::arguments;
use super::floor::loop_us;
use super::measure::{Bench, Spread};
use super::servers::{Cores, DATABASE, SYSBENCH, Server, Sysbench, Whose, Window, at, cpu_us, run, words};
use super::{Failure, Line};

/// Turns of each where what is timed is the whole of a program's work.
const REPEATS: usize = 7;
/// Where the threads of a process come to lie makes a third more or less of its rate and lasts as long as it does, so that
/// each turn of a test is a process of its own, and there are many short ones.
const TURNS: usize = 9;
const WINDOW_S: u32 = 1;
/// How long a process runs before it is looked at, beyond the first second that it tells of. Each of its clients compiles the
/// script for itself, and of 64 each has some thirty transactions in a second: at first both programs measure LuaJIT's compiler.
const WARMUP: Duration = Duration::from_secs(2);
/// All that both have under the same name and that runs on without an end. `bulk_insert` does not: see [`bulk_insert`].
const TESTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_insert",
    "oltp_delete",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
];

/// The two programs.
struct Programs<'a> {
    own: Vec<&'a OsStr>,
    peer: Vec<&'a OsStr>,
}

impl<'a> Programs<'a> {
    fn of(rumba: &'a Path) -> Self {
        Self { own: vec![rumba.as_os_str(), SYSBENCH.as_ref()], peer: vec![SYSBENCH.as_ref()] }
    }

    /// With event loops, which take the least CPU; by itself rumba takes threads where nothing is pinned, for throughput.
    fn with_loops(rumba: &'a Path) -> Self {
        let mut programs = Self::of(rumba);
        programs.own.push("--client-driver=loops".as_ref());
        programs
    }

    /// sysbench in both places: what they differ by then is of the way of measuring.
    fn alike() -> Self {
        Self { own: vec![SYSBENCH.as_ref()], peer: vec![SYSBENCH.as_ref()] }
    }
}

fn command(program: &[&OsStr]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    command
}

/// Measures both in turns, rumba's first; each second time the other way round, so that what a turn leaves behind is in
/// both's figures.
fn in_turns<T>(
    repeats: usize,
    own: impl Fn() -> Result<T, Failure>,
    peer: impl Fn() -> Result<T, Failure>,
) -> Result<Vec<(T, T)>, Failure> {
    let mut pairs = Vec::new();
    for repeat in 0..repeats {
        pairs.push(if repeat.is_multiple_of(2) {
            (own()?, peer()?)
        } else {
            let peer = peer()?;
            (own()?, peer)
        });
    }
    Ok(pairs)
}

/// An event that does nothing: what is left is the loop around it.
pub fn empty_event(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let script = bench.path("empty.lua");
    std::fs::write(&script, "function event() end\n")?;
    let rumba = bench.rumba();
    let programs = Programs::of(&rumba);
    let ns = |program: &[&OsStr]| -> Result<f64, Failure> {
        let output = command(program).arg(&script).args(["--time=2", "--threads=1", "run"]).output()?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = told.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
        // 1.1's words for it.
        let line = line.or_else(|| told.lines().find_map(|line| line.trim().strip_prefix("events/s (eps):")));
        let number: f64 = line.ok_or_else(|| format!("no events in {told}"))?.trim().parse()?;
        let is_rate = told.contains("events/s (eps):");
        Ok(if is_rate { 1e9 / number } else { 2e9 / number })
    };
    let pairs = in_turns(REPEATS, || ns(&programs.own), || ns(&programs.peer))?;
    let [own, peer] =
        [Spread::of(pairs.iter().map(|pair| pair.0).collect()), Spread::of(pairs.iter().map(|pair| pair.1).collect())];
    Ok(vec![Line {
        what: "an event of Lua that does nothing, one client".into(),
        goal: "≤ sysbench's in the same run".into(),
        measured: format!("{} ns over {} ns", own.told(0), peer.told(0)),
        met: Some(own.median <= peer.median),
        command: "rumba sysbench empty.lua --time=2 run; in turns with sysbench and the same words".into(),
    }])
}

/// Tables made and filled from nothing.
pub fn prepare(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let server = Server::mariadb(bench, &Cores::FREE)?;
    let mut lines = Vec::new();
    for (threads, most) in [(1, 2.0), (4, 1.4)] {
        lines.extend(prepare_with(bench, &server, threads, most)?);
    }
    Ok(lines)
}

const TABLES: u32 = 4;
const ROWS: u32 = 100_000;

fn prepare_with(bench: &Bench, server: &Server, threads: u32, least: f64) -> Result<Vec<Line>, Failure> {
    let rumba = bench.rumba();
    let programs = Programs::of(&rumba);
    let rows = f64::from(TABLES * ROWS);
    // The default of one is not the other's, and an index on numbers most of which are alike is built otherwise.
    let drawn = "--rand-type=uniform".to_owned();
    let given = [format!("--tables={TABLES}"), format!("--table-size={ROWS}"), drawn, format!("--threads={threads}")];
    let fill = |program: &[&OsStr]| -> Result<Window, Failure> {
        let ask = |word: &str| {
            let mut command = command(program);
            command.arg("oltp_read_write").args(&given).args(at(&server.socket, DATABASE)).arg(word);
            command
        };
        run(&mut ask("cleanup"))?;
        rows_window(&mut ask("prepare"), rows)
    };
    let compared = Compared::of(&in_turns(REPEATS, || fill(&programs.own), || fill(&programs.peer))?);
    let command = format!(
        "rumba sysbench oltp_read_write {} prepare, the tables dropped before; in turns with sysbench and the same words",
        given.join(" ")
    );
    Ok(vec![
        Line {
            what: format!(
                "prepare over MariaDB, {threads} threads, rows per second, indexes included, ratio to sysbench"
            ),
            goal: format!("≥ {least:.1}"),
            measured: compared.rate_told(),
            met: Some(compared.rate.median >= least),
            command: command.clone(),
        },
        Line {
            what: format!("prepare over MariaDB, {threads} threads, client CPU per row, ratio to sysbench"),
            goal: "≤ 0.20".into(),
            measured: compared.cpu_told(),
            met: Some(compared.cpu.median <= 0.20),
            command,
        },
    ])
}

/// What a command that writes so many rows came to: rows per second from its start to its end, and its CPU per row.
fn rows_window(command: &mut Command, rows: f64) -> Result<Window, Failure> {
    let (start, cpu) = (Instant::now(), cpu_us("self", Whose::Children)?);
    run(command)?;
    let seconds = start.elapsed().as_secs_f64();
    let spent = cpu_us("self", Whose::Children)? - cpu;
    Ok(Window { queries_per_s: rows / seconds, cpu_us_per_query: spent / rows })
}

/// The rows of a turn of `bulk_insert`: of 64 clients each then sends more than its last packet, and of 8 a dozen.
const BULK_ROWS: u32 = 4_000_000;
/// The longest that any command of such a turn may take, seconds: one that takes longer stands still, and is ended.
const LONGEST_S: &str = "600";
/// The databases of `bulk_insert`: its tables have the names of those that other measurements read, and go after each turn.
const BULK_DATABASES: [&str; 2] = ["bulk", "bulk_peer"];

/// `bulk_insert` at a place of each program's own. Its events are rows, of which many make a statement, and its tables
/// grow as fast as it is: so it inserts a number of rows, from its start until the last of them is in, into tables that
/// are made for this turn. `settle` has the server done with what came before.
fn bulk_insert(
    programs: &Programs<'_>,
    places: &[Vec<String>; 2],
    clients: u32,
    settle: &dyn Fn() -> Result<(), Failure>,
) -> Result<Compared, Failure> {
    let threads = format!("--threads={clients}");
    let turn = |program: &[&OsStr], place: &[String]| -> Result<Window, Failure> {
        let ask = |program: &[&OsStr], words: &[&str]| {
            let mut command = Command::new("timeout");
            command.args(["--foreground", "--verbose", "--kill-after=10", LONGEST_S]).args(program);
            command.arg("bulk_insert").args(place).arg(&threads).args(words);
            command
        };
        // By the same program for both.
        run(&mut ask(&programs.peer, &["cleanup"]))?;
        run(&mut ask(&programs.peer, &["prepare"]))?;
        settle()?;
        let events = format!("--events={BULK_ROWS}");
        let window = rows_window(&mut ask(program, &[&events, "--time=0", "run"]), f64::from(BULK_ROWS))?;
        run(&mut ask(&programs.peer, &["cleanup"]))?;
        Ok(window)
    };
    let pairs = in_turns(REPEATS, || turn(&programs.own, &places[0]), || turn(&programs.peer, &places[1]))?;
    Ok(Compared::of(&pairs))
}

/// A database each, filled before every test: of what was inserted and deleted by the test before, the faster of the two
/// would have more to read.
const DATABASES: [&str; 2] = [DATABASE, "peer"];

/// Every bundled test over MariaDB, nothing pinned: what a user sees.
pub fn mariadb(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let server = Server::mariadb(bench, &Cores::FREE)?;
    let words_of = |test: &str| DATABASES.map(|database| words(test, &at(&server.socket, database)));
    let mut lines = Vec::new();
    for clients in [8, 64] {
        for test in TESTS {
            DATABASES.into_iter().try_for_each(|database| server.fill_mariadb(database))?;
            let compared = compare(&Programs::of(&bench.rumba()), &words_of(test), clients)?;
            lines.push(Line {
                what: format!("queries per second, {test}, MariaDB, {clients} clients, ratio to sysbench"),
                goal: "≥ 1.00".into(),
                measured: format!("{}; client CPU {}", compared.rate.told_with_surety(2), compared.cpu_told()),
                met: Some(compared.rate.median >= 1.0),
                command: format!("rumba sysbench {test} --threads={clients}; in turns with sysbench and the same words (nothing pinned)"),
            });
        }
    }
    lines.push(alike(&words_of("oltp_point_select"))?);
    // After all others: what so many rows leave the server to do is in none of their windows.
    for clients in [8, 64] {
        for database in BULK_DATABASES {
            server.await_mariadb(&format!("CREATE OR REPLACE DATABASE {database}"))?;
        }
        let places = BULK_DATABASES.map(|database| at(&server.socket, database).to_vec());
        let compared = bulk_insert(&Programs::of(&bench.rumba()), &places, clients, &|| Ok(()))?;
        lines.push(Line {
            what: format!("rows per second, bulk_insert, MariaDB, {clients} clients, ratio to sysbench"),
            goal: "≥ 1.00".into(),
            measured: format!("{}; client CPU per row {}", compared.rate_told(), compared.cpu_told()),
            met: Some(compared.rate.median >= 1.0),
            command: format!(
                "rumba sysbench bulk_insert --threads={clients} --events={BULK_ROWS} --time=0 run, its tables made before; \
                 in turns with sysbench and the same words (nothing pinned)"
            ),
        });
    }
    Ok(lines)
}

/// What this way of measuring makes of two that are alike.
fn alike(words: &[Vec<String>; 2]) -> Result<Line, Failure> {
    const CLIENTS: u32 = 8;
    let compared = compare(&Programs::alike(), words, CLIENTS)?;
    Ok(Line {
        what: format!("queries per second, oltp_point_select, MariaDB, {CLIENTS} clients, sysbench, ratio to sysbench"),
        goal: "reported".into(),
        measured: format!("{}; client CPU {}", compared.rate.told_with_surety(2), compared.cpu_told()),
        met: None,
        command: format!("sysbench oltp_point_select --threads={CLIENTS}; in turns with itself (nothing pinned)"),
    })
}

/// The clients of a test over PostgreSQL.
const POSTGRESQL_CLIENTS: u32 = 64;

/// A database of PostgreSQL's, as sysbench is told.
fn postgresql_at(server: &PostgreSql, database: &str) -> [String; 5] {
    [
        "--db-driver=pgsql".to_owned(),
        format!("--pgsql-host={}", server.directory().display()),
        format!("--pgsql-port={}", server.port()),
        format!("--pgsql-user={SUPERUSER}"),
        format!("--pgsql-db={database}"),
    ]
}

/// One of PostgreSQL's own programs, about a server.
fn postgresql_program(name: &str, server: &PostgreSql) -> Command {
    let mut command = Command::new(Path::new(PROGRAMS).join(name));
    command.arg("-h").arg(server.directory()).args(["-p", &server.port().to_string(), "-U", SUPERUSER]);
    command
}

/// The oltp suite over PostgreSQL.
pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let server = PostgreSql::start(&["max_connections=200", "shared_buffers=256MB", "synchronous_commit=off"], &[]);
    let words_of = |test: &str| DATABASES.map(|database| words(test, &postgresql_at(&server, database)));
    for database in DATABASES.into_iter().chain(BULK_DATABASES) {
        run(postgresql_program("createdb", &server).arg(database))?;
    }
    let (rumba, mut lines) = (bench.rumba(), Vec::new());
    for test in TESTS {
        for words in words_of("oltp_read_write") {
            run(command(&[SYSBENCH.as_ref()]).args(&words).arg("cleanup"))?;
            run(command(&[SYSBENCH.as_ref()]).args(&words).arg("prepare"))?;
        }
        let compared = compare(&Programs::with_loops(&rumba), &words_of(test), POSTGRESQL_CLIENTS)?;
        lines.push(Line {
            what: format!("client CPU per query, {test}, PostgreSQL, {POSTGRESQL_CLIENTS} clients, ratio to sysbench"),
            goal: "≤ 0.60".into(),
            measured: format!("{}; queries per second {}", compared.cpu_told(), compared.rate.told(2)),
            met: Some(compared.cpu.median <= 0.60),
            command: format!(
                "rumba sysbench --client-driver=loops {test} --db-driver=pgsql --threads={POSTGRESQL_CLIENTS}; \
                 in turns with sysbench and the same words (nothing pinned)"
            ),
        });
    }
    // The least that a point select can cost there, on cores that the server wants, too.
    let speak = ["protocol=postgresql".to_owned(), format!("user={SUPERUSER}"), format!("database={DATABASE}")];
    let args = [&speak[..], &arguments(POSTGRESQL_CLIENTS)].concat();
    lines.push(Line {
        what: format!("client CPU per query of a minimal loop, PostgreSQL, {POSTGRESQL_CLIENTS} clients"),
        goal: "reported".into(),
        measured: format!("{:.2} µs", loop_us(bench, &server.socket(), &Cores::FREE, &args)?),
        met: None,
        command: format!("minimal_loop SOCKET {} (nothing pinned)", args.join(" ")),
    });
    lines.push(postgresql_bulk_insert(&Programs::with_loops(&rumba), &server)?);
    Ok(lines)
}

/// `bulk_insert` over PostgreSQL, after all others as over MariaDB. A checkpoint that the rows of one turn have made due
/// would fall into the next.
fn postgresql_bulk_insert(programs: &Programs<'_>, server: &PostgreSql) -> Result<Line, Failure> {
    let places = BULK_DATABASES.map(|database| postgresql_at(server, database).to_vec());
    let settle = || run(postgresql_program("psql", server).args(["-X", "-d", BULK_DATABASES[0], "-c", "CHECKPOINT"]));
    let compared = bulk_insert(programs, &places, POSTGRESQL_CLIENTS, &settle)?;
    Ok(Line {
        what: format!("client CPU per row, bulk_insert, PostgreSQL, {POSTGRESQL_CLIENTS} clients, ratio to sysbench"),
        goal: "≤ 0.60".into(),
        measured: format!("{}; rows per second {}", compared.cpu_told(), compared.rate_told()),
        met: Some(compared.cpu.median <= 0.60),
        command: format!(
            "rumba sysbench --client-driver=loops bulk_insert --db-driver=pgsql --threads={POSTGRESQL_CLIENTS} \
             --events={BULK_ROWS} --time=0 run, its tables made before, then CHECKPOINT; \
             in turns with sysbench and the same words (nothing pinned)"
        ),
    })
}

/// rumba over sysbench.
struct Compared {
    rate: Spread,
    rates: [Spread; 2],
    cpu: Spread,
    cpu_us: [Spread; 2],
}

impl Compared {
    /// Of windows that were neighbours in time, rumba's first.
    fn of(pairs: &[(Window, Window)]) -> Self {
        let over = |of: &dyn Fn(&(Window, Window)) -> f64| Spread::of(pairs.iter().map(of).collect());
        Self {
            rate: over(&|(own, peer)| own.queries_per_s / peer.queries_per_s),
            rates: [over(&|(own, _)| own.queries_per_s), over(&|(_, peer)| peer.queries_per_s)],
            cpu: over(&|(own, peer)| own.cpu_us_per_query / peer.cpu_us_per_query),
            cpu_us: [over(&|(own, _)| own.cpu_us_per_query), over(&|(_, peer)| peer.cpu_us_per_query)],
        }
    }

    fn rate_told(&self) -> String {
        let [own, peer] = self.rates;
        format!("{}; {:.0} over {:.0}", self.rate.told(2), own.median, peer.median)
    }

    fn cpu_told(&self) -> String {
        let [own, peer] = self.cpu_us;
        format!("{}: {:.2} µs over {:.2} µs", self.cpu.told(2), own.median, peer.median)
    }
}

/// Alternates between the two; each ratio is of neighbours in time, and each turn a process of its own.
fn compare(programs: &Programs<'_>, words: &[Vec<String>; 2], clients: u32) -> Result<Compared, Failure> {
    let turn = |program: &[&OsStr], words: &[String]| {
        Sysbench::start(program, words, &Cores::FREE, clients, WARMUP)?.seconds(WINDOW_S)
    };
    Ok(Compared::of(&in_turns(TURNS, || turn(&programs.own, &words[0]), || turn(&programs.peer, &words[1]))?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_second_time_the_other_is_measured_first() {
        let order = RefCell::new(String::new());
        let turn = |who: char| {
            order.borrow_mut().push(who);
            Ok(who)
        };
        let pairs = in_turns(REPEATS, || turn('o'), || turn('p')).unwrap();
        assert_eq!((pairs, order.into_inner().as_str()), (vec![('o', 'p'); REPEATS], "oppooppooppoop"));
    }
}
