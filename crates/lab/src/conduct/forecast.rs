//! Estimates the end of a run from its experiment and from the durations of its trials until now.
//!
//! Warmup and loops have configured durations. The duration of a load is unknown until one load has ended or is well
//! under way. The same holds for phases that finish deferred work or read through all data. Until then the estimate is
//! a lower bound.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rumba_engine_api::units::show_duration;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, Record, Status, TrialPart, TrialPlan};

/// This share of a load must be done before its rate predicts its end.
const TELLING_SHARE: f64 = 0.02;

/// From this duration on, the estimate is shown in hours.
const LONG_S: f64 = 2.0 * 3600.0;

/// The remaining time of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeLeft {
    /// Seconds, as far as they are known.
    pub seconds: f64,
    /// Whether the estimate has no unknown part.
    pub is_whole: bool,
}

impl TimeLeft {
    const NONE: Self = Self { seconds: 0.0, is_whole: true };

    fn plus(self, expected: Option<f64>) -> Self {
        Self { seconds: self.seconds + expected.unwrap_or(0.0), is_whole: self.is_whole && expected.is_some() }
    }

    /// As text, relative to `now`: `about 12m left, until 16:42`; empty while nothing is known.
    pub fn words(&self, now: &jiff::Zoned) -> String {
        if self.seconds < 1.0 {
            return String::new();
        }
        let about = if self.is_whole { "about" } else { "at least" };
        let coarse = if self.seconds < 600.0 { 1.0 } else { 60.0 };
        let left = Duration::from_secs_f64((self.seconds / coarse).round() * coarse);
        let shown = if self.seconds < LONG_S { show_duration(left) } else { format!("{:.1}h", self.seconds / 3600.0) };
        let end = now.saturating_add(jiff::SignedDuration::try_from(left).unwrap_or(jiff::SignedDuration::ZERO));
        let form = if end.date() == now.date() { "%H:%M" } else { "%a %H:%M" };
        format!("{about} {shown} left, until {}", end.strftime(form))
    }
}

/// The running trial.
#[derive(Clone)]
struct Current {
    plan: TrialPlan,
    since: Instant,
    /// Phases that are still to come, in order.
    to_come: Vec<PhaseKind>,
    phase: Option<Phase>,
}

#[derive(Clone)]
struct Phase {
    kind: PhaseKind,
    since: Instant,
    /// The planned duration that the trial itself reported.
    planned_s: Option<f64>,
    rows: Option<u64>,
    done_rows: u64,
}

/// Sum and number of the observed durations.
type Took = (f64, u32);

/// Estimates the end of a run.
#[derive(Clone)]
pub struct Forecast {
    rest: Vec<TrialPlan>,
    current: Option<Current>,
    /// Seconds by engine and phase; `provision` holds all time between a trial's phases.
    took: BTreeMap<(String, PhaseKind), Took>,
}

impl Forecast {
    /// Forecasts these trials, none of which has begun.
    pub fn new(trials: &[TrialPlan]) -> Self {
        Self { rest: trials.to_vec(), current: None, took: BTreeMap::new() }
    }

    /// Learns from a finished trial, of this run or of the run that it resumes.
    pub fn learn(&mut self, record: &Record) {
        let engine = &record.plan.engine.name;
        for phase in record.phases.iter().filter(|phase| phase.complete && phase.phase != PhaseKind::Loops) {
            self.note(engine, phase.phase, phase.seconds);
        }
        if record.status == Status::Done {
            // Trials like this one skip the same phases, for example a proof that the workload does not have.
            let is_left_out = |kind: &PhaseKind| record.phase(*kind).is_none();
            for kind in phases_of(&record.plan).into_iter().filter(is_left_out) {
                self.note(engine, kind, 0.0);
            }
        }
    }

    fn note(&mut self, engine: &str, kind: PhaseKind, seconds: f64) {
        let took = self.took.entry((engine.to_owned(), kind)).or_default();
        *took = (took.0 + seconds, took.1 + 1);
    }

    pub fn begins(&mut self, trial: &TrialPlan, now: Instant) {
        self.rest.retain(|plan| plan.number != trial.number);
        let to_come = phases_of(trial);
        self.current = Some(Current { plan: trial.clone(), since: now, to_come, phase: None });
    }

    /// The running trial has sent an event.
    pub fn event(&mut self, event: &Event, now: Instant) {
        let Some(current) = &mut self.current else { return };
        match event {
            Event::PhaseStarted { phase, seconds, rows } => {
                if let Some(at) = current.to_come.iter().position(|kind| kind == phase) {
                    current.to_come.drain(..=at);
                }
                let (kind, planned_s, rows) = (*phase, *seconds, *rows);
                current.phase = Some(Phase { kind, since: now, planned_s, rows, done_rows: 0 });
            }
            Event::Interval(interval) => {
                if let Some(phase) = current.phase.as_mut().filter(|phase| phase.kind == interval.phase) {
                    phase.done_rows += interval.ops;
                }
            }
            Event::PhaseEnded(ended) if current.phase.as_ref().is_some_and(|phase| phase.kind == ended.phase) => {
                current.phase = None;
            }
            _ => {}
        }
    }

    pub fn ended(&mut self, record: &Record, now: Instant) {
        self.learn(record);
        if let Some(current) = self.current.take().filter(|_| record.status == Status::Done) {
            let phases: f64 =
                record.phases.iter().filter(|phase| phase.phase != PhaseKind::Loops).map(|phase| phase.seconds).sum();
            let between = (now - current.since).as_secs_f64() - phases;
            self.note(&record.plan.engine.name, PhaseKind::Provision, between.max(0.0));
        }
    }

    pub fn left(&self, now: Instant) -> TimeLeft {
        let trials = self.rest.iter().fold(TimeLeft::NONE, |left, plan| {
            let phases = phases_of(plan);
            let left = phases.iter().fold(left, |left, kind| left.plus(self.expected(plan, *kind)));
            // Unknown before the first trial has ended, and little.
            left.plus(self.observed(plan, PhaseKind::Provision).or(Some(0.0)))
        });
        let Some(current) = &self.current else { return trials };
        let under_way = current.phase.as_ref().map_or(Some(0.0), |phase| self.left_of(&current.plan, phase, now));
        let to_come = current.to_come.iter();
        to_come.fold(trials.plus(under_way), |left, kind| left.plus(self.expected(&current.plan, *kind)))
    }

    /// The remaining time of the running phase.
    fn left_of(&self, plan: &TrialPlan, phase: &Phase, now: Instant) -> Option<f64> {
        let passed_s = (now - phase.since).as_secs_f64();
        let by_rate = phase.rows.filter(|rows| phase.done_rows as f64 >= TELLING_SHARE * *rows as f64 && *rows > 0);
        if let Some(rows) = by_rate {
            return Some(passed_s * rows.saturating_sub(phase.done_rows) as f64 / phase.done_rows as f64);
        }
        let is_open = phase.kind == PhaseKind::Warmup && plan.run.warmup_most_s.is_some();
        let planned = phase.planned_s.filter(|_| !is_open);
        let expected = planned.or_else(|| self.expected(plan, phase.kind))?;
        Some((expected - passed_s).max(0.0))
    }

    /// The expected duration of a phase; `None` if it is not known.
    fn expected(&self, plan: &TrialPlan, kind: PhaseKind) -> Option<f64> {
        let run = &plan.run;
        match kind {
            PhaseKind::Loop(_) => Some(run.loop_s),
            PhaseKind::Warmup if run.warmup_most_s.is_none() => Some(run.warmup_s),
            PhaseKind::Crash => run.crash_s,
            // Most trials have no backlog, and otherwise it is short.
            PhaseKind::Backlog => Some(self.observed(plan, kind).unwrap_or(0.0)),
            _ => self.observed(plan, kind),
        }
    }

    /// The mean duration until now: of this engine if it has run, otherwise of the others.
    fn observed(&self, plan: &TrialPlan, kind: PhaseKind) -> Option<f64> {
        let own = self.took.get(&(plan.engine.name.clone(), kind)).copied();
        let of_others = || {
            let others = self.took.iter().filter(|((_, other), _)| *other == kind);
            others.map(|(_, took)| *took).reduce(|sum, took| (sum.0 + took.0, sum.1 + took.1))
        };
        own.or_else(of_others).map(|(seconds, number)| seconds / f64::from(number))
    }
}

/// The phases that a trial will go through, as far as its plan says.
fn phases_of(plan: &TrialPlan) -> Vec<PhaseKind> {
    let (run, mut phases) = (&plan.run, Vec::new());
    let loads = plan.part != TrialPart::Run;
    if loads {
        phases.push(PhaseKind::Load);
    }
    phases.push(PhaseKind::Settle);
    if loads && run.verify {
        phases.push(PhaseKind::VerifyLoad);
    }
    if loads && run.age_s.is_some() {
        phases.extend([PhaseKind::Age, PhaseKind::Settle]);
    }
    if plan.part == TrialPart::Load {
        return phases;
    }
    phases.extend((run.warmup_s > 0.0).then_some(PhaseKind::Warmup));
    phases.extend((1..=run.loops).map(PhaseKind::Loop));
    phases.extend([PhaseKind::Backlog, PhaseKind::Drain]);
    phases.extend(run.verify.then_some(PhaseKind::Verify));
    if run.crash_s.is_some() {
        phases.extend([PhaseKind::Isolation, PhaseKind::Crash, PhaseKind::Recovery]);
    }
    phases
}

#[cfg(test)]
mod tests;
