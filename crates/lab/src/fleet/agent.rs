//! A client host's side: an agent takes part in one trial after the other until the run has ended.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::{Instance, ProcessLocation};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::HostShare;
use rumba_engine_api::workload::{Bound, SCRIPT_TEXT, State, Workload};
use rumba_fleet::{Agent, Dialled, FleetError, HostFacts, Incoming, MonotonicClock, dial, dial_again};
use rumba_results::record::TrialPlan;
use serde::Serialize;
use serde_json::Value;

use super::counts;
use super::hosts::failed;
use super::orders::{Head, Notice, Order, Ready, Role};
use crate::meter::{Meters, Reading, Role as ThreadRole, ThreadCpuRegistry};
use crate::registry::Registry;
use crate::run::cells::Counts;
use crate::run::driver::{Made, Make, Plan, Running, Schedule};
use crate::run::group::{ClientGroup, Waited};
use crate::run::{Driving, room};

/// The interval between checks of running clients.
const LOOK: Duration = Duration::from_millis(10);
/// The longest wait for a message while no clients run.
const IDLE: Duration = Duration::from_secs(1);
/// How long clients may take to end once the coordinator is gone.
const ENDING: Duration = Duration::from_secs(10);
/// A sleep ends this much before the agreed start, and the rest is spent looking at the clock.
const SPIN: Duration = Duration::from_micros(200);

/// This host, as an agent introduces it.
pub fn host_facts() -> HostFacts {
    let system = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    HostFacts {
        name: text(system.nodename()),
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32),
        about: format!("{model}, Linux {}", text(system.release())),
    }
}

/// Serves the whole run of another program, if the request of this number is its first, else returns `None`. Returns
/// why the coordinator was lost, if it was.
pub type OtherProgram<'a> = &'a dyn Fn(&Dialled, HostShare, u64, &Value) -> Option<Option<String>>;

/// Takes part in the trials of a run, or in a run of another program. `patience` is the longest wait for the
/// coordinator; `say` shows a line.
///
/// # Errors
/// No coordinator; a refusal; a coordinator that was lost in a trial.
pub fn serve(
    registry: &Registry,
    agent: &Agent,
    patience: Duration,
    say: &dyn Fn(&str),
    other: OtherProgram<'_>,
) -> Result<(), FleetError> {
    let mut dialled = dial(agent, patience)?;
    loop {
        say("takes part in a trial");
        let lost = Participant::new(registry, agent, &dialled).serve(other);
        drop(dialled);
        // The next trial welcomes this agent, even if it was lost. After the last one, no process listens.
        dialled = match (dial_again(agent, patience), lost) {
            (Ok(dialled), _) => dialled,
            (Err(FleetError::Refused(reason)), _) => return Err(FleetError::Refused(reason)),
            (Err(_), None) => return Ok(()),
            (Err(_), Some(why)) => return Err(FleetError::Broken(std::io::Error::other(why))),
        };
    }
}

/// An agent in one trial.
struct Participant<'a> {
    registry: &'a Registry,
    share: HostShare,
    dialled: &'a Dialled,
    clock: MonotonicClock,
    roll: Arc<ThreadCpuRegistry>,
    meters: Meters,
    first: Reading,
    trial: Option<Joined<'a>>,
    phase: Option<Phase>,
}

struct Joined<'a> {
    plan: TrialPlan,
    workload: &'a dyn Workload,
    instance: Arc<Box<dyn Instance>>,
}

struct Phase {
    bound: Arc<dyn Bound>,
    made: Option<Made>,
    running: Option<Running>,
    has_ended: bool,
}

/// An answer with its binary tail.
type Answer = Result<(Value, Vec<u8>), EngineError>;

fn answer<T: Serialize>(value: &T) -> Answer {
    serde_json::to_value(value).map(|value| (value, Vec::new())).map_err(failed)
}

impl<'a> Participant<'a> {
    fn new(registry: &'a Registry, agent: &Agent, dialled: &'a Dialled) -> Self {
        let roll = Arc::<ThreadCpuRegistry>::default();
        let elsewhere = ProcessLocation::Server { pid: None, data_dir: None };
        let mut meters = Meters::of(&elsewhere, Path::new("/"), roll.clone());
        let first = meters.read();
        let share = HostShare { host: agent.rank, hosts: agent.size };
        let clock = dialled.clock();
        Self { registry, share, dialled, clock, roll, meters, first, trial: None, phase: None }
    }

    /// Works until the trial ends. Returns why the coordinator was lost, if it was.
    fn serve(mut self, other: OtherProgram<'_>) -> Option<String> {
        let _present = self.roll.clone().enter(ThreadRole::Harness);
        let lost = loop {
            let is_running = self.phase.as_ref().is_some_and(|phase| phase.running.is_some() && !phase.has_ended);
            match self.dialled.receive(if is_running { LOOK } else { IDLE }) {
                None => {}
                Some(Incoming::Request(number, body)) => {
                    if self.trial.is_none()
                        && let Some(lost) = other(self.dialled, self.share, number, &body)
                    {
                        break lost;
                    }
                    let (body, tail) = match self.handle(body) {
                        Ok((body, tail)) => (Ok(body), tail),
                        Err(error) => (Err(error.to_string()), Vec::new()),
                    };
                    // A broken connection is reported by its reading thread.
                    let _ = self.dialled.answer(number, body, &tail);
                }
                Some(Incoming::Bye) => break None,
                Some(Incoming::Lost(why)) => break Some(why),
            }
            self.look_for_end();
        };
        self.end();
        lost
    }

    /// Ends the clients and closes their sessions.
    fn end(&mut self) {
        let Some(Phase { made, running, .. }) = self.phase.take() else { return };
        made.into_iter().for_each(Made::abandon);
        let Some(mut running) = running else { return };
        running.stop();
        if running.wait(Instant::now() + ENDING) == Waited::AllEnded {
            return running.join();
        }
        // A client hangs in a call to the server. Its session ends with this process, which begins again.
        let program = std::env::current_exe().unwrap_or_else(|_| "rumba".into());
        let _failed = Command::new(program).args(std::env::args_os().skip(1)).exec();
        // SAFETY: it ends the process, without the handlers of libraries that the client may be in.
        unsafe { libc::_exit(1) }
    }

    fn look_for_end(&mut self) {
        let Some(phase) = &mut self.phase else { return };
        let Some(running) = phase.running.as_mut().filter(|_| !phase.has_ended) else { return };
        if running.wait(Instant::now()) == Waited::AllEnded {
            phase.has_ended = true;
            let failure = running.failure().map(ToString::to_string);
            // A notice without secrets is always JSON.
            let _ = self.dialled.notice(serde_json::to_value(Notice::Ended { failure }).unwrap_or_default());
        }
    }

    fn handle(&mut self, body: Value) -> Answer {
        match serde_json::from_value(body).map_err(failed)? {
            Order::Trial { plan } => self.join(*plan),
            Order::Phase { role, clients, schedule, state } => self.prepare(role, clients, schedule, &state),
            Order::Start { at_ns } => self.start(at_ns),
            Order::Collect => self.counted(|running| (running.collect(), None)),
            Order::Cut => self.counted(|running| {
                let (counts, censored) = running.cut();
                (counts, Some(censored))
            }),
            Order::Finish => self.with_clients(|running| running.finish()),
            Order::Stop => match &mut self.phase {
                Some(Phase { running: Some(running), .. }) => {
                    running.stop();
                    answer(&())
                }
                _ => answer(&()),
            },
            Order::Shape { arrivals, from_ns } => {
                let from = self.clock.instant(from_ns);
                self.with_clients(|running| running.shape(&Arc::new(arrivals), from))
            }
            Order::Steps { steps, from_ns } => {
                let from = self.clock.instant(from_ns);
                self.with_clients(|running| running.begin_steps(&steps, from))
            }
            Order::Leave => self.leave(),
        }
    }

    /// Connects to the server of the trial.
    fn join(&mut self, plan: TrialPlan) -> Answer {
        let unknown = |what: &str| failed(format!("this binary has no {what}"));
        let engine = self.registry.engine(&plan.engine.engine).ok_or_else(|| unknown(&plan.engine.engine))?;
        let workload = self.registry.workload(&plan.workload).ok_or_else(|| unknown(&plan.workload))?;
        let instance = Arc::new(engine.attach(&plan.engine)?);
        let joined = Joined { plan, workload, instance };
        let bound = joined.bind(self.share)?;
        let (run, place) = (&joined.plan.run, joined.instance.place());
        for (key, clients) in [("load_clients", run.load_clients), ("clients", joined.plan.clients)] {
            // The share of this host, before the load, because a later failure would waste it.
            room::check((key, self.share.count(clients)), run.driver, &place, bound.ops().len())?;
        }
        let script = bound.conditions().into_iter().find(|(name, _)| name == SCRIPT_TEXT);
        self.trial = Some(joined);
        answer(&Ready { script: script.map(|(_, text)| text) })
    }

    /// Makes this host's clients of a phase.
    fn prepare(&mut self, role: Role, clients: u32, schedule: Schedule, state: &State) -> Answer {
        let Some(trial) = &self.trial else { return Err(failed("there is no trial yet")) };
        let bound = trial.bind(self.share)?;
        bound.restore(state)?;
        let ops = role.ops(bound.as_ref()).ok_or_else(|| failed("there is no such stage of the load"))?;
        let own = self.share.count(clients);
        let driving = Driving::choose(trial.plan.run.driver, &trial.instance.place(), own);
        let (making, instance) = (bound.clone(), trial.instance.clone());
        let make: Make = Arc::new(move |at| role.client(making.as_ref(), instance.session()?, at));
        let plan = Plan { clients, share: self.share, kinds: ops.len(), schedule, driving };
        let made = Made::new(&plan, &make, &self.roll)?.held_to(&ops);
        self.phase = Some(Phase { bound, made: Some(made), running: None, has_ended: false });
        answer(&own)
    }

    /// Starts the clients at the agreed time.
    fn start(&mut self, at_ns: u64) -> Answer {
        let at = self.clock.instant(at_ns);
        let made = self.phase.as_mut().and_then(|phase| phase.made.take());
        let made = made.ok_or_else(|| failed("there are no clients to start"))?;
        std::thread::sleep(at.saturating_duration_since(Instant::now()).saturating_sub(SPIN));
        while Instant::now() < at {
            std::hint::spin_loop();
        }
        let (running, started_ns) = (made.start(), self.clock.now_ns());
        if let Some(phase) = &mut self.phase {
            phase.running = Some(running);
        }
        answer(&(started_ns, self.head()))
    }

    fn with_clients(&mut self, act: impl FnOnce(&mut Running)) -> Answer {
        match &mut self.phase {
            Some(Phase { running: Some(running), .. }) => {
                act(running);
                answer(&())
            }
            _ => Err(failed("no clients run")),
        }
    }

    /// The counts that `read` takes from the clients, and the sums.
    fn counted(&mut self, read: impl FnOnce(&mut Running) -> (Counts, Option<crate::run::cut::Censored>)) -> Answer {
        let Some(Phase { running: Some(running), .. }) = &mut self.phase else { return Err(failed("no clients run")) };
        let (counts, censored) = read(running);
        let head = Head { conflicts: counts.conflicts.clone(), censored, ..self.head() };
        Ok((serde_json::to_value(head).map_err(failed)?, counts::encode(&counts)))
    }

    fn head(&mut self) -> Head {
        let spent = self.meters.read().since(&self.first);
        let bound = self.phase.as_ref().map(|phase| &phase.bound);
        Head {
            client_cpu_ns: self.roll.read().client_ns,
            host_cpu_s: spent.host_cpu_s.value(),
            state: bound.map(|bound| bound.state()).unwrap_or_default(),
            counted: bound.map(|bound| bound.counted()).unwrap_or_default(),
            ..Head::default()
        }
    }

    /// Closes the sessions of clients that have all ended.
    fn leave(&mut self) -> Answer {
        let running = self.phase.as_mut().and_then(|phase| phase.running.take());
        running.into_iter().for_each(Running::join);
        let head = self.head();
        self.phase = None;
        answer(&head)
    }
}

impl Joined<'_> {
    /// The workload with this host's share of its work.
    fn bind(&self, share: HostShare) -> Result<Arc<dyn Bound>, EngineError> {
        let bound = self.workload.bind(&self.plan.workload_settings);
        let bound = bound.map_err(|error| failed(format!("{error} ({})", error.remedy)))?;
        bound.partition(share).map_err(failed)?;
        Ok(Arc::from(bound))
    }
}
