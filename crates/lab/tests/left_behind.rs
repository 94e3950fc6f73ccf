//! The state after a trial fails or is killed: the engine's kept files are next to the results, its server has ended,
//! and its data is gone.
//!
//! The engine starts a real process as its server, one that would outlive the trial.
#![allow(clippy::unwrap_used)]

use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, KEPT, Schema, Session,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::worker::{Client, ClientAddress};
use rumba_engine_api::workload::{Bound, LoadStage, Ops, State, Workload};
use rumba_lab::conduct::{TrialRunner, Watch};
use rumba_lab::harness::Harness;
use rumba_lab::kept::KeptLoads;
use rumba_lab::leftovers;
use rumba_lab::prepare::{Allowed, Validated};
use rumba_lab::provision::ResourceRegistry;
use rumba_lab::registry::Registry;
use rumba_lab::spec::{self, Overrides};
use rumba_lab::store::{self, Claim, ResultsDir};
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, Record, Status, TrialPlan};
use rumba_testkit::process;

const FAILS: &str = "RUMBA_TEST_FAILS";
const PLACE: &str = "RUMBA_TEST_PLACE";

/// Runs a command with its events on descriptor 3, separate from the output of the test harness.
const RUN: &str = "exec \"$0\" \"$@\" 3>&1 > /dev/null";

/// An engine whose server does not become ready.
struct Unready;

static INFO: EngineInfo = EngineInfo {
    name: "unready",
    about: "a server that does not become ready",
    family: Family::KeyValue,
    form: Form::BuiltIn,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: &["none"],
    settings: &[],
};

impl Engine for Unready {
    fn info(&self) -> &EngineInfo {
        &INFO
    }
    fn availability(&self, _: BuildSelector<'_>) -> Availability {
        Availability::here(Some("1".into()), "test")
    }
    fn check(&self, _: &EngineConfig) -> Result<(), SettingError> {
        Ok(())
    }
    fn open(&self, dir: &Path, _: &EngineConfig, _: Schema<'_>) -> Result<Box<dyn Instance>> {
        std::fs::create_dir(dir.join(KEPT)).unwrap();
        std::fs::create_dir(dir.join("data")).unwrap();
        // This process does not wait for it on purpose: it outlives the trial that started it.
        #[allow(clippy::zombie_processes)]
        let server =
            Command::new("sleep").arg("1000").current_dir(dir.join("data")).stdin(Stdio::null()).spawn().unwrap();
        std::fs::write(dir.join(KEPT).join("error.log"), format!("{}", server.id())).unwrap();
        if std::env::var_os(FAILS).is_some() {
            return Err(EngineError::failed("server", "it does not become ready"));
        }
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

struct Nothing;

impl Workload for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }
    fn about(&self) -> &'static str {
        "no operations"
    }
    fn settings(&self) -> &'static [SettingInfo] {
        &[]
    }
    fn families(&self) -> &'static [Family] {
        &[Family::KeyValue]
    }
    fn bind(&self, _: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(Nothing))
    }
}

impl Bound for Nothing {
    fn schema(&self, _: Family) -> Schema<'_> {
        Schema::KeyValue(&[])
    }
    fn ops(&self) -> Ops {
        Ops::from([])
    }
    fn load_stages(&self) -> Vec<LoadStage> {
        Vec::new()
    }
    fn expected_rows(&self) -> u64 {
        0
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
    fn loader(&self, _: usize, _: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Err(EngineError::failed("loader", "there is no instance"))
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
    fn client(&self, _: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Err(EngineError::failed("client", "there is no instance"))
    }
    fn verify(&self, _: Session) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }
}

fn registry() -> Registry {
    Registry { engines: vec![Box::new(Unready)], workloads: vec![Box::new(Nothing)], ..Registry::default() }
}

/// The trial's process.
#[test]
#[ignore = "run by the other tests, as their trial"]
fn the_trial() {
    // The parent reads only events, and the test harness prints to standard output.
    // SAFETY: `RUN` has opened the descriptor, and no other code uses it.
    let events = unsafe { OwnedFd::from_raw_fd(3) };
    rustix::stdio::dup2_stdout(&events).unwrap();
    drop(events);
    rumba_lab::trial::child::serve(&registry()).unwrap();
}

struct Deaf;

impl Watch for Deaf {
    fn begins(&mut self, _: &TrialPlan, _: usize) {}
    fn event(&mut self, _: &TrialPlan, _: &Event) {}
    fn ended(&mut self, _: &Record) {}
}

/// The results, data and ledger of a run with one trial.
struct TrialDirectory {
    dir: PathBuf,
    _removed: Option<tempfile::TempDir>,
}

impl TrialDirectory {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir: dir.path().to_owned(), _removed: Some(dir) }
    }

    fn ledger(&self) -> ResourceRegistry {
        ResourceRegistry::at(&self.dir.join("state")).unwrap()
    }

    fn trial(&self, below: &str) -> PathBuf {
        self.dir.join(below).join("001-unready-c1-r1")
    }

    /// The pid of the server's process, once it runs and has written it.
    fn server(&self) -> u32 {
        let log = self.trial("data").join("data").join(KEPT).join("error.log");
        loop {
            if let Some(pid) = std::fs::read_to_string(&log).ok().and_then(|pid| pid.parse().ok()) {
                return pid;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, fails: bool) -> Record {
        self.run_by(&|| {
            let mut command = Command::new("sh");
            command.args(["-c", RUN]).arg(std::env::current_exe()?);
            command.args(["--ignored", "--exact", "--nocapture", "the_trial"]);
            if fails {
                command.env(FAILS, "yes");
            }
            Ok(command)
        })
    }

    /// Runs the trial in the process of a command.
    fn run_by(&self, child: &dyn Fn() -> std::io::Result<Command>) -> Record {
        let overrides = Overrides {
            engines: vec!["unready".to_owned()],
            set: vec!["clients=1".to_owned(), "repeats=1".to_owned()],
            ..Overrides::default()
        };
        let experiment = spec::of_workload("nothing", &overrides, &registry()).unwrap();
        let admitted = Validated::new(experiment, &self.dir.join("data"), Allowed::default()).unwrap();
        let trials = admitted.plan(&registry());
        let prepared = admitted.prepare(trials, &registry()).unwrap();
        let claim = Claim::new(&self.dir.join("results")).unwrap();
        let results = ResultsDir::create(claim, &prepared).unwrap();
        let conduct = TrialRunner {
            prepared: &prepared,
            planned: prepared.trials().len(),
            results: &results,
            managed: &self.ledger(),
            registry: &registry(),
            child,
            harness: &Harness::default(),
            stops: &AtomicUsize::new(0),
            profiles: false,
            is_decided: &|_| false,
            gate: None,
        };
        let outcome = conduct.run(KeptLoads::default(), &mut Deaf).unwrap();
        assert_eq!((outcome.failed, outcome.done), (1, 0));
        let read = store::read(results.path()).unwrap();
        read.trials.into_iter().next().unwrap().record
    }

    /// The conditions that must hold after any end of a trial.
    fn assert_tidy(&self) {
        let kept = std::fs::read_to_string(self.trial("results/trials").join("error.log")).unwrap();
        assert!(!is_alive(kept.parse().unwrap()), "its server works on");
        assert!(!self.trial("data").exists(), "its data is still there");
        assert!(leftovers::find(&self.ledger()).unwrap().is_empty());
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

fn parent_of(pid: u32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    parent.trim().parse().unwrap()
}

fn kill(pid: i32) {
    // SAFETY: it sends a signal to a process that this test has started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
}

#[test]
fn a_failed_trial_leaves_its_servers_log_and_no_server() {
    let place = TrialDirectory::new();
    let record = place.run(true);
    let Status::Failed { cause, .. } = record.status else { panic!("{:?}", record.status) };
    assert!(cause.contains("does not become ready"), "{cause}");
    place.assert_tidy();
}

#[test]
fn a_killed_trial_leaves_its_servers_log_and_no_server() {
    let place = TrialDirectory::new();
    let record = std::thread::scope(|scope| {
        let run = scope.spawn(|| place.run(false));
        kill(parent_of(place.server()));
        run.join().unwrap()
    });
    let Status::Failed { cause, .. } = record.status else { panic!("{:?}", record.status) };
    assert!(cause.contains("signal 9"), "{cause}");
    place.assert_tidy();
}

/// Guards against skipping an unreadable line: the trial counted as done without the data in it.
#[test]
fn trial_that_emits_unreadable_events_is_ended_and_fails() {
    let place = TrialDirectory::new();
    let pid = place.dir.join("pid");
    let reports = format!(
        r#"cat > /dev/null; echo $$ > {}; echo '{{"event":"phase-started","phase":"load","seconds":null,"rows":1}}'
           echo '{{"event":"finished"}}'; echo '{{"event":"phase-ended"'; exec sleep 1000"#,
        pid.display()
    );
    let record = place.run_by(&|| {
        let mut command = Command::new("sh");
        command.args(["-c", &reports]);
        Ok(command)
    });
    let Status::Failed { phase, cause } = record.status else { panic!("{:?}", record.status) };
    assert_eq!(phase, PhaseKind::Load);
    assert!(cause.contains("cannot be read") && cause.contains("line 3 is not an event"), "{cause}");
    assert!(!is_alive(std::fs::read_to_string(pid).unwrap().trim().parse().unwrap()), "the trial works on");
    assert!(!place.trial("data").exists(), "its data is still there");
    assert!(leftovers::find(&place.ledger()).unwrap().is_empty());
}

/// The run of the next test.
#[test]
#[ignore = "run by another test, as its run"]
fn the_run() {
    if let Some(dir) = std::env::var_os(PLACE) {
        TrialDirectory { dir: dir.into(), _removed: None }.run(false);
    }
}

#[test]
fn a_killed_runs_server_is_ended_when_the_leftovers_are_cleaned() {
    let place = TrialDirectory::new();
    let mut command = process::with_test("the_run");
    command.env(PLACE, &place.dir);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let server = place.server();
    let trial = parent_of(server) as u32;
    run.kill().unwrap();
    run.wait().unwrap();
    while is_alive(trial) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_alive(server), "this server outlives its trial: the kernel has no request to end it");
    let leftovers = leftovers::find(&place.ledger()).unwrap();
    assert_eq!(leftovers.len(), 1);
    place.ledger().clean(&leftovers[0]).unwrap();
    assert!(!is_alive(server), "its server works on");
    assert!(!place.trial("data").exists(), "its data is still there");
}
