//! Runs an experiment: each trial in its own process, with its events written to files as they arrive.

mod acid;
mod attempt;
mod events;
mod forecast;
mod own_writes;
pub mod profile;
mod start;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use rumba_engine_api::units::show_bytes;
use rumba_engine_api::workload::State;
use rumba_results::condition;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, Record, RunPlan, Status, TrialPlan};
use rumba_results::search::Probe;
use rumba_results::starts::FIRST_LOOK;
use rumba_statistics::Next;
use rustix::process::{Pid, Signal, kill_process};

use crate::fleet::Gate;
use crate::harness::Harness;
use crate::kept::KeptLoads;
use crate::limits::{Enforcement, LimitError};
use crate::prepare::Prepared;
use crate::provision::{self, MARK_VARIABLE, ProvisionError};
use crate::registry::Registry;
use crate::stall::StallWatch;
use crate::store::{ResultsDir, TrialWriter};
use crate::trial::Act;
use crate::trial::child::Order;
use events::{Unreadable, events_of};
pub use forecast::{Forecast, TimeLeft};
use own_writes::OwnWrites;
use profile::Sampler;

/// How often a trial is checked, whether or not it sends events.
const LOOK: Duration = Duration::from_millis(200);
/// How long a trial's process may take to end after a request to stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// The trial process's standard error, kept next to its record.
const LOG: &str = "engine.log";
/// Lines of the process's standard error that a failure quotes.
const QUOTED_LINES: usize = 5;

/// Follows the progress of an experiment.
pub trait Watch {
    /// A trial begins; `of` is the number of planned trials.
    fn begins(&mut self, trial: &TrialPlan, of: usize);
    /// Data of this size is being copied for a trial, or after it.
    fn copies(&mut self, _trial: &TrialPlan, _bytes: u64) {}
    fn event(&mut self, trial: &TrialPlan, event: &Event);
    /// A trial has ended, with any status, and its record is written.
    fn ended(&mut self, record: &Record);
}

/// Everything that is needed to run an experiment.
pub struct TrialRunner<'a> {
    /// The experiment, with those of its trials that are to run.
    pub prepared: &'a Prepared,
    /// How many trials the experiment has in total.
    pub planned: usize,
    pub results: &'a ResultsDir,
    /// Lists the resources made on the host, so that they are found after a kill.
    pub managed: &'a provision::ResourceRegistry,
    /// The known engines.
    pub registry: &'a Registry,
    /// Makes the command that runs [`crate::trial::child::serve`].
    pub child: &'a dyn Fn() -> std::io::Result<Command>,
    /// The harness's own overhead on this host.
    pub harness: &'a Harness,
    /// How often the user has requested a stop: the first lets the trial save, the second ends its process.
    pub stops: &'a AtomicUsize,
    /// Whether the CPU is profiled during the loops.
    pub profiles: bool,
    /// The listener for client hosts, if the clients run on several.
    pub gate: Option<&'a Gate>,
    /// Whether the trials that have ended decide every headline. The argument is a repeat that has not begun. It is
    /// called before each repeat of a run with early stopping.
    pub is_decided: &'a dyn Fn(u32) -> bool,
}

/// How the trials of an experiment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Trials that ended as planned.
    pub done: usize,
    pub failed: usize,
    /// Trials that ran to their end, with some figures excluded because the measurement was suspended.
    pub suspended: usize,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Trials that were not started, because results can no longer be written.
    pub not_begun: usize,
}

/// An error that ends the whole experiment.
#[derive(Debug, thiserror::Error)]
pub enum TrialRunnerError {
    /// A data directory could not be made.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// A limit could not be enforced, or not be undone.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Trials of two builds are no repeats of each other.
    #[error("{0} was changed during the run; the trials before the change used the old one")]
    Rebuilt(String),
    /// A trial's process cannot be started, or results cannot be written.
    #[error("{what}: {cause}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The system's error.
        cause: std::io::Error,
    },
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> TrialRunnerError {
    let what = what.into();
    |cause| TrialRunnerError::Io { what, cause }
}

impl TrialRunner<'_> {
    /// Runs all trials; a failed one does not stop the next. `kept_loads` is the data of earlier loads that trials
    /// start from. It stays after an interrupt, so that the resumed trials start from the same loads.
    ///
    /// # Errors
    /// When nothing more can be run or written.
    pub fn run(&self, mut kept_loads: KeptLoads, watch: &mut dyn Watch) -> Result<Outcome, TrialRunnerError> {
        kept_loads.take_charge();
        let (mut outcome, trials) = (Outcome::default(), self.prepared.trials());
        for (number, trial) in trials.iter().enumerate() {
            if self.stops.load(Relaxed) > 0 {
                outcome.interrupted = true;
                break;
            }
            if self.results.trouble().is_some() {
                outcome.not_begun = trials.len() - number;
                break;
            }
            if self.ends_before(number) {
                self.results.ends_with(trial.repeat - 1).map_err(io("noting that every headline is decided"))?;
                kept_loads.release(|_| false)?;
                break;
            }
            self.with_probes(trial, &mut kept_loads, watch, &mut outcome)?;
            // The load that was just made is still needed by the trials after it, and by an interrupted trial.
            let left = if outcome.interrupted { &trials[number..] } else { &trials[number + 1..] };
            kept_loads.release(|load| left.iter().any(|next| next.loaded_by == Some(load)))?;
        }
        outcome.interrupted |= self.stops.load(Relaxed) > 0;
        if outcome.interrupted {
            kept_loads.leave();
        }
        Ok(outcome)
    }

    /// Whether a trial begins a repeat that is not needed, because the repeats before it decide every headline.
    fn ends_before(&self, number: usize) -> bool {
        let trials = self.prepared.trials();
        let trial = &trials[number];
        let may_end = trial.run.at_most_repeats.is_some() && trial.repeat > FIRST_LOOK;
        let begins = number.checked_sub(1).is_none_or(|before| trials[before].repeat != trial.repeat);
        may_end && begins && (self.is_decided)(trial.repeat)
    }

    /// Runs a trial. If it is the first of a search, the probes that follow from earlier results run too.
    fn with_probes(
        &self,
        first: &TrialPlan,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
        outcome: &mut Outcome,
    ) -> Result<(), TrialRunnerError> {
        let (mut next, mut probes) = (Some(first.clone()), Vec::new());
        while let Some(trial) = next {
            if let Some(file) = self.prepared.builds().changed() {
                return Err(TrialRunnerError::Rebuilt(file.display().to_string()));
            }
            watch.begins(&trial, self.planned);
            let record = self.trial(&trial, kept_loads, watch)?;
            let goes_on = self.stops.load(Relaxed) == 0 && self.results.trouble().is_none();
            next = if goes_on { self.next_probe(&trial, &record, &mut probes)? } else { None };
            match &record.status {
                // The search repeats a suspended probe, so it counts as done.
                Status::Suspended { .. } if next.is_some() => outcome.done += 1,
                Status::Done => outcome.done += 1,
                Status::Suspended { .. } => outcome.suspended += 1,
                Status::Interrupted => outcome.interrupted = true,
                Status::Running | Status::Failed { .. } => outcome.failed += 1,
            }
            watch.ended(&record);
        }
        Ok(())
    }

    /// The probe that follows this trial, if it is one of a search that goes on.
    fn next_probe(
        &self,
        trial: &TrialPlan,
        record: &Record,
        probes: &mut Vec<Probe>,
    ) -> Result<Option<TrialPlan>, TrialRunnerError> {
        let (Some(search), Some(number)) = (&trial.run.search, trial.probe) else { return Ok(None) };
        probes.push(rumba_statistics::probe(record, search, probes));
        let Next::Probe(rate) = rumba_statistics::next(probes) else { return Ok(None) };
        let run = RunPlan { rate, ..trial.run.clone() };
        let plan = TrialPlan { probe: Some(number + 1), run, ..trial.clone() };
        self.results.add(plan).map(Some).map_err(io("noting a probe of the search"))
    }

    /// Runs the trial's process to its end and stores its events. Returns the workload's state if the trial has loaded
    /// data.
    fn follow(
        &self,
        order: &Order,
        mark: &str,
        limited: &mut Enforcement,
        writer: &mut TrialWriter,
        sampler: &mut Option<Sampler>,
        watch: &mut dyn Watch,
    ) -> Option<State> {
        let (trial, log) = (&order.plan, writer.directory().join(LOG));
        let command = (self.child)().and_then(|command| limited.command(command).map_err(std::io::Error::other));
        let (mut left, mut is_killed) = (None, false);
        let mut process_bytes: f64 = 0.0;
        let mut stall = StallWatch::new(trial);
        let mut own_writes = OwnWrites::of(order, writer.directory());
        let end = self.process(command, order, mark, &log, &mut |reported, child| {
            let warning = match &reported {
                Some(event) => stall.take(event),
                None => stall.look(child, &order.data_dir, limited)?,
            };
            if let (Some(sampler), Some(event)) = (&mut *sampler, &reported) {
                sampler.receive(event, child.id());
            }
            // Take this count before the record is written, because that write is no part of the phase.
            reported.iter().for_each(|event| own_writes.receive(event));
            match &reported {
                Some(Event::Interval(_)) => process_bytes = process_bytes.max(held_by_processes(limited)),
                // A verification is not measured, and reads all data: at a throttle's rate it would take minutes.
                Some(Event::PhaseStarted { phase: phase @ (PhaseKind::VerifyLoad | PhaseKind::Verify), .. }) => {
                    let mut lifted = limited.lift_throttle();
                    // The memory limit stays during the load's verification. Otherwise pages that are cached meanwhile
                    // would change the loops.
                    lifted.extend((*phase == PhaseKind::Verify).then(|| limited.lift_memory()).flatten());
                    lifted.into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
                }
                // The next phases are measured, so the throttle returns.
                Some(Event::PhaseEnded(phase)) if phase.phase == PhaseKind::VerifyLoad => {
                    limited.throttle().map_err(std::io::Error::other)?;
                }
                Some(Event::Loaded { state }) => left = Some(state.clone()),
                Some(Event::PhaseEnded(phase)) if phase.phase == PhaseKind::Crash => {
                    is_killed = true;
                    child.kill()?;
                }
                _ => {}
            }
            for event in reported.into_iter().chain(warning.map(Event::Warning)) {
                // Store an event before it is shown, so that no failure of the terminal loses a measurement.
                writer.take(event.clone());
                watch.event(trial, &event);
            }
            // Stop when results can no longer be stored.
            let trouble = writer.trouble();
            let goes_on = trouble.is_none();
            trouble.into_iter().for_each(|warning| watch.event(trial, &Event::Warning(warning)));
            Ok(goes_on)
        });
        if self.stops.load(Relaxed) > 0 {
            writer.interrupted();
        }
        if !is_killed {
            finish(end, &log, writer);
        }
        // The processes after a kill do not run the measured load, so their memory does not count.
        let measured = if order.act == Act::Measure { process_bytes } else { 0.0 };
        report_of_memory(limited, measured, writer);
        if let Some(words) = own_writes.words() {
            writer.condition(condition::WRITTEN_BY_RUMBA, words);
        }
        own_writes.warning().into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
        if let Some((phase, cause)) = stall.stalled() {
            writer.take(Event::Failed { phase, cause });
        }
        left
    }

    /// Starts the trial's process and passes on its events until it has ended. `take` also gets `None` several times a
    /// second, so that a stall is noticed. It returns whether the trial is to go on.
    fn process(
        &self,
        command: std::io::Result<Command>,
        order: &Order,
        mark: &str,
        file: &Path,
        take: &mut dyn FnMut(Option<Event>, &mut Child) -> std::io::Result<bool>,
    ) -> Result<ExitStatus, Broken> {
        let mut command = command?;
        // Servers inherit the mark, so a server that outlives the trial is found by it.
        command.env(MARK_VARIABLE, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A trial of several processes has the output of all of them in one log.
        let mut options = std::fs::OpenOptions::new();
        let options = options.create(true).write(true);
        let log = match order.act {
            Act::Measure => options.truncate(true),
            Act::Crash | Act::Recover => options.append(true),
        };
        if let (Some(gate), Some(door)) = (self.gate, order.door) {
            gate.pass(door, &mut command);
        }
        let mut child = command.stderr(log.open(file)?).spawn()?;
        self.pass_on(&mut child, order, take).inspect_err(|_| {
            // The child may have ended already; then there is nothing to kill, and this is its only `wait`.
            let _ = child.kill().and_then(|()| child.wait());
        })
    }

    fn pass_on(
        &self,
        child: &mut Child,
        order: &Order,
        take: &mut dyn FnMut(Option<Event>, &mut Child) -> std::io::Result<bool>,
    ) -> Result<ExitStatus, Broken> {
        if let Some(mut stdin) = child.stdin.take() {
            // A process that died before reading reports that by its exit status.
            let _ = stdin.write_all(&serde_json::to_vec(order).map_err(std::io::Error::from)?);
        }
        let Some(stdout) = child.stdout.take() else { return Ok(child.wait()?) };
        let events = events_of(stdout);
        let mut requested: Option<Instant> = None;
        let mut goes_on = true;
        let mut look = Instant::now() + LOOK;
        loop {
            match events.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(event) => goes_on &= take(Some(event.map_err(Broken::Unreadable)?), child)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Check also between frequent events: with short intervals, events arrive even when no operation ends.
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                if requested.is_none() {
                    goes_on &= take(None, child)?;
                }
            }
            let stops = self.stops.load(Relaxed);
            if (stops > 0 || !goes_on) && requested.is_none() {
                requested = Some(Instant::now());
                // The child may have ended meanwhile; it is not reaped yet, so the pid is still its own.
                let _ = kill_process(Pid::from_child(child), Signal::TERM);
            }
            if stops > 1 || requested.is_some_and(|requested| requested.elapsed() > PATIENCE) {
                child.kill()?;
            }
        }
    }
}

/// Why a trial's process failed before its normal end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the trial's process could not be run: {0}")]
    NotRun(#[from] std::io::Error),
    /// The unreadable line may have held a measurement.
    #[error(
        "the output of the trial's process cannot be read, so rumba ended the process: {0}; run it again, and report \
         it if it happens again"
    )]
    Unreadable(Unreadable),
}

/// Memory of the group's processes that the kernel cannot reclaim, bytes; zero if unknown.
fn held_by_processes(limited: &Enforcement) -> f64 {
    limited.memory().and_then(|memory| memory.process_bytes.value()).unwrap_or_default()
}

/// Records the peak memory of the group, and the peak of its processes as sampled once a second. If the kernel ended
/// the trial for lack of memory, it records that too.
fn report_of_memory(limited: &Enforcement, process_bytes: f64, writer: &mut TrialWriter) {
    if let Some(why) = limited.verdict("cache") {
        writer.explained(&why);
    }
    if let Some(peak) = limited.memory().and_then(|memory| memory.peak_bytes.value()) {
        writer.condition(condition::PEAK_OF_GROUP, show_bytes(peak));
    }
    if process_bytes > 0.0 {
        writer.condition(condition::PEAK_OF_PROCESSES, show_bytes(process_bytes));
    }
}

/// Records the cause when a process ended without reporting one.
fn finish(end: Result<ExitStatus, Broken>, log: &Path, writer: &mut TrialWriter) {
    let cause = match end {
        Err(broken @ Broken::Unreadable(_)) => {
            // Fail the trial even if it reported its end before.
            return writer.take(Event::Failed { phase: writer.phase(), cause: broken.to_string() });
        }
        Err(broken @ Broken::NotRun(_)) => broken.to_string(),
        Ok(status) => match status.signal() {
            Some(9) => "the trial's process was killed (signal 9): by a user, or by the kernel for lack of memory \
                        (see dmesg)"
                .to_owned(),
            // LMDB with writemap gets SIGBUS when it stores to a memory-mapped file on a full device.
            Some(7) => "the trial's process died of signal 7 (SIGBUS): a memory-mapped file could not be written; is \
                        the device full?"
                .to_owned(),
            Some(signal) => format!("the trial's process died of signal {signal}"),
            None => format!("the trial's process ended with exit code {}", status.code().unwrap_or(-1)),
        },
    };
    let last_words = last_lines(log);
    writer.gone(if last_words.is_empty() { cause } else { format!("{cause}; its last words: {last_words}") });
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leftovers;
    use crate::prepare::{Allowed, Validated};
    use crate::spec::testing::registry;
    use crate::spec::{self, Overrides};
    use crate::store::{self, Claim};

    struct Unwatched;

    impl Watch for Unwatched {
        fn begins(&mut self, _: &TrialPlan, _: usize) {}
        fn event(&mut self, _: &TrialPlan, _: &Event) {}
        fn ended(&mut self, _: &Record) {}
    }

    fn lives(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        // A zombie stays until its parent waits for it.
        !stat.is_empty() && !stat.contains(") Z ")
    }

    /// Guards against skipping an unreadable line: the trial counted as done without the data in it. A server that
    /// outlives the trial is ended too.
    #[test]
    fn trial_that_emits_unreadable_events_is_ended_and_fails() {
        let (dir, registry) = (tempfile::tempdir().unwrap(), registry());
        let path = |name: &str| dir.path().join(name);
        let overrides = Overrides {
            engines: vec!["rocksdb".to_owned()],
            set: vec!["clients=1".to_owned(), "repeats=1".to_owned()],
            ..Overrides::default()
        };
        let experiment = spec::of_workload("linkbench", &overrides, &registry).unwrap();
        let validated = Validated::new(experiment, &path("data"), Allowed::default()).unwrap();
        let trials = validated.plan(&registry);
        let prepared = validated.prepare(trials, &registry).unwrap();
        let results = ResultsDir::create(Claim::new(&path("results")).unwrap(), &prepared).unwrap();
        let managed = provision::ResourceRegistry::at(&path("state")).unwrap();
        let reports = format!(
            r#"cat > /dev/null; echo $$ > {}; sleep 1000 > /dev/null & echo $! > {}
               until grep -q sleep /proc/$!/comm; do :; done
               echo '{{"event":"phase-started","phase":"load","seconds":null,"rows":1}}'
               echo '{{"event":"finished"}}'; echo '{{"event":"phase-ended"'; exec sleep 1000"#,
            path("pid").display(),
            path("server").display()
        );
        let child = || -> std::io::Result<Command> {
            let mut command = Command::new("sh");
            command.args(["-c", &reports]);
            Ok(command)
        };
        let runner = TrialRunner {
            prepared: &prepared,
            planned: 1,
            results: &results,
            managed: &managed,
            registry: &registry,
            child: &child,
            harness: &Harness::default(),
            stops: &AtomicUsize::new(0),
            profiles: false,
            is_decided: &|_| false,
            gate: None,
        };
        let outcome = runner.run(KeptLoads::default(), &mut Unwatched).unwrap();
        assert_eq!((outcome.failed, outcome.done), (1, 0));
        let record = store::read(results.path()).unwrap().trials.remove(0).record;
        let Status::Failed { phase, cause } = record.status else { panic!("{:?}", record.status) };
        assert_eq!(phase, PhaseKind::Load);
        assert!(cause.contains("cannot be read") && cause.contains("line 3 is not an event"), "{cause}");
        for process in ["pid", "server"] {
            assert!(!lives(&std::fs::read_to_string(path(process)).unwrap()), "{process}: it works on");
        }
        assert!(!path("data/001-rocksdb-c1-r1").exists(), "its data is still there");
        assert!(leftovers::find(&managed).unwrap().is_empty());
    }
}
