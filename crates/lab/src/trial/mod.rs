//! One trial: provision → load → settle (→ verify load) (→ age → settle) → warmup → loops → drain → verify; and, on
//! request, the tests of transaction guarantees.
//!
//! It emits every result at once as [`Event`]s. It keeps and writes nothing itself, so that the process's meters see
//! only the engine.

mod acid;
mod backlog;
pub mod child;
mod elsewhere;
mod engine_sampler;
mod hardware;
mod limited;
mod measured;
mod metrics;
mod outbox;
mod pending_stats;
mod phases;
mod remarks;
mod room;
#[cfg(test)]
mod simulated;
mod span;
mod suspended;
mod sync;
mod warm;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rumba_engine_api::engine::{Engine, Instance, ProcessLocation, checks_assertions};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::Settings;
use rumba_engine_api::workload::{Bound, State, Workload};
use rumba_results::event::Event;
use rumba_results::metric::Metric;
use rumba_results::record::{DriverKind, PhaseKind, TrialPart, TrialPlan};
use rumba_results::warning::Warning;

use crate::fleet::Door;
use crate::limits;
use crate::meter::{HardwareMeter, Meters, Role, SuspendDetector, ThreadCpuRegistry};
use crate::run::Driving;

pub use acid::Act;
use elsewhere::Hosts;
use engine_sampler::EngineSampler;
use pending_stats::PendingStats;
use sync::Synced;

/// The inputs of a trial.
pub struct Job<'a> {
    pub plan: &'a TrialPlan,
    pub engine: &'a dyn Engine,
    pub workload: &'a dyn Workload,
    /// An existing directory for the instance: empty, or with a copy of another instance's data.
    pub data_dir: &'a Path,
    /// The limits in force, as text.
    pub limits: &'a [String],
    /// The process that delays the requests of the data's volume, if there is one.
    pub delayer: Option<u32>,
    /// The workload's state, if the data already exists.
    pub state: Option<&'a State>,
    /// The task.
    pub act: Act,
    /// The file where clients note acknowledged commits before the database is killed.
    pub journal: &'a Path,
    /// The start of the trial's first process, from which seconds are counted.
    pub epoch: Instant,
    /// The listener for client hosts, if the clients run on several.
    pub door: Option<Door>,
    /// rumba's version and commit, which client hosts must have too.
    pub program: &'a str,
    /// Set when the trial is to stop.
    pub stop: &'a AtomicBool,
    pub emit: &'a mut dyn FnMut(Event),
}

/// Why a trial ended early.
enum Halt {
    Interrupted,
    Failed(String),
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Halt::Failed(error.to_string())
    }
}

type Step<T> = Result<T, Halt>;

struct Trial<'a> {
    job: Job<'a>,
    bound: Arc<dyn Bound>,
    instance: Shared,
    /// The hosts of the clients, if they run on several.
    hosts: Option<Hosts>,
    place: ProcessLocation,
    meters: Meters,
    /// The hardware counters, while they are open.
    hardware: Result<HardwareMeter, String>,
    roll: Arc<ThreadCpuRegistry>,
    pulse: SuspendDetector,
    pending: PendingStats,
    /// The thread that samples the engine while clients work.
    sampler: Option<EngineSampler>,
    synced: Arc<Mutex<Synced>>,
    /// The start of opening the instance in this process.
    opens: Instant,
    phase: PhaseKind,
    /// The start of the loops, once they have begun.
    loops_from: Option<Instant>,
    /// Bytes of data on disk at the end of the last phase, logs not counted.
    data_bytes: Metric,
}

/// Runs a trial to its end, with any status; the last event has the status.
pub fn run(mut job: Job<'_>) {
    let opens = Instant::now();
    // Calibrates against the system's clock once, here and not in the first loader's time.
    drop(quanta::Clock::new());
    let roll = Arc::new(ThreadCpuRegistry::default());
    let _present = roll.enter(Role::Harness);
    let last = match provision(&mut job) {
        Err(error) => failed(job.act.opens_in(), error.to_string()),
        Ok((bound, instance, hosts)) => {
            let place = instance.place();
            let meters = Meters::of(&place, job.data_dir, roll.clone()).with_helper(job.delayer);
            let phase = job.act.opens_in();
            let (pulse, pending, synced) = (SuspendDetector::start(&roll), PendingStats::default(), Arc::default());
            let data_bytes = Metric::absent("no data has been loaded yet");
            let (sampler, hardware) = (None, Err(hardware::NOT_REQUESTED.to_owned()));
            let mut trial = Trial {
                job,
                bound,
                instance,
                hosts,
                place,
                meters,
                hardware,
                roll,
                pulse,
                pending,
                sampler,
                synced,
                opens,
                phase,
                loops_from: None,
                data_bytes,
            };
            let end = match trial.job.act {
                Act::Measure => trial.phases(),
                Act::Crash => trial.crash(),
                Act::Recover => trial.recover(),
            };
            trial.report_hosts();
            let (phase, last) = (trial.phase, trial.last_event(end));
            let Trial { instance, job: again, .. } = trial;
            job = again;
            // After a failure the instance is not closed: clients may still be inside the engine, and its data is about
            // to be removed.
            if matches!(last, Event::Finished) { close(instance, phase) } else { last }
        }
    };
    (job.emit)(last);
}

/// An open instance; boxed inside, so that it can be taken out and closed.
type Shared = Arc<Box<dyn Instance>>;

/// The workload, the instance, and the hosts of the clients if they run on several.
type Provisioned = (Arc<dyn Bound>, Shared, Option<Hosts>);

fn provision(job: &mut Job<'_>) -> Result<Provisioned, EngineError> {
    (job.emit)(Event::PhaseStarted { phase: job.act.opens_in(), seconds: None, rows: None });
    let bound = bind(job.workload, &job.plan.workload_settings)?;
    // Before anything is made on the server.
    let hosts = elsewhere::gather(job)?;
    let limited = limited::prepare(job);
    let (dir, config, schema) = (job.data_dir, &job.plan.engine, bound.schema(job.engine.info().family));
    let client_cpus = limits::take_engine_cpus(&config.limits, job.engine.info().form)?;
    let is_there = job.plan.part == TrialPart::Run || job.act != Act::Measure;
    let instance = match is_there {
        false => job.engine.open(dir, config, schema)?,
        true => job.engine.reopen(dir, config, schema)?,
    };
    let checked = client_cpus.take().and_then(|()| room::check(job, instance.as_ref(), bound.ops().len()));
    let checked =
        checked.and_then(|()| hosts.as_ref().map_or(Ok(()), |hosts| elsewhere::join(hosts, job, bound.as_ref())));
    if let Err(error) = checked {
        // No data is loaded yet: closing undoes changes to an existing server, such as a schema.
        let _ = instance.close();
        return Err(error);
    }
    if let Some(state) = job.state {
        bound.restore(state)?;
    }
    if job.act != Act::Measure {
        // The conditions were reported with the measurement.
        return Ok((Arc::from(bound), Arc::new(instance), hosts));
    }
    let availability = job.engine.availability((&job.plan.engine).into());
    let effective_settings = instance.effective_settings();
    let version = instance.version().or(availability.version);
    if checks_assertions(version.as_deref(), &effective_settings) {
        (job.emit)(Event::Warning(Warning::new(
            "built-with-assertions",
            format!(
                "this build of {} checks assertions, so its rates, latencies and CPU decide nothing",
                job.engine.info().name
            ),
            "use a release build: `rumba engines NAME` lists those that can be installed; library = or server = names one",
        )));
    }
    remarks::elsewhere(&instance.place()).into_iter().for_each(|warning| (job.emit)(Event::Warning(warning)));
    let drivers = drivers(job, instance.as_ref());
    (job.emit)(Event::Provisioned {
        version: version.unwrap_or_else(|| "unknown".to_owned()),
        source: availability.source,
        effective_settings,
        conditions: bound.conditions().into_iter().chain(drivers).chain(limited).collect(),
    });
    Ok((Arc::from(bound), Arc::new(instance), hosts))
}

fn bind(workload: &dyn Workload, settings: &Settings) -> Result<Box<dyn Bound>, EngineError> {
    workload.bind(settings).map_err(|error| EngineError::failed("workload", format!("{error} ({})", error.remedy)))
}

/// The drivers of the clients and the loaders, as conditions.
fn drivers(job: &mut Job<'_>, instance: &dyn Instance) -> Vec<(String, String)> {
    let (run, place) = (&job.plan.run, instance.place());
    let driving = |clients| Driving::choose(run.driver, &place, clients).to_string();
    let mut conditions = Vec::new();
    if job.plan.part != TrialPart::Load || run.age_s.is_some() {
        conditions.push(("driver".to_owned(), driving(job.plan.clients)));
        let queue = run.rate.map(|_| phases::queue_in_words(phases::queue(run, &place)));
        conditions.extend(queue.map(|reported| ("queue".to_owned(), reported.to_owned())));
        conditions.extend(run.arrivals.as_ref().map(|arrivals| ("arrivals".to_owned(), arrivals.to_string())));
        let steps = run.client_steps.as_ref().map(|steps| format!("{steps}; all {} are connected", steps.most()));
        conditions.extend(steps.map(|reported| ("active clients".to_owned(), reported)));
        let (active, clients) = (run.active(job.plan.clients), job.plan.clients);
        let idle = run.active_percent.map(|_| format!("{active} of {clients}; the others are connected and idle"));
        conditions.extend(idle.map(|reported| ("active clients".to_owned(), reported)));
    }
    if job.plan.part != TrialPart::Run {
        conditions.push(("load driver".to_owned(), driving(run.load_clients)));
    }
    if run.driver == DriverKind::Loops && place == ProcessLocation::Embedded {
        (job.emit)(Event::Warning(Warning::new(
            "loops-embedded",
            "an event loop runs several clients of an embedded engine: they wait for each other, one operation at a time",
            "leave `driver` out, or set driver = \"threads\": an embedded engine needs a thread for each client",
        )));
    }
    conditions
}

fn failed(phase: PhaseKind, cause: String) -> Event {
    Event::Failed { phase, cause }
}

/// Closes the instance; a failure to close is the trial's failure.
fn close(instance: Shared, phase: PhaseKind) -> Event {
    match Arc::try_unwrap(instance).map(|instance| instance.close()) {
        Ok(Ok(())) => Event::Finished,
        Ok(Err(error)) => failed(phase, format!("closing: {error}")),
        Err(_) => failed(phase, "closing: a client still holds the instance".to_owned()),
    }
}

impl Trial<'_> {
    fn emit(&mut self, event: Event) {
        (self.job.emit)(event);
    }

    fn interrupted(&self) -> bool {
        self.job.stop.load(Relaxed)
    }

    fn since_epoch_s(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.job.epoch).as_secs_f64()
    }

    fn last_event(&self, end: Step<()>) -> Event {
        match end {
            Ok(()) => Event::Finished,
            Err(Halt::Interrupted) => Event::Interrupted,
            Err(Halt::Failed(cause)) => failed(self.phase, cause),
        }
    }
}
