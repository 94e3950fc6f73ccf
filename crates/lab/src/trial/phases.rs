//! Runs the phases in order.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Instance, ProcessLocation, Session};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::Settings;
use rumba_engine_api::units::counted;
use rumba_engine_api::wait::without_driver;
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, Pace};
use rumba_engine_api::workload::{Bound, LoadStage, Ops, State};
use rumba_results::arrivals::Arrivals;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, QueueKind, RunPlan, TrialPart};
use rumba_results::warning::Warning;

use super::span::Span;
use super::{Halt, Step, Trial, bind};
use crate::fleet::Role;
use crate::run::driver::{Made, Make, Plan, Schedule};
use crate::run::group::{ClientGroup, Waited};
use crate::run::queue::seed_of;
use crate::run::{Driving, descriptors};

/// Work of the engine or the workload that is no operation, on a separate thread.
type Work = Box<dyn FnOnce() -> Result<(), EngineError> + Send>;

/// A client that performs one piece of work.
struct Once(Option<Work>);

impl Client for Once {
    fn run<'a>(&'a mut self, _pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<(), EngineError>> + 'a>> {
        Box::pin(async move {
            let _blocks = without_driver();
            self.0.take().map_or(Ok(()), |work| work())
        })
    }
}

impl Trial<'_> {
    /// All phases after provision.
    pub(super) fn phases(&mut self) -> Step<()> {
        let part = self.job.plan.part;
        if part == TrialPart::Run {
            // A copy was settled before it was made and has its statistics; only the work deferred by opening it
            // remains. New statistics would differ for each repeat, and gathering them would fill caches that must be
            // cold.
            self.work_and_sync(PhaseKind::Settle, None, |instance| instance.drain())?;
        } else {
            let loaded = self.load()?;
            self.settle(&loaded)?;
        }
        if part != TrialPart::Run && self.bound.verifies_load() && self.job.engine.info().keeps_data {
            self.verify(PhaseKind::VerifyLoad)?;
        }
        if let Some(most_s) = self.job.plan.run.age_s.filter(|_| part != TrialPart::Run) {
            self.aged(most_s)?;
        }
        if part == TrialPart::Load {
            let state = self.bound.state();
            self.emit(Event::Loaded { state });
            return Ok(());
        }
        let operated = self.operate()?;
        self.work_and_sync(PhaseKind::Drain, Some(&operated), |instance| instance.drain())?;
        self.warn_unpaid();
        self.verify(PhaseKind::Verify)?;
        if self.job.plan.run.crash_s.is_none() || !self.job.engine.info().keeps_data {
            return Ok(());
        }
        self.isolation()?;
        if self.may_crash() {
            let state = self.bound.state();
            self.emit(Event::Loaded { state });
        }
        Ok(())
    }

    /// Ages the data and settles it again. In a suite, one test ages the data that the tests share. Each bound workload
    /// starts from the state of the one before, as over a copy of the data, so that no counts are mixed.
    fn aged(&mut self, most_s: f64) -> Step<()> {
        let Some(settings) = self.job.plan.aged_by.clone() else {
            let aged = self.age(most_s)?;
            return self.settle(&aged);
        };
        let own = self.bound_over(&settings, &self.bound.state())?;
        self.bound = own;
        let aged = self.age(most_s)?;
        self.settle(&aged)?;
        let own = self.bound_over(&self.job.plan.workload_settings, &self.bound.state())?;
        self.bound = own;
        Ok(())
    }

    /// The workload with these settings, over data in this state.
    pub(super) fn bound_over(&self, settings: &Settings, state: &State) -> Result<Arc<dyn Bound>, EngineError> {
        let bound = bind(self.job.workload, settings)?;
        bound.restore(state)?;
        Ok(Arc::from(bound))
    }

    fn settle(&mut self, after: &Span) -> Step<()> {
        self.work_and_sync(PhaseKind::Settle, Some(after), |instance| instance.settle())
    }

    fn load(&mut self) -> Step<Span> {
        self.phase = PhaseKind::Load;
        let rows = self.bound.expected_rows();
        self.emit(Event::PhaseStarted { phase: PhaseKind::Load, seconds: None, rows: Some(rows) });
        let mut session = self.instance.session()?;
        self.bound.create_schema(&mut session)?;
        drop(session);
        let mut span = self.begin(PhaseKind::Load);
        self.begin_looking();
        let mut end = Ok(());
        for (number, stage) in self.bound.load_stages().iter().enumerate() {
            end = self.load_stage(&mut span, number, stage);
            if end.is_err() {
                break;
            }
        }
        if end.is_ok() {
            self.end_looking();
        }
        let span = self.end(span, end.is_ok(), Vec::new());
        end.map(|()| span)
    }

    fn load_stage(&mut self, span: &mut Span, number: usize, stage: &LoadStage) -> Step<()> {
        let loaders = if stage.parallel { self.job.plan.run.load_clients } else { 1 };
        let seed = self.job.plan.run.seed;
        let schedule = Schedule::closed(seed);
        let made = self.make_clients(loaders, &stage.ops, schedule, Role::Loader { stage: number, seed })?;
        // A server may have a process for each client.
        self.take_in_processes();
        let mut running = made();
        let end = self.follow(span, running.as_mut(), &stage.ops, None);
        end.and(finish(running))?;
        Ok(self.adopt_state()?)
    }

    /// Clients of this instance, each with its own session.
    pub(super) fn clients(
        &self,
        clients: u32,
        ops: &Ops,
        schedule: Schedule,
        make: impl Fn(&dyn Bound, Session, ClientAddress) -> Result<Box<dyn Client>, EngineError> + Send + Sync + 'static,
    ) -> Result<Made, EngineError> {
        let driving = Driving::choose(self.job.plan.run.driver, &self.place, clients);
        if self.place != ProcessLocation::Embedded {
            descriptors::allow(clients)?;
        }
        let (bound, instance) = (self.bound.clone(), self.instance.clone());
        let make: Make = Arc::new(move |at| make(bound.as_ref(), instance.session()?, at));
        let plan = Plan { clients, share: HostShare::ALL, kinds: ops.len(), schedule, driving };
        Ok(Made::new(&plan, &make, &self.roll)?.held_to(ops))
    }

    /// Warmup and loops: the clients run on, and each span begins at the end of the one before. Returns the last span.
    fn operate(&mut self) -> Step<Span> {
        let run = self.job.plan.run.clone();
        let ((mut phase, mut seconds), following) = spans(&run);
        let mut following = following.into_iter();
        self.phase = phase;
        let seed = of_probe(choices(run.seed, self.job.plan.repeat), self.job.plan.probe);
        let ops = self.bound.ops();
        let schedule = self.schedule(seed);
        let made = self.make_clients(self.job.plan.clients, &ops, schedule, Role::Mix { seed })?;
        self.count_hardware();
        // Begin the span before the clients start, because beginning takes time. Otherwise operations would be counted
        // without their time.
        let mut span = self.begin(phase);
        let mut running = made();
        self.begin_looking();
        let mut shaped = run.arrivals.clone().map(Arc::new);
        let mut all: Option<Span> = None;
        let (mut end, mut complete);
        let mut backlog = None;
        let mut last = loop {
            self.phase = phase;
            self.emit(Event::PhaseStarted { phase, seconds: Some(seconds), rows: None });
            let next = following.next();
            if let Some(arrivals) = shaped.take_if(|_| phase != PhaseKind::Warmup) {
                running.shape(&arrivals, span.started);
            }
            if phase != PhaseKind::Warmup && self.loops_from.is_none() {
                self.loops_from = Some(span.started);
                run.client_steps.iter().for_each(|steps| running.begin_steps(steps, span.started));
            }
            let until = span.started + Duration::from_secs_f64(seconds);
            // A warmup may continue until the engine is steady.
            span.planned_s = Some(seconds).filter(|_| phase != PhaseKind::Warmup || run.warmup_most_s.is_none());
            span.is_last = next.is_none();
            end = match phase {
                PhaseKind::Warmup => self.warm_up(&mut span, running.as_mut(), &ops, until),
                _ => self.follow(&mut span, running.as_mut(), &ops, Some(until)),
            };
            complete = end.is_ok();
            if complete && span.is_last {
                // Open operations may block the engine's answer, and the backlog may grow the data.
                self.stop_looking();
                self.look_at_size(&mut span);
                (end, backlog) = self.serve_backlog(&mut span, running.as_mut(), &ops);
            }
            let goes_on = complete && !span.is_last;
            let measured = if goes_on { self.end_amid(span) } else { self.end(span, complete, Vec::new()) };
            if phase != PhaseKind::Warmup {
                all = Some(match all {
                    Some(all) => all.join(&measured),
                    None => measured.clone(),
                });
            }
            if !complete {
                self.warn_cut_off(phase);
                break measured;
            }
            let Some(next) = next else { break measured };
            (phase, seconds) = next;
            span = self.begin_after(&measured, phase);
        };
        if let Some(backlog) = backlog {
            last = self.end(backlog, end.is_ok(), Vec::new());
        }
        if let Some(all) = all {
            self.end_loops(&all, complete);
        }
        self.end_hardware();
        let finished = finish(running);
        if end.is_ok() && finished.is_ok() {
            self.end_looking();
            self.end_requesting();
        }
        end.and(finished)?;
        self.adopt_state()?;
        Ok(last)
    }

    fn schedule(&self, seed: u64) -> Schedule {
        let run = &self.job.plan.run;
        let schedule = match (run.rate, &self.place) {
            (Some(mean), place) => {
                // The rate until the loops begin.
                let rate = run.arrivals.as_ref().map_or(mean, Arrivals::first_rate);
                Schedule::open(rate, queue(run, place), seed)
            }
            // An embedded engine's clients do not synchronise, so they need no spread.
            (None, ProcessLocation::Embedded) => Schedule::closed(seed),
            (None, ProcessLocation::Server { .. }) => Schedule::closed(seed).spread_over(run.warmup_s),
        };
        match (&run.client_steps, run.active_percent) {
            (Some(steps), _) => schedule.in_steps(steps.first()),
            (None, Some(_)) => schedule.with_active(run.active(self.job.plan.clients)),
            (None, None) => schedule,
        }
    }

    fn warn_cut_off(&mut self, phase: PhaseKind) {
        if matches!(phase, PhaseKind::Loop(_)) {
            self.emit(Event::Warning(Warning::new(
                "cut-off",
                format!("{phase} was cut off; its figures cover the time until then"),
                "read the trial's status for the cause",
            )));
        }
    }

    fn warn_unpaid(&mut self) {
        if let Some(unpaid) = self.instance.unpaid() {
            self.emit(Event::Warning(Warning::new(
                "debt-unpaid",
                format!("after the drain {unpaid}"),
                "read its bytes written with that in mind, or run loops that write many times as much",
            )));
        }
    }

    fn work_and_sync(
        &mut self,
        phase: PhaseKind,
        after: Option<&Span>,
        work: fn(&dyn Instance) -> Result<(), EngineError>,
    ) -> Step<()> {
        let (instance, synced) = (self.instance.clone(), self.synced.clone());
        let (place, dir) = (self.place.clone(), self.job.data_dir.to_owned());
        let done = self.work(
            phase,
            after,
            Box::new(move || {
                work(instance.as_ref().as_ref())?;
                synced.lock().unwrap_or_else(PoisonError::into_inner).sync(&place, &dir)
            }),
        );
        let warning = self.synced.lock().unwrap_or_else(PoisonError::into_inner).warning();
        warning.into_iter().for_each(|warning| self.emit(Event::Warning(warning)));
        done
    }

    fn work(&mut self, phase: PhaseKind, after: Option<&Span>, work: Work) -> Step<()> {
        let mut span = self.start_work(phase, after);
        let end = self.do_work(&mut span, work);
        self.end(span, end.is_ok(), Vec::new());
        end
    }

    pub(super) fn start_work(&mut self, phase: PhaseKind, after: Option<&Span>) -> Span {
        self.phase = phase;
        self.emit(Event::PhaseStarted { phase, seconds: None, rows: None });
        self.begin_work(phase, after)
    }

    pub(super) fn do_work(&mut self, span: &mut Span, work: Work) -> Step<()> {
        let work = Mutex::new(Some(work));
        let make: Make = Arc::new(move |_| {
            let work = work.lock().unwrap_or_else(PoisonError::into_inner).take();
            Ok(Box::new(Once(work)) as Box<dyn Client>)
        });
        let (schedule, driving) = (Schedule::closed(0), Driving::Threads { threads: 1 });
        let plan = Plan { clients: 1, share: HostShare::ALL, kinds: 0, schedule, driving };
        let mut running = Made::new(&plan, &make, &self.roll)?.start();
        drop(make);
        let end = self.follow(span, &mut running, &Ops::from([]), None);
        end.and(finish(Box::new(running)))
    }

    /// Does work that finds something. After a failure there is only the default.
    pub(super) fn find<T: Default + Send + 'static>(
        &mut self,
        span: &mut Span,
        work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
    ) -> (T, Step<()>) {
        let found = Arc::new(Mutex::new(T::default()));
        let result = found.clone();
        let end = self.do_work(
            span,
            Box::new(move || {
                let found = work()?;
                *result.lock().unwrap_or_else(PoisonError::into_inner) = found;
                Ok(())
            }),
        );
        let found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
        (found, end)
    }

    fn verify(&mut self, phase: PhaseKind) -> Step<()> {
        if !self.job.plan.run.verify {
            return Ok(());
        }
        if !self.job.engine.info().keeps_data {
            let engine = self.job.engine.info().name;
            self.emit(Event::Warning(Warning::new(
                "not-verified",
                format!("{engine} stores nothing, so there is nothing to verify"),
                "use it for the harness's own cost only",
            )));
            return Ok(());
        }
        if let Some(warning) = self.unverifiable() {
            self.emit(Event::Warning(warning));
            return Ok(());
        }
        let mut span = self.start_work(phase, None);
        let (bound, instance) = (self.bound.clone(), self.instance.clone());
        let (checks, end) = self.find(&mut span, move || bound.verify(instance.session()?));
        let wrong = checks.iter().find(|check| check.wrong > 0).map(describe);
        self.end(span, end.is_ok(), checks);
        end?;
        wrong.map_or(Ok(()), |cause| Err(Halt::Failed(cause)))
    }
}

/// The seed of clients' choices, which must not repeat the loaders' choices. Repeats are counted from 1; ageing uses 0.
pub(super) fn choices(seed: u64, repeat: u32) -> u64 {
    seed.wrapping_add(u64::from(repeat)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The same for a probe of a search. Each probe draws its own operations and arrivals, so that a confirming probe is
/// independent.
pub(super) fn of_probe(seed: u64, probe: Option<u32>) -> u64 {
    probe.map_or(seed, |number| seed_of(seed, u64::from(number)))
}

/// The phases with running clients and their durations: the first, and those that follow it. Every plan has a loop.
pub(super) fn spans(run: &RunPlan) -> ((PhaseKind, f64), Vec<(PhaseKind, f64)>) {
    let of_loop = |number| (PhaseKind::Loop(number), run.loop_s);
    let loops_from = |first| -> Vec<_> { (first..=run.loops).map(of_loop).collect() };
    if run.warmup_s > 0.0 { ((PhaseKind::Warmup, run.warmup_s), loops_from(1)) } else { (of_loop(1), loops_from(2)) }
}

/// How arrivals are distributed. With a server, another free client can serve an arrival while one client waits. With
/// an embedded engine, a client's thread does the engine's work.
pub(super) fn queue(run: &RunPlan, place: &ProcessLocation) -> QueueKind {
    run.queue.unwrap_or(match place {
        ProcessLocation::Embedded => QueueKind::Client,
        ProcessLocation::Server { .. } => QueueKind::Shared,
    })
}

/// The queue as in a record's conditions.
pub(super) fn queue_in_words(queue: QueueKind) -> &'static str {
    match queue {
        QueueKind::Shared => "shared: whichever client is free takes the next arrival",
        QueueKind::Client => "client: each has its own arrivals",
    }
}

pub(super) fn describe(check: &Check) -> String {
    format!(
        "the data is not consistent: `{}` does not hold for {} of {} ({})",
        check.name,
        check.wrong,
        check.examined,
        check.examples.join("; ")
    )
}

/// How long clients may take to end their current operation.
const ENDING: Duration = Duration::from_secs(30);

/// Stops and joins clients. A client that hangs inside an engine fails the trial, because later results could not be
/// trusted.
pub(super) fn finish(mut running: Box<dyn ClientGroup>) -> Step<()> {
    running.stop();
    match running.wait(Instant::now() + ENDING) {
        Waited::AllEnded => {
            running.join();
            Ok(())
        }
        Waited::Until => Err(Halt::Failed(format!(
            "{} did not come back from the engine within {} s of the end",
            counted(running.active(), "client"),
            ENDING.as_secs()
        ))),
    }
}
