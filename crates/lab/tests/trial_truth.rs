//! The figures of a whole trial, for a server with a process for each connection, such as PostgreSQL. Also for an
//! engine that is slow to report its deferred work.
//!
//! The server is this test's own program in other processes.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Gauge, Instance, ProcessLocation,
    Schema, Session,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::worker::{Client, ClientAddress, Op, OpKind, Worker};
use rumba_engine_api::workload::{Bound, LoadStage, OpInfo, Ops, State, Workload};
use rumba_lab::trial::{Act, Job};
use rumba_results::event::Event;
use rumba_results::record::{DriverKind, PhaseKind, PhaseRecord, RunPlan, TrialPart, TrialPlan};
use rumba_results::samples;
use rumba_testkit::process;

const SOCKET: &str = "RUMBA_TEST_SOCKET";
const SESSION: &str = "RUMBA_TEST_SESSION";
/// How long a server process lives after its connection has ended, so that the meters find it.
const LINGER: Duration = Duration::from_millis(300);

const CLIENTS: u32 = 2;
/// Rows that each loader puts, and the server's CPU time for each.
const ROWS: u64 = 10;
const PUT_MS: u8 = 50;
const GET_MS: u8 = 1;

/// The server: a process for each connection, which it waits for.
#[test]
#[ignore = "run by the other tests, as their server"]
fn the_server() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut session = process::with_test("the_session");
            session.env_remove(SOCKET).env(SESSION, "yes").stdout(Stdio::null());
            let mut child = session.stdin(Stdio::from(OwnedFd::from(connection.unwrap()))).spawn().unwrap();
            std::thread::spawn(move || child.wait());
        }
    });
    println!("ready");
    // Wait until the test closes the pipe.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// A server process: it works as long as requested, and answers.
#[test]
#[ignore = "run by the server"]
fn the_session() {
    if std::env::var_os(SESSION).is_none() {
        return;
    }
    let mut connection = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let mut question = [0];
    while connection.read_exact(&mut question).is_ok() {
        burn(question[0].into());
        if connection.write_all(&question).is_err() {
            break;
        }
    }
    std::thread::sleep(LINGER);
}

/// Uses CPU until the thread's own clock has advanced by this much.
fn burn(milliseconds: u64) {
    let start = own_ns();
    while own_ns() - start < milliseconds * 1_000_000 {}
}

fn own_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

struct Server {
    process: Child,
    /// Kept open, so that the process may continue to print.
    _words: Lines<BufReader<ChildStdout>>,
    dir: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = process::with_test("the_server");
        command.env(SOCKET, dir.path().join("socket")).env_remove(SESSION);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap()).lines();
        // The words are mixed with the test harness's output of that process.
        assert!(words.by_ref().map_while(Result::ok).any(|line| line.ends_with("ready")));
        Self { process, _words: words, dir }
    }

    fn engine(&self, connects_again: bool) -> Fake {
        let place = ProcessLocation::Server { pid: Some(self.process.id()), data_dir: None };
        Fake { place, socket: Some(self.dir.path().join("socket")), connects_again, debt_takes: Duration::ZERO }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// An engine that stores nothing: its sessions send requests to a server, if there is one, and use no time themselves.
#[derive(Clone)]
struct Fake {
    place: ProcessLocation,
    socket: Option<PathBuf>,
    /// Whether each get has a new connection.
    connects_again: bool,
    debt_takes: Duration,
}

impl Fake {
    fn embedded(debt_takes: Duration) -> Self {
        Self { place: ProcessLocation::Embedded, socket: None, connects_again: false, debt_takes }
    }
}

static INFO: EngineInfo = EngineInfo {
    name: "fake",
    about: "keeps nothing",
    family: Family::KeyValue,
    form: Form::Server,
    brought: None,
    keeps_data: false,
    has_cache: false,
    has_transactions: true,
    compressions: &[],
    settings: &[],
};

impl Engine for Fake {
    fn info(&self) -> &EngineInfo {
        &INFO
    }
    fn availability(&self, _: BuildSelector<'_>) -> Availability {
        Availability::built_in("1")
    }
    fn check(&self, _: &EngineConfig) -> Result<(), SettingError> {
        Ok(())
    }
    fn open(&self, _: &Path, _: &EngineConfig, _: Schema<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(self.clone()))
    }
}

impl Instance for Fake {
    fn session(&self) -> Result<Session> {
        let (socket, connects_again) = (self.socket.clone(), self.connects_again);
        let mut session = Requesting { socket, connection: None, connects_again };
        session.connect()?;
        Ok(Session::Kv(Box::new(session)))
    }
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    fn drain(&self) -> Result<()> {
        Ok(())
    }
    fn debt(&self) -> Vec<Gauge> {
        std::thread::sleep(self.debt_takes);
        Vec::new()
    }
    fn counters(&self) -> Vec<Gauge> {
        Vec::new()
    }
    fn effective_settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn is_log(&self, _: &Path) -> bool {
        false
    }
    fn place(&self) -> ProcessLocation {
        self.place.clone()
    }
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct Requesting {
    socket: Option<PathBuf>,
    connection: Option<UnixStream>,
    connects_again: bool,
}

impl Requesting {
    fn connect(&mut self) -> Result<()> {
        let connected = self.socket.as_ref().map(UnixStream::connect).transpose();
        self.connection = connected.map_err(|error| EngineError::failed("connect", error.to_string()))?;
        Ok(())
    }

    /// Lets the server work for this long.
    fn fetch(&mut self, milliseconds: u8) -> Result<()> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let requested = connection.write_all(&[milliseconds]).and_then(|()| connection.read_exact(&mut [0]));
        requested.map_err(|error| EngineError::failed("ask", error.to_string()))
    }
}

impl KvSession for Requesting {
    fn get(&mut self, _: SpaceId, _: &[u8], _: &mut Vec<u8>) -> Result<bool> {
        if self.connects_again {
            self.connect()?;
        }
        self.fetch(GET_MS).map(|()| true)
    }
    fn scan(&mut self, _: SpaceId, _: Scan<'_>, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        Ok(0)
    }
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get(space, key, value)
    }
    fn put(&mut self, _: SpaceId, _: &[u8], _: &[u8]) -> Result<()> {
        self.fetch(PUT_MS)
    }
    fn delete(&mut self, _: SpaceId, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Puts rows, and gets one row again and again.
struct Load;

impl Workload for Load {
    fn name(&self) -> &'static str {
        "load"
    }
    fn about(&self) -> &'static str {
        "puts and gets"
    }
    fn settings(&self) -> &'static [SettingInfo] {
        &[]
    }
    fn families(&self) -> &'static [Family] {
        &[Family::KeyValue]
    }
    fn bind(&self, _: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(Load))
    }
}

impl Bound for Load {
    fn schema(&self, _: Family) -> Schema<'_> {
        Schema::KeyValue(&[])
    }
    fn ops(&self) -> Ops {
        Ops::from([OpInfo::new("get")])
    }
    fn load_stages(&self) -> Vec<LoadStage> {
        vec![LoadStage::new("rows", true, [OpInfo::new("rows")])]
    }
    fn expected_rows(&self) -> u64 {
        u64::from(CLIENTS) * ROWS
    }
    fn expected_logical_bytes(&self) -> u64 {
        0
    }
    fn conditions(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn create_schema(&self, _: &mut Session) -> Result<()> {
        Ok(())
    }
    fn loader(&self, _: usize, session: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(Asker { session: kv(session)?, puts: true, left: ROWS }))
    }
    fn logical_bytes(&self) -> u64 {
        0
    }
    fn state(&self) -> State {
        State::new()
    }
    fn restore(&self, _: &State) -> Result<()> {
        Ok(())
    }
    fn client(&self, session: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(Asker { session: kv(session)?, puts: false, left: u64::MAX }))
    }
    fn verify(&self, _: Session) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }
}

fn kv(session: Session) -> Result<Box<dyn KvSession>> {
    match session {
        Session::Kv(kv) => Ok(kv),
        other => Err(other.unserved("load")),
    }
}

struct Asker {
    session: Box<dyn KvSession>,
    puts: bool,
    left: u64,
}

impl Worker for Asker {
    fn draw(&mut self) -> Option<OpKind> {
        self.left = self.left.checked_sub(1)?;
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        if self.puts {
            self.session.put(0, &[], &[])?;
        } else {
            self.session.get(0, &[], &mut Vec::new())?;
        }
        Ok(Op { rows: 1, ..Op::default() })
    }
}

/// The events of a trial with one loop of a second and no warmup.
fn reported(engine: &Fake, part: TrialPart, rate: Option<f64>) -> Vec<Event> {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    let run = RunPlan {
        load_clients: CLIENTS,
        driver: DriverKind::Threads,
        rate,
        verify: false,
        interval_s: 0.25,
        stall_s: 0.0,
        ..samples::run_plan()
    };
    let plan = TrialPlan {
        engine: EngineConfig::new("fake"),
        workload: "load".to_owned(),
        clients: CLIENTS,
        part,
        run,
        ..samples::trial_plan()
    };
    let mut events = Vec::new();
    rumba_lab::trial::run(Job {
        plan: &plan,
        engine,
        workload: &Load,
        data_dir: &data_dir,
        limits: &[],
        delayer: None,
        state: None,
        act: Act::Measure,
        journal: &dir.path().join("journal"),
        epoch: Instant::now(),
        door: None,
        program: "",
        stop: &AtomicBool::new(false),
        emit: &mut |event| events.push(event),
    });
    assert!(matches!(events.last(), Some(Event::Finished)), "{:?}", events.last());
    events
}

fn phase(events: &[Event], kind: PhaseKind) -> &PhaseRecord {
    let ended = events.iter().find_map(|event| match event {
        Event::PhaseEnded(record) if record.phase == kind => Some(record),
        _ => None,
    });
    ended.unwrap_or_else(|| panic!("no {kind} in {events:?}"))
}

/// Guards against missing the loaders' processes. They started after the load began and were searched for after its
/// end, so that their usage was in the settle, or nowhere.
#[test]
fn server_cpu_for_loaders_counts_in_load_and_not_in_settle() {
    let server = Server::start();
    let events = reported(&server.engine(false), TrialPart::Load, None);
    let cpu_s = |kind| phase(&events, kind).spent.server_cpu_s.value().unwrap();
    let worked_s = (u64::from(CLIENTS) * ROWS * u64::from(PUT_MS)) as f64 / 1e3;
    let (load_s, settle_s) = (cpu_s(PhaseKind::Load), cpu_s(PhaseKind::Settle));
    // Starting a process uses some CPU, and the usage of ended processes is in ticks.
    assert!((worked_s - 0.03..worked_s + 0.3).contains(&load_s), "{load_s} s of {worked_s}, {settle_s} in the settle");
    assert!(settle_s < 0.1, "{settle_s} s, {load_s} in the load");
}

#[test]
fn context_switches_per_op_cover_all_processes_or_are_absent() {
    let server = Server::start();
    let switches = |connects_again| {
        let events = reported(&server.engine(connects_again), TrialPart::Whole, None);
        phase(&events, PhaseKind::Loop(1)).metrics.server_ctx_switches_per_op.clone()
    };
    // A process sleeps until a request arrives.
    let lasting = switches(false);
    assert!(lasting.value().is_some_and(|per_op| per_op > 0.5), "{lasting:?}");
    // Processes that have answered have ended and taken their counts with them.
    let again = switches(true);
    assert!(again.reason().is_some_and(|reason| reason.contains("and their counts are gone")), "{again:?}");
}

/// Guards against counting operations without their time: the clients had started before the engine was sampled.
#[test]
fn slow_deferred_writes_estimate_adds_no_ops_to_first_loop() {
    let events = reported(&Fake::embedded(Duration::from_millis(500)), TrialPart::Whole, Some(1000.0));
    let ops_per_s = phase(&events, PhaseKind::Loop(1)).metrics.ops_per_s.value().unwrap();
    // A thousand random arrivals have a standard deviation of 32.
    assert!((850.0..1150.0).contains(&ops_per_s), "{ops_per_s}");
}
