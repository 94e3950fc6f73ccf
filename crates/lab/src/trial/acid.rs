//! Tests the guarantees of transactions after the measurement, on its data. First, transactions run against each other.
//! Then, in a separate process, clients work until the database is killed. Another process opens it again and looks for
//! the acknowledged commits.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::acid::{Acid, Found, Outcome, Promise, Recovery};
use rumba_engine_api::check::Check;
use rumba_engine_api::common::{Durability, Given};
use rumba_engine_api::engine::ProcessLocation;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::workload::Bound;
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, PhaseRecord};
use rumba_results::warning::Warning;
use serde::{Deserialize, Serialize};

use super::phases::describe;
use super::{Halt, Step, Trial};
use crate::run::driver::Schedule;

/// The interval between two signs of life of a process that waits to be killed.
const SIGN: Duration = Duration::from_millis(100);

/// The task of a trial's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// The phases of the measurement.
    #[default]
    Measure,
    /// Work on the remaining data until it is killed.
    Crash,
    /// Open the remaining data, and look for acknowledged commits.
    Recover,
}

impl Act {
    pub(super) fn opens_in(self) -> PhaseKind {
        match self {
            Act::Measure => PhaseKind::Provision,
            Act::Crash => PhaseKind::Crash,
            Act::Recover => PhaseKind::Recovery,
        }
    }
}

/// The workload's transaction tests.
fn proof(bound: &dyn Bound) -> Result<&dyn Acid, EngineError> {
    bound.acid().ok_or_else(|| EngineError::failed("acid", "the workload has no test of transaction guarantees"))
}

impl Trial<'_> {
    /// Runs the isolation tests.
    pub(super) fn isolation(&mut self) -> Step<()> {
        let mut span = self.start_work(PhaseKind::Isolation, None);
        let (bound, instance) = (self.bound.clone(), self.instance.clone());
        let (promises, end): (Vec<Promise>, _) =
            self.find(&mut span, move || proof(bound.as_ref())?.isolation(&|| instance.session()));
        let broken = promises.iter().find(|promise| promise.outcome == Outcome::Broken);
        let cause = broken.map(|Promise { name, seen, .. }| format!("`{name}` does not hold: {seen}"));
        let answer = self.answer(&span, end.is_ok());
        let record = self.record(&span, PhaseKind::Isolation, end.is_ok(), Vec::new());
        self.report_record(PhaseRecord { promises, ..record }, answer);
        end?;
        cause.map_or(Ok(()), |cause| Err(Halt::Failed(cause)))
    }

    /// Lets clients work and note each acknowledged commit, until the parent process kills this process. A server is
    /// killed by this process just before.
    pub(super) fn crash(&mut self) -> Step<()> {
        self.phase = PhaseKind::Crash;
        let seconds = self.job.plan.run.crash_s.unwrap_or_default();
        self.emit(Event::PhaseStarted { phase: PhaseKind::Crash, seconds: Some(seconds), rows: None });
        let ledger = Arc::new(new_ledger(self.job.journal).map_err(|error| self.ledger_failed(&error))?);
        // A seed that differs from those of the load and the loops.
        let seed =
            self.job.plan.run.seed.wrapping_add(u64::from(self.job.plan.repeat)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let ops = self.bound.ops();
        let mut span = self.begin(PhaseKind::Crash);
        let made = self.clients(self.job.plan.clients, &ops, Schedule::closed(seed), move |bound, session, at| {
            proof(bound)?.recorded(session, at, seed, &ledger)
        })?;
        let mut running = made.start();
        let until = span.started + Duration::from_secs_f64(seconds);
        self.follow(&mut span, &mut running, &ops, Some(until))?;
        let record = self.record(&span, PhaseKind::Crash, true, Vec::new());
        if self.place != ProcessLocation::Embedded {
            self.instance.kill()?;
        }
        self.emit(Event::PhaseEnded(Box::new(record)));
        // The clients continue on purpose: they must be active when the process is killed.
        loop {
            std::thread::sleep(SIGN);
            if self.interrupted() {
                std::mem::forget(running);
                return Err(Halt::Interrupted);
            }
            self.emit(Event::PhaseStarted { phase: PhaseKind::Crash, seconds: None, rows: None });
        }
    }

    /// Looks for the acknowledged commits in the reopened database.
    pub(super) fn recover(&mut self) -> Step<()> {
        let open_s = Instant::now().saturating_duration_since(self.opens).as_secs_f64();
        let mut span = self.start_work(PhaseKind::Recovery, None);
        let ledger = File::open(self.job.journal).map_err(|error| self.ledger_failed(&error))?;
        let (bound, instance) = (self.bound.clone(), self.instance.clone());
        let (found, end): (Found, _) =
            self.find(&mut span, move || proof(bound.as_ref())?.recovered(&|| instance.session(), &ledger));
        let (durability, must_survive) = (self.job.plan.given_durability(), self.job.plan.survives_process_crash());
        let (recovery, checks) = reported_by(found, open_s, &durability);
        let wrong = checks.iter().find(|check| check.wrong > 0).map(describe);
        let broken = wrong.or_else(|| broken_promise(&recovery, &durability, must_survive));
        if broken.is_none() {
            let warnings = [loss(&recovery, &durability), damage(&recovery), vacuous(&recovery)];
            warnings.into_iter().flatten().for_each(|warning| self.emit(Event::Warning(warning)));
        }
        let answer = self.answer(&span, end.is_ok());
        let record = self.record(&span, PhaseKind::Recovery, end.is_ok(), checks);
        // An incomplete search has no result.
        let recovery = end.is_ok().then_some(recovery);
        self.report_record(PhaseRecord { recovery, ..record }, answer);
        end?;
        broken.map_or(Ok(()), |cause| Err(Halt::Failed(cause)))
    }

    fn ledger_failed(&self, error: &io::Error) -> Halt {
        Halt::Failed(format!("{}: {error}", self.job.journal.display()))
    }

    /// Whether the database may be killed; warns if not.
    pub(super) fn may_crash(&mut self) -> bool {
        let engine = &self.job.plan.engine;
        if self.job.engine.reopens(engine) {
            return true;
        }
        let message = format!("{} is not killed: it could not be opened again by rumba", engine.name);
        self.emit(Event::Warning(Warning::new(
            "not-killed",
            message,
            "let rumba run the server, so that it can check which acknowledged transactions survive a kill",
        )));
        false
    }
}

/// A new, empty file for acknowledged commits, instead of that of an earlier attempt.
fn new_ledger(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().append(true).create_new(true).open(path),
    }
}

/// The results, and the trial's checks. Without a log a kill may damage the data. A failed check then counts as damage
/// in the recovery, and not as a failure of the trial.
fn reported_by(found: Found, open_s: f64, durability: &Given<Durability>) -> (Recovery, Vec<Check>) {
    let Found { acknowledged, lost, examples, checks } = found;
    let may_damage = durability.value == Some(Durability::None);
    let (damaged, checks): (Vec<Check>, _) = checks.into_iter().partition(|check| may_damage && check.wrong > 0);
    let damage = damaged.iter().map(describe).collect();
    (Recovery { acknowledged, lost, examples, damage, open_s }, checks)
}

fn reported(recovery: &Recovery) -> String {
    let Recovery { acknowledged, lost, examples, .. } = recovery;
    format!(
        "{lost} of {acknowledged} transactions that were acknowledged are lost after a kill ({})",
        examples.join("; ")
    )
}

/// The failure that the durability excludes this loss. Under `no-sync` and `sync` a commit is in the kernel, which
/// keeps it when the database dies.
fn broken_promise(recovery: &Recovery, durability: &Given<Durability>, must_survive: bool) -> Option<String> {
    (recovery.lost > 0 && must_survive)
        .then(|| format!("{} is not kept: {}", as_written(durability), reported(recovery)))
}

fn as_written(durability: &Given<Durability>) -> String {
    match &durability.by {
        None => format!("durability = \"{durability}\""),
        Some(_) => format!("durability {durability}"),
    }
}

fn loss(recovery: &Recovery, durability: &Given<Durability>) -> Option<Warning> {
    let remedy =
        || format!("{} allows it; set \"no-sync\" if a killed process must lose nothing", as_written(durability));
    (recovery.lost > 0).then(|| Warning::new("lost-commits", reported(recovery), remedy()))
}

fn damage(recovery: &Recovery) -> Option<Warning> {
    let first = recovery.damage.first()?;
    let message = format!("the kill has damaged the data, as {} of its checks show: {first}", recovery.damage.len());
    let remedy = "durability = \"none\" allows it; set \"buffered\" or \"no-sync\" if a crash of the database must \
                  not damage data";
    Some(Warning::new("damaged-by-kill", message, remedy))
}

/// The warning that the kill came before any commit.
fn vacuous(recovery: &Recovery) -> Option<Warning> {
    (recovery.acknowledged == 0).then(|| {
        Warning::new(
            "nothing-acknowledged",
            "no transaction was acknowledged before the kill, so the absence of losses shows nothing",
            "let clients work for longer before it: crash = \"5s\"",
        )
    })
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::common::Own;
    use rumba_engine_api::setting::Settings;

    use super::*;

    /// A durability set by the common setting.
    fn given(durability: Durability) -> Given<Durability> {
        Given::of(None, Some(durability), &Settings::default(), |durability| durability.name().to_owned())
    }

    #[test]
    fn kill_before_any_acknowledgement_is_reported_as_no_evidence() {
        let of =
            |acknowledged| Recovery { acknowledged, lost: 0, examples: Vec::new(), damage: Vec::new(), open_s: 1.0 };
        assert_eq!(vacuous(&of(1)), None);
        assert!(vacuous(&of(0)).is_some_and(|warning| warning.message.contains("shows nothing")));
    }

    #[test]
    fn loss_breaks_only_what_was_promised() {
        let examples = || vec!["order 7".to_owned()];
        let of = |lost| Recovery { acknowledged: 1000, lost, examples: examples(), damage: Vec::new(), open_s: 1.0 };
        let broken = |recovery: &Recovery, level: Durability| {
            broken_promise(recovery, &given(level), level.survives_process_crash())
        };
        for durability in [Durability::Sync, Durability::NoSync] {
            assert_eq!(broken(&of(0), durability), None);
            let words = broken(&of(3), durability).expect("a promise was broken");
            let reported = ["3 of 1000", "order 7", durability.name()];
            assert!(reported.iter().all(|part| words.contains(part)), "{words}");
        }
        for level in [Durability::Buffered, Durability::None] {
            let durability = given(level);
            assert_eq!(broken(&of(3), level), None);
            assert!(loss(&of(3), &durability).is_some_and(|warning| warning.message.contains("3 of 1000")));
            assert_eq!(loss(&of(0), &durability), None);
        }
        let own = Own::new("flush_log", Some(Durability::Buffered));
        let weaker =
            Given::of(Some(&own), Some(Durability::Sync), &Settings::default(), |level| level.name().to_owned());
        let reported = loss(&of(3), &weaker).expect("a warning").remedy;
        assert!(reported.starts_with("durability buffered (flush_log) allows it"), "{reported}");
    }

    #[test]
    fn kill_may_damage_unlogged_data_and_fails_a_logged_trial() {
        let check = |name: &str, wrong| Check { name: name.to_owned(), examined: 10, wrong, examples: Vec::new() };
        let found = || Found { checks: vec![check("holds", 0), check("does not", 3)], ..Found::default() };
        for durability in [Durability::Sync, Durability::NoSync].map(given) {
            let (recovery, checks) = reported_by(found(), 1.0, &durability);
            assert_eq!((recovery.damage.len(), checks.len()), (0, 2), "the check that fails is the trial's");
            assert_eq!(damage(&recovery), None);
        }
        let (recovery, checks) = reported_by(found(), 1.0, &given(Durability::None));
        assert_eq!(checks, [check("holds", 0)]);
        let warning = damage(&recovery).expect("a warning");
        assert!(warning.message.contains("1 of its checks") && warning.message.contains("`does not`"), "{warning:?}");
    }
}
