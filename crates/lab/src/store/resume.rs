//! What a run needs to go on where it was interrupted: `resume.json`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rumba_core::record::TrialPlan;
use rumba_core::warning::Warning;
use serde::{Deserialize, Serialize};

use super::append::replace;
use super::claim::{Claim, ClaimError};
use super::plain::read_plain;
use super::read::{ReadError, read_meta};
use super::room::Held;
use super::{ResultsDir, hold_room, plan};

const FILE: &str = "resume.json";

/// What a run needs to go on where it was interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// All its trials: first those of the experiment, then loads that were made again.
    pub plans: Vec<TrialPlan>,
    /// How many of them are the experiment's.
    pub planned: usize,
    /// Where data directories are made, absolute.
    pub data_base: PathBuf,
    /// The engines' versions, by their names in the experiment.
    pub versions: BTreeMap<String, String>,
    /// Whether limits that cannot be enforced were to be left out.
    pub allow_unlimited: bool,
}

impl Resume {
    /// Puts trials in as they are now planned: in the place of the one with the same number, or behind the last.
    pub fn update(&mut self, trials: &[TrialPlan]) {
        for trial in trials {
            match self.plans.iter_mut().find(|plan| plan.number == trial.number) {
                Some(plan) => *plan = trial.clone(),
                None => self.plans.push(trial.clone()),
            }
        }
    }
}

/// What a results directory has of it.
pub(super) fn read(path: &Path) -> Result<Resume, ReadError> {
    let unreadable = |cause: String| ReadError::Unreadable { path: path.join(FILE), cause };
    let text = read_plain(path, FILE.as_ref()).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))
}

/// Where the data directories of a run were made, absolute.
///
/// # Errors
/// When the directory does not tell.
pub fn data_base(path: &Path) -> Result<PathBuf, ReadError> {
    read(path).map(|resume| resume.data_base)
}

impl ResultsDir {
    /// Takes an existing results directory to go on with it.
    ///
    /// # Errors
    /// When it is none, or another process writes it, or its disk has no room, or it was made by a version that could
    /// not resume.
    pub fn reopen(path: &Path) -> Result<(Self, Resume), ClaimError> {
        read_meta(path)?;
        let claim = Claim::again(path)?;
        let resume = read(path)?;
        let room = hold_room(path, resume.plans.len())?;
        Ok((Self { claim, room }, resume))
    }

    /// Notes what a later process needs to go on, and which trials there are.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note(&self, resume: &Resume) -> io::Result<()> {
        let text = serde_json::to_string_pretty(resume)?;
        self.room.write(Held::Record, || replace(&self.path().join(FILE), &text))
    }

    /// Takes up a trial that follows from what others found: under the number that is next, which it gets here.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&self, trial: TrialPlan) -> io::Result<TrialPlan> {
        let mut resume = read(self.path()).map_err(io::Error::other)?;
        let number = resume.plans.iter().map(|plan| plan.number).max().unwrap_or(0) + 1;
        let trial = TrialPlan { number, ..trial };
        resume.plans.push(trial.clone());
        let (mut meta, _) = read_meta(self.path()).map_err(io::Error::other)?;
        meta.trials.push(plan::directory(&trial));
        let text = serde_json::to_string_pretty(&meta)?;
        self.room.write(Held::Record, || replace(&self.path().join("experiment.json"), &text))?;
        self.note(&resume)?;
        Ok(trial)
    }

    /// Says that the run has ended with this repeat, because it decides every headline: later ones are not missing. They
    /// stay planned, so that a run that goes on finds the plan of its experiment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn ends_with(&self, repeat: u32) -> io::Result<()> {
        let resume = read(self.path()).map_err(io::Error::other)?;
        let (mut meta, _) = read_meta(self.path()).map_err(io::Error::other)?;
        meta.trials = resume.plans.iter().filter(|plan| plan.repeat <= repeat).map(plan::directory).collect();
        let text = serde_json::to_string_pretty(&meta)?;
        self.room.write(Held::Record, || replace(&self.path().join("experiment.json"), &text))
    }

    /// Says that the run goes on: its trials as they are planned now, when, and what is to be warned of.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn goes_on(&self, resume: &Resume, warnings: Vec<Warning>) -> io::Result<()> {
        let (mut meta, _) = read_meta(self.path()).map_err(io::Error::other)?;
        meta.trials = resume.plans.iter().map(plan::directory).collect();
        let now = super::timestamp(jiff::Timestamp::now());
        let before = meta.conditions.get(RESUMED).map(|times| format!("{times}, ")).unwrap_or_default();
        meta.conditions.insert(RESUMED.to_owned(), format!("{before}{now}"));
        meta.warnings.extend(warnings);
        let text = serde_json::to_string_pretty(&meta)?;
        self.room.write(Held::Record, || replace(&self.path().join("experiment.json"), &text))?;
        self.note(resume)
    }
}

/// The condition that says when a run went on.
const RESUMED: &str = "resumed";
