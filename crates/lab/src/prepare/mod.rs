//! prepare: the entrance. Whoever wants to run an experiment, or to know whether it would run, comes by here: what
//! this host cannot give it is refused before anything is made, and what it gets is settled.
//!
//! [`Admitted::new`] takes a checked experiment and settles its limits; [`Admitted::check`] looks whether its trials
//! have their places and their room; [`Admitted::prepare`] does both and adds what the results say of the host. From
//! then on nobody changes the experiment: only this module makes these values.

mod error;
mod forecast;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rumba_core::build::Build;
use rumba_core::engine::EngineConfig;
use rumba_core::limits::Limits;
use rumba_core::record::TrialPlan;
use rumba_core::units::show_bytes;
use rumba_core::warning::Warning;

pub use error::Refusal;
pub use forecast::{Forecast, Memory, Storage};
pub use room::TIMES_DATA;

use crate::builds::Builds;
use crate::limits::LimitError;
use crate::registry::Registry;
use crate::spec::{Experiment, Shortage, SpecError};
use crate::{host, limits, plan, provision};

/// What a user lets through that is refused otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Limits that this host cannot enforce are left out.
    pub unlimited: bool,
    /// Engines run in less memory than they were measured to need.
    pub tight_memory: bool,
}

/// An experiment with the limits that this host enforces.
#[derive(Clone, Debug)]
pub struct Admitted {
    experiment: Experiment,
    data_base: PathBuf,
    /// What is to be said before the first trial.
    notices: Vec<Warning>,
    /// Limits that are not in force, and memory that is tight.
    known: Vec<Warning>,
}

impl Admitted {
    /// Admits an experiment whose data directories are to be made below `data_base`, and touches nothing.
    ///
    /// # Errors
    /// Memory that is too small, and limits that cannot be enforced, unless they are allowed; a place for the data
    /// whose name cannot be shown.
    pub fn new(experiment: Experiment, data_base: &Path, allowed: Allowed) -> Result<Self, Refusal> {
        provision::refuse_unshowable(&std::path::absolute(data_base).unwrap_or_else(|_| data_base.to_owned()))?;
        let tight = tight_memory(&experiment, allowed)?;
        let (engines, unlimited) = enforced(&experiment.engines, data_base, allowed)?;
        let few = plan::few_repeats(&experiment);
        let same = experiment.same_engines.iter().cloned();
        let unused = experiment.unused_memory.iter().cloned();
        let told_first = experiment.left_out.iter().cloned().chain(few).chain(same);
        let notices = told_first.chain(tight.iter().map(placed)).chain(unused).collect();
        let tight = tight.iter().map(|shortage| told(&shortage.mistake, shortage.mistake.problem.clone()));
        let known = unlimited.into_iter().chain(tight).collect();
        let data_base = data_base.to_owned();
        Ok(Self { experiment: Experiment { engines, ..experiment }, data_base, notices, known })
    }

    /// The experiment, with the limits that are in force.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// What a user is to be told before the first trial.
    pub fn notices(&self) -> &[Warning] {
        &self.notices
    }

    /// All its trials.
    pub fn plan(&self, registry: &Registry) -> Vec<TrialPlan> {
        plan::plan(&self.experiment, registry)
    }

    /// Whether trials of it have their places and room for their data; touches nothing.
    ///
    /// # Errors
    /// A directory that holds something that rumba did not make; too little room.
    pub fn check(&self, trials: &[TrialPlan], registry: &Registry) -> Result<(), Refusal> {
        for trial in trials {
            provision::DataDir::check(&self.data_base.join(plan::directory(trial)))?;
            limits::VolumeDir::check(&self.data_base.join(plan::volume_name(trial)))?;
        }
        room::check(&self.experiment, trials, &self.data_base, registry)
    }

    /// Prepares trials of it, and gathers what a reader of their results must know.
    ///
    /// # Errors
    /// As [`Admitted::check`].
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
        // A run may go on from another working directory.
        let data_base = std::path::absolute(&data_base).unwrap_or(data_base);
        let builds = Builds::of(&experiment, registry);
        Ok(Prepared { experiment, trials, data_base, conditions, warnings, build: registry.build.clone(), builds })
    }
}

/// Trials of an experiment that have all that they were promised.
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
    /// The experiment, with the limits that are in force.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The trials, in the order of running.
    pub fn trials(&self) -> &[TrialPlan] {
        &self.trials
    }

    /// Where their data directories are made.
    pub fn data_base(&self) -> &Path {
        &self.data_base
    }

    /// The host, and how the experiment stands to it, by name.
    pub fn conditions(&self) -> &BTreeMap<String, String> {
        &self.conditions
    }

    /// The builds of its engines.
    pub fn builds(&self) -> &Builds {
        &self.builds
    }

    /// The build that runs them.
    pub fn build(&self) -> &Build {
        &self.build
    }

    /// What makes the results less trustworthy, as far as that is known before the first trial.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The engines whose memory is tight; or, where nobody allows it, the first that was measured not to run in so little.
fn tight_memory(experiment: &Experiment, allowed: Allowed) -> Result<Vec<Shortage>, Refusal> {
    match experiment.shortages.iter().find(|shortage| shortage.is_impossible && !allowed.tight_memory) {
        Some(Shortage { mistake, .. }) => {
            let remedy = format!("{}; or add --allow-tight-memory to run nevertheless", mistake.remedy);
            Err(SpecError { remedy, ..mistake.clone() }.into())
        }
        None => Ok(experiment.shortages.clone()),
    }
}

/// A shortage with its place in the experiment's file.
fn placed(Shortage { mistake, .. }: &Shortage) -> Warning {
    let place = mistake.place().map(|place| format!("{place}: ")).unwrap_or_default();
    told(mistake, format!("{place}{}", mistake.problem))
}

fn told(mistake: &SpecError, message: String) -> Warning {
    Warning::new("memory-tight", message, &mistake.remedy)
}

/// The engines with the limits that this host can enforce; and, where the user allows it, a warning of each that it
/// cannot.
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

/// What of an engine's limits can be enforced, and a warning of each that cannot: of an existing server none.
fn enforceable(engine: &EngineConfig, data_base: &Path) -> Result<(Limits, Vec<Warning>), LimitError> {
    if !engine.is_existing() {
        return limits::enforceable(&engine.limits, data_base);
    }
    let asked =
        [engine.limits.memory_bytes.map(|_| limits::MEMORY), engine.limits.storage.as_ref().map(|_| limits::STORAGE)];
    let outside = |limit: &str| {
        let message =
            format!("{limit} is not in force: the server of {} runs already, where others put it", engine.name);
        Warning::new("limit-not-enforced", message, "give `limits` to the [[engine]]s alone that rumba starts")
    };
    Ok((Limits::default(), asked.into_iter().flatten().map(outside).collect()))
}
