//! store: the results directory. It is written during the trials, so that any abrupt end costs at most the current
//! interval.

mod append;
mod claim;
mod damaged;
mod error;
mod follow;
mod merge;
mod plain;
mod profile;
mod read;
mod reopen;
mod resume;
mod room;
#[cfg(test)]
mod tests;
mod write;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_results::build::Build;
use rumba_results::record::{FORMAT, TrialPlan};
use rumba_results::warning::Warning;
use serde::{Deserialize, Serialize};

pub use append::{replace_named, replace_plain};
pub use claim::{Claim, is_being_written};
pub use error::{ClaimError, ReadError};
pub use follow::Following;
pub use merge::merge;
pub use plain::read_plain;
pub use profile::{Profile, STACKS, profiles};
pub use read::{has_results, read, read_head, read_records};
pub use resume::{Resume, data_base};
pub use room::lacked_room;
pub use write::TrialWriter;

use room::{Held, Room};

use crate::plan;
use crate::prepare::Prepared;

/// The contents of `experiment.json`: everything about an experiment except its trials' results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    format: u32,
    /// The experiment's name.
    pub name: String,
    /// The publication that it reproduces, if any.
    pub source: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The version of rumba that ran it.
    pub rumba: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    build: Option<Build>,
    conditions: BTreeMap<String, String>,
    warnings: Vec<Warning>,
    /// The directories of all planned trials below `trials/`, so that a reader knows which are missing.
    pub trials: Vec<String>,
}

/// A results directory that is being written.
pub struct ResultsDir {
    /// The claim keeps other runs out.
    claim: Claim,
    room: Arc<Room>,
}

/// A timestamp as RFC 3339 in UTC, to the second.
pub fn timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The same to the millisecond: trials of a second or less must keep their order.
pub fn precise_timestamp(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The preferred name of a new results directory: the experiment's name and the time.
fn directory_name(experiment: &str) -> String {
    format!("{experiment}-{}", jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S"))
}

impl ResultsDir {
    /// Makes the results of a prepared experiment in a claimed directory.
    ///
    /// # Errors
    /// When it cannot be written, or its disk is full; nothing is left in it then.
    pub fn create(mut claim: Claim, prepared: &Prepared) -> Result<Self, ClaimError> {
        let (experiment, trials) = (prepared.experiment(), prepared.trials());
        let meta = Meta {
            format: FORMAT,
            name: experiment.name.clone(),
            source: experiment.source.clone(),
            started: timestamp(jiff::Timestamp::now()),
            rumba: env!("CARGO_PKG_VERSION").to_owned(),
            build: Some(prepared.build().clone()),
            conditions: prepared.conditions().clone(),
            warnings: prepared.warnings().to_vec(),
            trials: trials.iter().map(plan::directory).collect(),
        };
        let path = claim.path();
        let room = hold_room(path, trials.len())?;
        // Create these files without replacing any. Locks do not reach another host of a shared disk, so this excludes
        // a run there.
        let (toml, json) = (path.join("experiment.toml"), path.join("experiment.json"));
        append::create(&toml, &experiment.as_run).map_err(|cause| error::io_error(&toml, cause))?;
        let begun = std::fs::create_dir(path.join("trials"))
            .and_then(|()| append::replace(&json, &serde_json::to_string_pretty(&meta)?));
        if let Err(cause) = begun {
            // A file that cannot be removed also shows that a run was begun here.
            let _ = std::fs::remove_file(&toml).and_then(|()| std::fs::remove_dir(path.join("trials")));
            return Err(error::io_error(path, cause));
        }
        claim.keep();
        Ok(Self { claim, room })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.claim.path()
    }

    /// Begins the results of a trial that this build runs.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn trial(&self, trial: &TrialPlan, build: &Build) -> io::Result<TrialWriter> {
        TrialWriter::create(self.path().join("trials").join(plan::directory(trial)), trial, build, self.room.clone())
    }

    /// Writes a summary file next to the trials, completely or not at all, and returns its path.
    pub fn summarise(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path().join(name);
        self.room.write(Held::Summary, || append::replace(&path, text))?;
        Ok(path)
    }

    /// The reason why results can no longer be written, if any: no further trial is run then.
    pub fn trouble(&self) -> Option<Warning> {
        self.room.trouble()
    }
}

/// Reserves space for the last writes on a full disk.
fn hold_room(path: &Path, trials: usize) -> Result<Arc<Room>, ClaimError> {
    let room = Room::hold(path, trials).map_err(|cause| match room::is_full(&cause) {
        true => ClaimError::NoRoom { path: path.to_owned(), mebibytes: room::held_bytes(trials).div_ceil(1 << 20) },
        false => error::io_error(path, cause),
    })?;
    Ok(Arc::new(room))
}
