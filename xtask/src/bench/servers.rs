//! Servers that the benchmark starts, and sysbench for comparison.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::Failure;
use super::measure::Bench;

/// The longest wait for any output of a server or a client.
const PATIENCE: Duration = Duration::from_secs(90);

/// Cores for the server and cores for its clients, as `taskset` writes them; `None` leaves both to the kernel.
#[derive(Clone, Debug)]
pub struct Cores {
    pub server: Option<String>,
    pub clients: Option<String>,
}

impl Cores {
    /// Without pinning.
    pub const FREE: Self = Self { server: None, clients: None };

    /// One half of the cores each.
    pub fn halves() -> Result<Self, Failure> {
        let count = std::thread::available_parallelism()?.get();
        if count < 2 {
            return Err("server and clients are pinned apart, which takes two cores; this machine has one".into());
        }
        let half = count / 2;
        let span = |from: usize, to: usize| Some(format!("{from}-{}", to - 1));
        Ok(Self { server: span(0, half), clients: span(half, count) })
    }

    /// As the page says it.
    pub fn reported(&self) -> String {
        match (&self.server, &self.clients) {
            (Some(server), Some(clients)) => format!("server on cores {server}, clients on {clients}"),
            _ => "nothing pinned".into(),
        }
    }
}

/// A command that dies with the bench, on these cores.
pub fn pinned(cores: Option<&String>, program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(cores) = cores {
        command.args(["taskset", "-c", cores]);
    }
    command.arg(program);
    command
}

/// A server of the benchmark; dropping it kills it.
pub struct Server {
    child: Child,
    /// The output of a null server.
    said: Option<BufReader<ChildStdout>>,
    pub socket: PathBuf,
    /// The signal that ends it.
    end: &'static str,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = run(Command::new("kill").arg(format!("-{}", self.end)).arg(self.child.id().to_string()));
        let _ = self.child.wait();
    }
}

impl Server {
    /// rumba's null server, with a thread per core that it has.
    pub fn null(bench: &Bench, cores: &Cores, more: &[&str]) -> Result<Self, Failure> {
        // PostgreSQL's clients look for this name; the others take any name.
        let socket = bench.path(".s.PGSQL.5432");
        let _ = std::fs::remove_file(&socket);
        let mut command = pinned(cores.server.as_ref(), &bench.rumba());
        command.arg("null-server").arg("--socket").arg(&socket).args(more).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut said = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let server = Self { child, said: Some(said), socket, end: KILL };
        if line.starts_with("listening") { Ok(server) } else { Err(format!("{command:?} said {line:?}").into()) }
    }

    /// Ends a null server with a delay, and returns the median time for which it held its answers, in milliseconds.
    pub fn held_ms(mut self) -> Result<f64, Failure> {
        run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let mut words = String::new();
        self.said.take().ok_or("only a null server has last words")?.read_to_string(&mut words)?;
        let held = words.split_once("held for ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<f64>().ok());
        held.ok_or_else(|| format!("the null server's last words were {words:?}").into())
    }

    /// MariaDB with sysbench's table of 100,000 rows.
    pub fn mariadb(bench: &Bench, cores: &Cores) -> Result<Self, Failure> {
        let settings = ["--skip-networking", "--innodb-buffer-pool-size=256M", "--innodb-flush-log-at-trx-commit=0"];
        let server = Self::mariadb_with(bench, cores, &settings)?;
        server.fill_mariadb(DATABASE)?;
        Ok(server)
    }

    /// Fills a database of MariaDB with the same table, for any client; its earlier content is dropped.
    pub fn fill_mariadb(&self, database: &str) -> Result<(), Failure> {
        self.await_mariadb(&format!("CREATE OR REPLACE DATABASE {database}"))?;
        run(Command::new(SYSBENCH).arg("oltp_read_write").args(TABLE).args(at(&self.socket, database)).arg("prepare"))
    }

    /// MariaDB without a database, while it starts.
    pub fn mariadb_with(bench: &Bench, cores: &Cores, settings: &[&str]) -> Result<Self, Failure> {
        let (data, socket) = (bench.path("mariadb"), bench.path("mariadb.sock"));
        // Another measurement's data is different: rows were inserted, deleted, or have other values.
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        let user = format!("--user={}", std::env::var("USER").unwrap_or_else(|_| "root".into()));
        let data_dir = format!("--datadir={}", data.display());
        let auth = "--auth-root-authentication-method=normal";
        run(Command::new("mariadb-install-db").args(["--no-defaults", auth, &data_dir, &user, "--skip-test-db"]))?;
        let _ = std::fs::remove_file(&socket);
        let mut command = pinned(cores.server.as_ref(), Path::new("/usr/sbin/mariadbd"));
        command.args(["--no-defaults", &data_dir, &user, "--max-connections=4096", "--table-open-cache=8000"]);
        command.args(settings).arg(format!("--socket={}", socket.display()));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { child, said: None, socket, end: KILL })
    }

    /// PostgreSQL with an empty database, on a Unix socket and on a port of 127.0.0.1.
    pub fn postgresql(bench: &Bench, port: u16) -> Result<Self, Failure> {
        const BIN: &str = "/usr/lib/postgresql/15/bin";
        let data = bench.path("postgresql");
        std::fs::create_dir_all(&data)?;
        // root may not run the server, and its user must reach the data.
        let is_root = std::fs::metadata("/proc/self")?.uid() == 0;
        if is_root {
            std::fs::set_permissions(data.parent().ok_or("a path in a directory")?, Permissions::from_mode(0o711))?;
            run(Command::new("chown").arg("postgres:postgres").arg(&data))?;
        }
        // A killed server would leave its System V shared memory, also if the bench itself is killed.
        let as_user = |program: &[&str]| {
            let words = ["--reuid=postgres", "--regid=postgres", "--clear-groups", "setpriv", "--pdeathsig", "INT"];
            let mut command = Command::new("setpriv");
            command.args(if is_root { &words[..] } else { &words[4..] }).args(program).current_dir(&data);
            command
        };
        let initdb = format!("{BIN}/initdb");
        let words = [&initdb, "-U", "root", "--auth=trust", "-E", "LATIN1", "--locale=C", "-N", "-D"];
        run(as_user(&words).arg(data.join("data")))?;
        let mut command = as_user(&[&format!("{BIN}/postgres"), "-D"]);
        command.arg(data.join("data")).arg("-k").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        let settings = ["max_connections=600", "shared_buffers=256MB", "synchronous_commit=off", "fsync=off"];
        command.args(settings.iter().flat_map(|setting| ["-c", setting]));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { child, said: None, socket: data.join(format!(".s.PGSQL.{port}")), end: "INT" };
        let deadline = Instant::now() + PATIENCE;
        let mut create = Command::new(format!("{BIN}/createdb"));
        create.arg("-h").arg(&data).args(["-p", &port.to_string(), "-U", "root", DATABASE]);
        while let Err(error) = run(&mut create) {
            if Instant::now() > deadline {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(server)
    }

    /// Waits until MariaDB accepts these first statements.
    pub fn await_mariadb(&self, sql: &str) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.request_mariadb(sql) {
            if Instant::now() > deadline {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    /// MariaDB's answer to statements: a row per line, with columns separated by tabs.
    fn request_mariadb(&self, sql: &str) -> Result<String, Failure> {
        let mut command = Command::new("mariadb");
        output_of(command.args(["--no-defaults", "--user=root", "--batch", "-e", sql, "--socket"]).arg(&self.socket))
    }
}

const KILL: &str = "KILL";

/// A free port of 127.0.0.1.
pub fn free_port() -> Result<u16, Failure> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The arguments for sysbench to connect to a MySQL server.
pub fn at(socket: &Path, database: &str) -> [String; 3] {
    [format!("--mysql-socket={}", socket.display()), "--mysql-user=root".into(), format!("--mysql-db={database}")]
}

pub fn run(command: &mut Command) -> Result<(), Failure> {
    output_of(command).map(drop)
}

pub fn output_of(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reported = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(format!("{command:?}: {reported}").into())
}

/// The work of a client in a time window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Queries per second.
    pub queries_per_s: f64,
    /// CPU time of the client, µs.
    pub cpu_us_per_query: f64,
}

/// sysbench, or a program of its command line and output. It stays warm: between its windows it is stopped, not ended.
pub struct Sysbench {
    child: Child,
    lines: Receiver<String>,
}

/// The database of sysbench's tables.
pub const DATABASE: &str = "sbtest";

/// The peer.
pub const SYSBENCH: &str = "sysbench";

/// sysbench's arguments for the table and for drawing its rows. The values of the rows are drawn uniformly too. By
/// default most rows have their `k` in a hundredth of the range, so a list of `k` matches no row or a hundred.
pub const TABLE: [&str; 2] = ["--table-size=100000", "--rand-type=uniform"];

/// sysbench's arguments for a test of that table on a server.
pub fn words(test: &str, place: &[String]) -> Vec<String> {
    [test].into_iter().chain(TABLE).map(str::to_owned).chain(place.iter().cloned()).collect()
}

/// sysbench's arguments for prepared point selects over MySQL's protocol.
pub fn point_selects(server: &Server) -> Vec<String> {
    words("oltp_point_select", &at(&server.socket, DATABASE))
}

impl Sysbench {
    /// Starts a program (`sysbench`, or `rumba` and `sysbench`) with a test's arguments, and lets it warm up.
    pub fn start(
        program: &[&OsStr],
        words: &[String],
        cores: &Cores,
        clients: u32,
        warmup: Duration,
    ) -> Result<Self, Failure> {
        let mut command = pinned(cores.clients.as_ref(), Path::new("stdbuf"));
        command.arg("-oL").args(program).args(words).args(["--time=600", "--report-interval=1"]);
        command.arg(format!("--threads={clients}")).arg("run").stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let (notify, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).all(|line| notify.send(line).is_ok())
        });
        let sysbench = Self { child, lines };
        sysbench.queries_per_s()?;
        let warm = Instant::now() + warmup;
        while Instant::now() < warm {
            sysbench.queries_per_s()?;
        }
        Ok(sysbench)
    }

    /// The next second's rate.
    fn queries_per_s(&self) -> Result<f64, Failure> {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| "sysbench says nothing any more")?;
            if let Some((_, rest)) = line.split_once(" qps: ") {
                return Ok(rest.split(' ').next().unwrap_or_default().parse()?);
            }
        }
    }

    /// The program's work in this many seconds.
    pub fn window(&self, seconds: u32) -> Result<Window, Failure> {
        self.signal("CONT")?;
        // The second in which it was stopped is not usable, and one more lets its threads settle.
        for _ in 0..2 {
            self.queries_per_s()?;
        }
        let window = self.seconds(seconds)?;
        self.signal("STOP")?;
        Ok(window)
    }

    /// The program's work in the next seconds, while it keeps running.
    pub fn seconds(&self, seconds: u32) -> Result<Window, Failure> {
        let (start, cpu) = (Instant::now(), self.cpu_us()?);
        let rates = (0..seconds).map(|_| self.queries_per_s()).collect::<Result<Vec<_>, _>>()?;
        let (span, cpu) = (start.elapsed().as_secs_f64(), self.cpu_us()? - cpu);
        let queries_per_s = rates.iter().sum::<f64>() / rates.len() as f64;
        Ok(Window { queries_per_s, cpu_us_per_query: cpu / (queries_per_s * span) })
    }

    /// The most memory that was resident so far, in MB.
    pub fn peak_rss_mb(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in status")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
    }

    fn cpu_us(&self) -> Result<f64, Failure> {
        cpu_us(&self.child.id().to_string(), Whose::Own)
    }

    fn signal(&self, name: &str) -> Result<(), Failure> {
        run(Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()))
    }
}

impl Drop for Sysbench {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes whose CPU time to read.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// The process's own time, including all its threads.
    Own,
    /// The time of its ended child processes.
    Children,
}

/// The CPU time so far of a process, by its number or `self`, in microseconds. The kernel counts it exactly, but
/// reports hundredths of a second.
pub fn cpu_us(process: &str, whose: Whose) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/PID/stat has no name")?;
    let skipped = match whose {
        Whose::Own => 11,
        Whose::Children => 13,
    };
    let mut times = fields.split_whitespace().skip(skipped).take(2).map(str::parse::<f64>);
    let mut next = || times.next().ok_or("/proc/PID/stat is short")?.map_err(Failure::from);
    Ok((next()? + next()?) * 1e4)
}
