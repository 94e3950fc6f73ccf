//! store: the results directory. It is written as the trials go, so that
//! whatever ends a run costs at most the current interval.

mod append;
mod read;
mod resume;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rumba_core::record::{FORMAT, TrialPlan};
use rumba_core::warning::Warning;
use serde::{Deserialize, Serialize};

pub use read::{ReadError, read};
pub use resume::Resume;
pub use write::TrialWriter;

use crate::plan;
use crate::spec::Experiment;

/// What `experiment.json` holds: everything about an experiment but its trials' results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Meta {
    format: u32,
    name: String,
    source: Option<String>,
    started: String,
    rumba: String,
    conditions: BTreeMap<String, String>,
    warnings: Vec<Warning>,
    /// The directories of all planned trials, so that a reader knows what is missing.
    trials: Vec<String>,
}

/// A results directory that is being written.
pub struct ResultsDir {
    path: PathBuf,
    /// While it is held, no other process writes it.
    _claim: std::fs::File,
}

/// A moment as RFC 3339 in UTC, to the second.
pub fn timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same to the millisecond: trials of a second or less must keep their order.
pub fn precise_timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The name of a new results directory: the experiment's name and the time.
pub fn directory_name(experiment: &str) -> String {
    format!("{experiment}-{}", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"))
}

impl ResultsDir {
    /// Makes a results directory; an existing one must be empty.
    ///
    /// # Errors
    /// When it holds something, or cannot be written.
    pub fn create(
        path: &Path,
        experiment: &Experiment,
        trials: &[TrialPlan],
        conditions: BTreeMap<String, String>,
        warnings: Vec<Warning>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(path.join("trials"))?;
        let claim = resume::claim(path)?;
        let meta = Meta {
            format: FORMAT,
            name: experiment.name.clone(),
            source: experiment.source.clone(),
            started: timestamp(jiff::Timestamp::now()),
            rumba: env!("CARGO_PKG_VERSION").to_owned(),
            conditions,
            warnings,
            trials: trials.iter().map(plan::directory).collect(),
        };
        append::replace(&path.join("experiment.toml"), &experiment.as_run)?;
        append::replace(&path.join("experiment.json"), &serde_json::to_string_pretty(&meta)?)?;
        Ok(Self { path: path.to_owned(), _claim: claim })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a trial's part of it.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn trial(&self, trial: &TrialPlan) -> io::Result<TrialWriter> {
        TrialWriter::create(self.path.join("trials").join(plan::directory(trial)), trial)
    }
}
