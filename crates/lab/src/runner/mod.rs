//! runner: takes a checked experiment to stored results. `rumba run`, `ab`, `reproduce`, `--detect` and `--resume` use
//! it.
//!
//! [`Runner::new`] claims the directory of results and prepares the trials; [`Runner::resume`] does so for the rest of
//! an interrupted run. [`Runner::run`] then runs them. Between the two, a caller can show the directory and the plan.

mod decided;
mod dry_run;
mod error;
mod resume;
mod standing;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicUsize;

use rumba_engine_api::printable::shown;
use rumba_engine_api::workload::SCRIPT_TEXT;
use rumba_results::build::Build;
use rumba_results::warning::Warning;

pub use dry_run::DryRun;
pub use error::RunError;

use crate::conduct::{Forecast, Outcome, TrialRunner, Watch, profile};
use crate::fleet::{Gate, GateError};
use crate::harness::Harness;
use crate::kept::KeptLoads;
use crate::prepare::{Allowed, Prepared, Validated};
use crate::provision::{Leftover, ResourceRegistry};
use crate::registry::Registry;
use crate::spec::Experiment;
use crate::store::{Claim, ResultsDir, Resume};
use crate::{leftovers, store};

/// How an experiment is to be run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory for results; without it a new one below `results/`. It must not exist.
    pub out: Option<PathBuf>,
    /// Exceptions that the user permits.
    pub allowed: Allowed,
    /// Profile the CPU during the loops.
    pub profile: bool,
    /// When resuming: run failed trials again.
    pub retry_failed: bool,
}

/// Trials that are ready to run, and the directory for their results.
pub struct Runner<'a> {
    registry: &'a Registry,
    /// Shows a line to the user.
    say: &'a dyn Fn(&str),
    prepared: Prepared,
    resume: Resume,
    results: ResultsDir,
    kept_loads: KeptLoads,
    managed: ResourceRegistry,
    profile: bool,
    /// The listener for client hosts until the trials begin, if the clients run on several hosts.
    gate: Option<Gate>,
}

impl<'a> Runner<'a> {
    /// Claims the directory for results, removes leftovers of killed runs, and prepares the trials of an experiment.
    ///
    /// # Errors
    /// A directory that cannot be used; limits, memory or space that this host does not have.
    pub fn new(
        experiment: Experiment,
        options: &Options,
        registry: &'a Registry,
        say: &'a dyn Fn(&str),
    ) -> Result<Self, RunError> {
        profile_if(options)?;
        let gate = gate_of(&experiment)?;
        let claim = match &options.out {
            Some(out) => Claim::new(out)?,
            None => Claim::named(Path::new("results"), &experiment.name)?,
        };
        let out = claim.path().to_owned();
        // Clean first: the leftovers of a killed run may take the room that this run needs.
        let managed = ResourceRegistry::of_user()?;
        clean_leftovers(&managed, say);
        let admitted = admit(experiment, &out, options.allowed, say)?;
        let trials = admitted.plan(registry);
        let prepared = admitted.prepare(trials, registry)?;
        let results = ResultsDir::create(claim, &prepared)?;
        let resume = Resume {
            planned: prepared.trials().len(),
            data_base: prepared.data_base().to_owned(),
            versions: versions(&prepared, registry),
            allow_unlimited: options.allowed.unlimited,
            plans: prepared.trials().to_vec(),
        };
        results
            .note(&resume)
            .map_err(|error| RunError::failure(format!("{}: {error}", shown(&out)), "choose another --out"))?;
        let kept_loads = KeptLoads::default();
        Ok(Self { registry, say, prepared, resume, results, kept_loads, managed, profile: options.profile, gate })
    }

    pub fn results(&self) -> &ResultsDir {
        &self.results
    }

    /// The directory of results, after the run.
    pub fn into_results(self) -> ResultsDir {
        self.results
    }

    /// How many trials the experiment has in total.
    pub fn planned(&self) -> usize {
        self.resume.plans.len()
    }

    /// The expected end of the run, estimated from its trials and those that have already ended.
    pub fn forecast(&self) -> Forecast {
        let mut forecast = Forecast::new(self.prepared.trials());
        let before = store::read_records(self.results.path());
        before.iter().flat_map(|read| &read.trials).for_each(|trial| forecast.learn(&trial.record));
        forecast
    }

    /// Runs the trials. `stops` counts the user's requests to stop: the first lets a trial save its data, the second
    /// ends it.
    ///
    /// # Errors
    /// When nothing more can be run or written. rumba keeps the results so far.
    pub fn run(&mut self, stops: &AtomicUsize, watch: &mut dyn Watch) -> Result<Outcome, RunError> {
        let (kept_loads, gate) = (std::mem::take(&mut self.kept_loads), self.gate.take());
        let process = |argument: &str| self.process(argument);
        let harness = self.prepared.trials().first().map(|first| Harness::measure(&|| process("harness"), first));
        let gate = gate.map(|gate| self.with_agents(gate)).transpose()?;
        let conduct = TrialRunner {
            prepared: &self.prepared,
            planned: self.planned(),
            results: &self.results,
            managed: &self.managed,
            registry: self.registry,
            child: &|| process("trial"),
            harness: &harness.unwrap_or_default(),
            stops,
            profiles: self.profile,
            gate: gate.as_ref(),
            is_decided: &|repeat| decided::is_decided(self.results.path(), repeat, self.say),
        };
        conduct.run(kept_loads, watch).map_err(|error| {
            let kept = shown(self.results.path());
            let go_on = format!("the results so far are in {kept}; `rumba run --resume {kept}` continues");
            RunError::failure(error.to_string(), go_on)
        })
    }

    /// Starts the agents, or asks the user for them. Dropping the gate ends them.
    fn with_agents(&self, mut gate: Gate) -> Result<Gate, RunError> {
        let failed = |error: GateError| RunError::failure(error.to_string(), FLEET_EXAMPLE);
        gate.start_agents(self.results.path()).map_err(failed)?;
        (self.say)(&format!("waits for {} client hosts at {}", gate.hosts(), gate.address()));
        Ok(gate)
    }

    fn process(&self, argument: &str) -> io::Result<Command> {
        let process = self.registry.process.ok_or_else(|| io::Error::other("this program starts no trials"))?;
        process(argument)
    }
}

/// The remedy for a gate that does not open.
const FLEET_EXAMPLE: &str = "docs/how-to/clients-on-several-hosts.md has an example";

/// Listens for client hosts, if the clients run on several hosts.
fn gate_of(experiment: &Experiment) -> Result<Option<Gate>, RunError> {
    let gate = experiment.run.fleet.as_ref().map(Gate::open).transpose();
    gate.map_err(|error| RunError::mistake(error.to_string(), FLEET_EXAMPLE))
}

/// Checks that the CPU can be profiled, if that is requested.
fn profile_if(options: &Options) -> Result<(), RunError> {
    if options.profile { Ok(profile::can_profile()?) } else { Ok(()) }
}

/// Checks an experiment whose results go to `out`, and shows what the user must know before the first trial.
///
/// # Errors
/// As [`Validated::new`].
fn admit(experiment: Experiment, out: &Path, allowed: Allowed, say: &dyn Fn(&str)) -> Result<Validated, RunError> {
    let data_base = experiment.run.data_dir.clone().unwrap_or_else(|| out.join("data"));
    let admitted = Validated::new(experiment, &data_base, allowed)?;
    for Warning { code, message, remedy } in admitted.notices() {
        match code.as_str() {
            "engine-left-out" => say(&format!("{message}; {remedy}")),
            _ => say(&format!("warning: {message} ({remedy})")),
        }
    }
    Ok(admitted)
}

/// Removes the leftovers of killed runs on this host, because this run may need their space.
pub fn clean_leftovers(managed: &ResourceRegistry, say: &dyn Fn(&str)) {
    let found = leftovers::find(managed).unwrap_or_default();
    let is_here = |leftover: &Leftover| !leftover.may_be_in_use() && !leftover.is_of(&leftovers::EXISTING_SERVER);
    let found: Vec<Leftover> = found.into_iter().filter(is_here).collect();
    for (leftover, cleaned) in leftovers::clean_each(&found, |leftover| managed.clean(leftover)) {
        match cleaned {
            Ok(()) => say(&format!("removed a leftover of a killed run: {leftover}")),
            Err(error) => say(&format!("left behind by a killed run: {leftover}, and it stays: {error}")),
        }
    }
}

/// The key of rumba itself among the versions, used if its commit does not identify the build.
const OWN_PROGRAM: &str = "rumba";

/// The versions of engines, and the other inputs that repeats of a trial must have in common.
fn versions(prepared: &Prepared, registry: &Registry) -> BTreeMap<String, String> {
    // The script counts as a version: trials of two script texts are not repeats of each other.
    let script = prepared.experiment().bound.conditions().into_iter().find(|(name, _)| name == SCRIPT_TEXT);
    let script = script.map(|(_, text)| ("the script".to_owned(), text));
    let own = own_build(&registry.build).map(|own| (OWN_PROGRAM.to_owned(), own));
    prepared.builds().versions().clone().into_iter().chain(script).chain(own).collect()
}

/// A description that distinguishes two builds of one commit, or builds without a repository. It covers the built-in
/// engines too.
fn own_build(build: &Build) -> Option<String> {
    if build.commit.is_some() && !build.dirty {
        return None;
    }
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let built = jiff::Timestamp::try_from(program.modified().ok()?).ok()?;
    Some(format!("a program of {} bytes, written at {built}", program.len()))
}
