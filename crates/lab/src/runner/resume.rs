//! Continues an interrupted run.

use std::fmt;
use std::path::Path;

use rumba_engine_api::printable::shown;
use rumba_results::build::Build;
use rumba_results::record::{TrialPart, TrialPlan};
use rumba_results::results::Results;
use rumba_results::warning::Warning;

use super::standing::Standing;
use super::{OWN_PROGRAM, Options, RunError, Runner, clean_leftovers, gate_of, profile_if, versions};
use crate::kept::{KeptData, KeptLoads, Origin};
use crate::prepare::{Allowed, Prepared, Validated};
use crate::provision::{Owner, ResourceRegistry};
use crate::registry::Registry;
use crate::spec::{self, Experiment, Overrides};
use crate::store::{ClaimError, ResultsDir, Resume};
use crate::{plan, store};

impl<'a> Runner<'a> {
    /// Prepares the remaining trials of an interrupted run.
    ///
    /// # Errors
    /// A directory that cannot be used; an experiment, engines or a build of rumba other than those that began it.
    pub fn resume(
        directory: &Path,
        options: &Options,
        registry: &'a Registry,
        say: &'a dyn Fn(&str),
    ) -> Result<Self, RunError> {
        profile_if(options)?;
        let (results, mut resume) = ResultsDir::reopen(directory).map_err(|error| {
            let remedy = match error {
                ClaimError::NoRoom { .. } => "make room there",
                _ => "name a results directory that no other run writes",
            };
            RunError::mistake(error.to_string(), remedy)
        })?;
        let read = store::read(directory)?;
        refuse_other_rumba(&read, &registry.build, &resume)?;
        let experiment = spec::read_file(&directory.join("experiment.toml"), &Overrides::default(), registry)?;
        let gate = gate_of(&experiment)?;
        let standing = Standing::of(&read, options.retry_failed);
        let managed = ResourceRegistry::of_user()?;
        // Adopt kept loads before leftovers are removed, because what a killed run kept is itself a leftover. Adopt
        // them before checking for room, because they may already take it.
        let kept_loads = adopt(&experiment.name, &resume, &standing, directory, &managed, say)?;
        clean_leftovers(&managed, say);
        // The first start of this run has checked and reported tight memory.
        let allowed = Allowed { unlimited: resume.allow_unlimited || options.allowed.unlimited, tight_memory: true };
        let prepared = what_is_left(experiment, &mut resume, allowed, &standing, &kept_loads, registry)?;
        if prepared.trials().is_empty() {
            say("all trials have been run; --retry-failed runs those again that failed");
        } else {
            resume.update(prepared.trials());
            let warnings = changed_host(&read, &prepared).into_iter().collect();
            results.goes_on(&resume, warnings).map_err(|error| {
                let remedy = "make room, or see who may write there";
                RunError::failure(format!("{}: {error}", shown(directory)), remedy)
            })?;
        }
        Ok(Self { registry, say, prepared, resume, results, kept_loads, managed, profile: options.profile, gate })
    }
}

/// The remaining trials, prepared. It refuses if the experiment, its engines or the host have changed.
fn what_is_left(
    experiment: Experiment,
    resume: &mut Resume,
    allowed: Allowed,
    standing: &Standing<'_>,
    kept_loads: &KeptLoads,
    registry: &Registry,
) -> Result<Prepared, RunError> {
    let admitted = Validated::new(experiment, &resume.data_base, allowed)?;
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
    refuse_other_builds(&prepared, registry, resume)?;
    Ok(prepared)
}

fn refuse_other_rumba(read: &Results, own: &Build, resume: &Resume) -> Result<(), RunError> {
    let then = Rumba { version: &read.rumba, build: read.build.as_ref() };
    let now = Rumba { version: env!("CARGO_PKG_VERSION"), build: Some(own) };
    if then.says_the_same_as(&now) {
        return Ok(());
    }
    let program = resume.versions.get(OWN_PROGRAM).map(String::as_str);
    Err(RunError::mistake(format!("these results were begun by {then}; this is {now}"), then.to_go_on_with(program)))
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
                ("trials of two builds cannot be repeats of each other", format!("the build of commit {commit}"))
            }
            // It may be built from the same sources, but rumba cannot know.
            None => ("rumba cannot know whether both measure alike", "the program that started the run".to_owned()),
        };
        let program = program.map(|program| format!(" ({program})")).unwrap_or_default();
        format!("{why}: continue with {with}{program}, or run the experiment again into another directory")
    }
}

impl fmt::Display for Rumba<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, build } = self;
        match self.commit() {
            Some(commit) => write!(f, "rumba {version} (commit {commit})"),
            None => {
                let why = build.and_then(|build| build.unknown.as_deref()).unwrap_or("they do not say it");
                write!(f, "a build of rumba {version} with an unknown commit: {why}")
            }
        }
    }
}

/// The remedy if an input changed since the finished trials ran.
const PUT_BACK: &str = "restore it, or run the experiment again into another directory";
/// The remedy if rumba itself was rebuilt. The sources are unknown, so the user cannot restore them.
const THAT_PROGRAM: &str = "continue with the program that started the run, or run the experiment again into another \
                            directory";

/// Refuses to continue if the experiment is not the one of the finished trials.
fn refuse_another_plan(admitted: &Validated, resume: &Resume, registry: &Registry) -> Result<(), RunError> {
    let planned = admitted.plan(registry);
    let same = |(now, then): (&TrialPlan, &TrialPlan)| {
        // A load that ran again replaces the first.
        TrialPlan { loaded_by: then.loaded_by, ..now.clone() } == *then
    };
    if planned.len() != resume.planned || !planned.iter().zip(&resume.plans).all(same) {
        return Err(RunError::mistake("experiment.toml no longer plans the trials that were begun", PUT_BACK));
    }
    Ok(())
}

/// Refuses to continue with engines other than those of the finished trials.
fn refuse_other_builds(prepared: &Prepared, registry: &Registry, resume: &Resume) -> Result<(), RunError> {
    let now = versions(prepared, registry);
    for (engine, then) in &resume.versions {
        if now.get(engine) != Some(then) {
            let here = now.get(engine).map_or("none", String::as_str);
            let remedy = if engine == OWN_PROGRAM { THAT_PROGRAM } else { PUT_BACK };
            return Err(RunError::mistake(
                format!("{engine} was {then} when the run began, and is {here} now"),
                remedy,
            ));
        }
    }
    Ok(())
}

/// Adopts the data that a killed run has kept of loads that trials still wait for.
fn adopt(
    name: &str,
    resume: &Resume,
    standing: &Standing<'_>,
    directory: &Path,
    managed: &ResourceRegistry,
    say: &dyn Fn(&str),
) -> Result<KeptLoads, RunError> {
    let mut kept_loads = KeptLoads::default();
    let results = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let is_wanted =
        |load: u32| resume.plans.iter().any(|plan| plan.loaded_by == Some(load) && !standing.is_settled(plan));
    for load in resume.plans.iter().filter(|plan| plan.part == TrialPart::Load && is_wanted(plan.number)) {
        let Some(record) = standing.complete_load(load.number) else { continue };
        let trial = plan::directory(load);
        let place = resume.data_base.join(&trial);
        let origin = Origin { results: results.clone(), trial, started: record.started.clone() };
        let owner = Owner::this_process(name, load.number).map_err(|error| {
            RunError::failure(format!("looking at this process: {error}"), "see that /proc is mounted")
        })?;
        if let Some(data) = KeptData::adopt(&place, &origin, &owner, managed)? {
            say(&format!("trial {} need not load again: its data is still here", load.number));
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
            "compare trials of before and after with care, or run the experiment again",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

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
            assert_eq!(then.to_string(), format!("a build of rumba 0.1.0 with an unknown commit: {why}"));
            let remedy = then.to_go_on_with(PROGRAM);
            assert!(
                remedy.contains("the program that started the run (a program of 7 bytes, written at 2024"),
                "{remedy}"
            );
            assert!(remedy.ends_with("or run the experiment again into another directory"), "{remedy}");
            assert!(!remedy.contains("two builds") && !then.to_go_on_with(None).contains("two builds"), "{remedy}");
            assert!(then.says_the_same_as(&Rumba { version: "0.1.0", build: Some(&unknown) }), "the programs decide");
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
            let problem = refuse_other_rumba(&read, &of_commit("a"), &resume).unwrap_err();
            let whose =
                "these results were begun by a build of rumba 0.0.1 with an unknown commit: they do not say it; ";
            assert!(problem.to_string().starts_with(whose), "{problem}");
            let RunError::Mistake { remedy, .. } = problem else { panic!("{problem}") };
            remedy
        };
        let own = |text: &str| BTreeMap::from([(OWN_PROGRAM.to_owned(), text.to_owned())]);
        let reported = refused(own("a program of 7 bytes, written at 2024-01-01T00:00:00Z"));
        assert!(
            reported.contains(
                "the program that started the run (a program of 7 bytes, written at 2024-01-01T00:00:00Z), or"
            ),
            "{reported}"
        );
        let unreported = refused(BTreeMap::from([("rocksdb".to_owned(), "9.10".to_owned())]));
        assert!(
            unreported.contains("continue with the program that started the run, or"),
            "an engine is no rumba: {unreported}"
        );
    }
}
