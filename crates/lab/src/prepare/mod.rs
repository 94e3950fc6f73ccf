//! prepare: preflight checks. Every run, and every question whether an experiment would run, goes through here.
//! Requests that this host cannot satisfy are refused before anything is made, and the limits are settled.
//!
//! [`Validated::new`] takes a checked experiment and settles its limits. [`Validated::check`] checks directories and
//! space for its trials. [`Validated::prepare`] does both and adds the host's conditions. From then on the experiment
//! does not change, because only this module makes these values.

mod error;
mod forecast;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::limits::Limits;
use rumba_engine_api::units::show_bytes;
use rumba_results::build::Build;
use rumba_results::record::TrialPlan;
use rumba_results::warning::Warning;

pub use error::Refusal;
pub use forecast::{Cpus, Forecast, Memory, Storage};
pub use room::TIMES_DATA;

use crate::builds::Builds;
use crate::limits::LimitError;
use crate::registry::Registry;
use crate::spec::{Experiment, Shortage, SpecError};
use crate::{host, limits, plan, provision};

/// Exceptions that a user permits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Leave out limits that this host cannot enforce.
    pub unlimited: bool,
    /// Run engines in less memory than they were measured to need.
    pub tight_memory: bool,
}

/// An experiment with the limits that this host enforces.
#[derive(Clone, Debug)]
pub struct Validated {
    experiment: Experiment,
    data_base: PathBuf,
    /// Warnings before the first trial.
    notices: Vec<Warning>,
    /// Warnings about limits that are not in force, and tight memory.
    known: Vec<Warning>,
}

impl Validated {
    /// Admits an experiment with data directories below `data_base`, and changes nothing.
    ///
    /// # Errors
    /// Memory that is too small, and limits that cannot be enforced, unless the user permits them; a data path whose
    /// name cannot be shown.
    pub fn new(experiment: Experiment, data_base: &Path, allowed: Allowed) -> Result<Self, Refusal> {
        provision::refuse_unshowable(&std::path::absolute(data_base).unwrap_or_else(|_| data_base.to_owned()))?;
        let tight = tight_memory(&experiment, allowed)?;
        let (engines, unlimited) = enforced(&experiment.engines, data_base, allowed)?;
        let few = plan::few_repeats(&experiment);
        let same = experiment.same_engines.iter().cloned();
        let unused = experiment.unused_memory.iter().cloned();
        let reported_first = experiment.left_out.iter().cloned().chain(few).chain(same);
        let notices =
            reported_first.chain(tight.iter().map(placed)).chain(unused).chain(closed_loop(&experiment)).collect();
        let tight = tight.iter().map(|shortage| reported(&shortage.mistake, shortage.mistake.problem.clone()));
        let known = unlimited.into_iter().chain(tight).collect();
        let data_base = data_base.to_owned();
        Ok(Self { experiment: Experiment { engines, ..experiment }, data_base, notices, known })
    }

    /// The experiment, with the enforced limits.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The warnings to show before the first trial.
    pub fn notices(&self) -> &[Warning] {
        &self.notices
    }

    pub fn plan(&self, registry: &Registry) -> Vec<TrialPlan> {
        plan::plan(&self.experiment, registry)
    }

    /// Whether these trials have directories and space for their data; changes nothing.
    ///
    /// # Errors
    /// A directory with contents that rumba did not make; too little space.
    pub fn check(&self, trials: &[TrialPlan], registry: &Registry) -> Result<(), Refusal> {
        for trial in trials {
            provision::DataDir::check(&self.data_base.join(plan::directory(trial)))?;
            provision::DataDir::check(&self.data_base.join(plan::volume_name(trial)))?;
        }
        room::check(&self.experiment, trials, &self.data_base, registry)
    }

    /// Prepares these trials, and gathers the conditions of their results.
    ///
    /// # Errors
    /// As [`Validated::check`].
    pub fn prepare(self, trials: Vec<TrialPlan>, registry: &Registry) -> Result<Prepared, Refusal> {
        self.check(&trials, registry)?;
        let Self { experiment, data_base, known, .. } = self;
        let facts = host::Facts::gather(&data_base);
        let memory = facts.machine.usable_memory_bytes();
        let mut conditions = facts.conditions();
        conditions.insert("rumba's commit".to_owned(), registry.build.to_string());
        conditions.extend(experiment.memory_needs.iter().cloned());
        let rows = experiment.bound.expected_logical_bytes();
        conditions.insert("data, logical".to_owned(), show_bytes(rows as f64));
        conditions.extend(plan::data_over_cache(&experiment, memory, registry));
        let mut warnings = facts.warnings();
        warnings.extend(experiment.left_out.iter().chain(&experiment.unused_memory).cloned().chain(known));
        warnings.extend(plan::warnings(&experiment, memory, registry));
        // A resumed run may have another working directory.
        let data_base = std::path::absolute(&data_base).unwrap_or(data_base);
        let builds = Builds::of(&experiment, registry);
        Ok(Prepared { experiment, trials, data_base, conditions, warnings, build: registry.build.clone(), builds })
    }
}

/// Trials of an experiment that have passed all preflight checks.
#[derive(Clone, Debug)]
pub struct Prepared {
    experiment: Experiment,
    trials: Vec<TrialPlan>,
    data_base: PathBuf,
    conditions: BTreeMap<String, String>,
    warnings: Vec<Warning>,
    build: Build,
    builds: Builds,
}

impl Prepared {
    /// The experiment, with the enforced limits.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The trials, in running order.
    pub fn trials(&self) -> &[TrialPlan] {
        &self.trials
    }

    /// The parent of the data directories.
    pub fn data_base(&self) -> &Path {
        &self.data_base
    }

    /// The conditions of the host and of the experiment on it, by name.
    pub fn conditions(&self) -> &BTreeMap<String, String> {
        &self.conditions
    }

    pub fn builds(&self) -> &Builds {
        &self.builds
    }

    /// The build of rumba that runs them.
    pub fn build(&self) -> &Build {
        &self.build
    }

    /// Warnings that are known before the first trial and weaken the results.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The engines with tight memory. Without the user's permission, the first engine that was measured not to run in so
/// little memory is an error.
fn tight_memory(experiment: &Experiment, allowed: Allowed) -> Result<Vec<Shortage>, Refusal> {
    match experiment.shortages.iter().find(|shortage| shortage.is_impossible && !allowed.tight_memory) {
        Some(Shortage { mistake, .. }) => {
            let remedy = format!("{}; or add --allow-tight-memory to run nevertheless", mistake.remedy);
            Err(SpecError { remedy, ..mistake.clone() }.into())
        }
        None => Ok(experiment.shortages.clone()),
    }
}

/// Warns that a run over an existing server is not bounded: its owner may need a part of the server.
fn closed_loop(experiment: &Experiment) -> Option<Warning> {
    let is_bounded = experiment.run.rate.is_some() || experiment.run.search.is_some();
    let existing = experiment.engines.iter().find(|engine| engine.is_existing()).filter(|_| !is_bounded)?;
    let message = format!("closed loop: the clients take all that the server of {} has", existing.name);
    Some(Warning::new("closed-loop", message, "bound the load with a rate, for example --set rate=1000"))
}

/// A shortage with its place in the experiment's file.
fn placed(Shortage { mistake, .. }: &Shortage) -> Warning {
    let place = mistake.place().map(|place| format!("{place}: ")).unwrap_or_default();
    reported(mistake, format!("{place}{}", mistake.problem))
}

fn reported(mistake: &SpecError, message: String) -> Warning {
    Warning::new("memory-tight", message, &mistake.remedy)
}

/// The engines with the limits that this host can enforce. If the user permits it, each other limit becomes a warning.
fn enforced(
    engines: &[EngineConfig],
    data_base: &Path,
    allowed: Allowed,
) -> Result<(Vec<EngineConfig>, Vec<Warning>), Refusal> {
    let (mut limited, mut unlimited) = (Vec::new(), Vec::new());
    for engine in engines {
        let (limits, warnings) = enforceable(engine, data_base)?;
        if let Some(warning) = warnings.first().filter(|_| !allowed.unlimited) {
            return Err(Refusal::Unenforceable {
                engine: engine.name.clone(),
                problem: warning.message.clone(),
                remedy: format!("{}; or add --allow-unlimited to run without this limit", warning.remedy),
            });
        }
        limits::check(&limits, data_base)?;
        limited.push(EngineConfig { limits, ..engine.clone() });
        for warning in warnings {
            if !unlimited.contains(&warning) {
                unlimited.push(warning);
            }
        }
    }
    Ok((limited, unlimited))
}

/// The limits of an engine that can be enforced, with a warning for each of the others. For an existing server only that
/// of rumba's own clients can be enforced.
fn enforceable(engine: &EngineConfig, data_base: &Path) -> Result<(Limits, Vec<Warning>), LimitError> {
    if !engine.is_existing() {
        return limits::enforceable(&engine.limits, data_base);
    }
    let Limits { memory_bytes, storage, cpus, client_cpus } = &engine.limits;
    let requested = [
        memory_bytes.map(|_| limits::MEMORY),
        storage.as_ref().map(|_| limits::STORAGE),
        cpus.as_ref().map(|_| limits::CPUS),
    ];
    let outside = |limit: &str| {
        let message =
            format!("{limit} is not in force: the server of {} runs already, where others put it", engine.name);
        Warning::new("limit-not-enforced", message, "give `limits` to the [[engine]]s alone that rumba starts")
    };
    let enforced = Limits { client_cpus: client_cpus.clone(), ..Limits::default() };
    Ok((enforced, requested.into_iter().flatten().map(outside).collect()))
}
