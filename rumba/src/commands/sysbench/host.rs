//! Connections to databases: the session that each driver's options request, and the errors that are ignored.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;
use rumba_protocol_mysql as mysql;
use rumba_protocol_postgresql as postgresql;
use rumba_protocol_postgresql::libpq::{Environment, Server};
use rumba_workload_sysbench::ScriptError;
use rumba_workload_sysbench::cli::log::Log;
use rumba_workload_sysbench::cli::options::Source;
use rumba_workload_sysbench::cli::report::StatementTimes;
use rumba_workload_sysbench::cli::settings::{DatabaseSettings, PgSslMode, SqliteSettings, SslMode, StatementMode};
use rumba_workload_sysbench::cli::{OptionSet, Refusal};
use rumba_workload_sysbench::failure::FAILED;
use rumba_workload_sysbench::host::{DRIVERS, Host, Rank, Remedy};
use rumba_workload_sysbench::remedy::Ignored;
use rumba_workload_sysbench::stopwatch::Stopwatch;

use super::dry::DrySession;
use super::{Ended, print};

/// MySQL's error for more prepared statements than `max_prepared_stmt_count`.
const TOO_MANY_PREPARED: u32 = 1461;

/// A driver with its options read.
enum Way {
    /// No connection: `--mysql-dry-run`.
    Nowhere,
    MySql {
        targets: Vec<mysql::Target>,
        options: mysql::SessionOptions,
    },
    PostgreSql {
        /// The hosts to try in turn, each with its kinds of encryption.
        hosts: Vec<Vec<postgresql::Target>>,
        options: postgresql::SessionOptions,
    },
    Sqlite {
        file: PathBuf,
        pragmas: String,
        busy_timeout_ms: u32,
    },
}

impl Way {
    fn session(&self, client: u32, turn: u32) -> Result<Box<dyn SqlSession>> {
        let session: Box<dyn SqlSession> = match self {
            Way::MySql { targets, options } => {
                // Hosts and ports are used in turn, across clients and across the connections of each client.
                let target = &targets[client.wrapping_add(turn) as usize % targets.len()];
                Box::new(mysql::WireSession::connect(target, options)?)
            }
            Way::PostgreSql { hosts, options } => Box::new(postgresql::PgSession::connect_any(hosts, options)?),
            Way::Sqlite { file, pragmas, busy_timeout_ms } => {
                rumba_engine_sqlite::session(file, pragmas, *busy_timeout_ms)?
            }
            Way::Nowhere => Box::new(DrySession::default()),
        };
        Ok(session)
    }
}

/// The services that scripts request from this program.
pub struct Drivers {
    /// The options before the script has declared its own, because a script may connect while it is loaded.
    before: OptionSet,
    /// All of them.
    options: OnceLock<OptionSet>,
    log: Mutex<Log>,
    /// Whether a script has requested a driver.
    is_requested: AtomicBool,
    stopwatch: Stopwatch,
    /// The first error of a `thread_done`.
    end_failure: OnceLock<String>,
    /// The clients whose first connection was made.
    connected: AtomicU32,
    /// Whether a client could not connect.
    lacks_connection: Arc<AtomicBool>,
    /// Whether the server has no space for a prepared statement.
    lacks_statement: AtomicBool,
    /// The client that first reported each kind of failed statement.
    failed_statements: Mutex<HashMap<String, u32>>,
}

/// The refusal of the server to a new client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Connection,
    Statement,
}

impl Drivers {
    /// With the options that are known so far.
    pub fn new(options: &OptionSet, verbosity: Rank) -> Self {
        Self {
            before: options.clone(),
            options: OnceLock::new(),
            log: Mutex::new(Log::new(verbosity)),
            is_requested: AtomicBool::new(false),
            stopwatch: Stopwatch::default(),
            end_failure: OnceLock::new(),
            connected: AtomicU32::new(0),
            lacks_connection: Arc::default(),
            lacks_statement: AtomicBool::new(false),
            failed_statements: Mutex::default(),
        }
    }

    pub fn adopt(&self, options: &OptionSet) {
        // They are set once, here.
        let _ = self.options.set(options.for_rumba());
    }

    /// Whether the default driver runs within this process.
    pub fn is_embedded(&self) -> bool {
        self.options().text("db-driver") == Some("sqlite")
    }

    /// Whether a script has requested a driver so far.
    pub fn are_requested_for(&self) -> bool {
        self.is_requested.load(Relaxed)
    }

    /// Prints a report, with the log lines that belong to it.
    pub fn report(&self, text: &str) {
        print(&self.log.lock().unwrap_or_else(PoisonError::into_inner).report(text));
    }

    /// The times of statements since the last call, if they are measured.
    pub fn statement_times(&self) -> Option<StatementTimes> {
        self.stopwatch.take()
    }

    /// Clients are made from here on; connections of the main interpreter do not count.
    pub fn begin_clients(&self) {
        self.connected.store(0, Relaxed);
    }

    /// The number of clients that have connected.
    pub fn connected(&self) -> u32 {
        self.connected.load(Relaxed)
    }

    /// Set once a client could not connect.
    pub fn connect_failed(&self) -> Arc<AtomicBool> {
        self.lacks_connection.clone()
    }

    /// The resource that a client lacked, if it failed for that reason.
    pub fn lack(&self) -> Option<Lack> {
        if self.lacks_statement.load(Relaxed) {
            return Some(Lack::Statement);
        }
        self.lacks_connection.load(Relaxed).then_some(Lack::Connection)
    }

    pub fn client_failed(&self, error: &EngineError, more: &str) -> Ended {
        if let Some(failure) = rumba_workload_sysbench::built_in_tests::Failure::of_client(error) {
            return self.failed(&failure);
        }
        let words = words_of_script(error).map_or_else(|| error.to_string(), str::to_owned) + more;
        self.log(Rank::Fatal, &words);
        Ended::after(1, words)
    }

    /// A client's result, except for an error of its `thread_done` alone. As in sysbench, such an error is logged and
    /// ignored, because the client has completed its events and others continue.
    pub fn pass_over(&self, end: Result<(), ScriptError>) -> Result<()> {
        match end {
            Err(error) if error.is_of_end() => {
                let words = error.to_string();
                self.log(Rank::Fatal, &words);
                // Only the first error is kept.
                let _ = self.end_failure.set(words);
                Ok(())
            }
            end => end.map_err(EngineError::from),
        }
    }

    /// The first error of a `thread_done`.
    pub fn end_failure(&self) -> Option<&str> {
        self.end_failure.get().map(String::as_str)
    }

    pub fn failed(&self, failure: &rumba_workload_sysbench::built_in_tests::Failure) -> Ended {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        failure.lines().for_each(|(rank, words)| print(&log.line(rank, words)));
        let words: Vec<&str> = failure.lines().map(|(_, words)| words).collect();
        Ended::after(1, words.join("\n"))
    }

    /// Whether statements are timed. sysbench reports their times at its lowest rank, debug.
    fn times_statements(&self, settings: &DatabaseSettings) -> bool {
        settings.debug && self.log.lock().unwrap_or_else(PoisonError::into_inner).reports(Rank::Debug)
    }

    fn options(&self) -> &OptionSet {
        self.options.get().unwrap_or(&self.before)
    }

    /// A driver's connection settings, and whether its statements are timed.
    fn way(&self, driver: usize) -> Result<(Way, bool)> {
        let options = self.options();
        let name = DRIVERS[driver].name;
        let settings = DatabaseSettings::read(options, Some(name)).map_err(|refusal| refused(&refusal))?;
        let text = settings.statements == StatementMode::Disable;
        let way = match settings.driver {
            "mysql" if options.flag("mysql-dry-run") => Way::Nowhere,
            "mysql" => mysql_way(options, text)?,
            "pgsql" => postgresql_way(options, text)?,
            _ => sqlite_way(options)?,
        };
        Ok((way, self.times_statements(&settings)))
    }
}

impl Host for Drivers {
    fn driver_requested(&self) {
        self.is_requested.store(true, Relaxed);
    }

    /// The driver of `--db-driver`. This also checks the other options, as sysbench does when a script first requests
    /// it.
    fn default_driver(&self) -> Option<usize> {
        match DatabaseSettings::read(self.options(), None) {
            Ok(settings) => DRIVERS.iter().position(|driver| driver.name == settings.driver),
            Err(refusal) => {
                print(&format!("{refusal}\n"));
                None
            }
        }
    }

    fn connect(&self, driver: usize, client: u32, turn: u32) -> Result<Box<dyn SqlSession>> {
        let (way, is_timed) = self.way(driver)?;
        let session = way.session(client, turn).inspect_err(|_| self.lacks_connection.store(true, Relaxed))?;
        if turn == 0 {
            self.connected.fetch_add(1, Relaxed);
        }
        Ok(if is_timed { self.stopwatch.over(session) } else { session })
    }

    fn remedy(&self, driver: usize, error: &EngineError) -> Remedy {
        if error.code().vendor == TOO_MANY_PREPARED {
            self.lacks_statement.store(true, Relaxed);
        }
        Ignored::of(self.options(), DRIVERS[driver].name).remedy(error)
    }

    /// The same error of many clients is reported once.
    fn statement_failed(&self, client: u32, words: &str) {
        let kind = words.split(" (").next().unwrap_or_default().to_owned();
        let mut failed = self.failed_statements.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed.entry(kind).or_insert(client) == client {
            self.log(Rank::Fatal, words);
        }
    }

    fn log(&self, rank: Rank, words: &str) {
        print(&self.log.lock().unwrap_or_else(PoisonError::into_inner).line(rank, words));
    }
}

/// The message of a script client's error, in the words of its interpreter.
fn words_of_script(error: &EngineError) -> Option<&str> {
    match error {
        EngineError::Failed { call: FAILED, message } => Some(message.as_str()),
        // A message about a full device has become a disk-full error.
        EngineError::DiskFull(words) => words.strip_prefix(FAILED)?.strip_prefix(": "),
        _ => None,
    }
}

fn refused(refusal: &Refusal) -> EngineError {
    EngineError::failed("connect", refusal.to_string())
}

fn port(options: &OptionSet, name: &str) -> Result<u16> {
    let number = options.int(name).map_err(|refusal| refused(&refusal))?;
    u16::try_from(number).map_err(|_| EngineError::failed("connect", format!("--{name}={number} is no port")))
}

fn mysql_way(options: &OptionSet, text_only: bool) -> Result<Way> {
    let tls = mysql_tls(options)?;
    let sockets = options.list("mysql-socket");
    let hosts = options.list("mysql-host");
    let ports = options.list("mysql-port");
    let addresses: Vec<mysql::Address> = if sockets.is_empty() {
        let port = |text: &String| {
            text.parse::<u16>().map_err(|_| EngineError::failed("connect", format!("--mysql-port={text} is no port")))
        };
        let ports = ports.iter().map(port).collect::<Result<Vec<u16>, _>>()?;
        let says_port = options.source("mysql-port") != Some(Source::Default);
        let each = |host: &String| match usual_socket().filter(|_| host == "localhost" && !says_port) {
            Some(socket) => vec![mysql::Address::Socket(socket)],
            None => ports.iter().map(|&port| mysql::Address::Tcp { host: host.clone(), port }).collect(),
        };
        hosts.iter().flat_map(each).collect()
    } else {
        sockets.iter().map(|socket| mysql::Address::Socket(PathBuf::from(socket))).collect()
    };
    if addresses.is_empty() {
        return Err(EngineError::failed("connect", "--mysql-host and --mysql-port name no server"));
    }
    let targets = addresses.into_iter().map(|address| mysql::Target {
        address,
        user: options.text("mysql-user").unwrap_or_default().to_owned(),
        password: mysql::Secret::new(mysql_password(options)),
        database: options.text("mysql-db").map(str::to_owned),
        tls: tls.clone(),
    });
    let on_lost = on_lost(options, "mysql");
    let connect_timeout = connect_timeout(options);
    let session =
        mysql::SessionOptions { text: text_only, on_lost, connect_timeout, ..mysql::SessionOptions::default() };
    Ok(Way::MySql { targets: targets.collect(), options: session })
}

/// Whether sessions reconnect, which the list of ignored errors decides.
fn on_lost(options: &OptionSet, driver: &'static str) -> mysql::OnLost {
    if Ignored::of(options, driver).has_lost() { mysql::OnLost::Reconnect } else { mysql::OnLost::Fail }
}

/// The time for a connection attempt, if `--thread-init-timeout` leaves less than usual. The attempt then ends first, so
/// its error names the missing answer. The reserve is for clients' threads that start late on a busy machine.
fn connect_timeout(options: &OptionSet) -> Option<Duration> {
    const USUAL_S: i64 = 10;
    const RESERVE: f64 = 0.1;
    const RESERVE_MIN_S: f64 = 0.5;
    let timeout_s = options.int("thread-init-timeout").ok().map(i64::from)?;
    let reserve_s = (timeout_s as f64 * RESERVE).max(RESERVE_MIN_S);
    (1..=USUAL_S).contains(&timeout_s).then(|| Duration::from_secs_f64(timeout_s as f64 - reserve_s))
}

/// The password, or that of `MYSQL_PWD` if none is given, as in the client library.
fn mysql_password(options: &OptionSet) -> String {
    let of_environment = || std::env::var_os("MYSQL_PWD").map(|word| word.to_string_lossy().into_owned());
    options.text("mysql-password").map(str::to_owned).or_else(of_environment).unwrap_or_default()
}

/// The socket of a server on this host if none is given, as the client library finds it for `localhost`:
/// `MYSQL_UNIX_PORT`, or the path of packages.
fn usual_socket() -> Option<PathBuf> {
    const USUAL: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];
    let named = std::env::var_os("MYSQL_UNIX_PORT").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.or_else(|| USUAL.into_iter().map(PathBuf::from).find(|path| path.exists()))
}

fn mysql_tls(options: &OptionSet) -> Result<mysql::Tls> {
    let file = |name: &str| options.text(name).filter(|file| !file.is_empty()).map(PathBuf::from);
    let ca = file("mysql-ssl-ca");
    let how = match SslMode::read(options).map_err(|refusal| refused(&refusal))? {
        SslMode::Disabled => mysql::Tls::Off,
        SslMode::Preferred => mysql::Tls::Preferred,
        SslMode::Required => mysql::Tls::Required,
        SslMode::VerifyCa => mysql::Tls::Signed { ca },
        SslMode::VerifyIdentity => mysql::Tls::Verified { ca },
    };
    Ok(match (file("mysql-ssl-cert"), file("mysql-ssl-key")) {
        (Some(certificate), Some(key)) => mysql::Tls::Identified(Box::new(mysql::Identified { how, certificate, key })),
        _ => how,
    })
}

/// An option of PostgreSQL's driver: as given, else from libpq's environment, else sysbench's default.
fn chosen<'a>(options: &'a OptionSet, environment: &'a Environment, option: &str, keyword: &str) -> Option<&'a str> {
    let (own, found) = (options.text(option), environment.value(keyword));
    if options.source(option) == Some(Source::Default) { found.or(own) } else { own.or(found) }
}

fn postgresql_way(options: &OptionSet, text_only: bool) -> Result<Way> {
    let unable = |error: postgresql::PgError| EngineError::failed("connect", error.to_string());
    let environment = Environment::of_process().map_err(unable)?;
    let chosen = |option, keyword| chosen(options, &environment, option, keyword);
    port(options, "pgsql-port")?;
    let servers = environment.servers(chosen("pgsql-host", "host"), chosen("pgsql-port", "port")).map_err(unable)?;
    let (user, database) = (chosen("pgsql-user", "user").unwrap_or_default(), chosen("pgsql-db", "dbname"));
    let mode = postgresql_ssl_mode(options, &environment)?;
    let target = |server: &Server, tls: postgresql::Tls| {
        let given = options.text("pgsql-password").map(str::to_owned);
        let password = given.or_else(|| environment.password(server, database.unwrap_or(user), user));
        postgresql::Target {
            address: server.address.clone(),
            user: user.to_owned(),
            password: postgresql::Secret::new(password.unwrap_or_default()),
            database: database.map(str::to_owned),
            tls,
        }
    };
    let mut hosts: Vec<Vec<postgresql::Target>> = Vec::new();
    for server in &servers {
        let ways = postgresql_tls(mode, &server.address, &environment)?;
        hosts.push(ways.into_iter().map(|tls| target(server, tls)).collect());
    }
    let startup = environment.startup();
    let on_lost = on_lost(options, "pgsql");
    let connect_timeout = connect_timeout(options);
    let own = postgresql::SessionOptions::default();
    let options = postgresql::SessionOptions { text: text_only, startup, on_lost, connect_timeout, ..own };
    Ok(Way::PostgreSql { hosts, options })
}

fn postgresql_ssl_mode(options: &OptionSet, environment: &Environment) -> Result<PgSslMode> {
    const OPTION: &str = "pgsql-sslmode";
    let is_given = options.source(OPTION) != Some(Source::Default) && options.text(OPTION).is_some();
    let Some(mode) = environment.value("sslmode").filter(|_| !is_given) else {
        return PgSslMode::read(options).map_err(|refusal| refused(&refusal));
    };
    let mut options = options.clone();
    // The option exists, and it takes any text.
    let _ = options.set(OPTION, Some(mode), Source::Script);
    PgSslMode::read(&options).map_err(|refusal| EngineError::failed("connect", format!("PGSSLMODE: {refusal}")))
}

/// The kinds of encryption to try in turn, as libpq does. It never encrypts a socket in any mode.
fn postgresql_tls(
    mode: PgSslMode,
    address: &postgresql::Address,
    environment: &Environment,
) -> Result<Vec<postgresql::Tls>> {
    use postgresql::Tls;
    if matches!(address, postgresql::Address::Socket(_)) {
        return Ok(vec![Tls::Off]);
    }
    let ca = environment.authorities();
    let ways = match mode {
        PgSslMode::Disable => vec![Tls::Off],
        PgSslMode::Allow => vec![Tls::Off, Tls::Required],
        PgSslMode::Prefer => vec![Tls::Preferred, Tls::Off],
        PgSslMode::Require => vec![Tls::Required],
        PgSslMode::VerifyCa => vec![Tls::Signed { ca }],
        PgSslMode::VerifyFull if environment.value("hostaddr").is_some() => {
            let problem = "PGHOSTADDR names an address, and verify-full checks a host's name; unset PGHOSTADDR";
            return Err(EngineError::failed("connect", problem));
        }
        PgSslMode::VerifyFull => vec![Tls::Verified { ca }],
    };
    let (certificate, key) = match (environment.value("sslcert"), environment.value("sslkey")) {
        (Some(certificate), Some(key)) => (PathBuf::from(certificate), PathBuf::from(key)),
        (None, None) => return Ok(ways),
        _ => {
            let problem = "PGSSLCERT and PGSSLKEY belong together; set both, or neither";
            return Err(EngineError::failed("connect", problem));
        }
    };
    let identified = |how: Tls| match how {
        Tls::Off => Tls::Off,
        how => {
            let own = postgresql::Identified { how, certificate: certificate.clone(), key: key.clone() };
            Tls::Identified(Box::new(own))
        }
    };
    Ok(ways.into_iter().map(identified).collect())
}

fn sqlite_way(options: &OptionSet) -> Result<Way> {
    let settings = SqliteSettings::read(options).map_err(|refusal| refused(&refusal))?;
    let SqliteSettings { journal_mode, synchronous, cache_kib, busy_timeout_ms } = settings;
    let pragmas = format!(
        "PRAGMA journal_mode = {journal_mode}; PRAGMA synchronous = {synchronous}; PRAGMA cache_size = -{cache_kib}"
    );
    let file = PathBuf::from(options.text("sqlite-db").unwrap_or("sbtest.sqlite"));
    Ok(Way::Sqlite { file, pragmas, busy_timeout_ms })
}

/// The services that all clients share.
pub type Shared = Arc<Drivers>;
