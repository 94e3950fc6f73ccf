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

const REPEATS: usize = 3;
const WINDOW_S: u32 = 2;
/// How long each runs before it is looked at.
pub const WARMUP: Duration = Duration::from_secs(2);
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
}

fn command(program: &[&OsStr]) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    command
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
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        pairs.push((ns(&programs.own)?, ns(&programs.peer)?));
    }
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
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        pairs.push((fill(&programs.own)?, fill(&programs.peer)?));
    }
    let compared = Compared::of(&pairs);
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

/// `bulk_insert` at a place of each program's own. Its events are rows, of which many make a statement, and its tables
/// grow as fast as it is: so it inserts a number of rows, from its start until the last of them is in, into tables that
/// are made for this turn.
fn bulk_insert(programs: &Programs<'_>, places: &[Vec<String>; 2], clients: u32) -> Result<Compared, Failure> {
    let threads = format!("--threads={clients}");
    let turn = |program: &[&OsStr], place: &[String]| -> Result<Window, Failure> {
        let ask = |program: &[&OsStr], words: &[&str]| {
            let mut command = command(program);
            command.arg("bulk_insert").args(place).arg(&threads).args(words);
            command
        };
        // By the same program for both.
        run(&mut ask(&programs.peer, &["cleanup"]))?;
        run(&mut ask(&programs.peer, &["prepare"]))?;
        let events = format!("--events={BULK_ROWS}");
        let window = rows_window(&mut ask(program, &[&events, "--time=0", "run"]), f64::from(BULK_ROWS))?;
        run(&mut ask(&programs.peer, &["cleanup"]))?;
        Ok(window)
    };
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        pairs.push((turn(&programs.own, &places[0])?, turn(&programs.peer, &places[1])?));
    }
    Ok(Compared::of(&pairs))
}

/// A database each: who is stopped in the middle of a transaction holds its locks. They are filled before every test: of
/// what was inserted and deleted by the test before, the faster of the two would have more to read.
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
                measured: format!("{}; client CPU {}", compared.rate.told(2), compared.cpu_told()),
                met: Some(compared.rate.median >= 1.0),
                command: format!("rumba sysbench {test} --threads={clients}; in turns with sysbench and the same words (nothing pinned)"),
            });
        }
        let places = DATABASES.map(|database| at(&server.socket, database).to_vec());
        let compared = bulk_insert(&Programs::of(&bench.rumba()), &places, clients)?;
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

/// The oltp suite over PostgreSQL.
pub fn postgresql(bench: &Bench) -> Result<Vec<Line>, Failure> {
    const CLIENTS: u32 = 64;
    let server = PostgreSql::start(&["max_connections=200", "shared_buffers=256MB", "synchronous_commit=off"], &[]);
    let place = |database: &str| {
        [
            "--db-driver=pgsql".to_owned(),
            format!("--pgsql-host={}", server.directory().display()),
            format!("--pgsql-port={}", server.port()),
            format!("--pgsql-user={SUPERUSER}"),
            format!("--pgsql-db={database}"),
        ]
    };
    let words_of = |test: &str| DATABASES.map(|database| words(test, &place(database)));
    for database in DATABASES {
        let mut make = Command::new(Path::new(PROGRAMS).join("createdb"));
        make.arg("-h").arg(server.directory()).args(["-p", &server.port().to_string(), "-U", SUPERUSER, database]);
        run(&mut make)?;
    }
    let (rumba, mut lines) = (bench.rumba(), Vec::new());
    for test in TESTS {
        for words in words_of("oltp_read_write") {
            run(command(&[SYSBENCH.as_ref()]).args(&words).arg("cleanup"))?;
            run(command(&[SYSBENCH.as_ref()]).args(&words).arg("prepare"))?;
        }
        let compared = compare(&Programs::with_loops(&rumba), &words_of(test), CLIENTS)?;
        lines.push(Line {
            what: format!("client CPU per query, {test}, PostgreSQL, {CLIENTS} clients, ratio to sysbench"),
            goal: "≤ 0.60".into(),
            measured: format!("{}; queries per second {}", compared.cpu_told(), compared.rate.told(2)),
            met: Some(compared.cpu.median <= 0.60),
            command: format!(
                "rumba sysbench --client-driver=loops {test} --db-driver=pgsql --threads={CLIENTS}; in turns with sysbench and the same words (nothing pinned)"
            ),
        });
    }
    let places = DATABASES.map(|database| place(database).to_vec());
    let compared = bulk_insert(&Programs::with_loops(&rumba), &places, CLIENTS)?;
    lines.push(Line {
        what: format!("client CPU per row, bulk_insert, PostgreSQL, {CLIENTS} clients, ratio to sysbench"),
        goal: "≤ 0.60".into(),
        measured: format!("{}; rows per second {}", compared.cpu_told(), compared.rate_told()),
        met: Some(compared.cpu.median <= 0.60),
        command: format!(
            "rumba sysbench --client-driver=loops bulk_insert --db-driver=pgsql --threads={CLIENTS} --events={BULK_ROWS} \
             --time=0 run, its tables made before; in turns with sysbench and the same words (nothing pinned)"
        ),
    });
    // The least that a point select can cost there, on cores that the server wants, too.
    let speak = ["protocol=postgresql".to_owned(), format!("user={SUPERUSER}"), format!("database={DATABASE}")];
    let args = [&speak[..], &arguments(CLIENTS)].concat();
    lines.push(Line {
        what: format!("client CPU per query of a minimal loop, PostgreSQL, {CLIENTS} clients"),
        goal: "reported".into(),
        measured: format!("{:.2} µs", loop_us(bench, &server.socket(), &Cores::FREE, &args)?),
        met: None,
        command: format!("minimal_loop SOCKET {} (nothing pinned)", args.join(" ")),
    });
    Ok(lines)
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

/// Alternates between the two; each ratio is of neighbours in time. Both stay warm, stopped between their windows.
fn compare(programs: &Programs<'_>, words: &[Vec<String>; 2], clients: u32) -> Result<Compared, Failure> {
    let own = Sysbench::start(&programs.own, &words[0], &Cores::FREE, clients, WARMUP)?;
    // The first window stops it, so that the other runs warm alone.
    own.window(1)?;
    let peer = Sysbench::start(&programs.peer, &words[1], &Cores::FREE, clients, WARMUP)?;
    peer.window(1)?;
    let mut pairs = Vec::new();
    for _ in 0..REPEATS {
        pairs.push((own.window(WINDOW_S)?, peer.window(WINDOW_S)?));
    }
    Ok(Compared::of(&pairs))
}
