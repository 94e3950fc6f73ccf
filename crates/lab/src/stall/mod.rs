//! The stall watch: a trial in which no operation ends is told at once, with
//! what is likely to be behind it, and fails after a bound.
//!
//! It follows a trial's events from outside the trial's process. A process that
//! is stopped, or that the kernel gives no page to, could not tell of itself;
//! and the load path has nothing of it to carry.

mod cause;
mod snapshot;

use std::io;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rumba_core::event::Event;
use rumba_core::limits::StorageLimit;
use rumba_core::record::{Interval, PhaseKind, TrialPlan};
use rumba_core::warning::Warning;
use rustix::process::{Pid, Signal, kill_process};

use crate::limits::Enforcement;
use cause::Between;
use snapshot::{Snapshot, SnapshotSource};

/// How long no operation may end before that is told.
const NOTICE: Duration = Duration::from_secs(10);
/// From how long on it is looked at: what a cause is told from is what went on between looks.
const QUIET: Duration = Duration::from_secs(1);
/// How often it is looked at then.
const LOOK: Duration = Duration::from_secs(1);
/// Of an open loop, so many operations must have been due: at a low rate seconds without one are nothing.
const DUE: f64 = 30.0;
/// How long a trial may take to tell what it has, once the server is gone; no longer if it does not answer.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// A load's long statement is at work when its process computes so many CPU seconds per second in its own code …
const AT_WORK: f64 = 0.1;
/// … or has written so many bytes in an interval.
const WRITTEN: f64 = (1 << 20) as f64;

/// A watch that looks several times a second and did not for so long was stopped itself: with Ctrl-Z, its trial with it.
const ASLEEP: Duration = Duration::from_secs(5);

/// What a [`StallWatch`] has to say.
#[derive(Debug, PartialEq)]
enum Said {
    Warning(Warning),
    /// The trial is to end, with this cause.
    Stalled(String),
}

/// Counts the time since an operation ended.
#[derive(Debug)]
struct Clock {
    notice: Duration,
    bound: Option<Duration>,
    /// The phase, if operations are expected now.
    phase: Option<PhaseKind>,
    /// Whether warmup or loops have begun, and nothing else since.
    runs: bool,
    /// When an operation ended last, or the first phase of them began.
    progress: Instant,
    /// When the clock was looked at last.
    looked: Instant,
    /// Whether the present silence has been told.
    told: bool,
    first: Option<Snapshot>,
    last: Option<Snapshot>,
    storage: Option<StorageLimit>,
}

/// Whether operations are expected in it.
fn has_operations(phase: PhaseKind) -> bool {
    matches!(phase, PhaseKind::Load | PhaseKind::Age | PhaseKind::Warmup | PhaseKind::Loop(_))
}

impl Clock {
    fn new(trial: &TrialPlan, now: Instant) -> Self {
        let due = trial.run.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64((DUE / rate).min(1e6)));
        let bound = (trial.run.stall_s > 0.0).then(|| Duration::from_secs_f64(trial.run.stall_s).max(due));
        let notice = bound.map_or(NOTICE, |bound| NOTICE.min(bound / 2)).max(due / 2);
        let storage = trial.engine.limits.storage.clone();
        Self {
            notice,
            bound,
            phase: None,
            runs: false,
            progress: now,
            looked: now,
            told: false,
            first: None,
            last: None,
            storage,
        }
    }

    /// Takes an event; a silence that was told and has ended is told to have ended.
    fn take(&mut self, event: &Event, now: Instant) -> Option<Said> {
        self.looked = now;
        match event {
            Event::PhaseStarted { phase, .. } if has_operations(*phase) => {
                // A warmup and its loops follow each other without a pause; so does a silence.
                let follows = !matches!(phase, PhaseKind::Load | PhaseKind::Age);
                let goes_on = self.runs && follows;
                self.runs = follows;
                self.phase = Some(*phase);
                if !goes_on {
                    return self.goes_on(now);
                }
            }
            Event::PhaseStarted { .. } => (self.phase, self.runs) = (None, false),
            // Between phases nothing is counted. One may be told only when the next has begun, as late as its engine.
            Event::PhaseEnded(ended) if self.phase == Some(ended.phase) => self.phase = None,
            Event::Interval(interval) if progresses(interval) => return self.goes_on(now),
            _ => {}
        }
        None
    }

    fn goes_on(&mut self, now: Instant) -> Option<Said> {
        let silence = now.saturating_duration_since(self.progress);
        let phase = self.phase;
        let was_told = std::mem::take(&mut self.told);
        (self.progress, self.first, self.last) = (now, None, None);
        (was_told && phase.is_some()).then(|| {
            let message = format!("operations end again, after {:.0} s in which none did", silence.as_secs_f64());
            Said::Warning(Warning::new("stall-ended", message, "the largest response time has it; see the timeline"))
        })
    }

    /// Looks at the trial when it is time to.
    fn look(&mut self, now: Instant, snapshot: impl FnOnce() -> Snapshot) -> Option<Said> {
        let asleep = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        if asleep > ASLEEP {
            (self.progress, self.first, self.last) = (self.progress + asleep, None, None);
        }
        let phase = self.phase?;
        let silence = now.saturating_duration_since(self.progress);
        if silence < QUIET.min(self.notice / 2) || self.last.as_ref().is_some_and(|last| now < last.at + LOOK) {
            return None;
        }
        let next = snapshot();
        let before = self.last.replace(next.clone());
        let first = self.first.get_or_insert_with(|| next.clone());
        if phase == PhaseKind::Load
            && before.is_some_and(|before| Between::new(&before, &next, None).own_cpu() >= AT_WORK)
        {
            // A batch or an index that takes long, at which the engine works.
            return self.goes_on(now);
        }
        let between = Between::new(first, &next, self.storage.as_ref());
        let is_over = self.bound.is_some_and(|bound| silence >= bound);
        if !is_over && (self.told || silence < self.notice) {
            return None;
        }
        let seconds = silence.as_secs_f64();
        let why = format!("likeliest cause: {}; seen: {}", between.cause(), between.figures());
        if is_over {
            return Some(Said::Stalled(format!("stalled: no operation ended for {seconds:.0} s (run.stall); {why}")));
        }
        self.told = true;
        let remedy = match self.bound {
            Some(bound) => format!("after {:.0} s of it the trial fails (run.stall)", bound.as_secs_f64()),
            None => "run.stall is off: interrupt the run, or wait".to_owned(),
        };
        let message = format!("no operation has ended for {seconds:.0} s in {phase}; {why}");
        Some(Said::Warning(Warning::new("stall", message, remedy)))
    }
}

/// Whether an operation ended in it, or a load wrote.
fn progresses(interval: &Interval) -> bool {
    let written = || interval.spent.process_write_bytes.value().unwrap_or_default();
    interval.ops + interval.errors > 0 || interval.phase == PhaseKind::Load && written() >= WRITTEN
}

/// Watches one trial, and ends it when it has stalled.
#[derive(Debug)]
pub struct StallWatch {
    clock: Clock,
    place: Option<SnapshotSource>,
    stalled: Option<Stalled>,
}

#[derive(Debug)]
struct Stalled {
    phase: PhaseKind,
    cause: String,
    since: Instant,
}

impl StallWatch {
    /// Over a trial that is about to start.
    pub fn new(trial: &TrialPlan) -> Self {
        Self { clock: Clock::new(trial, Instant::now()), place: None, stalled: None }
    }

    /// Takes an event of the trial; what there is to tell of it.
    pub fn take(&mut self, event: &Event) -> Option<Warning> {
        // What a trial asks of its engine at a phase's end comes back when the server is killed: it fails in the next.
        if let (Some(stalled), Event::PhaseStarted { phase, .. }) = (&mut self.stalled, event) {
            stalled.phase = *phase;
        }
        match self.clock.take(event, Instant::now())? {
            Said::Warning(warning) if self.stalled.is_none() => Some(warning),
            _ => None,
        }
    }

    /// Looks whether a trial goes on, to be called several times a second; a
    /// warning when it does not. After the bound it ends the trial.
    ///
    /// # Errors
    /// When the trial's process cannot be ended.
    pub fn look(&mut self, trial: &mut Child, data_dir: &Path, limited: &Enforcement) -> io::Result<Option<Warning>> {
        if let Some(stalled) = &self.stalled {
            return if stalled.since.elapsed() > LAST_WORDS { trial.kill().map(|()| None) } else { Ok(None) };
        }
        let place = self.place.get_or_insert_with(|| SnapshotSource::new(trial.id(), data_dir));
        match self.clock.look(Instant::now(), || Snapshot::look(place, limited)) {
            None => Ok(None),
            Some(Said::Warning(warning)) => Ok(Some(warning)),
            Some(Said::Stalled(cause)) => {
                let phase = self.clock.phase.unwrap_or(PhaseKind::Provision);
                self.stalled = Some(Stalled { phase, cause, since: Instant::now() });
                end(trial.id());
                Ok(None)
            }
        }
    }

    /// The phase in which the trial stood when it ended, and why, if it ended because it stalled.
    pub fn stalled(self) -> Option<(PhaseKind, String)> {
        self.stalled.map(|stalled| (stalled.phase, stalled.cause))
    }
}

/// Ends a trial's servers at once, so that its clients come back from them and
/// what was measured is told; and asks the trial itself to stop.
fn end(trial: u32) {
    for pid in snapshot::family(trial) {
        let signal = if pid == trial { Signal::TERM } else { Signal::KILL };
        if let Some(pid) = Pid::from_raw(pid as i32) {
            // One that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests;
