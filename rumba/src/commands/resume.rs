//! `rumba run --resume`: continues an interrupted run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use rumba_lab::kept::{KeptData, KeptLoads, Origin};
use rumba_lab::prepare::{Admitted, Allowed, Prepared};
use rumba_lab::registry::Registry;
use rumba_lab::spec::{self, Experiment, Overrides};
use rumba_lab::store::{ClaimError, ResultsDir, Resume, lacked_room};
use rumba_lab::{plan, provision};
use rumba_results::build::Build;
use rumba_results::printable::shown;
use rumba_results::record::{Record, Status, TrialPart, TrialPlan};
use rumba_results::results::Results;
use rumba_results::warning::Warning;

use super::run::{OWN_PROGRAM, can_profile, clean_leftovers, conduct, show, versions};
use crate::cli::RunArgs;
use crate::problem::Problem;
use crate::progress::tell;

/// Reads the results so far, runs the remaining trials and shows all results.
pub fn resume(directory: &Path, args: &RunArgs, registry: &Registry) -> super::Result {
    can_profile(&args.options)?;
    let listener = super::live::listen(&args.options)?;
    let (results, mut resume) = ResultsDir::reopen(directory).map_err(|error| {
        let remedy = match error {
            ClaimError::NoRoom { .. } => "make room there",
            _ => "name a results directory that no other run writes",
        };
        Problem::mistake(error.to_string(), remedy)
    })?;
    let read = super::report::read(directory)?;
    refuse_other_rumba(&read, &resume)?;
    let experiment = spec::read_file(&directory.join("experiment.toml"), &Overrides::default(), registry)?;
    let records = read.trials.iter().map(|trial| (trial.record.plan.number, &trial.record)).collect();
    let standing = Standing { records, retry_failed: args.retry_failed };
    let managed = provision::Ledger::of_user()?;
    // Adopt kept loads before leftovers are removed, because what a killed run kept is itself a leftover. Adopt them
    // before checking for room, because they may already take it.
    let kept_loads = adopt(&experiment.name, &resume, &standing, directory, &managed)?;
    clean_leftovers(&managed);
    // The first start of this run has checked and reported tight memory.
    let allowed = Allowed { unlimited: resume.allow_unlimited || args.options.allow_unlimited, tight_memory: true };
    let prepared = what_is_left(experiment, &mut resume, allowed, &standing, &kept_loads, registry)?;
    if prepared.trials().is_empty() {
        tell("all trials have been run; --retry-failed runs those again that failed");
    } else {
        resume.update(prepared.trials());
        let warnings = changed_host(&read, &prepared).into_iter().collect();
        results.goes_on(&resume, warnings).map_err(|error| {
            Problem::failure(format!("{}: {error}", shown(directory)), "make room, or see who may write there")
        })?;
    }
    let outcome = conduct(&args.options, &prepared, &resume, &results, kept_loads, &managed, listener)?;
    show(&args.options, &results, outcome)
}

/// The remaining trials, prepared. It refuses if the experiment, its engines or the host have changed.
fn what_is_left(
    experiment: Experiment,
    resume: &mut Resume,
    allowed: Allowed,
    standing: &Standing<'_>,
    kept_loads: &KeptLoads,
    registry: &Registry,
) -> Result<Prepared, Problem> {
    let admitted = Admitted::new(experiment, &resume.data_base, allowed)?;
    refuse_another_plan(&admitted, resume, registry)?;
    // A search that has not ended starts again from its first probe, because each probe follows from the ones before.
    let has_ended = |plan: &TrialPlan| plan.probe.is_none_or(|probe| probe == 1 || standing.search_has_ended(plan));
    resume.plans.retain(has_ended);
    let trials = plan::rest(
        &resume.plans,
        |trial| standing.is_settled(trial),
        |load| kept_loads.has(load),
        |load| standing.was_started_from(load),
    );
    let prepared = admitted.prepare(trials, registry)?;
    refuse_other_builds(&prepared, resume)?;
    Ok(prepared)
}

/// The state of each trial.
struct Standing<'a> {
    records: BTreeMap<u32, &'a Record>,
    retry_failed: bool,
}

impl Standing<'_> {
    /// Whether a trial's result is final. A failed load is not while trials still wait for it, nor is a trial that
    /// failed because its results had no room.
    fn is_settled(&self, trial: &TrialPlan) -> bool {
        let Some(record) = self.records.get(&trial.number) else { return false };
        // The probes of a search follow from each other: the search stays complete, or starts again.
        if trial.probe.is_some() {
            return self.search_has_ended(trial);
        }
        match record.status {
            Status::Done => true,
            Status::Failed { .. } => !self.retry_failed && trial.part != TrialPart::Load && !lacked_room(record),
            // The data that a load has written is complete, no matter how long the load was suspended.
            Status::Suspended { .. } => trial.part == TrialPart::Load,
            Status::Running | Status::Interrupted => false,
        }
    }

    /// Whether this trial's search came to its end, other than for lack of room for its results.
    fn search_has_ended(&self, trial: &TrialPlan) -> bool {
        let of_search = |record: &&&Record| rumba_statistics::is_same_search(&record.plan, trial);
        let own: Vec<&Record> = self.records.values().filter(of_search).copied().collect();
        let is_failed = |record: &&Record| matches!(record.status, Status::Failed { .. });
        let is_again = |record: &&Record| lacked_room(record) || (self.retry_failed && is_failed(record));
        !own.iter().any(is_again) && rumba_statistics::searches(&own).first().is_some_and(|found| found.ended)
    }

    /// Whether a trial with a final result started from this load's data. A trial that failed before that did not.
    fn was_started_from(&self, load: u32) -> bool {
        self.records.values().any(|record| {
            record.plan.loaded_by == Some(load) && !record.phases.is_empty() && self.is_settled(&record.plan)
        })
    }
}

fn refuse_other_rumba(read: &Results, resume: &Resume) -> Result<(), Problem> {
    let own = crate::build::build();
    let then = Rumba { version: &read.rumba, build: read.build.as_ref() };
    let now = Rumba { version: env!("CARGO_PKG_VERSION"), build: Some(&own) };
    if then.says_the_same_as(&now) {
        return Ok(());
    }
    let program = resume.versions.get(OWN_PROGRAM).map(String::as_str);
    Err(Problem::mistake(format!("these results were begun by {then}; this is {now}"), then.to_go_on_with(program)))
}

/// A rumba build, as results and the build itself describe it.
struct Rumba<'a> {
    version: &'a str,
    build: Option<&'a Build>,
}

impl Rumba<'_> {
    fn commit(&self) -> Option<String> {
        self.build.and_then(Build::short)
    }

    /// If two builds of a version have unknown commits, [`refuse_other_builds`] compares their program files.
    fn says_the_same_as(&self, other: &Self) -> bool {
        (self.version, self.commit()) == (other.version, other.commit())
    }

    /// The remedy if this build began the results and another must not continue them; `program` describes its file.
    fn to_go_on_with(&self, program: Option<&str>) -> String {
        let (why, with) = match self.commit() {
            Some(commit) => {
                ("trials of two builds are no repeats of each other", format!("the build of commit {commit}"))
            }
            // It may be built from the same sources, but rumba cannot know.
            None => ("nobody can tell whether both measure alike", "the program that began".to_owned()),
        };
        let program = program.map(|program| format!(" ({program})")).unwrap_or_default();
        format!("{why}: go on with {with}{program}, or run the experiment anew into another directory")
    }
}

impl fmt::Display for Rumba<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, build } = self;
        match self.commit() {
            Some(commit) => write!(f, "rumba {version} (commit {commit})"),
            None => {
                let why = build.and_then(|build| build.unknown.as_deref()).unwrap_or("they do not say it");
                write!(f, "a build of rumba {version} whose commit is not known: {why}")
            }
        }
    }
}

/// The remedy if an input changed since the finished trials ran.
const PUT_BACK: &str = "put it back as it was, or run the experiment anew into another directory";
/// The remedy if rumba itself was rebuilt. The sources are unknown, so the user cannot restore them.
const THAT_PROGRAM: &str = "go on with the program that began, or run the experiment anew into another directory";

/// Refuses to continue if the experiment is not the one of the finished trials.
fn refuse_another_plan(admitted: &Admitted, resume: &Resume, registry: &Registry) -> Result<(), Problem> {
    let planned = admitted.plan(registry);
    let same = |(now, then): (&TrialPlan, &TrialPlan)| {
        // A load that ran again replaces the first.
        TrialPlan { loaded_by: then.loaded_by, ..now.clone() } == *then
    };
    if planned.len() != resume.planned || !planned.iter().zip(&resume.plans).all(same) {
        return Err(Problem::mistake("experiment.toml no longer plans the trials that were begun", PUT_BACK));
    }
    Ok(())
}

/// Refuses to continue with engines other than those of the finished trials.
fn refuse_other_builds(prepared: &Prepared, resume: &Resume) -> Result<(), Problem> {
    let now = versions(prepared);
    for (engine, then) in &resume.versions {
        if now.get(engine) != Some(then) {
            let here = now.get(engine).map_or("none", String::as_str);
            let remedy = if engine == OWN_PROGRAM { THAT_PROGRAM } else { PUT_BACK };
            return Err(Problem::mistake(format!("{engine} was {then} when the run began, and is {here} now"), remedy));
        }
    }
    Ok(())
}

/// Whether a load completed.
fn left_data(status: &Status) -> bool {
    matches!(status, Status::Done | Status::Suspended { .. })
}

/// Adopts the data that a killed run has kept of loads that trials still wait for.
fn adopt(
    name: &str,
    resume: &Resume,
    standing: &Standing<'_>,
    directory: &Path,
    managed: &provision::Ledger,
) -> Result<KeptLoads, Problem> {
    let mut kept_loads = KeptLoads::default();
    let results = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let is_wanted =
        |load: u32| resume.plans.iter().any(|plan| plan.loaded_by == Some(load) && !standing.is_settled(plan));
    for load in resume.plans.iter().filter(|plan| plan.part == TrialPart::Load && is_wanted(plan.number)) {
        let Some(record) = standing.records.get(&load.number).filter(|record| left_data(&record.status)) else {
            continue;
        };
        let trial = plan::directory(load);
        let place = resume.data_base.join(&trial);
        let origin = Origin { results: results.clone(), trial, started: record.started.clone() };
        let owner = provision::Owner::this_process(name, load.number).map_err(|error| {
            Problem::failure(format!("looking at this process: {error}"), "see that /proc is mounted")
        })?;
        if let Some(data) = KeptData::adopt(&place, &origin, &owner, managed)? {
            tell(&format!("trial {} need not load again: its data is still here", load.number));
            kept_loads.put(load.number, data);
        }
    }
    Ok(kept_loads)
}

/// Warns when the host differs from the host at the start of the run. Its load is not compared.
fn changed_host(read: &Results, prepared: &Prepared) -> Option<Warning> {
    let now = prepared.conditions();
    let differs = |name: &&String| *name != "load_average_at_start" && read.conditions.get(*name) != now.get(*name);
    let changed: Vec<String> = now.keys().filter(differs).cloned().collect();
    (!changed.is_empty()).then(|| {
        Warning::new(
            "host-changed",
            format!("the run went on under other conditions than it began: {}", changed.join(", ")),
            "compare trials of before and after with care, or run the experiment anew",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use miette::Diagnostic as _;
    use rumba_results::samples;

    use super::*;

    const PROGRAM: Option<&str> = Some("a program of 7 bytes, written at 2024-01-01T00:00:00Z");

    fn of_commit(digit: &str) -> Build {
        Build { commit: Some(digit.repeat(40)), ..Build::default() }
    }

    #[test]
    fn remedy_for_unknown_commit_names_the_program() {
        let unknown = Build::unknown("no repository");
        for (build, why) in [(Some(&unknown), "no repository"), (None, "they do not say it")] {
            let then = Rumba { version: "0.1.0", build };
            assert!(!then.says_the_same_as(&Rumba { version: "0.1.0", build: Some(&of_commit("a")) }));
            assert_eq!(then.to_string(), format!("a build of rumba 0.1.0 whose commit is not known: {why}"));
            let remedy = then.to_go_on_with(PROGRAM);
            assert!(remedy.contains("the program that began (a program of 7 bytes, written at 2024"), "{remedy}");
            assert!(remedy.ends_with("or run the experiment anew into another directory"), "{remedy}");
            assert!(!remedy.contains("two builds") && !then.to_go_on_with(None).contains("two builds"), "{remedy}");
            assert!(then.says_the_same_as(&Rumba { version: "0.1.0", build: Some(&unknown) }), "their programs tell");
        }
    }

    #[test]
    fn results_of_another_commit_name_it() {
        let (a, b) = (of_commit("a"), of_commit("b"));
        let then = Rumba { version: "0.1.0", build: Some(&a) };
        let unknown = Build::unknown("no repository");
        for now in [&b, &unknown] {
            assert!(!then.says_the_same_as(&Rumba { version: "0.1.0", build: Some(now) }));
        }
        assert!(then.says_the_same_as(&Rumba { version: "0.1.0", build: Some(&a) }));
        assert_eq!(then.to_string(), "rumba 0.1.0 (commit aaaaaaaaaaaa)");
        let remedy = then.to_go_on_with(None);
        assert!(remedy.contains("two builds") && remedy.contains("the build of commit aaaaaaaaaaaa, "), "{remedy}");
    }

    #[test]
    fn resume_refusal_names_the_program_that_began_the_results() {
        let refused = |versions: BTreeMap<String, String>| {
            let data_base = PathBuf::from("data");
            let resume = Resume { plans: Vec::new(), planned: 0, data_base, versions, allow_unlimited: false };
            let read = Results { rumba: "0.0.1".to_owned(), ..samples::results(Vec::new()) };
            let problem = refuse_other_rumba(&read, &resume).unwrap_err();
            let whose =
                "these results were begun by a build of rumba 0.0.1 whose commit is not known: they do not say it; ";
            assert!(problem.to_string().starts_with(whose), "{problem}");
            problem.help().unwrap().to_string()
        };
        let own = |text: &str| BTreeMap::from([(OWN_PROGRAM.to_owned(), text.to_owned())]);
        let told = refused(own("a program of 7 bytes, written at 2024-01-01T00:00:00Z"));
        assert!(
            told.contains("the program that began (a program of 7 bytes, written at 2024-01-01T00:00:00Z), or"),
            "{told}"
        );
        let untold = refused(BTreeMap::from([("rocksdb".to_owned(), "9.10".to_owned())]));
        assert!(untold.contains("go on with the program that began, or"), "an engine is no rumba: {untold}");
    }
}
