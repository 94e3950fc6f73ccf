//! Prepared point selects over the wire, as in sysbench's `oltp_point_select`, or documents found by id, through
//! rumba's sessions and drivers. Prints their cost. `make bench` runs it next to sysbench, pgbench and a driver.
//!
//! `wire_clients SOCKET|HOST:PORT [protocol=mysql] [clients=64] [seconds=5] [warmup=5] [queries=N] [driver=auto] [loops=N] [rows=100000] [user=root] [database=sbtest]`
//!
//! `loops=` sets the number of event loops, for any number of cores. With `queries=`, one client makes this many on the
//! main thread, for any time, and prints no results. Under callgrind, the difference between N and 2N gives
//! instructions per query.

#[path = "common/point_selects.rs"]
mod point_selects;

use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use point_selects::{Arguments, Failure, cpu_us, next_id};
use rumba_engine_api::bson::{Document, DocumentBuf};
use rumba_engine_api::document::{Command, DocumentSession, Find};
use rumba_engine_api::engine::ProcessLocation;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Param, Row, SqlSession, Statement};
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, Op, OpKind, Worker, block_on};
use rumba_lab::meter::ThreadCpuRegistry;
use rumba_lab::run::Driving;
use rumba_lab::run::cells::Cells;
use rumba_lab::run::driver::{Made, Make, Plan, Running, Schedule};
use rumba_lab::run::group::ClientGroup;
use rumba_lab::run::pace::ClientPace;
use rumba_lab::run::stats::percentiles;
use rumba_protocol_mongodb::MongoSession;
use rumba_protocol_mysql::{Address, Secret, Target, Tls, WireSession};
use rumba_protocol_postgresql::PgSession;
use rumba_results::record::DriverKind;

#[derive(Clone, Copy)]
enum Protocol {
    MySql,
    PostgreSql,
    MongoDb,
}

/// The server that clients connect to.
struct Server {
    protocol: Protocol,
    target: Target,
}

enum Requests {
    Rows(Box<dyn SqlSession>, Statement),
    Documents(Box<dyn DocumentSession>, DocumentBuf),
}

impl Requests {
    fn new(server: &Server) -> Result<Self> {
        let (mut session, sql): (Box<dyn SqlSession>, _) = match server.protocol {
            Protocol::MySql => {
                let session = WireSession::connect(&server.target, &rumba_protocol_mysql::SessionOptions::default())?;
                (Box::new(session), "SELECT c FROM sbtest1 WHERE id=?")
            }
            Protocol::PostgreSql => {
                let options = rumba_protocol_postgresql::SessionOptions::default();
                (Box::new(PgSession::connect(&server.target, &options)?), "SELECT c FROM sbtest1 WHERE id=$1")
            }
            Protocol::MongoDb => {
                let options = rumba_protocol_mongodb::SessionOptions::to("ycsb");
                let session = MongoSession::connect(&server.target, &options)?;
                return Ok(Requests::Documents(Box::new(session), DocumentBuf::default()));
            }
        };
        let statement = session.prepare(sql)?;
        Ok(Requests::Rows(session, statement))
    }

    /// The number of rows or documents with an id, and their bytes.
    async fn fetch(&mut self, id: i64) -> Result<(u64, usize)> {
        let mut bytes = 0;
        match self {
            Requests::Rows(session, statement) => {
                let visit = &mut |row: &dyn Row| bytes += row.bytes(0).len();
                let answer = session.execute(*statement, &[Param::Int(id)], visit).await?;
                Ok((answer.rows, bytes))
            }
            Requests::Documents(session, filter) => {
                let find = Find { limit: 1, ..Find::by(filter.write(|of| of.int("_id", id))) };
                let visit = &mut |document: Document<'_>| bytes += document.bytes().len();
                let done = session.execute(Command::Find { of: "usertable", find }, visit).await?;
                Ok((done.documents, bytes))
            }
        }
    }
}

/// One client: its requests, and an endless sequence of ids.
struct PointSelect {
    requests: Requests,
    rows: u64,
    random: u64,
    left: u64,
}

impl PointSelect {
    fn new(server: &Server, rows: u64, queries: u64, at: ClientAddress) -> Result<Self> {
        Ok(Self { requests: Requests::new(server)?, rows, random: u64::from(at.client), left: queries })
    }
}

impl Worker for PointSelect {
    fn draw(&mut self) -> Option<OpKind> {
        self.left = self.left.checked_sub(1)?;
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        let id = next_id(&mut self.random, self.rows);
        let (rows, bytes) = self.requests.fetch(id.cast_signed()).await?;
        if rows == 0 || bytes == 0 {
            return Err(EngineError::failed("point select", format!("id {id} gave no row; are there so many rows?")));
        }
        Ok(Op { rows, ..Op::default() })
    }
}

fn main() -> Result<(), Failure> {
    let (socket, requested) = Arguments::read()?;
    let clients = requested.number("clients", 64)?;
    let (warmup, seconds) = (requested.number("warmup", 5)?, requested.number("seconds", 5)?);
    // A document server without users does not accept one.
    let user = if requested.text("protocol", "mysql") == "mongodb" { "" } else { "root" };
    let target = Target {
        address: match socket.rsplit_once(':') {
            Some((host, port)) if !socket.starts_with('/') => {
                Address::Tcp { host: host.to_owned(), port: port.parse()? }
            }
            _ => Address::Socket(socket.clone().into()),
        },
        user: requested.text("user", user),
        password: Secret::default(),
        database: Some(requested.text("database", "sbtest")),
        tls: Tls::Off,
    };
    let protocol = match requested.text("protocol", "mysql").as_str() {
        "mysql" => Protocol::MySql,
        "postgresql" => Protocol::PostgreSql,
        "mongodb" => Protocol::MongoDb,
        other => return Err(format!("protocol={other}: mysql, postgresql or mongodb").into()),
    };
    let server = Server { protocol, target };
    let kind = match requested.text("driver", "auto").as_str() {
        "threads" => DriverKind::Threads,
        "loops" => DriverKind::Loops,
        _ => DriverKind::Auto,
    };
    let driving = match requested.number("loops", 0)? {
        0 => {
            // A server at a port is taken to run on the same cores as this process.
            let pid = if socket.starts_with('/') { server_at(&socket)? } else { std::process::id() };
            let place = ProcessLocation::Server { pid: Some(pid), data_dir: None };
            Driving::choose(kind, &place, clients)
        }
        threads => Driving::Loops { threads: threads.min(clients) },
    };
    let rows = u64::from(requested.number("rows", 100_000)?);
    match requested.number("queries", 0)? {
        0 => {}
        queries => return alone(PointSelect::new(&server, rows, u64::from(queries), FIRST)?),
    }
    let make: Make = Arc::new(move |at| {
        let client = PointSelect::new(&server, rows, u64::MAX, at)?;
        Ok(Box::new(client) as Box<dyn Client>)
    });
    let schedule = Schedule::closed(1).spread_over(f64::from(warmup));
    let plan = Plan { clients, share: HostShare::ALL, kinds: 1, schedule, driving };
    let running = Made::new(&plan, &make, &ThreadCpuRegistry::new())?.start();
    measure(running, warmup, seconds, driving)
}

/// The process that listens at a socket.
fn server_at(socket: &str) -> Result<u32, Failure> {
    let stream = UnixStream::connect(socket).map_err(|error| format!("{socket}: {error}"))?;
    let mut reported = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let option = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel fills the structure, and knows its length.
    match unsafe { libc::getsockopt(stream.as_raw_fd(), option.0, option.1, (&raw mut reported).cast(), &mut length) } {
        0 => Ok(u32::try_from(reported.pid)?),
        _ => Err(std::io::Error::last_os_error().into()),
    }
}

const FIRST: ClientAddress = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };

/// Runs a client on this thread to the end of its stream, with its pace and its records.
fn alone(mut client: PointSelect) -> Result<(), Failure> {
    let mut pace = ClientPace::alone(Arc::new(Cells::new(1)));
    block_on(client.run(&mut pace)).map_err(|error| error.to_string().into())
}

fn measure(mut running: Running, warmup: u32, seconds: u32, driving: Driving) -> Result<(), Failure> {
    running.wait(Instant::now() + Duration::from_secs(u64::from(warmup)));
    running.collect();
    let (start, cpu_before) = (Instant::now(), cpu_us()?);
    running.wait(start + Duration::from_secs(u64::from(seconds)));
    let (span, cpu) = (start.elapsed().as_secs_f64(), cpu_us()? - cpu_before);
    let counts = running.collect();
    let rss_bytes = rss_bytes()?;
    running.stop();
    running.wait(Instant::now() + Duration::from_secs(60));
    if let Some(failure) = running.failure() {
        return Err(failure.to_string().into());
    }
    running.join();
    let kind = &counts.kinds[0];
    let times = percentiles(&kind.service);
    let reported = serde_json::json!({
        "driver": driving.to_string(),
        "queries": kind.count,
        "seconds": span,
        "queries_per_s": kind.count as f64 / span,
        "client_cpu_us_per_query": cpu / kind.count as f64,
        "p50_ms": times.p50_ms,
        "p99_ms": times.p99_ms,
        "rss_bytes": rss_bytes,
    });
    println!("{reported}");
    Ok(())
}

fn rss_bytes() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("/proc/self/status has no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}
