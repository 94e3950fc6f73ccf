//! Conducts an experiment: each trial in a process of its own, its events
//! folded into files as they come.

mod acid;
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

use rumba_core::condition;
use rumba_core::event::Event;
use rumba_core::record::{PhaseKind, Record, RunPlan, Status, TrialPart, TrialPlan};
use rumba_core::search::Probe;
use rumba_core::starts::FIRST_LOOK;
use rumba_core::units::show_bytes;
use rumba_core::warning::Warning;
use rumba_core::workload::State;
use rumba_statistics::Next;

use crate::engine_files::EngineFiles;
use crate::harness::Harness;
use crate::kept::KeptLoads;
use crate::limits::{Enforcement, LimitError};
use crate::prepare::Prepared;
use crate::provision::{self, DataDir, MARK_VARIABLE, Owner, ProvisionError};
use crate::stall::StallWatch;
use crate::store::{ResultsDir, TrialWriter};
use crate::trial::Act;
use crate::trial::child::Order;
use events::{Unreadable, events_of};
pub use forecast::{Forecast, TimeLeft};
use own_writes::OwnWrites;
use profile::Sampler;
use start::{LoadedData, Start};

/// How often a trial is looked at, whatever it tells.
const LOOK: Duration = Duration::from_millis(200);
/// How long a trial's process may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the trial's process says outside its events, beside its record.
const LOG: &str = "engine.log";
/// Lines of the process's standard error that a failure quotes.
const QUOTED_LINES: usize = 5;

/// Watches an experiment go.
pub trait Watch {
    /// A trial begins, one of so many.
    fn begins(&mut self, trial: &TrialPlan, of: usize);
    /// Data of so many bytes is copied for a trial, or after it.
    fn copies(&mut self, _trial: &TrialPlan, _bytes: u64) {}
    /// A trial tells something.
    fn event(&mut self, trial: &TrialPlan, event: &Event);
    /// A trial has ended and its record is written, whatever came of it.
    fn ended(&mut self, record: &Record);
}

/// What an experiment needs to be conducted.
pub struct Conduct<'a> {
    /// It, with those of its trials that are to run.
    pub prepared: &'a Prepared,
    /// How many trials it has in all.
    pub planned: usize,
    /// Where results go.
    pub results: &'a ResultsDir,
    /// Lists them, so that they are found after a kill.
    pub managed: &'a provision::Ledger,
    /// Makes the command that runs [`crate::trial::child::serve`].
    pub child: &'a dyn Fn() -> std::io::Result<Command>,
    /// What rumba itself costs on this host.
    pub harness: &'a Harness,
    /// How often the user has asked to stop: once lets the trial save, twice ends its process.
    pub stops: &'a AtomicUsize,
    /// Whether it is sampled where the CPU goes.
    pub profiles: bool,
    /// Whether the trials that have ended decide every headline, and none of them is of this repeat. It is asked before
    /// the repeats of a run that ends then.
    pub is_decided: &'a dyn Fn(u32) -> bool,
}

/// How the trials of an experiment ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Trials that ended as planned.
    pub done: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Trials that went to their end, of whose figures some count for nothing: their measurement was suspended.
    pub suspended: usize,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// Trials that were not begun, because results can no longer be written.
    pub not_begun: usize,
}

/// What keeps an experiment from going on at all.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// A data directory cannot be had.
    #[error(transparent)]
    Provision(#[from] ProvisionError),
    /// A limit cannot be put into force, or not be undone.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// Trials of two builds are no repeats of each other.
    #[error("{0} was changed while the run went on, whose trials before it have run what it was")]
    Rebuilt(String),
    /// A trial's process cannot be started, or results cannot be written.
    #[error("{what}: {cause}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's words.
        cause: std::io::Error,
    },
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ConductError {
    let what = what.into();
    |cause| ConductError::Io { what, cause }
}

impl Conduct<'_> {
    /// Runs all trials; a failed one does not stop the next. `kept_loads` is the data
    /// of earlier loads that trials start from.
    ///
    /// # Errors
    /// When nothing more can be run or written.
    pub fn run(&self, mut kept_loads: KeptLoads, watch: &mut dyn Watch) -> Result<Outcome, ConductError> {
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
            // A load that was just made has its trials before it.
            kept_loads.release(|load| trials[number + 1..].iter().any(|next| next.loaded_by == Some(load)))?;
        }
        outcome.interrupted |= self.stops.load(Relaxed) > 0;
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

    /// Runs a trial and, if it is the first of a search, those that follow from what it and they found.
    fn with_probes(
        &self,
        first: &TrialPlan,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
        outcome: &mut Outcome,
    ) -> Result<(), ConductError> {
        let (mut next, mut probes) = (Some(first.clone()), Vec::new());
        while let Some(trial) = next {
            if let Some(file) = self.prepared.builds().changed() {
                return Err(ConductError::Rebuilt(file.display().to_string()));
            }
            watch.begins(&trial, self.planned);
            let record = self.trial(&trial, kept_loads, watch)?;
            let goes_on = self.stops.load(Relaxed) == 0 && self.results.trouble().is_none();
            next = if goes_on { self.next_probe(&trial, &record, &mut probes)? } else { None };
            match &record.status {
                // A probe that was suspended, and that the search repeats.
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
    ) -> Result<Option<TrialPlan>, ConductError> {
        let (Some(search), Some(number)) = (&trial.run.search, trial.probe) else { return Ok(None) };
        probes.push(rumba_statistics::probe(record, search, probes));
        let Next::Probe(rate) = rumba_statistics::next(probes) else { return Ok(None) };
        let run = RunPlan { rate, ..trial.run.clone() };
        let plan = TrialPlan { probe: Some(number + 1), run, ..trial.clone() };
        self.results.add(plan).map(Some).map_err(io("noting a probe of the search"))
    }

    /// Runs a trial's process on data of its own, empty or copied, and undoes all that was made for it.
    fn attempt(
        &self,
        trial: &TrialPlan,
        start: &Start<'_>,
        kept_loads: &mut KeptLoads,
        watch: &mut dyn Watch,
    ) -> Result<Attempt, ConductError> {
        let name = crate::plan::directory(trial);
        let mut writer =
            self.results.trial(trial, self.prepared.build()).map_err(io(format!("making the results of {name}")))?;
        // What its seconds are counted from, in every process of it.
        let began = Instant::now();
        writer.harness(self.harness);
        start.told().into_iter().for_each(|warning| {
            watch.event(trial, &Event::Warning(warning.clone()));
            writer.take(Event::Warning(warning));
        });
        let owner = Owner::this_process(&self.prepared.experiment().name, trial.number)
            .map_err(io("looking at this process"))?;
        let volume = self.prepared.data_base().join(crate::plan::volume_name(trial));
        let mut limited = Enforcement::prepare(&trial.engine.limits, &volume, &owner, self.managed)?;
        let base = limited.storage_dir().unwrap_or(self.prepared.data_base());
        let mut data = DataDir::create(&base.join(&name), &owner, self.managed)?;
        let copied = self.copy_in(start, &data, trial, watch);
        limited.throttle()?;
        let (data_dir, limits) = (data.engine_dir(), limited.enforced().to_vec());
        let (state, journal, act) = (start.state().cloned(), data.journal(), Act::Measure);
        let (parent, begun_s) = (std::process::id(), began.elapsed().as_secs_f64());
        let order = Order { plan: trial.clone(), data_dir, limits, parent, state, act, journal, begun_s };
        let log = writer.directory().join(LOG);
        let mut sampler = self.profiles.then(|| Sampler::new(writer.directory()));
        let is_copied = copied.is_ok();
        let left = match copied {
            Ok(()) => {
                let left = self.follow(&order, &data.mark(), &mut limited, &mut writer, &mut sampler, watch);
                self.kill_and_look((&order, began), left.as_ref(), &data, &mut limited, &mut writer, watch);
                left
            }
            Err(cause) => {
                self.not_started(&cause, &mut writer);
                None
            }
        };
        // Whatever ended the trial: a server that still writes would spoil the next one, and its log has no end yet.
        let vacated = data.vacate();
        if start.is_unusable(writer.status()) {
            vacated?;
            data.remove()?;
            limited.end()?;
            let why = start::cause_of(writer.status());
            return Ok(if is_copied { Attempt::NotOpened(why) } else { Attempt::NoCopy(why) });
        }
        writer.condition(condition::DATA, start.words());
        if let Some(words) = sampler.and_then(|sampler| sampler.finish(self.stops)) {
            writer.condition(profile::CONDITION, words);
        }
        let mut engine_files = EngineFiles::of(&order.data_dir);
        // Whoever goes on with the run puts the trial's data there again.
        let keeps = trial.run.keep_data && trial.part != TrialPart::Load && *writer.status() != Status::Interrupted;
        let provisioned = match (trial.part, writer.status(), left) {
            // Data that took longer to load than was measured is whole all the same.
            (TrialPart::Load, Status::Done | Status::Suspended { .. }, Some(state)) => {
                // What is copied off a volume is no part of what is measured.
                limited.lift_throttle().into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
                let left = LoadedData { data, state, started: writer.started() };
                self.keep(trial, left, limited.storage_dir().is_some(), kept_loads, watch)
            }
            _ if keeps && limited.storage_dir().is_some() => {
                limited.lift_throttle().into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
                self.keep_off_volume(trial, data, &mut writer, watch)
            }
            _ if keeps => data.keep(),
            // The data goes before the last write: the disk may have been full of it.
            _ => data.remove(),
        };
        engine_files.write(writer.directory());
        if let Some(warning) = not_kept(&engine_files.problems) {
            writer.take(Event::Warning(warning));
        }
        remove_if_empty(&log);
        let record = writer.finish().map_err(io(format!("writing the results of {name}")))?;
        vacated?;
        provisioned?;
        limited.end()?;
        Ok(Attempt::Ended(Box::new(record)))
    }

    /// Runs the trial's process to its end, keeping what it tells, and returns
    /// what it told of the data that it leaves.
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
        let end = self.process(command, order, mark, &log, &mut |told, child| {
            let warning = match &told {
                Some(event) => stall.take(event),
                None => stall.look(child, &order.data_dir, limited)?,
            };
            if let (Some(sampler), Some(event)) = (&mut *sampler, &told) {
                sampler.hear(event, child.id());
            }
            // Before the record is written, which is no part of the phase that it follows.
            told.iter().for_each(|event| own_writes.hear(event));
            match &told {
                Some(Event::Interval(_)) => process_bytes = process_bytes.max(held_by_processes(limited)),
                // A verification is not measured, and reads all data: at a throttle's rate it would take minutes.
                Some(Event::PhaseStarted { phase: phase @ (PhaseKind::VerifyLoad | PhaseKind::Verify), .. }) => {
                    let mut lifted = limited.lift_throttle();
                    // After that of the load the memory is what it was: what was cached meanwhile would be measured.
                    lifted.extend((*phase == PhaseKind::Verify).then(|| limited.lift_memory()).flatten());
                    lifted.into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
                }
                // What follows is measured.
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
            for event in told.into_iter().chain(warning.map(Event::Warning)) {
                // Kept before it is shown: whatever happens to a terminal, nothing measured is lost.
                writer.take(event.clone());
                watch.event(trial, &event);
            }
            // What is measured from here on could not be kept.
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
        // Those that follow a kill do not work under the load that is to be known of.
        let measured = if order.act == Act::Measure { process_bytes } else { 0.0 };
        tell_of_memory(limited, measured, writer);
        if let Some(words) = own_writes.words() {
            writer.condition(condition::WRITTEN_BY_RUMBA, words);
        }
        own_writes.warning().into_iter().for_each(|warning| writer.take(Event::Warning(warning)));
        if let Some((phase, cause)) = stall.stalled() {
            writer.take(Event::Failed { phase, cause });
        }
        left
    }

    /// Starts the trial's process and passes on its events until it has ended;
    /// and nothing several times a second, so that its silence is heard. `take`
    /// says whether it is to go on.
    fn process(
        &self,
        command: std::io::Result<Command>,
        order: &Order,
        mark: &str,
        file: &Path,
        take: &mut dyn FnMut(Option<Event>, &mut Child) -> std::io::Result<bool>,
    ) -> Result<ExitStatus, Broken> {
        let mut command = command?;
        // Servers that it starts inherit the mark, and are found by it should they outlive it.
        command.env(MARK_VARIABLE, mark).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Of a trial of several processes it holds what all have said.
        let mut options = std::fs::OpenOptions::new();
        let options = options.create(true).write(true);
        let log = match order.act {
            Act::Measure => options.truncate(true),
            Act::Crash | Act::Recover => options.append(true),
        };
        let mut child = command.stderr(log.open(file)?).spawn()?;
        self.pass_on(&mut child, order, take).inspect_err(|_| {
            // It may have ended by itself; then there is nothing to kill, and nobody else waits for it.
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
            // A process that died before reading says so by its exit.
            let _ = stdin.write_all(&serde_json::to_vec(order).map_err(std::io::Error::from)?);
        }
        let Some(stdout) = child.stdout.take() else { return Ok(child.wait()?) };
        let events = events_of(stdout);
        let mut asked: Option<Instant> = None;
        let mut goes_on = true;
        let mut look = Instant::now() + LOOK;
        loop {
            match events.recv_timeout(look.saturating_duration_since(Instant::now())) {
                Ok(event) => goes_on &= take(Some(event.map_err(Broken::Unreadable)?), child)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Also between events that come more often: short intervals tell of a trial in which nothing ends.
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                if asked.is_none() {
                    goes_on &= take(None, child)?;
                }
            }
            let stops = self.stops.load(Relaxed);
            if (stops > 0 || !goes_on) && asked.is_none() {
                asked = Some(Instant::now());
                signal(child, rustix::process::Signal::TERM);
            }
            if stops > 1 || asked.is_some_and(|asked| asked.elapsed() > PATIENCE) {
                child.kill()?;
            }
        }
    }
}

/// Why a trial's process did not come to an end of its own.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("the trial's process could not be run: {0}")]
    NotRun(#[from] std::io::Error),
    /// What it measured may have been in the line.
    #[error(
        "what the trial's process tells cannot be read, so that it was ended: {0}; run it again, and report it if it comes back"
    )]
    Unreadable(Unreadable),
}

/// How an attempt to run a trial ended.
enum Attempt {
    /// It ran, whatever came of it.
    Ended(Box<Record>),
    /// What it was to start from is not what was kept: why.
    NoCopy(String),
    /// The copy that it was to start from did not open: why.
    NotOpened(String),
}

/// Bytes that the group's processes hold themselves, which the kernel cannot take back; zero where nobody says.
fn held_by_processes(limited: &Enforcement) -> f64 {
    limited.memory().and_then(|memory| memory.process_bytes.value()).unwrap_or_default()
}

/// The most memory that the group ever held, and its processes themselves as
/// seen once a second; and that it was the kernel that ended the trial, where it was.
fn tell_of_memory(limited: &Enforcement, process_bytes: f64, writer: &mut TrialWriter) {
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

fn signal(child: &Child, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended meanwhile; it is not reaped yet, so the pid is still its own.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Names the cause when a process ended without saying how.
fn finish(end: Result<ExitStatus, Broken>, log: &Path, writer: &mut TrialWriter) {
    let cause = match end {
        Err(broken @ Broken::Unreadable(_)) => {
            // Whatever it has told of its end before.
            return writer.take(Event::Failed { phase: writer.phase(), cause: broken.to_string() });
        }
        Err(broken @ Broken::NotRun(_)) => broken.to_string(),
        Ok(status) => match status.signal() {
            Some(9) => "the trial's process was killed (signal 9): by a user, or by the kernel for lack of memory \
                        (see dmesg)"
                .to_owned(),
            // What a store to a memory-mapped file comes to when the device is full (LMDB with writemap).
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

fn not_kept(problems: &[String]) -> Option<Warning> {
    (!problems.is_empty()).then(|| {
        Warning::new(
            "not-kept",
            format!("files of the engine could not be kept beside the results: {}", problems.join("; ")),
            "set keep_data = true and copy them from the data directory yourself",
        )
    })
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(QUOTED_LINES)..].join(" | ")
}

fn remove_if_empty(log: &Path) {
    if std::fs::metadata(log).is_ok_and(|meta| meta.len() == 0) {
        // An empty log says nothing; if it cannot be removed, it does no harm.
        let _ = std::fs::remove_file(log);
    }
}
