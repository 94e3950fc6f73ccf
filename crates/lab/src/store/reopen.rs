//! Continues a results directory: reopens it, and changes its plan.

use std::io;
use std::path::Path;

use rumba_results::record::TrialPlan;
use rumba_results::warning::Warning;

use super::append::replace;
use super::claim::Claim;
use super::error::ClaimError;
use super::read::{EXPERIMENT, read_meta};
use super::resume::{self, FILE, Resume};
use super::room::Held;
use super::{Meta, ResultsDir, hold_room, plan};

/// The condition with the times at which a run was resumed.
const RESUMED: &str = "resumed";

impl ResultsDir {
    /// Opens an existing results directory to resume it.
    ///
    /// # Errors
    /// When it has no results, another process writes it, its disk is full, or a version without resume made it.
    pub fn reopen(path: &Path) -> Result<(Self, Resume), ClaimError> {
        read_meta(path)?;
        let claim = Claim::again(path)?;
        let resume = resume::read(path)?;
        let room = hold_room(path, resume.plans.len())?;
        Ok((Self { claim, room }, resume))
    }

    /// Notes the state that a later process needs to resume, and the list of trials.
    pub fn note(&self, resume: &Resume) -> io::Result<()> {
        let text = serde_json::to_string_pretty(resume)?;
        self.room.write(Held::Record, || replace(&self.path().join(FILE), &text))
    }

    /// Adds a trial that follows from earlier results; it gets the next number.
    pub fn add(&self, trial: TrialPlan) -> io::Result<TrialPlan> {
        let mut resume = resume::read(self.path()).map_err(io::Error::other)?;
        let number = resume.plans.iter().map(|plan| plan.number).max().unwrap_or(0) + 1;
        let trial = TrialPlan { number, ..trial };
        resume.plans.push(trial.clone());
        self.change_meta(|meta| meta.trials.push(plan::directory(&trial)))?;
        self.note(&resume)?;
        Ok(trial)
    }

    /// Notes that the run ended with this repeat, because every headline is decided: later repeats are not missing.
    /// They stay planned, so that a resumed run finds the experiment's plan.
    pub fn ends_with(&self, repeat: u32) -> io::Result<()> {
        let resume = resume::read(self.path()).map_err(io::Error::other)?;
        let run = resume.plans.iter().filter(|plan| plan.repeat <= repeat).map(plan::directory).collect();
        self.change_meta(|meta| meta.trials = run)
    }

    /// Notes that the run is resumed: its current plan, the time, and warnings.
    pub fn goes_on(&self, resume: &Resume, warnings: Vec<Warning>) -> io::Result<()> {
        self.change_meta(|meta| {
            meta.trials = resume.plans.iter().map(plan::directory).collect();
            let now = super::timestamp(jiff::Timestamp::now());
            let before = meta.conditions.get(RESUMED).map(|times| format!("{times}, ")).unwrap_or_default();
            meta.conditions.insert(RESUMED.to_owned(), format!("{before}{now}"));
            meta.warnings.extend(warnings);
        })?;
        self.note(resume)
    }

    /// Changes what `experiment.json` has of the run.
    fn change_meta(&self, change: impl FnOnce(&mut Meta)) -> io::Result<()> {
        let (mut meta, _) = read_meta(self.path()).map_err(io::Error::other)?;
        change(&mut meta);
        let text = serde_json::to_string_pretty(&meta)?;
        self.room.write(Held::Record, || replace(&self.path().join(EXPERIMENT), &text))
    }
}
