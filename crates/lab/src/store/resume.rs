//! The state that is needed to resume an interrupted run: `resume.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rumba_results::record::TrialPlan;
use serde::{Deserialize, Serialize};

use super::error::ReadError;
use super::plain::read_plain;

/// The file's name.
pub(super) const FILE: &str = "resume.json";

/// The state that is needed to resume an interrupted run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// All its trials: first those of the experiment, then repeated loads.
    pub plans: Vec<TrialPlan>,
    /// How many of them belong to the experiment.
    pub planned: usize,
    /// The parent of data directories, absolute.
    pub data_base: PathBuf,
    /// The engines' versions, by their names in the experiment.
    pub versions: BTreeMap<String, String>,
    /// Whether the user permits leaving out limits that cannot be enforced.
    pub allow_unlimited: bool,
}

impl Resume {
    /// Updates trials: a trial replaces the one with its number, or is added at the end.
    pub fn update(&mut self, trials: &[TrialPlan]) {
        for trial in trials {
            match self.plans.iter_mut().find(|plan| plan.number == trial.number) {
                Some(plan) => *plan = trial.clone(),
                None => self.plans.push(trial.clone()),
            }
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Resume, ReadError> {
    let unreadable = |cause: String| ReadError::Unreadable { path: path.join(FILE), cause };
    let text = read_plain(path, FILE.as_ref()).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))
}

/// The parent of a run's data directories, absolute.
///
/// # Errors
/// When the directory does not have this state.
pub fn data_base(path: &Path) -> Result<PathBuf, ReadError> {
    read(path).map(|resume| resume.data_base)
}
