//! A case: one fault at one moment over one engine within one kind of limits, and the five questions after it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::action::{Action, Injected, Who};
use crate::answers::{AllowedLeftovers, Miss, Next, Question, RequiredResults};
use crate::axes::{Engine, Limit, Moment};
use crate::host;
use crate::kept::Results;
use crate::place::{Bench, text};
use crate::run::{Ended, Reached, Started};
use crate::stage::{Stage, needs_existing};
use crate::table::Fault;
use crate::trouble::{Doing, Trouble};

/// The maximum number of attempts at a case whose run ended too early, or was delayed by other processes. It also
/// limits the attempts at the next run.
const TRIES: u32 = 3;
/// The time in which the processes of a killed run must end.
const ENDING: Duration = Duration::from_secs(10);
/// The time limit for the next run.
const PATIENCE: Duration = Duration::from_secs(150);

/// How the user continues after a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// With another run.
    Run,
    /// With `rumba doctor --clean`, then another run.
    DoctorThenRun,
    /// With `rumba run --resume`.
    Resume,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number among those of its seed.
    pub number: u32,
    /// The fault.
    pub fault: &'static Fault,
    /// The moment of the fault.
    pub moment: Moment,
    /// The engine.
    pub engine: Engine,
    /// The limits.
    pub limit: Limit,
    /// The delay after the beginning of the moment.
    pub delay: Duration,
    /// How the user continues.
    pub again: Again,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, fault, moment, engine, limit, .. } = self;
        write!(f, "#{number} {}; {moment}; {engine}; {limit}", fault.name)
    }
}

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The actual moment of the fault; absent if the run ended before it in every attempt.
    pub injected: Option<Moment>,
    /// The answers that were wrong.
    pub misses: Vec<Miss>,
    /// How long it took.
    pub took: Duration,
}

impl Bench {
    /// Runs a case. If an answer is wrong, the case's directory is kept.
    ///
    /// # Errors
    /// The case could not be run; that is no finding about rumba.
    pub fn try_case(&mut self, case: &Case) -> Result<Outcome, Trouble> {
        let since = Instant::now();
        let mut last = Attempt::default();
        for _ in 0..TRIES {
            last = self.attempt(case)?;
            if last.injected.is_some() && (last.misses.is_empty() || !last.was_held_up) {
                break;
            }
        }
        Ok(Outcome { injected: last.injected, misses: last.misses, took: since.elapsed() })
    }

    fn attempt(&mut self, case: &Case) -> Result<Attempt, Trouble> {
        let place = self.place(&format!("case-{}", case.number))?;
        let existing = if needs_existing(case) { Some(self.existing()?) } else { None };
        let mut stage = Stage::set(place, case, existing)?;
        let judged = stage.play();
        // Mounts go before the directory that they are in.
        stage.disk = None;
        if !judged.as_ref().is_ok_and(|attempt| !attempt.misses.is_empty()) {
            stage.place.remove();
        }
        judged
    }
}

/// An attempt at a case.
#[derive(Debug, Default)]
struct Attempt {
    /// The actual moment of the fault; absent if it came too late.
    injected: Option<Moment>,
    misses: Vec<Miss>,
    /// Whether the run was suspended although no fault had stopped it, because the machine was busy.
    was_held_up: bool,
}

impl Stage<'_> {
    /// Runs, injects the fault, and answers the questions.
    fn play(&mut self) -> Result<Attempt, Trouble> {
        self.start()?;
        let Some(mut injected) = self.strike_in_time()? else {
            // A run without a fault cleans up after itself.
            self.run.take().map(Started::end).transpose()?;
            return Ok(Attempt::default());
        };
        let run = self.run.take().ok_or_else(|| Trouble::new("the run of a case", "it was not started"))?;
        let mut ended = run.end()?;
        if let Some(second) = self.second.take() {
            ended = self.judge_second(ended, second.end()?)?;
        }
        if self.case.moment == Moment::After {
            self.strike()?;
            injected = Moment::After;
        }
        let mut misses = self.fetch(&ended)?;
        misses.extend(std::mem::take(&mut self.misses));
        misses.sort_by_key(|miss| miss.question);
        if !misses.is_empty() {
            let said = format!("{}\n{ended:?}\n{misses:#?}\n", self.case);
            fs::write(self.place.path("misses.txt"), said).doing("keeping what was said")?;
        }
        let was_held_up = self.case.fault.answers.kept != RequiredResults::Marked && self.is_suspended(&self.out)?;
        Ok(Attempt { injected: Some(injected), misses, was_held_up })
    }

    /// Whether the trial of some results is marked as suspended.
    fn is_suspended(&self, out: &Path) -> Result<bool, Trouble> {
        let report = self.place.request_json(&["report", &out.display().to_string(), "--json"])?;
        Ok(report.is_ok_and(|report| report["trials"][0]["status"] == "suspended"))
    }

    /// Injects the fault at the case's moment. Returns the actual moment, or `None` if the run had ended by then.
    fn strike_in_time(&mut self) -> Result<Option<Moment>, Trouble> {
        let moment = self.case.moment;
        if matches!(moment, Moment::Before | Moment::After) {
            return Ok(Some(moment));
        }
        let Some(run) = &mut self.run else { return Ok(None) };
        if run.reach(moment)? == Reached::Ended {
            return self.was_meant_to_end(moment);
        }
        sleep(self.case.delay);
        self.witness = run.witness();
        let injected = Moment::after(self.witness.phases.last().map(String::as_str));
        match self.strike()? {
            Injected::Done => Ok(Some(injected)),
            Injected::TooLate => Ok(None),
        }
    }

    /// Handles a run that ended before the fault: it succeeded too early, or it failed, which is an error to report.
    fn was_meant_to_end(&mut self, moment: Moment) -> Result<Option<Moment>, Trouble> {
        let Some(run) = self.run.take() else { return Ok(None) };
        let Ended { status, said } = run.end()?;
        if status.is_some_and(|status| status.success()) {
            return Ok(None);
        }
        Err(Trouble::new(format!("{}: the run ended by itself before its {moment}", self.case), said))
    }

    /// The five questions.
    fn fetch(&mut self, ended: &Ended) -> Result<Vec<Miss>, Trouble> {
        let answers = self.case.fault.answers;
        let left = host::marked_after(&self.place.mark(), ENDING);
        let mut misses: Vec<Miss> =
            left.into_iter().map(|pid| Miss::new(Question::Left, format!("{} runs on", host::in_words(pid)))).collect();
        let out = self.out.display().to_string();
        let report = self.place.request_json(&["report", &out, "--json"])?;
        let tables = text(&self.place.fetch(&["report", &out])?);
        let doctor = text(&self.place.fetch(&["doctor"])?);
        let said = [ended.said.as_str(), &tables, &doctor, &warnings(&report)].join("\n");
        misses.extend(answers.judge_seen(&said));
        misses.extend(answers.judge_exit(ended.status));
        let trial = self.trial_dir();
        let results = Results { report: &report, trial: &trial, witness: &self.witness, planned: self.planned() };
        misses.extend(results.judge(answers.kept, ended.status));
        misses.extend(self.request_what_is_left()?);
        if answers.next == Next::RunsOnceMended {
            self.mend()?;
        }
        misses.extend(self.request_for_the_next()?);
        Ok(misses)
    }

    fn request_what_is_left(&mut self) -> Result<Vec<Miss>, Trouble> {
        let traces = self.traces()?;
        let leftovers = self.place.leftovers()?;
        let miss = |what: String| Miss::new(Question::Left, what);
        let mut misses = Vec::new();
        match self.case.fault.answers.left {
            AllowedLeftovers::Nothing => {
                misses.extend(traces.into_iter().map(miss));
                misses.extend(self.place.entries().into_iter().map(|entry| miss(format!("{entry} in the ledger"))));
            }
            AllowedLeftovers::Listed | AllowedLeftovers::Named => {
                if !traces.is_empty() && leftovers.is_empty() {
                    misses.push(miss(format!("doctor finds nothing; there is {}", traces.join(", "))));
                }
            }
        }
        if self.case.fault.answers.left == AllowedLeftovers::Named {
            let dir = self.data_dir();
            if !leftovers.iter().any(|leftover| leftover.contains(&dir.display().to_string())) {
                misses.push(miss(format!("doctor does not name {}: {leftovers:?}", dir.display())));
            }
            fs::remove_dir_all(&dir).doing("removing data whose marker is damaged")?;
            // The directory was made for it; its owner is unknown now.
            let _ = fs::remove_dir(self.data_base());
        }
        Ok(misses)
    }

    /// Continues as a user would; no leftovers are allowed then.
    fn request_for_the_next(&mut self) -> Result<Vec<Miss>, Trouble> {
        let mut misses = Vec::new();
        let miss = |what: String| Miss::new(Question::Next, what);
        if self.case.again == Again::DoctorThenRun {
            let output = self.place.fetch(&["doctor", "--clean"])?;
            let mut left = self.traces()?;
            left.extend(self.place.entries());
            if !output.status.success() || !left.is_empty() {
                let what = format!("after doctor --clean there is {}; it said: {}", left.join(", "), text(&output));
                misses.push(Miss::new(Question::Left, what));
            }
        }
        let (mut out, mut status, mut said) = self.go_on(1)?;
        for turn in 2..=TRIES {
            // The loop is short, and a competing process may delay it longer.
            if self.is_suspended(&out)? {
                (out, status, said) = self.go_on(turn)?;
            }
        }
        let report = self.place.request_json(&["report", &out.display().to_string(), "--json"])?;
        let stands = report.as_ref().map(|report| report["trials"][0]["status"].to_string());
        if !status.is_some_and(|status| status.success()) || stands != Ok("\"done\"".to_owned()) {
            misses.push(miss(format!("it ended with {status:?}, its trial is {stands:?}; it said: {said}")));
        }
        let mut left = self.traces()?;
        left.extend(self.place.entries());
        if let Some(existing) = self.existing.as_deref_mut()
            && existing.has_schema()?
        {
            left.push("the schema on the existing server".to_owned());
        }
        misses.extend(left.into_iter().map(|trace| miss(format!("it leaves {trace}"))));
        Ok(misses)
    }

    /// The next run: the path of its results, its exit status and its output.
    fn go_on(&mut self, turn: u32) -> Result<(PathBuf, Option<ExitStatus>, String), Trouble> {
        let (out, command) = match self.case.again {
            Again::Resume => {
                let mut resume = self.place.rumba();
                resume.args(["run", "--resume"]).arg(&self.out);
                (self.out.clone(), resume)
            }
            Again::Run | Again::DoctorThenRun => {
                let out = self.place.path(&format!("next-{turn}"));
                let command = self.next_command(&out);
                (out, command)
            }
        };
        let (status, said) = self.run_to_its_end(command)?;
        Ok((out, status, said))
    }

    /// Runs to the end, or kills the run if it takes too long. Returns its exit status and output.
    fn run_to_its_end(&mut self, mut command: std::process::Command) -> Result<(Option<ExitStatus>, String), Trouble> {
        let log = self.place.path("next.txt");
        let file = fs::File::create(&log).doing("making a file for what the next run says")?;
        let both = file.try_clone().doing("making a file for what the next run says")?;
        command.stdin(Stdio::null()).stdout(file).stderr(both);
        let mut child = command.spawn().doing("starting the next run")?;
        self.pids.push(child.id());
        let status = wait(&mut child)?;
        Ok((status, String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned()))
    }
}

fn wait(child: &mut Child) -> Result<Option<ExitStatus>, Trouble> {
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().doing("waiting for the next run")? {
            return Ok(Some(status));
        }
        sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(None)
}

/// The warnings of a trial and of its host, which tables shorten.
fn warnings(report: &Result<Value, String>) -> String {
    let Ok(report) = report else { return String::new() };
    format!("{}{}", report["trials"][0]["warnings"], report["warnings"])
}

impl Case {
    /// Whether `rumba run --resume` runs this trial again: it was interrupted, killed or suspended.
    pub(crate) fn may_resume(fault: &Fault) -> bool {
        matches!(fault.action, Action::Signal(Who::Rumba, _) | Action::Twice(_) | Action::Pause(..))
    }
}
