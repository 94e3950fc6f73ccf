//! The stall watch: reports a trial in which no operation ends, with the likely cause, and fails the trial after a
//! bound.
//!
//! It follows a trial's events from another process. A stopped process, or one that gets no page from the kernel, could
//! not report itself. The watch also adds no work to the hot path.

mod cause;
mod snapshot;

use std::io;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rumba_engine_api::limits::StorageLimit;
use rumba_results::event::Event;
use rumba_results::record::{Interval, PhaseKind, TrialPlan};
use rumba_results::warning::Warning;
use rustix::process::{Pid, Signal, kill_process};

use crate::host::processes::family;
use crate::limits::Enforcement;
use cause::Between;
use snapshot::{Snapshot, SnapshotSource};

/// The time without a completed operation before a report.
const NOTICE: Duration = Duration::from_secs(10);
/// The time without a completed operation before sampling begins: the cause is found from the changes between samples.
const QUIET: Duration = Duration::from_secs(1);
/// The interval between samples.
const LOOK: Duration = Duration::from_secs(1);
/// In an open loop, this many operations must have been due: at a low rate, seconds without an operation are normal.
const DUE: f64 = 30.0;
/// How long a trial may take to report its results after the server is killed; if it does not answer, it is killed too.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// A load's long statement is in progress if its process uses this many CPU seconds per second in its own code …
const AT_WORK: f64 = 0.1;
/// … or has written this many bytes in an interval.
const WRITTEN: f64 = (1 << 20) as f64;

/// If the watch, which runs several times a second, did not run for this long, it was stopped itself: with Ctrl-Z,
/// together with its trial.
const ASLEEP: Duration = Duration::from_secs(5);

/// The reports of a [`StallWatch`].
#[derive(Debug, PartialEq)]
enum Said {
    Warning(Warning),
    /// The trial must end, with this cause.
    Stalled(String),
}

/// Measures the time since the last completed operation.
#[derive(Debug)]
struct Clock {
    notice: Duration,
    bound: Option<Duration>,
    /// The phase, if operations are expected now.
    phase: Option<PhaseKind>,
    /// Whether warmup or loops have begun, and no other phase since.
    runs: bool,
    /// The time of the last completed operation, or the begin of the first such phase.
    progress: Instant,
    /// The time of the last event or check.
    looked: Instant,
    /// Whether the current stall has been reported.
    reported: bool,
    first: Option<Snapshot>,
    last: Option<Snapshot>,
    storage: Option<StorageLimit>,
}

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
            reported: false,
            first: None,
            last: None,
            storage,
        }
    }

    /// Takes an event; reports the end of a stall that was reported.
    fn take(&mut self, event: &Event, now: Instant) -> Option<Said> {
        self.looked = now;
        match event {
            Event::PhaseStarted { phase, .. } if has_operations(*phase) => {
                // A warmup and its loops have no pause in between, so a stall continues across them.
                let follows = !matches!(phase, PhaseKind::Load | PhaseKind::Age);
                let goes_on = self.runs && follows;
                self.runs = follows;
                self.phase = Some(*phase);
                if !goes_on {
                    return self.goes_on(now);
                }
            }
            Event::PhaseStarted { .. } => (self.phase, self.runs) = (None, false),
            // Between phases nothing is counted. A phase may be reported only after the next has begun, if its engine
            // is slow to answer.
            Event::PhaseEnded(ended) if self.phase == Some(ended.phase) => self.phase = None,
            Event::Interval(interval) if progresses(interval) => return self.goes_on(now),
            _ => {}
        }
        None
    }

    fn goes_on(&mut self, now: Instant) -> Option<Said> {
        let silence = now.saturating_duration_since(self.progress);
        let phase = self.phase;
        let was_reported = std::mem::take(&mut self.reported);
        (self.progress, self.first, self.last) = (now, None, None);
        (was_reported && phase.is_some()).then(|| {
            let message = format!("operations end again, after {:.0} s in which none did", silence.as_secs_f64());
            Said::Warning(Warning::new("stall-ended", message, "the largest response time has it; see the timeline"))
        })
    }

    /// Samples the trial when it is time.
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
            // The engine works on a long batch or index.
            return self.goes_on(now);
        }
        let between = Between::new(first, &next, self.storage.as_ref());
        let is_over = self.bound.is_some_and(|bound| silence >= bound);
        if !is_over && (self.reported || silence < self.notice) {
            return None;
        }
        let seconds = silence.as_secs_f64();
        let why = format!("likeliest cause: {}; seen: {}", between.cause(), between.figures());
        if is_over {
            return Some(Said::Stalled(format!("stalled: no operation ended for {seconds:.0} s (run.stall); {why}")));
        }
        self.reported = true;
        let remedy = match self.bound {
            Some(bound) => format!("after {:.0} s of it the trial fails (run.stall)", bound.as_secs_f64()),
            None => "run.stall is off: interrupt the run, or wait".to_owned(),
        };
        let message = format!("no operation has ended for {seconds:.0} s in {phase}; {why}");
        Some(Said::Warning(Warning::new("stall", message, remedy)))
    }
}

/// Whether an operation ended in the interval, or a load wrote.
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
    /// Watches a trial that is about to start.
    pub fn new(trial: &TrialPlan) -> Self {
        Self { clock: Clock::new(trial, Instant::now()), place: None, stalled: None }
    }

    /// Takes an event of the trial; returns a warning if there is one.
    pub fn take(&mut self, event: &Event) -> Option<Warning> {
        // A request to the engine at a phase's end returns when the server is killed, so the trial fails in the next
        // phase.
        if let (Some(stalled), Event::PhaseStarted { phase, .. }) = (&mut self.stalled, event) {
            stalled.phase = *phase;
        }
        match self.clock.take(event, Instant::now())? {
            Said::Warning(warning) if self.stalled.is_none() => Some(warning),
            _ => None,
        }
    }

    /// Checks the progress of a trial, to be called several times a second. Returns a warning about a stall, and ends
    /// the trial after the bound.
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

    /// The phase and the cause of the stall, if the trial ended because of one.
    pub fn stalled(self) -> Option<(PhaseKind, String)> {
        self.stalled.map(|stalled| (stalled.phase, stalled.cause))
    }
}

/// Kills a trial's servers, so that its clients return and the measured data is reported. Requests the trial itself to
/// stop.
fn end(trial: u32) {
    for pid in family([trial]) {
        let signal = if pid == trial { Signal::TERM } else { Signal::KILL };
        if let Some(pid) = Pid::from_raw(pid as i32) {
            // A process that has just ended needs no signal.
            let _ = kill_process(pid, signal);
        }
    }
}

#[cfg(test)]
mod tests;
